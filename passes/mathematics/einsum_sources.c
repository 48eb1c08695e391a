/* Which digits of a statement each operand holds.
 *
 * The one idea: a tensor that names some digits of an axis only (`N / 4` in Slice) holds the elements at which the others are 0, and
 * a stage that names more of them repeats those elements. So an operand is indexed by a digit when every tensor from the one
 * that made its value up to the operand names it, and is repeated over every other digit. Where a tensor's digits end inside
 * a digit of the statement, the statement's is cut. */
#include "passes/mathematics/einsum_build.h"

/* ---- windows ---- */

/* How does a digit's counter move a window's term? */
typedef enum window_use { WINDOW_INSIDE, WINDOW_OUTSIDE, WINDOW_CUT } window_use;

static window_use use_of_term(const einsum_builder *b, const window_term *t, const einsum_digit *d)
{
    int64_t end = t->weight * t->extent;
    if (b->axes[d->axis] != t->of || d->weight % end == 0 || (d->weight < t->weight && d->size <= t->weight / d->weight))
        return WINDOW_OUTSIDE;
    return d->weight % t->weight == 0 && (d->size - 1) * d->weight < end ? WINDOW_INSIDE : WINDOW_CUT;
}

static bool windows_meet(const axis *a, const axis *b)
{
    for (uint32_t i = 0; i < a->term_count; i++)
        for (uint32_t k = 0; k < b->term_count; k++)
            if (window_term_meets(&a->terms[i], b->terms[k].of, b->terms[k].weight, b->terms[k].extent))
                return true;
    return false;
}

/* What is wrong with reading (or writing) the value's window by the step's digits; NULL: nothing. A window is indexed by its own
 * digits or by those of its terms; a result only by its own. A tile of it has places of its own, which are no digits of either. */
static const char *window_fault(einsum_builder *b, const einsum_step *step, const einsum_tensor *v, uint32_t number, einsum_side side)
{
    const axis *window = b->axes[number];
    bool own = side == EINSUM_DST;
    for (uint32_t i = 0; i < step->s.digit_count; i++)
        if (!einsum_tensor_has(v, step->digits[i].axis) && windows_meet(window, b->axes[step->digits[i].axis]))
            return arena_printf(b->context->arena, "a result is made of `%s`, a tile of the window `%s`",
                                b->axes[step->digits[i].axis]->name, window->name);
    for (uint32_t i = 0; i < step->s.digit_count; i++)
        own = own || (step->digits[i].axis == number && einsum_digit_indexes(&step->digits[i], side));
    for (uint32_t i = 0; i < step->s.digit_count; i++)
        for (uint32_t k = 0; k < window->term_count && einsum_digit_indexes(&step->digits[i], side); k++) {
            window_use use = use_of_term(b, &window->terms[k], &step->digits[i]);
            const char *name = b->axes[step->digits[i].axis]->name;
            if (use == WINDOW_CUT)
                return arena_printf(b->context->arena, "axis %s is cut where the window `%s` does not cut it", name, window->name);
            if (use == WINDOW_INSIDE && own)
                return arena_printf(b->context->arena, "axis %s and the window `%s` over it are named at once", name, window->name);
        }
    return NULL;
}

static void check_windows(einsum_builder *b, op *o, const einsum_step *step)
{
    for (unsigned i = 0; i < einsum_side_count(&step->s) && !o->bad; i++) {
        const einsum_tensor *v = &b->values[einsum_operand(&step->s, (einsum_side)i)];
        for (uint32_t k = 0; k < v->rank && !o->bad; k++) {
            const char *fault = b->axes[v->axes[k]]->term_count ? window_fault(b, step, v, v->axes[k], (einsum_side)i) : NULL;
            if (!fault)
                continue;
            diag *d = pass_refuse(b->context, b->kernel, o, MAPPING_COMPONENTS, E_EINSUM, "%s", fault);
            diag_help(b->context->diags, d, "cut the axes where `%s` names them, and name either the window or its axes",
                      b->axes[v->axes[k]]->name);
        }
    }
}

/* ---- tensors ---- */

/* Calls `visit` for the factors of one tensor, until it says false. */
typedef bool (*factor_visitor)(void *user, const factor *f);

static bool visit_factors(const tensor *t, factor_visitor visit, void *user)
{
    for (component c = 0; c < MAPPING_COMPONENTS; c++)
        for (size_t i = 0; t->part[c] && i < t->part[c]->count; i++)
            if (!visit(user, &t->part[c]->factors[i]))
                return false;
    return true;
}

/* The operation after which the operand's value was still the same; NULL: it was made here. */
static const op *before(const einsum_builder *b, const op *o)
{
    const op *in = o->kind == IR_RESHAPE ? o->reshape->from : op_input(o); /* names in between are nobody's */
    return in && b->of[in->index].value == b->of[o->index].value ? in : NULL;
}

/* A window names the digits of its terms, and they name it. */
static bool window_names(const einsum_builder *b, const axis *a, const einsum_digit *d)
{
    const axis *own = b->axes[d->axis];
    for (uint32_t k = 0; k < a->term_count; k++)
        if (use_of_term(b, &a->terms[k], d) != WINDOW_OUTSIDE)
            return true;
    for (uint32_t k = 0; k < own->term_count; k++)
        if (own->terms[k].of == a)
            return true;
    return false;
}

typedef struct named_digit {
    const einsum_builder *builder;
    const einsum_digit *digit;
} named_digit;

static bool not_named(void *user, const factor *f)
{
    const named_digit *n = user;
    const einsum_digit *d = n->digit;
    const axis *own = n->builder->axes[d->axis];
    if (f->kind == FACTOR_AXIS && f->axis == own)
        return d->weight < f->weight || d->weight >= f->weight * f->live;
    if (f->kind == FACTOR_AXIS)
        return !window_names(n->builder, f->axis, d);
    for (size_t i = 0; f->kind == FACTOR_COMPOSITE && i < f->inner->count; i++)
        if (!not_named(user, &f->inner->factors[i]))
            return false;
    return true;
}

static bool holds(const einsum_builder *b, const op *source, const einsum_digit *d)
{
    for (const op *o = source; o; o = before(b, o))
        if (visit_factors(&o->out, not_named, &(named_digit){b, d}))
            return false;
    return true;
}

/* Does the digit move the place in the value at all? */
static bool moves(const einsum_builder *b, const einsum_tensor *v, const einsum_digit *d)
{
    for (uint32_t i = 0; i < v->rank; i++) {
        const axis *a = b->axes[v->axes[i]];
        if (v->axes[i] == d->axis)
            return true;
        for (uint32_t k = 0; k < a->term_count; k++)
            if (use_of_term(b, &a->terms[k], d) != WINDOW_OUTSIDE)
                return true;
    }
    return false;
}

/* ---- cutting ---- */

typedef struct cutter {
    einsum_builder *builder;
    einsum_step *step;
    op *op;
    const tensor *tensor; /* of the operand, being visited */
} cutter;

typedef struct coordinate {
    const axis *axis;
    int64_t at;
} coordinate;

static bool is_beside(void *user, const factor *f)
{
    const coordinate *c = user;
    return f->kind != FACTOR_AXIS || f->axis != c->axis || c->at < f->weight || c->at >= f->weight * f->live;
}

/* Do the digits of the tensor go on through this coordinate of the axis? Where they do they are not cut: a tensor that names all
 * digits of an axis holds it, however it cuts it. */
static bool names(const tensor *t, const axis *a, int64_t at)
{
    return !visit_factors(t, is_beside, &(coordinate){a, at});
}

/* Splits the digits of the axis that go on through coordinate `at`. */
static void cut_axis(cutter *c, const axis *a, int64_t at)
{
    einsum_step *step = c->step;
    for (uint32_t i = 0; i < step->s.digit_count; i++) {
        einsum_digit *d = &step->digits[i];
        if (c->builder->axes[d->axis] != a || d->weight >= at || (d->size - 1) * d->weight < at || at % d->weight)
            continue;
        int64_t inner = at / d->weight;
        bool is_last = d->weight * d->size >= a->size; /* what is beyond the axis's end does not exist */
        if ((d->size % inner && !is_last) || step->s.digit_count == EINSUM_MAX_DIGITS)
            continue;
        for (uint32_t k = step->s.digit_count++; k > i; k--)
            step->digits[k] = step->digits[k - 1];
        step->renamed = (step->renamed >> i << (i + 1)) | (step->renamed & ((UINT64_C(2) << i) - 1)); /* both digits are what the one was */
        step->digits[i].weight = at;
        step->digits[i].lane = (unsigned char)(d->lane * inner);
        step->digits[i].stride *= inner;
        step->digits[i].size = (d->size + inner - 1) / inner;
        step->digits[i + 1].size = inner;
        return;
    }
}

static bool cut_at_factor(void *user, const factor *f)
{
    cutter *c = user;
    if (f->kind != FACTOR_AXIS || f->live == 1)
        return true;
    int64_t end = f->weight * f->live;
    if (f->weight > 1 && !names(c->tensor, f->axis, f->weight - 1))
        cut_axis(c, f->axis, f->weight);
    if (end < f->axis->size && !names(c->tensor, f->axis, end))
        cut_axis(c, f->axis, end);
    return true;
}

static void visit_source(cutter *c, const op *source, factor_visitor visit)
{
    for (const op *o = source; o && !c->op->bad; o = before(c->builder, o)) {
        c->tensor = &o->out;
        visit_factors(&o->out, visit, c);
    }
}

/* Does the end of what an operand holds lie inside a digit that could not be cut there? */
static const einsum_digit *straddled(const einsum_builder *b, const einsum_step *step, const factor *f)
{
    for (uint32_t i = 0; i < step->s.digit_count; i++) {
        const einsum_digit *d = &step->digits[i];
        if (b->axes[d->axis] == f->axis && d->size > 1 && d->weight < f->weight && (d->size - 1) * d->weight >= f->weight)
            return d;
    }
    return NULL;
}

static bool check_factor(void *user, const factor *f)
{
    cutter *c = user;
    bool begins = f->kind == FACTOR_AXIS && f->live > 1 && f->weight > 1 && !names(c->tensor, f->axis, f->weight - 1);
    const einsum_digit *d = begins ? straddled(c->builder, c->step, f) : NULL;
    if (!d)
        return true;
    pass_context *p = c->builder->context;
    diag *e =
        pass_refuse(p, c->builder->kernel, c->op, MAPPING_COMPONENTS, E_EINSUM, "an operand holds `%s`, which cuts a digit of %s in two",
                    mapping_text(mapping_of_factor(p->mappings, f), p->arena), f->axis->name);
    diag_help(p->diags, e, "cut axis %s at the same places in all tensors of the contraction", f->axis->name);
    return false;
}

/* ---- groups ---- */

typedef struct group_search {
    const factor *piece; /* of the computation mapping */
    int64_t position;    /* of the group: the operand holds all of the piece below it */
    bool advanced;
} group_search;

static bool advance_group(void *user, const factor *f)
{
    group_search *g = user;
    if (f->kind == FACTOR_COMPOSITE && f->inner == g->piece->inner && f->weight <= g->position && f->weight * f->extent > g->position) {
        g->position = f->weight * f->extent;
        g->advanced = true;
    }
    return true;
}

static bool holds_piece(const tensor *t, const factor *piece)
{
    group_search g = {.piece = piece, .position = piece->weight, .advanced = true};
    int64_t end = piece->weight * (piece->live - 1) + 1;
    while (g.position < end && g.advanced) {
        g.advanced = false;
        visit_factors(t, advance_group, &g);
    }
    return g.position >= end;
}

static bool is_apart(void *user, const factor *f)
{
    const factor *piece = user;
    const axis *axes[EINSUM_MAX_AXES];
    uint32_t count = mapping_axes(piece->inner, axes, EINSUM_MAX_AXES);
    for (uint32_t i = 0; i < count; i++)
        if (f->axis == axes[i] || (f->kind == FACTOR_COMPOSITE && mapping_mentions(f->inner, axes[i])))
            return false;
    return true;
}

/* A group's pieces are no digits, so an operand holds all of a piece or nothing of the group. The stream lacks Row and the tiling
 * axes, and nothing else of the computation mapping; the weights hold what their Row and Element name. */
static void check_group(einsum_builder *b, op *o, component c, const factor *f, int64_t position)
{
    const op *align = op_input(o);
    bool streamed = c != ROW && (c != TIME || position >= align->align->tiling->size);
    bool stream_agrees = streamed || visit_factors(&op_input(align)->out, is_apart, (void *)f);
    bool weights_agree = holds_piece(&op_weights(align)->out, f) || visit_factors(&op_weights(align)->out, is_apart, (void *)f);
    if (stream_agrees && weights_agree)
        return;
    diag *d = pass_refuse(b->context, b->kernel, o, MAPPING_COMPONENTS, E_EINSUM,
                          "an operand is repeated over `%s`, a part of a group that does not cut into axis digits",
                          mapping_text(mapping_of_factor(b->context->mappings, f), b->context->arena));
    diag_help(b->context->diags, d, "let both operands hold the whole group, or pad its axes one by one so that it cuts");
}

static void check_groups(einsum_builder *b, op *o)
{
    const tensor *computation = &op_input(o)->out;
    for (component c = 0; c < MAPPING_COMPONENTS; c++) {
        const mapping *m = computation->part[c];
        int64_t position = m ? m->size : 1;
        for (size_t i = 0; m && i < m->count && !o->bad; i++) {
            position /= m->factors[i].extent;
            if (m->factors[i].kind == FACTOR_COMPOSITE)
                check_group(b, o, c, &m->factors[i], position);
        }
    }
}

/* ---- both operands ---- */

bool einsum_source_holds(einsum_builder *b, op *o, const op *source, const tensor *t)
{
    einsum_step probe = {.renamed = 0};
    const einsum_tensor *value = &b->values[b->of[source->index].value];
    einsum_copy_digits(b, &probe, o, t);
    visit_source(&(cutter){.builder = b, .step = &probe, .op = o}, source, cut_at_factor);
    for (uint32_t i = 0; i < probe.s.digit_count; i++)
        if (moves(b, value, &probe.digits[i]) && !holds(b, source, &probe.digits[i]))
            return false;
    return true;
}

void einsum_turn(einsum_builder *b)
{
    reference *of = b->of;
    b->of = b->other;
    b->other = of;
}

static void turn_to(einsum_builder *b, unsigned of_other, unsigned source)
{
    if (of_other >> source & 1)
        einsum_turn(b);
}

void einsum_settle_list(einsum_builder *b, einsum_step *step, op *o, const op *const *sources, unsigned count, unsigned of_other)
{
    cutter c = {.builder = b, .step = step, .op = o};
    const factor_visitor visits[] = {cut_at_factor, check_factor};
    for (unsigned i = 0; i < 2 * count; i++) {
        turn_to(b, of_other, i % count);
        visit_source(&c, sources[i % count], visits[i / count]);
        turn_to(b, of_other, i % count);
    }
    if (step->s.op == MATH_CONTRACT && !o->bad)
        check_groups(b, o);
    for (uint32_t i = 0; i < step->s.digit_count; i++) {
        einsum_digit *d = &step->digits[i];
        for (unsigned k = 0; k < count; k++) {
            turn_to(b, of_other, k);
            if (moves(b, &b->values[step->s.sources[k]], d) && !holds(b, sources[k], d))
                d->broadcast |= 1u << (EINSUM_A + k);
            turn_to(b, of_other, k);
        }
    }
    check_windows(b, o, step);
}

void einsum_settle_sources(einsum_builder *b, einsum_step *step, op *o, const op *a, const op *other)
{
    einsum_settle_list(b, step, o, (const op *const[]){a, other}, other ? 2 : 1, 0);
}
