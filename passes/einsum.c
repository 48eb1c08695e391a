#include "passes/einsum.h"

/* What an operation's tensor is: a value, seen through the tiles of a view. */
typedef struct reference {
    uint32_t value;
    const tile_window *window; /* NULL: the whole value */
} reference;

typedef struct builder {
    pass_context *context;
    kernel *kernel;
    kernel_einsum *e;
    reference *of;  /* by operation */
    uint32_t *uses; /* by operation: how often the memory or stream is used */
} builder;

static uint32_t add_value(builder *b, dtype type, int64_t port)
{
    einsum_value v = {.dtype = type, .port = port};
    ARENA_PUSH(b->context->arena, b->e->values, b->e->value_count, b->e->value_capacity, v);
    return (uint32_t)b->e->value_count - 1;
}

static void add_offsets(builder *b, einsum_step *s, unsigned side, const tile_window *w)
{
    for (uint32_t i = 0; w && i < w->shift_count; i++) {
        if (w->shifts[i].offset == 0)
            continue;
        einsum_offset *grown = ARENA_ARRAY(b->context->arena, einsum_offset, s->offset_count + 1);
        for (uint32_t k = 0; k < s->offset_count; k++)
            grown[k] = s->offsets[k];
        grown[s->offset_count++] = (einsum_offset){side, w->shifts[i].axis, w->shifts[i].offset};
        s->offsets = grown;
    }
}

static einsum_step *add_step(builder *b, bool contract, reference dst, reference a, reference other)
{
    einsum_step s = {.contract = contract, .dst = dst.value, .a = a.value, .b = contract ? other.value : 0};
    add_offsets(b, &s, 0, dst.window);
    add_offsets(b, &s, 1, a.window);
    if (contract)
        add_offsets(b, &s, 2, other.window);
    ARENA_PUSH(b->context->arena, b->e->steps, b->e->step_count, b->e->step_capacity, s);
    return &b->e->steps[b->e->step_count - 1];
}

static reference whole(uint32_t value)
{
    return (reference){.value = value};
}

static void value_add_axis(einsum_value *v, const axis *a)
{
    for (uint32_t i = 0; i < v->rank; i++)
        if (v->axes[i] == a)
            return;
    if (v->rank < EINSUM_MAX_AXES)
        v->axes[v->rank++] = a;
}

/* The axes of a tensor in the order in which its components first name them: the order of its logical form. */
static void value_take_axes(einsum_value *v, const tensor *t)
{
    for (int c = 0; c < MAPPING_COMPONENTS; c++) {
        const axis *axes[EINSUM_MAX_AXES];
        uint32_t count = t->part[c] ? mapping_axes(t->part[c], axes, EINSUM_MAX_AXES) : 0;
        for (uint32_t i = 0; i < count; i++)
            value_add_axis(v, axes[i]);
    }
}

/* ---- digits ---- */

typedef struct digit_sink {
    builder *builder;
    einsum_step *step; /* digits: EINSUM_MAX_DIGITS of them, cut to size at the end */
    op *op;
    bool failed;
    const axis *whole[EINSUM_MAX_AXES]; /* axes of groups that do not cut into digits */
    uint32_t whole_count;
} digit_sink;

static bool is_whole(const digit_sink *s, const axis *a)
{
    for (uint32_t i = 0; i < s->whole_count; i++)
        if (s->whole[i] == a)
            return true;
    return false;
}

static void refuse_group(digit_sink *s, const factor *f)
{
    pass_context *p = s->builder->context;
    if (!s->failed) {
        diag *d = pass_refuse(p, s->builder->kernel, s->op, MAPPING_COMPONENTS, E_EINSUM,
                              "`%s` is summed, and is a part of a group that does not cut into axis digits",
                              mapping_text(mapping_of_factor(p->mappings, f), p->arena));
        diag_help(p->diags, d, "pad the axes of the group one by one, so that the summed part is digits of axes");
    }
    s->failed = true;
}

static void push_digit(digit_sink *s, const axis *a, int64_t weight, int64_t size, bool kept);

/* A kept group that does not cut into digits: its axes as wholes. That says more elements than the group holds, and the
 * port's mapping says which of them there are; so one digit per axis replaces all others of it. */
static void push_group(digit_sink *s, const factor *f)
{
    const axis *axes[EINSUM_MAX_AXES];
    uint32_t count = mapping_axes(f->inner, axes, EINSUM_MAX_AXES);
    for (uint32_t i = 0; i < count; i++) {
        if (is_whole(s, axes[i]) || s->whole_count == EINSUM_MAX_AXES)
            continue;
        uint32_t kept = 0;
        for (uint32_t d = 0; d < s->step->count; d++) {
            if (s->step->digits[d].axis == axes[i] && !s->step->digits[d].kept)
                refuse_group(s, f);
            if (s->step->digits[d].axis != axes[i])
                s->step->digits[kept++] = s->step->digits[d];
        }
        s->step->count = kept;
        push_digit(s, axes[i], 1, axes[i]->size, true);
        s->whole[s->whole_count++] = axes[i];
    }
}

static void push_digit(digit_sink *s, const axis *a, int64_t weight, int64_t size, bool kept)
{
    if (size == 1 || (kept && is_whole(s, a)))
        return;
    if (s->step->count == EINSUM_MAX_DIGITS) {
        if (!s->failed) {
            diag *e = pass_refuse(s->builder->context, s->builder->kernel, s->op, MAPPING_COMPONENTS, E_EINSUM, "the kernel walks more than %d axis digits", EINSUM_MAX_DIGITS);
            diag_help(s->builder->context->diags, e, "cut the axes into fewer digits, or spread the work over several kernels");
        }
        s->failed = true;
        return;
    }
    s->step->digits[s->step->count++] = (einsum_part){a, kept, weight, size};
}

/* Cuts the live range of a factor at `cut` positions inside it. The outer piece may reach past a window's end only where
 * the axis ends as well. */
static void push_cut(digit_sink *s, const factor *f, int64_t from, int64_t to, bool kept)
{
    int64_t live = (f->live + from - 1) / from, size = to / from < live ? to / from : live;
    if (f->live % from && f->live > from && f->live < (f->axis->size + f->weight - 1) / f->weight && !s->failed) {
        diag *d = pass_refuse(s->builder->context, s->builder->kernel, s->op, MAPPING_COMPONENTS, E_EINSUM, "the window `%s` is cut where it does not divide",
                              mapping_text(mapping_of_factor(s->builder->context->mappings, f), s->builder->context->arena));
        diag_help(s->builder->context->diags, d, "cut it at a divisor of its %lld positions, which is a multiple of %lld or divides it", (long long)f->live, (long long)from);
        s->failed = true;
    }
    push_digit(s, f->axis, f->weight * from, size, kept);
}

/* Says of a position range of a component whether it is kept; `end` is set to where the answer may change. */
typedef bool (*kept_at)(const op *align, const op *contract, const op *accumulate, int64_t position, int64_t *end);

static bool always_kept(const op *align, const op *contract, const op *accumulate, int64_t position, int64_t *end)
{
    (void)align, (void)contract, (void)accumulate, (void)position;
    *end = INT64_MAX;
    return true;
}

static bool lane_kept(const op *align, const op *contract, const op *accumulate, int64_t position, int64_t *end)
{
    (void)align, (void)accumulate;
    int64_t reach = (int64_t)1 << contract->contract->tree_depth;
    *end = position < reach ? reach : INT64_MAX;
    return position >= reach;
}

static bool step_kept(const op *align, const op *contract, const op *accumulate, int64_t position, int64_t *end)
{
    (void)align, (void)contract;
    *end = INT64_MAX;
    if (!accumulate)
        return true;
    const accumulate_config *a = accumulate->accumulate;
    int64_t low = 1;
    for (uint32_t i = a->count; i-- > 0;) {
        int64_t high = low * a->loops[i].size;
        if (position < high) {
            *end = high;
            return !a->loops[i].reduced;
        }
        low = high;
    }
    return true;
}

static void push_component(digit_sink *s, const mapping *m, kept_at kept, const op *align, const op *contract, const op *accumulate, bool want)
{
    int64_t position = m->size;
    for (size_t i = 0; i < m->count; i++) {
        const factor *f = &m->factors[i];
        position /= f->extent;
        int64_t until;
        if (f->kind == FACTOR_COMPOSITE && kept(align, contract, accumulate, position, &until) && until / position >= f->extent) {
            if (want)
                push_group(s, f);
        } else if (f->kind == FACTOR_COMPOSITE) {
            refuse_group(s, f);
        }
        if (f->kind != FACTOR_AXIS)
            continue;
        /* Pieces innermost first, pushed outermost first. */
        struct { int64_t from, to; bool kept; } pieces[ACCUMULATE_MAX_LOOPS + 2];
        size_t count = 0;
        int64_t from = 1;
        while (from < f->extent && count < ACCUMULATE_MAX_LOOPS + 2) {
            int64_t end;
            bool is_kept = kept(align, contract, accumulate, position * from, &end);
            int64_t to = end == INT64_MAX || end / position > f->extent ? f->extent : end / position;
            pieces[count].from = from;
            pieces[count].to = to;
            pieces[count++].kept = is_kept;
            from = to;
        }
        while (count-- > 0)
            if (pieces[count].kept == want)
                push_cut(s, f, pieces[count].from, pieces[count].to, want);
    }
}

/* ---- windows ---- */

/* How does a digit's counter move a window's term? */
typedef enum window_use { WINDOW_INSIDE, WINDOW_OUTSIDE, WINDOW_CUT } window_use;

static window_use use_of_term(const window_term *t, const einsum_part *d)
{
    int64_t end = t->weight * t->extent;
    if (d->axis != t->of || d->weight % end == 0 || (d->weight < t->weight && d->size <= t->weight / d->weight))
        return WINDOW_OUTSIDE;
    return d->weight % t->weight == 0 && (d->size - 1) * d->weight < end ? WINDOW_INSIDE : WINDOW_CUT;
}

/* What is wrong with reading (or writing) the value's window by the step's digits; NULL: nothing. A window is indexed by its own
 * digits or by those of its terms; a result only by its own. */
static const char *window_fault(builder *b, const einsum_step *step, const axis *window, bool is_destination)
{
    bool own = is_destination;
    for (uint32_t i = 0; i < step->count; i++)
        own = own || step->digits[i].axis == window;
    for (uint32_t i = 0; i < step->count; i++)
        for (uint32_t k = 0; k < window->term_count; k++) {
            window_use use = use_of_term(&window->terms[k], &step->digits[i]);
            const char *name = step->digits[i].axis->name;
            if (use == WINDOW_CUT)
                return arena_printf(b->context->arena, "axis %s is cut where the window `%s` does not cut it", name, window->name);
            if (use == WINDOW_INSIDE && own)
                return arena_printf(b->context->arena, "axis %s and the window `%s` over it are named at once", name, window->name);
        }
    return NULL;
}

static void check_windows(builder *b, op *o, const einsum_step *step)
{
    const uint32_t values[] = {step->dst, step->a, step->b};
    for (int i = 0; i < (step->contract ? 3 : 2) && !o->bad; i++) {
        const einsum_value *v = &b->e->values[values[i]];
        for (uint32_t k = 0; k < v->rank && !o->bad; k++) {
            const char *fault = v->axes[k]->term_count ? window_fault(b, step, v->axes[k], i == 0) : NULL;
            if (fault) {
                diag *d = pass_refuse(b->context, b->kernel, o, MAPPING_COMPONENTS, E_EINSUM, "%s", fault);
                diag_help(b->context->diags, d, "name either the window or whole terms of it: %s", v->axes[k]->name);
            }
        }
    }
}

/* ---- statements ---- */

static digit_sink sink_open(builder *b, einsum_step *step, op *o)
{
    static const uint32_t room = EINSUM_MAX_DIGITS;
    step->digits = ARENA_ARRAY(b->context->arena, einsum_part, room);
    return (digit_sink){.builder = b, .step = step, .op = o};
}

static void copy_digits(builder *b, einsum_step *step, op *o, const tensor *t)
{
    digit_sink s = sink_open(b, step, o);
    for (int c = 0; c < MAPPING_COMPONENTS; c++)
        if (t->part[c])
            push_component(&s, t->part[c], always_kept, NULL, NULL, NULL, true);
}

static void visit_contract(builder *b, op *o, const op *accumulate)
{
    const op *align = o->input;
    const tensor *t = &align->out;
    uint32_t dst = add_value(b, o->out.dtype, -1);
    einsum_step *step = add_step(b, true, whole(dst), b->of[align->input->index], b->of[align->weights->index]);
    step->accumulator = o->out.dtype;
    digit_sink s = sink_open(b, step, o);
    for (int want = 1; want >= 0; want--) {
        for (component c = CHIP; c <= ROW; c++)
            push_component(&s, t->part[c], always_kept, align, o, accumulate, want);
        push_component(&s, t->part[TIME], step_kept, align, o, accumulate, want);
        push_component(&s, t->part[PACKET], lane_kept, align, o, accumulate, want);
    }
    for (uint32_t i = 0; i < step->count; i++)
        if (step->digits[i].kept)
            value_add_axis(&b->e->values[dst], step->digits[i].axis);
    check_windows(b, o, step);
    b->of[o->index] = whole(dst);
}

/* The step that made the value, when it was the last one and its value is seen whole. */
static einsum_step *just_made(builder *b, reference from)
{
    einsum_step *last = b->e->step_count ? &b->e->steps[b->e->step_count - 1] : NULL;
    return last && last->dst == from.value && !from.window && b->e->values[from.value].port < 0 ? last : NULL;
}

static void visit_conversion(builder *b, op *o)
{
    reference from = b->of[o->input->index];
    einsum_step *last = just_made(b, from);
    if (last && last->contract && b->uses[o->input->index] == 1 && b->e->values[from.value].dtype == last->accumulator) {
        b->e->values[from.value].dtype = o->out.dtype; /* the sum is cast where it is made */
        b->of[o->index] = from;
        return;
    }
    uint32_t dst = add_value(b, o->out.dtype, -1);
    value_take_axes(&b->e->values[dst], &o->out);
    einsum_step *step = add_step(b, false, whole(dst), from, from);
    copy_digits(b, step, o, &o->out);
    check_windows(b, o, step);
    b->of[o->index] = whole(dst);
}

/* Is the memory or stream used by one operation only, on all the way back to where its value was made? */
static bool is_only_use(const builder *b, const op *o, uint32_t value)
{
    for (; o && b->of[o->index].value == value && !b->of[o->index].window; o = o->input) {
        if (b->uses[o->index] != 1 || o->into || o->kind == IR_ALLOC || o->kind == IR_VIEW)
            return false;
        if (!o->input || b->of[o->input->index].value != value)
            return true;
    }
    return true;
}

/* A write through a view: the step that made the value writes the part of the memory at once where nothing else needs it. */
static void visit_write(builder *b, op *o)
{
    reference from = b->of[o->input->index], to = {b->of[op_root(o->into)->index].value, o->into->window};
    einsum_step *last = just_made(b, from);
    if (last && last->offset_count < EINSUM_MAX_OFFSETS && is_only_use(b, o->input, from.value)) {
        last->dst = to.value;
        add_offsets(b, last, 0, to.window);
        return;
    }
    einsum_step *step = add_step(b, false, to, from, from);
    copy_digits(b, step, o, &o->into->out);
    check_windows(b, o, step);
}

static bool same_axes(const einsum_value *a, const einsum_value *b)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < a->rank; i++)
        for (uint32_t j = 0; j < b->rank; j++)
            found += a->axes[i] == b->axes[j];
    return a->rank == b->rank && found == a->rank;
}

/* The result: the statement that makes it writes the port at once where the port has the same axes. */
static void visit_output(builder *b, op *o, uint32_t port, reference from)
{
    einsum_value *value = &b->e->values[from.value];
    einsum_value result = {.dtype = value->dtype, .port = port};
    value_take_axes(&result, &b->kernel->ports[port].tensor);
    if (value->port < 0 && same_axes(value, &result) && !from.window) {
        *value = result;
        return;
    }
    uint32_t dst = add_value(b, result.dtype, port);
    b->e->values[dst] = result;
    einsum_step *step = add_step(b, false, whole(dst), from, from);
    copy_digits(b, step, o, &b->kernel->ports[port].tensor);
    check_windows(b, o, step);
}

static void visit_memory(builder *b, op *o, int64_t port)
{
    uint32_t v = add_value(b, o->out.dtype, port);
    value_take_axes(&b->e->values[v], &o->out);
    b->of[o->index] = whole(v);
}

/* A tile of memory that is itself a tile of a value (a copy of it). */
static const tile_window *add_windows(builder *b, const tile_window *of, const tile_window *w)
{
    tile_window *sum = ARENA_NEW(b->context->arena, tile_window);
    *sum = *of;
    for (uint32_t i = 0; i < w->shift_count; i++) {
        uint32_t k = 0;
        while (k < sum->shift_count && sum->shifts[k].axis != w->shifts[i].axis)
            k++;
        if (k == sum->shift_count && k < TILE_MAX_SHIFTS)
            sum->shifts[sum->shift_count++] = (tile_shift){w->shifts[i].axis, 0};
        if (k < sum->shift_count)
            sum->shifts[k].offset += w->shifts[i].offset;
    }
    return sum;
}

static void visit(builder *b, op *o)
{
    const op *accumulate = NULL;
    switch (o->kind) {
    case IR_PORT_IN:
        visit_memory(b, o, o->port);
        break;
    case IR_ALLOC:
        visit_memory(b, o, -1);
        break;
    case IR_VIEW:
        b->of[o->index] = (reference){b->of[op_root(o)->index].value, o->window};
        if (b->of[op_root(o)->index].window)
            b->of[o->index].window = add_windows(b, b->of[op_root(o)->index].window, o->window);
        break;
    case IR_CONTRACT:
        for (size_t i = o->index + 1; i < b->kernel->op_count && !accumulate; i++)
            if (b->kernel->ops[i]->kind == IR_ACCUMULATE && b->kernel->ops[i]->input == o)
                accumulate = b->kernel->ops[i];
        visit_contract(b, o, accumulate);
        break;
    case IR_PORT_OUT:
        visit_output(b, o, o->port, b->of[o->input->index]);
        if (o->input->kind == IR_ALIGN)
            visit_output(b, o, o->port + 1, b->of[o->input->weights->index]);
        break;
    default:
        if (o->into)
            visit_write(b, o);
        else if (o->out.dtype != o->input->out.dtype)
            visit_conversion(b, o);
        else
            b->of[o->index] = b->of[o->input->index];
    }
}

/* Values that no step needs any more are forgotten. */
static void compact(builder *b)
{
    kernel_einsum *e = b->e;
    uint32_t *number = ARENA_ARRAY(b->context->arena, uint32_t, e->value_count + 1), kept = 0;
    for (size_t i = 0; i < e->step_count; i++) {
        einsum_step *s = &e->steps[i];
        number[s->dst] = number[s->a] = 1;
        if (s->contract)
            number[s->b] = 1;
    }
    for (size_t i = 0; i < e->value_count; i++)
        if (number[i] || e->values[i].port >= 0) {
            e->values[kept] = e->values[i];
            number[i] = kept++;
        }
    e->value_count = kept;
    for (size_t i = 0; i < e->step_count; i++) {
        einsum_step *s = &e->steps[i];
        s->dst = number[s->dst];
        s->a = number[s->a];
        s->b = s->contract ? number[s->b] : 0;
    }
}

static void count_uses(builder *b)
{
    for (size_t i = 0; i < b->kernel->op_count; i++) {
        const op *o = b->kernel->ops[i];
        if (o->input)
            b->uses[o->input->index]++;
        if (o->weights)
            b->uses[o->weights->index]++;
    }
}

/* ---- "MK,NK->MN" ---- */

static bool single_letters(const kernel_einsum *e)
{
    for (size_t v = 0; v < e->value_count; v++)
        for (uint32_t i = 0; i < e->values[v].rank; i++)
            if (e->values[v].axes[i]->name[1])
                return false;
    return true;
}

static void print_axes(strbuf *s, const einsum_value *v, bool dense)
{
    for (uint32_t i = 0; i < v->rank; i++)
        strbuf_printf(s, "%s%s", i && !dense ? " " : "", v->axes[i]->name);
}

static const char *einsum_text(builder *b)
{
    strbuf s;
    strbuf_init(&s, b->context->arena);
    bool dense = single_letters(b->e);
    for (size_t i = 0; i < b->e->step_count; i++) {
        const einsum_step *step = &b->e->steps[i];
        strbuf_puts(&s, i ? "; " : "");
        print_axes(&s, &b->e->values[step->a], dense);
        if (step->contract) {
            strbuf_puts(&s, dense ? "," : ", ");
            print_axes(&s, &b->e->values[step->b], dense);
        }
        strbuf_puts(&s, dense ? "->" : " -> ");
        print_axes(&s, &b->e->values[step->dst], dense);
    }
    return s.text;
}

/* Parts of a result that its type leaves open are those of the stage that makes it. */
static void settle_outputs(kernel *k)
{
    for (size_t i = 0; i < k->op_count; i++)
        for (int c = 0; c < MAPPING_COMPONENTS && k->ops[i]->kind == IR_PORT_OUT; c++)
            if (!k->ops[i]->out.part[c] && k->ops[i]->input->out.kind == k->ops[i]->out.kind) {
                k->ops[i]->out.part[c] = k->ops[i]->input->out.part[c];
                k->ports[k->ops[i]->port].tensor.part[c] = k->ops[i]->out.part[c];
            }
}

void pass_einsum(pass_context *p, kernel *k)
{
    settle_outputs(k);
    for (size_t i = 0; i < k->op_count; i++)
        if (k->ops[i]->bad || (k->ops[i]->input && k->ops[i]->input->bad) || k->bad)
            return;
    builder b = {.context = p, .kernel = k, .e = ARENA_NEW(p->arena, kernel_einsum), .of = ARENA_ARRAY(p->arena, reference, k->op_count + 1),
                 .uses = ARENA_ARRAY(p->arena, uint32_t, k->op_count + 1)};
    count_uses(&b);
    for (size_t i = 0; i < k->op_count; i++)
        visit(&b, k->ops[i]);
    compact(&b);
    b.e->text = einsum_text(&b);
    k->einsum = b.e;
}
