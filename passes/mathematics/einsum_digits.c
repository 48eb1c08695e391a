/* The digits that a statement walks: those of its mapping, cut where a component's positions change from kept to summed.
 *
 * A group, `[X, Y] # 32`, is no digit. Where its pieces together are the whole group, all kept or all summed, the digits of the
 * group's own mapping are walked instead, and its padding by nothing. Where these pieces are several, the group's digits count its
 * positions, and the pieces say when the machine meets these. */
#include "passes/mathematics/einsum_build.h"

typedef struct digit_sink {
    einsum_builder *builder;
    einsum_step *step; /* digits: EINSUM_MAX_DIGITS of them */
    op *op;
    const tensor *tensor;                              /* whose digits are walked */
    const op *contract, *accumulate, *reduce, *slices; /* NULL: everything is kept */
    bool failed;
    const axis *whole[EINSUM_MAX_AXES]; /* axes of groups that do not cut into digits */
    uint32_t whole_count;
    const mapping *walked[EINSUM_MAX_AXES]; /* groups whose own digits were pushed */
    unsigned walked_group[EINSUM_MAX_AXES]; /* their numbers; 0: kept */
    uint32_t walked_count;
    unsigned group_count, group; /* of what is summed; whose digits are pushed now, 0: none's */
    bool has_pieces;
} digit_sink;

static bool is_whole(const digit_sink *s, const axis *a)
{
    for (uint32_t i = 0; i < s->whole_count; i++)
        if (s->whole[i] == a)
            return true;
    return false;
}

static diag *refuse(digit_sink *s, const char *text)
{
    if (s->failed)
        return NULL;
    s->failed = true;
    return pass_refuse(s->builder->context, s->builder->kernel, s->op, MAPPING_COMPONENTS, E_EINSUM, "%s", text);
}

static const char *factor_text(digit_sink *s, const factor *f)
{
    return mapping_text(mapping_of_factor(s->builder->context->mappings, f), s->builder->context->arena);
}

static void refuse_group(digit_sink *s, const factor *f)
{
    arena *a = s->builder->context->arena;
    diag *d = refuse(s, arena_printf(a, "`%s` is summed, and is a part of a group that does not cut into axis digits", factor_text(s, f)));
    if (d)
        diag_help(s->builder->context->diags, d,
                  "sum the whole group, or pad its axes one by one so that it cuts: the part must be digits of `%s`",
                  mapping_text(f->inner, a));
}

static void push_piece(digit_sink *s, unsigned group, int64_t weight, int64_t size, int64_t lane)
{
    if (size > 1 && s->step->s.piece_count < EINSUM_MAX_DIGITS)
        s->step->pieces[s->step->s.piece_count++] = (einsum_piece){(unsigned char)group, (unsigned char)lane, weight, size};
}

/* `stride` positions of the group, or of a digit alone, are between its values. */
static void push_digit(digit_sink *s, const axis *a, int64_t weight, int64_t size, bool kept, int64_t lane, int64_t stride)
{
    if (size == 1 || (kept && is_whole(s, a)))
        return;
    if (s->step->s.digit_count == EINSUM_MAX_DIGITS) {
        diag *d = refuse(s, arena_printf(s->builder->context->arena, "the kernel walks more than %d axis digits", EINSUM_MAX_DIGITS));
        if (d)
            diag_help(s->builder->context->diags, d, "cut the axes into fewer digits");
        return;
    }
    unsigned group = kept ? 0 : s->group ? s->group : ++s->group_count;
    if (group && !s->group)
        push_piece(s, group, 1, size, lane);
    s->step->digits[s->step->s.digit_count++] = (einsum_digit){.axis = einsum_axis_number(s->builder, a),
                                                               .kept = kept,
                                                               .weight = weight,
                                                               .size = size,
                                                               .lane = (unsigned char)(kept ? 0 : lane),
                                                               .group = (unsigned char)group,
                                                               .stride = s->group ? stride : 1};
}

/* The weight of the innermost digit of the axis that the mapping names from `from` on, and where it ends; false: there is none. */
static bool next_named(const mapping *m, const axis *a, int64_t from, int64_t *weight, int64_t *end)
{
    bool found = false;
    for (size_t i = 0; m && i < m->count; i++) {
        const factor *f = &m->factors[i];
        int64_t w = f->weight, e = 0;
        if (f->kind == FACTOR_AXIS && f->axis == a && f->live > 1)
            e = f->weight * f->live;
        else if (f->kind != FACTOR_COMPOSITE || !next_named(f->inner, a, from, &w, &e))
            continue;
        if (e <= from || (found && w > *weight) || (found && w == *weight && e <= *end))
            continue;
        *weight = w;
        *end = e;
        found = true;
    }
    return found;
}

/* The same of the tensor. */
static bool next_of_tensor(const tensor *t, const axis *a, int64_t from, int64_t *weight, int64_t *end)
{
    bool found = false;
    for (component c = 0; c < MAPPING_COMPONENTS; c++) {
        int64_t w, e;
        if (!next_named(t->part[c], a, from, &w, &e) || (found && (w > *weight || (w == *weight && e <= *end))))
            continue;
        *weight = w;
        *end = e;
        found = true;
    }
    return found;
}

/* The digits of the axis that the tensor names, those next to each other as one, outermost first. */
static void push_named(digit_sink *s, const axis *a)
{
    struct {
        int64_t weight, end;
    } runs[EINSUM_MAX_DIGITS];
    size_t count = 0;
    int64_t weight = 0, end = 1;
    while (count < EINSUM_MAX_DIGITS && next_of_tensor(s->tensor, a, end, &weight, &end)) {
        bool goes_on = count > 0 && weight <= runs[count - 1].end;
        if (!goes_on)
            runs[count++].weight = weight;
        runs[count - 1].end = end;
    }
    for (size_t i = count; i-- > 0;) {
        bool last = i + 1 == count || runs[i].end > a->size;
        push_digit(s, a, runs[i].weight, ceil_div(last ? a->size : runs[i].end, runs[i].weight), true, 0, 0);
    }
}

/* A kept part of a group: whole digits of its axes. That says more elements than the part holds, and the port's mapping says which of
 * them there are; so the digits that the tensor names of an axis replace all others of it. */
static void push_group_axes(digit_sink *s, const factor *f)
{
    const axis *axes[EINSUM_MAX_AXES];
    uint32_t count = mapping_axes(f->inner, axes, EINSUM_MAX_AXES);
    for (uint32_t i = 0; i < count; i++) {
        if (is_whole(s, axes[i]) || s->whole_count == EINSUM_MAX_AXES)
            continue;
        uint32_t kept = 0;
        uint32_t number = einsum_axis_number(s->builder, axes[i]);
        for (uint32_t d = 0; d < s->step->s.digit_count; d++) {
            if (s->step->digits[d].axis == number && !s->step->digits[d].kept)
                refuse_group(s, f);
            if (s->step->digits[d].axis != number)
                s->step->digits[kept++] = s->step->digits[d];
        }
        s->step->s.digit_count = kept;
        push_named(s, axes[i]);
        s->whole[s->whole_count++] = axes[i];
    }
}

/* Cuts the live range of a factor at `cut` positions inside it; `lane` of the packet and `stride` of a group are between its positions. The
 * outer piece may reach past a window's end only where the axis ends as well. */
static void push_cut(digit_sink *s, const factor *f, int64_t from, int64_t to, bool kept, int64_t lane, int64_t stride)
{
    int64_t live = (f->live + from - 1) / from, size = to / from < live ? to / from : live;
    if (f->live % from && f->live > from && f->live < (f->axis->size + f->weight - 1) / f->weight) {
        diag *d = refuse(s, arena_printf(s->builder->context->arena, "the window `%s` is cut where it does not divide", factor_text(s, f)));
        if (d)
            diag_help(s->builder->context->diags, d, "let the sum take a divisor of its %lld elements", (long long)f->live);
    }
    push_digit(s, f->axis, f->weight * from, size, kept, lane * from, stride * from);
}

/* ---- kept or summed ---- */

/* Is a position of a component kept? `end` is set to where the answer may change. */
static bool lane_kept(const op *contract, int64_t position, int64_t *end)
{
    int64_t reach = (int64_t)1 << contract->contract->tree_depth;
    *end = position < reach ? reach : INT64_MAX;
    return position >= reach;
}

static bool step_kept(const accumulate_loop *loops, uint32_t count, int64_t position, int64_t *end)
{
    int64_t low = 1;
    for (uint32_t i = count; i-- > 0;) {
        int64_t high = low * loops[i].size;
        if (position < high) {
            *end = high;
            return !loops[i].reduced;
        }
        low = high;
    }
    return true;
}

static bool position_kept(const digit_sink *s, component c, int64_t position, int64_t *end)
{
    *end = INT64_MAX;
    if (c == PACKET && s->contract)
        return lane_kept(s->contract, position, end);
    if (c == TIME && s->accumulate)
        return step_kept(s->accumulate->accumulate->loops, s->accumulate->accumulate->count, position, end);
    if (c == TIME && s->reduce)
        return step_kept(s->reduce->vector_reduce->loops, s->reduce->vector_reduce->count, position, end);
    if (c == SLICE && s->slices && position < s->slices->vector_slices->ring) {
        *end = s->slices->vector_slices->ring;
        return false;
    }
    return !(c == PACKET && s->reduce && s->reduce->vector_reduce->tree);
}

/* Are the factor's positions, from `position` on, all kept (1) or all summed (0)? -1: both. */
static int factor_kept(const digit_sink *s, component c, const factor *f, int64_t position)
{
    int64_t end;
    bool kept = position_kept(s, c, position, &end);
    return end == INT64_MAX || end / position >= f->extent ? kept : -1;
}

/* ---- groups ---- */

/* Are the pieces of the group together the whole of it, and all kept or all summed alike? */
static bool group_is_uniform(digit_sink *s, const mapping *inner, int kept)
{
    const factor *pieces[EINSUM_MAX_DIGITS];
    size_t count = 0;
    for (component c = 0; c < MAPPING_COMPONENTS; c++) {
        const mapping *m = s->tensor->part[c];
        int64_t position = m ? m->size : 1;
        for (size_t i = 0; m && i < m->count; i++) {
            const factor *f = &m->factors[i];
            position /= f->extent;
            if (f->kind != FACTOR_COMPOSITE || f->inner != inner)
                continue;
            if (count == EINSUM_MAX_DIGITS || factor_kept(s, c, f, position) != kept)
                return false;
            pieces[count++] = f;
        }
    }
    return pass_is_group(s->builder->context, pieces, count);
}

static void push_mapping(digit_sink *s, const mapping *m, bool kept, int64_t lane)
{
    int64_t position = m->size;
    for (size_t i = 0; i < m->count; i++) {
        const factor *f = &m->factors[i];
        position /= f->extent;
        if (f->kind == FACTOR_AXIS)
            push_cut(s, f, 1, f->extent, kept, lane * position, position);
        else if (f->kind == FACTOR_COMPOSITE && kept)
            push_group_axes(s, f);
        else if (f->kind == FACTOR_COMPOSITE)
            refuse_group(s, f);
    }
}

static void push_group(digit_sink *s, component c, const factor *f, int64_t position, bool want)
{
    int kept = factor_kept(s, c, f, position);
    int64_t lane = c == PACKET ? position : 0;
    for (uint32_t i = 0; i < s->walked_count; i++)
        if (s->walked[i] == f->inner) {
            if (s->walked_group[i]) {
                push_piece(s, s->walked_group[i], f->weight, f->live, lane);
                s->has_pieces = true;
            }
            return;
        }
    if (kept == want && s->walked_count < EINSUM_MAX_AXES && group_is_uniform(s, f->inner, kept)) {
        uint32_t before = s->step->s.digit_count;
        s->group = want ? 0 : s->group_count + 1;
        push_mapping(s, f->inner, want, lane);
        if (s->step->s.digit_count == before) /* of size 1 */
            s->group = 0;
        if (s->group) {
            s->group_count++;
            push_piece(s, s->group, f->weight, f->live, lane);
        }
        s->walked_group[s->walked_count] = s->group;
        s->walked[s->walked_count++] = f->inner;
        s->group = 0;
    } else if (kept != 1) {
        if (!want)
            refuse_group(s, f);
    } else if (want) {
        push_group_axes(s, f);
    }
}

/* ---- components ---- */

/* The factor's pieces, outermost first, that are kept as wanted. */
static void push_factor(digit_sink *s, component c, const factor *f, int64_t position, bool want)
{
    struct {
        int64_t from, to;
        bool kept;
    } pieces[ACCUMULATE_MAX_LOOPS + 2];
    size_t count = 0;
    int64_t from = 1;
    while (from < f->extent && count < ACCUMULATE_MAX_LOOPS + 2) {
        int64_t end;
        bool kept = position_kept(s, c, position * from, &end);
        int64_t to = end == INT64_MAX || end / position > f->extent ? f->extent : end / position;
        pieces[count].from = from;
        pieces[count].to = to;
        pieces[count++].kept = kept;
        from = to;
    }
    while (count-- > 0)
        if (pieces[count].kept == want)
            push_cut(s, f, pieces[count].from, pieces[count].to, want, c == PACKET ? position : 0, 1);
}

static void push_component(digit_sink *s, component c, bool want)
{
    const mapping *m = s->tensor->part[c];
    int64_t position = m ? m->size : 1;
    for (size_t i = 0; m && i < m->count; i++) {
        const factor *f = &m->factors[i];
        position /= f->extent;
        if (f->kind == FACTOR_COMPOSITE)
            push_group(s, c, f, position, want);
        else if (f->kind == FACTOR_AXIS)
            push_factor(s, c, f, position, want);
    }
}

static void push_all(digit_sink *s)
{
    s->step->digits = einsum_room_for_digits(s->builder);
    s->step->pieces = arena_alloc_unset(s->builder->context->arena, EINSUM_MAX_DIGITS * sizeof(einsum_piece));
    for (int want = 1; want >= 0; want--)
        for (component c = 0; c < MAPPING_COMPONENTS; c++)
            push_component(s, c, want);
    if (s->has_pieces) {
        for (uint32_t i = 0; i < s->step->s.digit_count; i++)
            s->step->digits[i].lane = 0; /* the pieces say it */
        return;
    }
    s->step->s.piece_count = 0; /* the digits are in order themselves */
    for (uint32_t i = 0; i < s->step->s.digit_count; i++)
        s->step->digits[i].group = 0;
}

einsum_digit *einsum_room_for_digits(einsum_builder *b)
{
    return arena_alloc_unset(b->context->arena, EINSUM_MAX_DIGITS * sizeof(einsum_digit));
}

void einsum_copy_digits(einsum_builder *b, einsum_step *step, op *o, const tensor *t)
{
    push_all(&(digit_sink){.builder = b, .step = step, .op = o, .tensor = t});
}

void einsum_contract_digits(einsum_builder *b, einsum_step *step, op *contract, const op *accumulate)
{
    push_all(&(digit_sink){
        .builder = b, .step = step, .op = contract, .tensor = &op_input(contract)->out, .contract = contract, .accumulate = accumulate});
}

void einsum_reduce_digits(einsum_builder *b, einsum_step *step, op *reduce)
{
    push_all(&(digit_sink){.builder = b, .step = step, .op = reduce, .tensor = &op_input(reduce)->out, .reduce = reduce});
}

void einsum_slices_digits(einsum_builder *b, einsum_step *step, op *reduce)
{
    push_all(&(digit_sink){.builder = b, .step = step, .op = reduce, .tensor = &op_input(reduce)->out, .slices = reduce});
}
