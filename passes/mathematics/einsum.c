/* The statements of an einsum: what each operation makes of its values. */
#include <string.h>

#include "passes/mathematics/einsum_build.h"

uint32_t einsum_axis_number(einsum_builder *b, const axis *a)
{
    for (size_t i = 0; i < b->axis_count; i++)
        if (b->axes[i] == a)
            return (uint32_t)i;
    ARENA_PUSH(b->context->arena, b->axes, b->axis_count, b->axis_capacity, a);
    return (uint32_t)b->axis_count - 1;
}

static uint32_t add_value(einsum_builder *b, dtype type, int64_t port)
{
    einsum_tensor v = {.dtype = type, .port = (int32_t)port};
    ARENA_PUSH(b->context->arena, b->values, b->value_count, b->value_capacity, v);
    ARENA_PUSH(b->context->arena, b->computed, b->computed_count, b->computed_capacity, false);
    return (uint32_t)b->value_count - 1;
}

/* The axes of a tensor become those of the value. */
static void set_axes(einsum_builder *b, einsum_tensor *v, const tensor *t)
{
    const axis *axes[EINSUM_MAX_AXES];
    v->rank = tensor_axes(t, axes, EINSUM_MAX_AXES);
    uint32_t *numbers = ARENA_ARRAY(b->context->arena, uint32_t, v->rank);
    for (uint32_t i = 0; i < v->rank; i++)
        numbers[i] = einsum_axis_number(b, axes[i]);
    v->axes = numbers;
}

/* A value with the axes of the tensor, in its element type; differences from a zero point are i32. */
static uint32_t add_value_like(einsum_builder *b, const tensor *t, int64_t port)
{
    uint32_t v = add_value(b, dtype_is_staging(t->dtype) ? DTYPE_I32 : t->dtype, port);
    set_axes(b, &b->values[v], t);
    return v;
}

static void add_shifts(einsum_builder *b, einsum_step *s, einsum_side side, const tile_window *w)
{
    for (uint32_t i = 0; w && i < w->shift_count; i++) {
        if (w->shifts[i].offset == 0)
            continue;
        einsum_shift *grown = ARENA_ARRAY(b->context->arena, einsum_shift, s->s.shift_count + 1);
        for (uint32_t k = 0; k < s->s.shift_count; k++)
            grown[k] = s->shifts[k];
        grown[s->s.shift_count++] = (einsum_shift){side, einsum_axis_number(b, w->shifts[i].axis), w->shifts[i].offset};
        s->shifts = grown;
    }
}

static einsum_step *add_step(einsum_builder *b, math_op what, reference dst, reference a, reference other)
{
    const reference sources[] = {a, other};
    einsum_step s = {.s = {.op = what, .dst = dst.value, .source_count = math_row_of(what)->fewest_sources}};
    add_shifts(b, &s, EINSUM_DST, dst.window);
    for (uint32_t i = 0; i < s.s.source_count; i++) {
        s.s.sources[i] = sources[i].value;
        add_shifts(b, &s, (einsum_side)(EINSUM_A + i), sources[i].window);
    }
    ARENA_PUSH(b->context->arena, b->steps, b->step_count, b->step_capacity, s);
    return &b->steps[b->step_count - 1];
}

static reference whole(uint32_t value)
{
    return (reference){.value = value};
}

/* ---- NaNs ---- */

/* May the expression's NaNs be any? What is only moved or selected has the bits that it had. */
static bool computes_nans(const scalar_step *last)
{
    switch (last->op) {
    case SCALAR_SOURCE:
    case SCALAR_CONSTANT_F32:
    case SCALAR_F32_OF_BITS:
    case SCALAR_SELECT_F32:
    case SCALAR_CANONICAL_F32: return false;
    default: return true;
    }
}

/* A statement has been made: whether its destination may hold NaNs. A copy hands on those of its source. */
static void note_computed(einsum_builder *b, const einsum_statement *s)
{
    bool computes = s->op == MATH_CONTRACT || s->op == MATH_REDUCE || (s->op == MATH_MAP && computes_nans(&s->steps[s->step_count - 1])) ||
                    (s->op == MATH_COPY && b->computed[s->sources[0]]);
    b->computed[s->dst] = b->computed[s->dst] || computes;
}

/* ---- statements ---- */

/* A window whose outer places are zero, in a value that is the same at all places: it would be zero there as well. */
static void check_borders(einsum_builder *b, op *o, const op *stream)
{
    const einsum_tensor *v = &b->values[b->of[stream->index].value];
    for (int c = 0; c < MAPPING_COMPONENTS && !o->bad; c++) {
        const axis *axes[EINSUM_MAX_AXES];
        uint32_t count = stream->out.part[c] ? mapping_axes(stream->out.part[c], axes, EINSUM_MAX_AXES) : 0;
        for (uint32_t i = 0; i < count && !o->bad; i++) {
            if (!axes[i]->bordered || einsum_tensor_has(v, einsum_axis_number(b, axes[i])))
                continue;
            diag *d = pass_refuse(b->context, b->kernel, o, MAPPING_COMPONENTS, E_EINSUM,
                                  "the window `%s` is zero outside the places it holds, and what it holds are copies of one element",
                                  axes[i]->name);
            diag_help(b->context->diags, d, "let the tensor have the window from the beginning");
        }
    }
}

/* The axes of the kept digits, in their order. */
static void set_kept_axes(einsum_builder *b, einsum_tensor *v, const einsum_step *step)
{
    uint32_t *axes = ARENA_ARRAY(b->context->arena, uint32_t, EINSUM_MAX_AXES);
    v->axes = axes;
    for (uint32_t i = 0; i < step->s.digit_count; i++)
        if (step->digits[i].kept && !einsum_tensor_has(v, step->digits[i].axis) && v->rank < EINSUM_MAX_AXES)
            axes[v->rank++] = step->digits[i].axis;
}

static void visit_contract(einsum_builder *b, op *o, const op *accumulate)
{
    const op *align = op_input(o);
    uint32_t dst = add_value(b, o->out.dtype, -1);
    einsum_step *step = add_step(b, MATH_CONTRACT, whole(dst), b->of[op_input(align)->index], b->of[op_weights(align)->index]);
    step->s.accumulator = o->out.dtype;
    note_computed(b, &step->s);
    einsum_contract_digits(b, step, o, accumulate);
    set_kept_axes(b, &b->values[dst], step);
    einsum_settle_sources(b, step, o, op_input(align), op_weights(align));
    check_borders(b, o, op_input(align));
    b->of[o->index] = whole(dst);
}

/* A value moved or converted: a statement of its own. */
static void add_copy(einsum_builder *b, op *o, reference to, const op *source, const tensor *t)
{
    einsum_step *step = add_step(b, MATH_COPY, to, b->of[source->index], b->of[source->index]);
    note_computed(b, &step->s);
    einsum_copy_digits(b, step, o, t);
    einsum_settle_sources(b, step, o, source, NULL);
}

static void drop_axis(einsum_step *s, uint32_t dropped)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->s.digit_count; i++)
        if (s->digits[i].axis != dropped)
            s->digits[kept++] = s->digits[i];
    s->s.digit_count = kept;
}

/* Two tensors by turns: a value with the axis that tells them apart, written in two parts. */
static void visit_interleaved(einsum_builder *b, op *o)
{
    const op *sources[] = {op_input(o), op_second(o)};
    uint32_t dst = add_value_like(b, &o->out, -1);
    for (int i = 0; i < 2 && !o->bad; i++) {
        tile_window *w = ARENA_NEW(b->context->arena, tile_window);
        *w = (tile_window){.shifts = {{o->interleave, i}}, .shift_count = 1};
        einsum_step *step = add_step(b, MATH_COPY, (reference){dst, w}, b->of[sources[i]->index], b->of[sources[i]->index]);
        note_computed(b, &step->s);
        einsum_copy_digits(b, step, o, &o->out);
        drop_axis(step, einsum_axis_number(b, o->interleave));
        einsum_settle_sources(b, step, o, sources[i], NULL);
    }
    b->of[o->index] = whole(dst);
}

/* The step that made the value, when it was the last one and its value is seen whole. */
static einsum_step *just_made(einsum_builder *b, reference from)
{
    einsum_step *last = b->step_count ? &b->steps[b->step_count - 1] : NULL;
    return last && last->s.dst == from.value && !from.window && b->values[from.value].port < 0 ? last : NULL;
}

/* Is the memory or stream used by one operation only, on all the way back to where its value was made? */
static bool is_only_use(const einsum_builder *b, const op *o, uint32_t value)
{
    for (; o && b->of[o->index].value == value && !b->of[o->index].window; o = op_input(o)) {
        if (b->uses[o->index] != 1 || op_into(o) || o->kind == IR_ALLOC || o->kind == IR_PORT_IN || o->kind == IR_VIEW)
            return false;
        if (!op_input(o) || b->of[op_input(o)->index].value != value)
            return true;
    }
    return true;
}

static void visit_conversion(einsum_builder *b, op *o)
{
    reference from = b->of[op_input(o)->index];
    einsum_step *last = just_made(b, from);
    if (last && last->s.op != MATH_COPY && last->s.op != MATH_GATHER && last->s.op != MATH_SCATTER &&
        is_only_use(b, op_input(o), from.value) && b->values[from.value].dtype == last->s.accumulator) {
        b->values[from.value].dtype = o->out.dtype; /* what is computed is cast where it is made */
        b->of[o->index] = from;
        return;
    }
    uint32_t dst = add_value_like(b, &o->out, -1);
    add_copy(b, o, whole(dst), op_input(o), &o->out);
    b->of[o->index] = whole(dst);
}

/* ---- operations on elements ---- */

typedef struct expression {
    scalar_step steps[SCALAR_MAX_STEPS];
    uint32_t count; /* SCALAR_MAX_STEPS + 1: too long */
} expression;

static void append(expression *x, const scalar_step *steps, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (x->count < SCALAR_MAX_STEPS)
            x->steps[x->count] = steps[i];
        x->count += x->count <= SCALAR_MAX_STEPS;
    }
}

/* Does the operation read the bits of a float? Those of a computed NaN are the machine's own (docs/engine/vector.md). */
static bool reads_bits(const vector_op_row *row)
{
    for (uint32_t i = 0; i < row->step_count; i++)
        if (row->steps[i].op == SCALAR_BITS_OF_F32 || row->steps[i].op == SCALAR_FXP_OF_F32 || row->steps[i].op == SCALAR_SELECT_F32)
            return row->from == DTYPE_F32;
    return false;
}

/* What an operation is computed from: its stream and what it takes besides, in the order of the statement's sources. */
typedef struct map_sources {
    const op *items[4];
    unsigned count, beside, tag; /* numbers of operand 1, where that is no constant, and of what the tags are of */
} map_sources;

static map_sources sources_of(const op *o, bool by_tag)
{
    const op *beside = op_stash(o) ? op_stash(o) : op_vrf(o);
    map_sources x = {.items = {op_input(o)}, .count = 1};
    if (beside) {
        x.beside = x.count;
        x.items[x.count++] = beside;
    }
    if (by_tag) {
        x.tag = x.count;
        x.items[x.count++] = op_tag(o);
    }
    return x;
}

/* An element of a source, with the machine's bits of a NaN where somebody reads them. */
static uint32_t element_of(const einsum_builder *b, const map_sources *x, unsigned number, bool bits, scalar_step *out)
{
    out[0] = (scalar_step){SCALAR_SOURCE, number};
    out[1] = (scalar_step){SCALAR_CANONICAL_F32, 0};
    return bits && b->computed[b->of[x->items[number]->index].value] ? 2 : 1;
}

/* The operation's expression, with `stream` for the stream's element. */
static void substitute(const einsum_builder *b, expression *x, const op *o, const map_sources *from, const scalar_step *stream,
                       uint32_t stream_count)
{
    scalar_step beside[2];
    uint32_t beside_count = from->beside ? element_of(b, from, from->beside, reads_bits(o->vector_op->row), beside) : 0;
    const vector_op_config *v = o->vector_op;
    for (uint32_t i = 0; i < v->row->step_count; i++) {
        const scalar_step *s = &v->row->steps[i];
        unsigned number = s->op == SCALAR_SOURCE ? vector_mode_of(v->mode, s->argument) : 0;
        scalar_op leaf = vector_constant_type(v->row) == DTYPE_F32 ? SCALAR_CONSTANT_F32 : SCALAR_CONSTANT_I32;
        if (number == 1 && from->beside)
            append(x, beside, beside_count);
        else if (number)
            append(x, &(scalar_step){leaf, v->constants[number - 1]}, 1);
        else if (s->op == SCALAR_SOURCE)
            append(x, stream, stream_count);
        else
            append(x, s, 1);
    }
}

/* Do its tags take every element, or none? 2: that depends on the element. */
static int takes_all(const op *o)
{
    static const vector_comparison zero[VECTOR_TAG_BITS];
    scalar_step steps[VECTOR_GUARD_STEPS], element = {SCALAR_SOURCE, 0};
    const op *tag = op_tag(o);
    bool always = true;
    if (!tag)
        return 1;
    uint32_t count = vector_guard_steps(o->vector_op->tags, tag->vector_tag ? tag->vector_tag->of : zero, op_input(tag)->out.dtype,
                                        &element, 1, steps, &always);
    return count ? 2 : always;
}

/* The operation where the element's tag is in the set, else the stream's element. */
static void substitute_guarded(const einsum_builder *b, expression *x, const op *o, const map_sources *from)
{
    const vector_op_row *row = o->vector_op->row;
    scalar_step stream[2], tagged[2], guard[VECTOR_GUARD_STEPS];
    bool is_float = row->to == DTYPE_F32, always;
    uint32_t stream_count = element_of(b, from, 0, is_float, stream),
             tagged_count = element_of(b, from, from->tag, op_tag(o)->out.dtype == DTYPE_F32, tagged);
    append(x, guard,
           vector_guard_steps(o->vector_op->tags, op_tag(o)->vector_tag->of, op_tag(o)->out.dtype, tagged, tagged_count, guard, &always));
    substitute(b, x, o, from, stream, stream_count);
    if (is_float && x->count <= SCALAR_MAX_STEPS && computes_nans(&x->steps[x->count - 1]))
        append(x, &(scalar_step){SCALAR_CANONICAL_F32, 0}, 1);
    append(x, stream, stream_count);
    append(x, &(scalar_step){is_float ? SCALAR_SELECT_F32 : SCALAR_SELECT_I32, 0}, 1);
}

/* Is it an expression that a statement can have, over the step's sources? */
static bool is_expression(const einsum_builder *b, const einsum_statement *s, const expression *x)
{
    dtype types[EINSUM_SOURCES];
    for (uint32_t i = 0; i < s->source_count; i++)
        types[i] = b->values[s->sources[i]].dtype;
    return x->count <= SCALAR_MAX_STEPS && scalar_result(x->steps, x->count, types, s->source_count) != SCALAR_NONE;
}

static void set_expression(einsum_builder *b, einsum_step *step, const expression *x, dtype result)
{
    scalar_step *steps = ARENA_ARRAY(b->context->arena, scalar_step, x->count);
    memcpy(steps, x->steps, x->count * sizeof *steps);
    step->s.steps = steps;
    step->s.step_count = x->count;
    step->s.accumulator = result;
    note_computed(b, &step->s);
}

/* The statement that made the value computes this as well, where nothing else needs the value and the expression does not outgrow it. */
static bool extend_map(einsum_builder *b, op *o, reference from)
{
    einsum_step *last = just_made(b, from);
    map_sources sources = sources_of(o, false);
    if (!last || sources.count > 1 || last->s.op != MATH_MAP || !is_only_use(b, op_input(o), from.value) ||
        b->values[from.value].dtype != last->s.accumulator)
        return false;
    expression x = {.count = 0}, stream = {.count = 0};
    append(&stream, last->s.steps, last->s.step_count);
    if (reads_bits(o->vector_op->row) && computes_nans(&last->s.steps[last->s.step_count - 1]))
        append(&stream, &(scalar_step){SCALAR_CANONICAL_F32, 0}, 1);
    if (stream.count > SCALAR_MAX_STEPS)
        return false;
    substitute(b, &x, o, &sources, stream.steps, stream.count);
    if (!is_expression(b, &last->s, &x))
        return false;
    b->computed[from.value] = false; /* what it was computed by is no longer there */
    set_expression(b, last, &x, o->out.dtype);
    b->values[from.value].dtype = o->out.dtype;
    b->of[o->index] = from;
    return true;
}

static void visit_map(einsum_builder *b, op *o)
{
    reference from = b->of[op_input(o)->index];
    int taken = takes_all(o);
    if (taken == 0 || (taken == 2 ? false : extend_map(b, o, from))) {
        b->of[o->index] = from;
        return;
    }
    map_sources sources = sources_of(o, taken == 2);
    uint32_t dst = add_value_like(b, &o->out, -1);
    einsum_step *step = add_step(b, MATH_MAP, whole(dst), from, from);
    step->s.source_count = sources.count;
    for (unsigned i = 0; i < sources.count; i++) {
        reference source = b->of[sources.items[i]->index];
        step->s.sources[i] = source.value;
        add_shifts(b, step, (einsum_side)(EINSUM_A + i), source.window);
    }
    expression x = {.count = 0};
    scalar_step stream[2];
    if (taken == 2)
        substitute_guarded(b, &x, o, &sources);
    else
        substitute(b, &x, o, &sources, stream, element_of(b, &sources, 0, reads_bits(o->vector_op->row), stream));
    if (x.count > SCALAR_MAX_STEPS) {
        diag *d =
            pass_refuse(b->context, b->kernel, o, MAPPING_COMPONENTS, E_EINSUM, "the guards of this operation are too long an expression");
        diag_help(b->context->diags, d, "use fewer tags");
        return;
    }
    set_expression(b, step, &x, o->out.dtype);
    einsum_copy_digits(b, step, o, &o->out);
    if (!o->bad)
        einsum_settle_list(b, step, o, sources.items, sources.count, 0);
    b->of[o->index] = whole(dst);
}

/* The operation on elements of both streams. */
static void visit_zip(einsum_builder *b, op *o)
{
    const op *sources[] = {op_input(o), op_input(o)};
    const vector_op_config *v = o->vector_op;
    reference from[] = {b->of[sources[0]->index], b->other[sources[0]->index]};
    uint32_t dst = add_value_like(b, &o->out, -1);
    einsum_step *step = add_step(b, MATH_MAP, whole(dst), from[0], from[0]);
    expression x = {.count = 0};
    step->s.source_count = 2;
    step->s.shift_count = 0;
    for (unsigned i = 0; i < 2; i++) {
        step->s.sources[i] = from[i].value;
        add_shifts(b, step, (einsum_side)(EINSUM_A + i), from[i].window);
    }
    for (uint32_t i = 0; i < v->row->step_count; i++) {
        const scalar_step *s = &v->row->steps[i];
        scalar_step element = {SCALAR_SOURCE, s->op == SCALAR_SOURCE ? vector_mode_of(v->mode, s->argument) : 0};
        append(&x, s->op == SCALAR_SOURCE ? &element : s, 1);
        if (s->op == SCALAR_SOURCE && reads_bits(v->row) && b->computed[from[element.argument].value])
            append(&x, &(scalar_step){SCALAR_CANONICAL_F32, 0}, 1);
    }
    set_expression(b, step, &x, o->out.dtype);
    einsum_copy_digits(b, step, o, &o->out);
    if (!o->bad)
        einsum_settle_list(b, step, o, sources, 2, 2);
    b->of[o->index] = b->other[o->index] = whole(dst);
}

static const tile_window *add_windows(einsum_builder *b, const tile_window *of, const tile_window *w);

/* Each stream is the value at one place of the axis that tells them apart. */
static void visit_unzip(einsum_builder *b, op *o)
{
    reference from = b->of[op_input(o)->index], *to[] = {&b->of[o->index], &b->other[o->index]};
    for (int g = 0; g < 2; g++) {
        tile_window *w = ARENA_NEW(b->context->arena, tile_window);
        *w = (tile_window){.shifts = {{o->vector_unzip->by, g}}, .shift_count = 1};
        *to[g] = (reference){from.value, from.window ? add_windows(b, from.window, w) : w};
    }
}

/* A reduction: what it folds are the elements that arrive. */
static void visit_reduce(einsum_builder *b, op *o, const vector_op_row *row, void (*digits)(einsum_builder *, einsum_step *, op *))
{
    reference from = b->of[op_input(o)->index];
    uint32_t dst = add_value(b, o->out.dtype, -1);
    einsum_step *step = add_step(b, MATH_REDUCE, whole(dst), from, from);
    set_expression(b, step, &(expression){.steps = {{SCALAR_SOURCE, 0}}, .count = 1}, o->out.dtype);
    step->s.fold = vector_fold_of(row);
    digits(b, step, o);
    set_kept_axes(b, &b->values[dst], step);
    if (!o->bad)
        einsum_settle_sources(b, step, o, op_input(o), NULL);
    b->of[o->index] = whole(dst);
}

/* A statement of its own: an expression over the elements of a source. `result`: its type; to: what it assigns. */
static void add_map(einsum_builder *b, op *o, reference to, const op *source, const tensor *t, const scalar_step *steps, uint32_t count,
                    dtype result)
{
    reference from = b->of[source->index];
    einsum_step *step = add_step(b, MATH_MAP, to, from, from);
    step->s.sources[0] = from.value;
    step->s.source_count = 1;
    add_shifts(b, step, EINSUM_A, from.window);
    expression x = {.count = 0};
    append(&x, steps, count);
    set_expression(b, step, &x, result);
    einsum_copy_digits(b, step, o, t);
    if (!o->bad)
        einsum_settle_sources(b, step, o, source, NULL);
}

/* What a fetch reads, less a zero point. */
static void visit_difference(einsum_builder *b, op *o)
{
    const scalar_step steps[] = {{SCALAR_SOURCE, 0}, {SCALAR_CONSTANT_I32, (uint32_t)o->adapter->zero_point}, {SCALAR_SUB_I32, 0}};
    if (op_second(o))
        visit_interleaved(b, o);
    const op *source = op_second(o) ? o : op_input(o);
    uint32_t dst = add_value_like(b, &o->out, -1);
    add_map(b, o, whole(dst), source, &o->out, steps, sizeof steps / sizeof *steps, DTYPE_I32);
    b->of[o->index] = whole(dst);
}

/* What is committed is narrowed on the way, after a relu. */
static bool is_guarded(const op *o);
static void write_guarded(einsum_builder *b, op *o, reference from, reference memory, const op *source);

static void visit_relu(einsum_builder *b, op *o)
{
    const tensor *t = op_into(o) ? &op_into(o)->out : &o->out;
    bool guarded = op_into(o) && is_guarded(o), fresh = guarded || !op_into(o);
    reference memory = op_into(o) ? (reference){b->of[op_root(op_into(o))->index].value, op_into(o)->window} : whole(0);
    reference to = fresh ? whole(add_value_like(b, t, -1)) : memory;
    add_map(b, o, to, op_input(o), t, scalar_relu_steps, SCALAR_RELU_STEPS, DTYPE_F32);
    if (guarded)
        write_guarded(b, o, to, memory, NULL);
    if (!op_into(o))
        b->of[o->index] = to;
}

enum { MAX_SHIFTS = 3 * TILE_MAX_SHIFTS };

/* ---- what is written only where a number of the launch says so ---- */

static scalar_step constant_of(uint64_t bits)
{
    return (scalar_step){SCALAR_CONSTANT_I32, (uint32_t)bits};
}

/* Is the number of the sources from `source` on in the guard's range? One of 64 bits is two, the low half first. */
static void append_guard(expression *x, const run_guard *g, uint32_t source)
{
    const scalar_step low = {SCALAR_SOURCE, source}, high = {SCALAR_SOURCE, source + 1};
    const scalar_step below = {SCALAR_LT_U32, 0}, minus = {SCALAR_SUB_I32, 0}, not = {SCALAR_NOT_BOOL, 0};
    if (g->bits == 8) {
        const scalar_step steps[] = {
            constant_of(g->span), low, constant_of(g->first), minus, constant_of(UINT8_MAX), {SCALAR_AND_I32, 0}, below, not };
        append(x, steps, sizeof steps / sizeof *steps);
    } else if (g->bits == 32) {
        const scalar_step steps[] = {constant_of(g->span), low, constant_of(g->first), minus, below, not };
        append(x, steps, sizeof steps / sizeof *steps);
    } else {
        const scalar_step low_part[] = {low, constant_of(g->first), minus};
        const scalar_step high_part[] = {
            high,           constant_of(g->first >> 32), minus, low, constant_of(g->first), below, constant_of(1),
            constant_of(0), {SCALAR_SELECT_I32, 0},      minus};
        const size_t highs = sizeof high_part / sizeof *high_part;
        append(x, high_part, highs); /* high < span's, or equal and low at most span's */
        append(x, &(scalar_step){SCALAR_CONSTANT_I32, (uint32_t)(g->span >> 32)}, 1);
        append(x, &below, 1);
        append(x, high_part, highs);
        append(x, &(scalar_step){SCALAR_CONSTANT_I32, (uint32_t)(g->span >> 32)}, 1);
        append(x, &(scalar_step){SCALAR_EQ_I32, 0}, 1);
        append(x, &(scalar_step){SCALAR_CONSTANT_I32, (uint32_t)g->span}, 1);
        append(x, low_part, sizeof low_part / sizeof *low_part);
        append(x, &below, 1);
        append(x, &not, 1);
        append(x, &(scalar_step){SCALAR_AND_BOOL, 0}, 1);
        append(x, &(scalar_step){SCALAR_OR_BOOL, 0}, 1);
    }
}

/* A number that is 1 where all guards up to `outer` hold, else 0. */
static uint32_t add_guards(einsum_builder *b, op *o, const run_guard *outer)
{
    uint32_t dst = add_value(b, DTYPE_I32, -1);
    einsum_step *step = add_step(b, MATH_MAP, whole(dst), whole(dst), whole(dst));
    expression x = {.count = 0};
    step->s.source_count = 0;
    for (const run_guard *g = o->runs_if; g && g != outer; g = g->outer) {
        uint32_t words = g->bits > 32 ? 2 : 1, first = step->s.source_count, value = b->of[g->port->index].value;
        if (first + words > EINSUM_SOURCES) {
            diag *d = pass_refuse(b->context, b->kernel, o, MAPPING_COMPONENTS, E_EINSUM, "too many conditions inside of each other");
            diag_help(b->context->diags, d, "let at most 4 numbers of 64 bits decide, or 8 others");
            return dst;
        }
        for (uint32_t i = 0; i < words; i++)
            step->s.sources[first + i] = value;
        step->s.source_count += words;
        if (words == 2) {
            tile_window *w = ARENA_NEW(b->context->arena, tile_window);
            const axis *axes[1];
            mapping_axes(g->port->out.part[ELEMENT], axes, 1);
            *w = (tile_window){.shifts = {{axes[0], 1}}, .shift_count = 1};
            add_shifts(b, step, (einsum_side)(EINSUM_A + first + 1), w);
        }
        append_guard(&x, g, first);
        if (first > 0)
            append(&x, &(scalar_step){SCALAR_AND_BOOL, 0}, 1);
    }
    const scalar_step choice[] = {constant_of(1), constant_of(0), {SCALAR_SELECT_I32, 0}};
    append(&x, choice, sizeof choice / sizeof *choice);
    step->digits = ARENA_ARRAY(b->context->arena, einsum_digit, EINSUM_MAX_DIGITS);
    set_expression(b, step, &x, DTYPE_I32);
    return dst;
}

/* What is there and what would be written, one after the other along an axis of their own, and then the one of the two that the number says
 * is taken: a gather of one row. second_of is where the second is written. */
typedef struct choice {
    uint32_t both, place;
    const axis *axis;
} choice;

/* What the view that is written holds. */
static void copy_memory(einsum_builder *b, op *o, reference to, reference memory)
{
    einsum_step *step = add_step(b, MATH_COPY, to, memory, memory);
    note_computed(b, &step->s);
    einsum_copy_digits(b, step, o, &op_into(o)->out);
    if (!o->bad)
        einsum_settle_sources(b, step, o, op_into(o), NULL);
}

static choice begin_choice(einsum_builder *b, op *o, reference memory)
{
    choice c = {.both = add_value_like(b, &op_into(o)->out, -1), .axis = mapping_axis(b->context->mappings, "if.taken", 2)};
    einsum_tensor *v = &b->values[c.both];
    uint32_t *axes = ARENA_ARRAY(b->context->arena, uint32_t, v->rank + 1), number = einsum_axis_number(b, c.axis);
    axes[0] = number;
    memcpy(axes + 1, v->axes, v->rank * sizeof *axes);
    v->axes = axes;
    v->rank++;
    copy_memory(b, o, whole(c.both), memory);
    return c;
}

static reference second_of(einsum_builder *b, const choice *c)
{
    tile_window *w = ARENA_NEW(b->context->arena, tile_window);
    *w = (tile_window){.shifts = {{c->axis, 1}}, .shift_count = 1};
    return (reference){c->both, w};
}

static void finish_choice(einsum_builder *b, op *o, const choice *c, reference memory)
{
    uint32_t place = add_guards(b, o, op_root(op_into(o))->runs_if);
    einsum_step *step = add_step(b, MATH_GATHER, memory, whole(c->both), whole(place));
    einsum_index *index = ARENA_NEW(b->context->arena, einsum_index);
    *index = (einsum_index){.axis = einsum_axis_number(b, c->axis), .unit = 1, .step = 1, .div = 1, .positions = 2};
    step->s.accumulator = b->values[c->both].dtype;
    step->s.indices = index;
    b->computed[memory.value] = b->computed[memory.value] || b->computed[c->both];
    einsum_copy_digits(b, step, o, &op_into(o)->out);
}

/* `source`: the operation whose value it is, of which not all digits may be held; NULL: a value of the view's own axes. */
static void write_guarded(einsum_builder *b, op *o, reference from, reference memory, const op *source)
{
    choice c = begin_choice(b, o, memory);
    einsum_step *step = add_step(b, MATH_COPY, second_of(b, &c), from, from);
    note_computed(b, &step->s);
    einsum_copy_digits(b, step, o, &op_into(o)->out);
    if (source && !o->bad)
        einsum_settle_sources(b, step, o, source, NULL);
    finish_choice(b, o, &c, memory);
}

static bool is_guarded(const op *o)
{
    return o->runs_if && o->runs_if != op_root(op_into(o))->runs_if;
}

/* A number into all of a memory, or of a tile. */
static void visit_generated(einsum_builder *b, op *o)
{
    reference memory = {b->of[op_root(op_into(o))->index].value, op_into(o)->window};
    bool guarded = is_guarded(o);
    choice c = guarded ? begin_choice(b, o, memory) : (choice){0};
    reference to = guarded ? second_of(b, &c) : memory;
    einsum_step *step = add_step(b, MATH_MAP, to, to, to);
    step->s.source_count = 0;
    set_expression(b, step, &(expression){.steps = {op_input(o)->generate->number}, .count = 1},
                   op_input(o)->generate->number.op == SCALAR_CONSTANT_F32 ? DTYPE_F32 : DTYPE_I32);
    einsum_copy_digits(b, step, o, &op_into(o)->out);
    if (guarded)
        finish_choice(b, o, &c, memory);
}

static bool reads_value(const einsum_statement *s, uint32_t value)
{
    for (uint32_t i = 0; i < s->source_count; i++)
        if (s->sources[i] == value)
            return true;
    return false;
}

/* The stream as a value of its own: a statement does not assign what it reads. */
static reference stream_apart(einsum_builder *b, op *o, const op *source)
{
    uint32_t dst = add_value_like(b, &source->out, -1);
    add_copy(b, o, whole(dst), source, &source->out);
    return whole(dst);
}

/* A write through a view: the step that made the value writes the part of the memory at once where nothing else needs it. */
static void visit_write(einsum_builder *b, op *o)
{
    reference from = b->of[op_input(o)->index], to = {b->of[op_root(op_into(o))->index].value, op_into(o)->window};
    einsum_step *last = just_made(b, from);
    if (is_guarded(o)) {
        write_guarded(b, o, from, to, op_input(o));
        return;
    }
    if (last && last->s.op != MATH_SCATTER && last->s.shift_count < MAX_SHIFTS && !reads_value(&last->s, to.value) &&
        is_only_use(b, op_input(o), from.value) && einsum_source_holds(b, o, op_input(o), &op_into(o)->out)) {
        last->s.dst = to.value;
        b->computed[to.value] = b->computed[to.value] || b->computed[from.value];
        add_shifts(b, last, EINSUM_DST, to.window);
        return;
    }
    if (from.value == to.value)
        b->of[op_input(o)->index] = stream_apart(b, o, op_input(o));
    add_copy(b, o, to, op_input(o), &op_into(o)->out);
}

static bool same_axes(const einsum_tensor *a, const einsum_tensor *b)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < a->rank; i++)
        for (uint32_t j = 0; j < b->rank; j++)
            found += a->axes[i] == b->axes[j];
    return a->rank == b->rank && found == a->rank;
}

/* The result: the statement that makes it writes the port at once where the port has the same axes. */
static void visit_output(einsum_builder *b, op *o, uint32_t port, const op *source)
{
    reference from = b->of[source->index];
    einsum_tensor *value = &b->values[from.value];
    einsum_tensor result = {.dtype = value->dtype, .port = (int32_t)port};
    const tensor *t = &b->kernel->ports[port].tensor;
    set_axes(b, &result, t);
    if (value->port < 0 && same_axes(value, &result) && !from.window && einsum_source_holds(b, o, source, t)) {
        *value = result;
        return;
    }
    uint32_t dst = add_value(b, result.dtype, port);
    b->values[dst] = result;
    add_copy(b, o, whole(dst), source, t);
}

static void visit_memory(einsum_builder *b, op *o, int64_t port)
{
    b->of[o->index] = whole(add_value_like(b, &o->out, port));
}

/* A tile of memory that is itself a tile of a value (a copy of it). */
static const tile_window *add_windows(einsum_builder *b, const tile_window *of, const tile_window *w)
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

/* The terms by which the axis is read under its new names. */
static einsum_relabel *relabel_of(einsum_builder *b, uint32_t number)
{
    for (size_t i = 0; i < b->relabel_count; i++)
        if (b->relabels[i].axis == number)
            return &b->relabels[i];
    return NULL;
}

bool einsum_refuse_relabel(einsum_builder *b, op *o, const axis *a, const char *why)
{
    diag *d = pass_refuse(b->context, b->kernel, o, MAPPING_COMPONENTS, E_EINSUM, "axis %s %s", a->name, why);
    diag_help(b->context->diags, d, "reshape to axes of their own names, used for nothing else");
    return false;
}

/* An axis of the mathematics alone, which no mapping names. */
static const axis *unnamed_axis(einsum_builder *b, const axis *of, const char *name, int64_t size)
{
    axis *a = ARENA_NEW(b->context->arena, axis);
    *a = (axis){.name = name, .size = size, .number = of->number};
    return a;
}

static void insert_term(einsum_relabel *r, einsum_term t)
{
    uint32_t at = r->named++;
    for (; at > 0 && r->terms[at - 1].stride < t.stride; at--)
        r->terms[at] = r->terms[at - 1];
    r->terms[at] = t;
}

/* Neighbouring digits of one axis that stay neighbours are one. */
static void merge_terms(const einsum_builder *b, einsum_relabel *r)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->named; i++) {
        einsum_term *t = &r->terms[i], *outer = kept ? &r->terms[kept - 1] : NULL;
        if (outer && outer->axis == t->axis && outer->weight == t->weight * t->extent && outer->stride == t->stride * t->extent &&
            outer->extent <= b->axes[t->axis]->size / outer->weight) {
            outer->weight = t->weight;
            outer->stride = t->stride;
            outer->extent *= t->extent;
        } else {
            r->terms[kept++] = *t;
        }
    }
    r->named = kept;
}

/* The digits of the axis that no name counts through are 0: one without a name stands for each. False: there are too many, or the others
 * are no digits of it together. */
static bool add_unnamed_terms(einsum_builder *b, const axis *a, einsum_relabel *r)
{
    int64_t reach = 1;
    r->term_count = r->named;
    for (uint32_t i = r->named; i-- > 0 || reach < a->size;) {
        bool last = i == UINT32_MAX;
        int64_t next = last ? ceil_div(a->size, reach) * reach : r->terms[i].stride;
        if (next < reach || next % reach || r->term_count > WINDOW_MAX_TERMS)
            return false;
        if (next > reach) {
            const char *name = arena_printf(b->context->arena, "%s / %lld %% %lld", a->name, (long long)reach, (long long)(next / reach));
            uint32_t number = einsum_axis_number(b, unnamed_axis(b, a, name, next / reach));
            r->terms[r->term_count++] = (einsum_term){number, 1, next / reach, reach};
        }
        reach = last ? next : next * r->terms[i].extent;
        if (last)
            break;
    }
    r->bordered = reach > a->size;
    return r->term_count <= WINDOW_MAX_TERMS;
}

/* The axis is named anew in one way only: false where it was in another. */
static bool add_relabel(einsum_builder *b, op *o, const axis *a, einsum_relabel r)
{
    einsum_relabel *old = relabel_of(b, r.axis);
    merge_terms(b, &r);
    bool same = old && old->named == r.named;
    for (uint32_t i = 0; i < r.named; i++) {
        const einsum_term *t = &r.terms[i], *u = same ? &old->terms[i] : NULL;
        if (b->axes[t->axis]->term_count)
            return einsum_refuse_relabel(b, o, b->axes[t->axis], "is a new name, and is itself a window");
        same = same && t->axis == u->axis && t->weight == u->weight && t->extent == u->extent && t->stride == u->stride;
    }
    if (a->term_count)
        return einsum_refuse_relabel(b, o, a, "is a window, which has no other names");
    if (old && !same)
        return einsum_refuse_relabel(b, o, a, "is named anew in two ways");
    if (old)
        return true;
    if (r.named > WINDOW_MAX_TERMS || !add_unnamed_terms(b, a, &r))
        return einsum_refuse_relabel(b, o, a, "gets more names than a window has terms");
    ARENA_PUSH(b->context->arena, b->relabels, b->relabel_count, b->relabel_capacity, r);
    return true;
}

static bool is_renamed(const reshape_digit *d)
{
    return d->size > 1 && (d->from != d->to || d->from_weight != d->to_weight);
}

/* Adds what the digits of axis `a` are under their new names; the source has the axis as `name`. */
static bool add_new_names(einsum_builder *b, op *o, const axis *a, const axis *name)
{
    const reshape_config *c = o->reshape;
    einsum_relabel r = {.axis = einsum_axis_number(b, name),
                        .terms = ARENA_ARRAY(b->context->arena, einsum_term, c->count + WINDOW_MAX_TERMS + 1)};
    int64_t last = 0;
    const reshape_digit *one = NULL;
    for (uint32_t i = 0; i < c->count; i++) {
        const reshape_digit *d = &c->digits[i];
        if (d->from != a || d->size == 1)
            continue;
        insert_term(&r, (einsum_term){einsum_axis_number(b, d->to), d->to_weight, d->size, d->from_weight});
        last += (d->size - 1) * d->from_weight;
        one = d;
    }
    if (one && last >= a->size) { /* another axis of its size, digit by digit (passes/reshape.c) */
        r.terms[0] = (einsum_term){einsum_axis_number(b, one->to), 1, a->size, 1};
        r.named = 1;
    }
    return add_relabel(b, o, a, r);
}

/* The name of its own that stands for the axis; NULL: it has been named anew in another way. */
static const axis *name_apart(einsum_builder *b, op *o, const axis *a)
{
    uint32_t number = einsum_axis_number(b, a);
    const einsum_relabel *old = relabel_of(b, number);
    if (old && old->apart)
        return old->apart;
    einsum_relabel r = {.axis = number,
                        .terms = ARENA_ARRAY(b->context->arena, einsum_term, WINDOW_MAX_TERMS + 1),
                        .apart = unnamed_axis(b, a, arena_printf(b->context->arena, "%s'", a->name), a->size)};
    insert_term(&r, (einsum_term){einsum_axis_number(b, r.apart), 1, a->size, 1});
    return add_relabel(b, o, a, r) ? r.apart : NULL;
}

bool einsum_is_term(const einsum_relabel *r, uint32_t number)
{
    for (uint32_t i = 0; i < r->term_count; i++)
        if (r->terms[i].axis == number)
            return true;
    return false;
}

/* Does the source's part in what the step makes depend on the coordinate of the axis? `constant[v]`: value v does not. */
static bool follows_axis(const einsum_builder *b, const einsum_step *step, uint32_t source, uint32_t number, const bool *constant)
{
    const einsum_tensor *v = &b->values[step->s.sources[source]];
    if (einsum_tensor_has(v, number) && !constant[step->s.sources[source]])
        return true;
    bool walks = false;
    for (uint32_t i = 0; i < step->s.digit_count; i++)
        walks = walks || (step->digits[i].axis == number && einsum_digit_indexes(&step->digits[i], (einsum_side)(EINSUM_A + source)));
    for (uint32_t k = 0; k < v->rank && walks; k++) { /* as a term of a window, under a new name */
        const axis *a = b->axes[v->axes[k]];
        for (uint32_t i = 0; i < a->term_count; i++)
            if (a->terms[i].of == b->axes[number])
                return true;
        for (size_t i = 0; i < b->relabel_count; i++)
            if (b->relabels[i].axis == v->axes[k] && einsum_is_term(&b->relabels[i], number))
                return true;
    }
    return false;
}

/* Does the step write other elements at some coordinates of the axis than at others, or none there? */
static bool moves_along(const einsum_builder *b, const einsum_step *step, uint32_t number)
{
    int64_t written = 1;
    for (uint32_t i = 0; i < step->s.digit_count; i++)
        written = step->digits[i].axis == number && step->digits[i].kept ? product_bounded(written, step->digits[i].size) : written;
    if (einsum_tensor_has(&b->values[step->s.dst], number) && written < b->axes[number]->size)
        return true;
    for (uint32_t i = 0; i < step->s.shift_count; i++)
        if (step->shifts[i].axis == number && step->shifts[i].side == EINSUM_DST)
            return true;
    for (uint32_t i = 0; step->s.indices && i + 1 < step->s.source_count; i++)
        if (step->s.indices[i].axis == number)
            return true;
    return step->s.op == MATH_SCATTER;
}

/* By value: has it the same elements at every coordinate of the axis? Then each statement that wrote to it wrote copies along it. */
const bool *einsum_constants_along(const einsum_builder *b, uint32_t number)
{
    bool *constant = ARENA_ARRAY(b->context->arena, bool, b->value_count + 1);
    bool *is_made = ARENA_ARRAY(b->context->arena, bool, b->value_count + 1);
    for (size_t i = 0; i < b->step_count; i++) {
        const einsum_step *step = &b->steps[i];
        bool same = b->values[step->s.dst].port < 0 && !moves_along(b, step, number) && (!is_made[step->s.dst] || constant[step->s.dst]);
        for (uint32_t k = 0; k < step->s.source_count; k++)
            same = same && !follows_axis(b, step, k, number, constant);
        is_made[step->s.dst] = true;
        constant[step->s.dst] = same;
    }
    return constant;
}

/* An axis that the memory has before and after, of which digits get or were other names: its old coordinates are not its new ones. */
static bool changes_meaning(const op *o, const axis *a)
{
    const axis *axes[EINSUM_MAX_AXES];
    uint32_t count = tensor_axes(&o->out, axes, EINSUM_MAX_AXES);
    bool stays = false, renamed = false;
    for (uint32_t i = 0; i < count; i++)
        stays = stays || axes[i] == a;
    for (uint32_t i = 0; i < o->reshape->count; i++)
        renamed = renamed || (o->reshape->digits[i].from == a && is_renamed(&o->reshape->digits[i]));
    return stays && renamed;
}

bool einsum_is_own(const einsum_builder *b, const axis *a)
{
    for (size_t i = 0; i < b->own_count; i++)
        if (b->own[i] == a)
            return true;
    return false;
}

/* Does the reshape give digits of an axis that must be told apart from its new names other ones? */
static bool renames_own(const einsum_builder *b, const op *o, const axis *a)
{
    bool renamed = false;
    for (uint32_t i = 0; i < o->reshape->count; i++)
        renamed = renamed || (o->reshape->digits[i].from == a && is_renamed(&o->reshape->digits[i]));
    return renamed && einsum_is_own(b, a);
}

/* A copy of the source of a reshape into a new value of such axes; its digits are still those of the source. */
static einsum_step *begin_copy(einsum_builder *b, op *o, reference from, uint32_t *axes, uint32_t rank, uint32_t *dst)
{
    *dst = add_value(b, b->values[from.value].dtype, -1);
    b->values[*dst].rank = rank;
    b->values[*dst].axes = axes;
    einsum_step *step = add_step(b, MATH_COPY, whole(*dst), from, from);
    note_computed(b, &step->s);
    einsum_copy_digits(b, step, o, &o->reshape->from->out);
    return step;
}

/* The source of the reshape without the axes along which it holds copies and that were named anew before, in whatever way: one copy stands
 * for all. */
static reference source_once(einsum_builder *b, op *o)
{
    const reshape_config *c = o->reshape;
    reference from = b->of[c->from->index];
    const einsum_tensor *old = &b->values[from.value];
    uint32_t *axes = ARENA_ARRAY(b->context->arena, uint32_t, old->rank + 1), rank = 0;
    for (uint32_t k = 0; k < old->rank; k++) {
        bool renamed = false;
        for (uint32_t i = 0; i < c->count; i++)
            renamed = renamed || (is_renamed(&c->digits[i]) && einsum_axis_number(b, c->digits[i].from) == old->axes[k]);
        if (!renamed || from.window || !relabel_of(b, old->axes[k]) || !einsum_constants_along(b, old->axes[k])[from.value])
            axes[rank++] = old->axes[k];
    }
    if (rank == old->rank)
        return from;
    uint32_t dst, kept = 0;
    einsum_step *step = begin_copy(b, o, from, axes, rank, &dst);
    for (uint32_t i = 0; i < step->s.digit_count; i++)
        if (einsum_tensor_has(&b->values[dst], step->digits[i].axis))
            step->digits[kept++] = step->digits[i];
    step->s.digit_count = kept;
    einsum_settle_sources(b, step, o, c->from, NULL);
    return whole(dst);
}

/* The source of the reshape as a value in which such axes have names of their own; names[i]: that of digit i. */
static reference source_apart(einsum_builder *b, op *o, const axis **names)
{
    const reshape_config *c = o->reshape;
    reference from = source_once(b, o);
    const einsum_tensor *old = &b->values[from.value];
    uint32_t *axes = ARENA_ARRAY(b->context->arena, uint32_t, old->rank + 1), rank = old->rank;
    bool any = false;
    for (uint32_t k = 0; k < rank; k++)
        axes[k] = old->axes[k];
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t number = einsum_axis_number(b, c->digits[i].from);
        names[i] = c->digits[i].from;
        if (!einsum_tensor_has(&b->values[from.value], number) || !(changes_meaning(o, names[i]) || renames_own(b, o, names[i])))
            continue;
        names[i] = name_apart(b, o, names[i]);
        if (!names[i])
            return from;
        for (uint32_t k = 0; k < rank; k++)
            axes[k] = axes[k] == number ? einsum_axis_number(b, names[i]) : axes[k];
        any = true;
    }
    if (!any)
        return from;
    uint32_t dst;
    einsum_step *step = begin_copy(b, o, from, axes, rank, &dst);
    for (uint32_t i = 0; i < step->s.digit_count; i++)
        for (uint32_t k = 0; k < c->count; k++)
            if (step->digits[i].axis == einsum_axis_number(b, c->digits[k].from) && names[k] != c->digits[k].from) {
                step->digits[i].axis = einsum_axis_number(b, names[k]);
                step->renamed |= UINT64_C(1) << i;
                break;
            }
    einsum_settle_sources(b, step, o, c->from, NULL);
    return whole(dst);
}

/* An axis that became a broadcast: its positions hold the same where nothing of the value depends on it. */
static bool check_copied(einsum_builder *b, op *o, const reference *from)
{
    const reshape_config *c = o->reshape;
    for (uint32_t i = 0; i < c->copied_count; i++) {
        uint32_t number = einsum_axis_number(b, c->copied[i]);
        if (!einsum_tensor_has(&b->values[from->value], number) || einsum_constants_along(b, number)[from->value])
            continue;
        diag *d = pass_refuse(b->context, b->kernel, o, MAPPING_COMPONENTS, E_RESHAPE,
                              "a broadcast replaces axis %s, and elements differ along %s: they are no copies", c->copied[i]->name,
                              c->copied[i]->name);
        diag_help(b->context->diags, d, "keep %s, or copy the tensor into units that all hold the same", c->copied[i]->name);
        return false;
    }
    return true;
}

/* Positions keep their elements: the new value's digits read the old one. */
static void visit_reshape(einsum_builder *b, op *o)
{
    const reshape_config *c = o->reshape;
    if (c->equal || (o->gone && b->uses[o->index] == 1)) { /* equal, or named once more before anything reads it */
        b->of[o->index] = b->of[c->from->index];
        return;
    }
    bool copies = false;
    const axis *names[EINSUM_MAX_DIGITS];
    reference from = source_apart(b, o, names);
    if (o->bad || !check_copied(b, o, &from))
        return;
    uint32_t dst = add_value_like(b, &o->out, -1);
    einsum_step *step = add_step(b, MATH_COPY, whole(dst), from, from);
    note_computed(b, &step->s);
    step->digits = ARENA_ARRAY(b->context->arena, einsum_digit, EINSUM_MAX_DIGITS);
    for (uint32_t i = 0; i < c->count && !o->bad; i++) {
        const reshape_digit *d = &c->digits[i];
        if (d->size == 1)
            continue;
        bool renamed =
            (is_renamed(d) || names[i] != d->from) && einsum_tensor_has(&b->values[step->s.sources[0]], einsum_axis_number(b, names[i]));
        if (renamed && !add_new_names(b, o, d->from, names[i]))
            return;
        step->renamed |= (uint64_t)renamed << step->s.digit_count;
        step->digits[step->s.digit_count++] =
            (einsum_digit){.axis = einsum_axis_number(b, d->to), .kept = true, .weight = d->to_weight, .size = d->size};
        copies = copies || (renamed && !einsum_source_holds(b, o, c->from, &c->from->out));
    }
    for (uint32_t i = 0; i < c->spread_count && step->s.digit_count < EINSUM_MAX_DIGITS; i++) {
        if (c->spread[i].size == 1)
            continue;
        step->renamed |= UINT64_C(1) << step->s.digit_count; /* the source does not depend on it, under whatever name it has the rest */
        step->digits[step->s.digit_count++] = (einsum_digit){
            .axis = einsum_axis_number(b, c->spread[i].to), .kept = true, .weight = c->spread[i].to_weight, .size = c->spread[i].size};
    }
    if (copies && !o->bad) {
        diag *d = pass_refuse(b->context, b->kernel, o, MAPPING_COMPONENTS, E_EINSUM,
                              "the memory holds copies of elements, under axes that get other names");
        diag_help(b->context->diags, d, "reshape in front of what makes the copies");
    }
    if (o->bad)
        return;
    einsum_settle_sources(b, step, o, c->from, NULL);
    b->of[o->index] = whole(dst);
}

/* ---- rows by index ---- */

/* Is the digit one of those that the list moves the place along? */
static bool is_indexed(const einsum_builder *b, const mapping *indexed, const einsum_digit *d)
{
    for (size_t i = 0; i < indexed->count; i++) {
        const factor *f = &indexed->factors[i];
        if (f->axis == b->axes[d->axis] && d->weight >= f->weight && d->weight < f->weight * f->live)
            return true;
    }
    return false;
}

/* An index for each digit of an axis: positions count through them, the last one fastest. False: refused. */
static bool add_digits_of(einsum_builder *b, einsum_step *step, op *o, const mapping *indexed, int64_t unit, int64_t positions,
                          reference list, einsum_index *indices, uint32_t *count)
{
    int64_t inner = indexed->size;
    uint32_t first = *count;
    for (size_t i = 0; i < indexed->count; i++) {
        const factor *f = &indexed->factors[i];
        inner /= f->extent;
        if (f->kind != FACTOR_AXIS || *count + 1 == EINSUM_SOURCES) {
            diag *d = pass_refuse(b->context, b->kernel, o, MAPPING_COMPONENTS, E_EINSUM,
                                  "IndexedAxis `%s` is part of a group, or has too many digits", mapping_text(indexed, b->context->arena));
            diag_help(b->context->diags, d, "let it be one axis, or a few whole ones");
            return false;
        }
        indices[*count] = (einsum_index){einsum_axis_number(b, f->axis), f->weight, unit, inner, *count > first ? f->live : 0, positions};
        step->s.sources[++*count] = list.value;
        if (*count > 1)
            add_shifts(b, step, (einsum_side)(EINSUM_A + *count), list.window);
    }
    return true;
}

/* `only`: the index of a table of one row, else NULL. */
static void add_indices(einsum_builder *b, einsum_step *step, op *o, reference list, einsum_index *only)
{
    uint32_t count = 0;
    einsum_index *indices = ARENA_ARRAY(b->context->arena, einsum_index, EINSUM_SOURCES);
    if (!add_digits_of(b, step, o, o->indirect->indexed, o->indirect->unit, o->indirect->positions, list, indices, &count))
        return;
    if (only)
        step->s.sources[++count] = list.value;
    step->s.indices = only ? only : indices;
    step->s.source_count = 1 + count;
    if (op_count(o)) {
        step->s.counted = true;
        step->s.count_span = op_index(o)->out.part[ELEMENT]->size;
        step->s.sources[step->s.source_count++] = b->of[op_count(o)->index].value;
    }
}

/* What the digits that the list is read by move: not the place that it says, and all elements of the list alike. */
static void settle_indices(const einsum_builder *b, einsum_step *step, const mapping *indexed, einsum_side side)
{
    for (uint32_t i = 0; i < step->s.digit_count; i++) {
        einsum_digit *d = &step->digits[i];
        if (is_indexed(b, indexed, d))
            d->broadcast |= 1u << side;
        for (uint32_t k = 2; k <= einsum_index_count(&step->s); k++)
            d->broadcast |= (d->broadcast >> EINSUM_B & 1) << (EINSUM_A + k);
    }
}

static bool has_one_row(const op *o)
{
    return o->indirect->indexed->count == 0;
}

/* Is one element of the operand there for all values of the digit? */
static bool repeats_along(einsum_builder *b, op *o, const op *source, const factor *f)
{
    const tensor digit = {.part = {[ELEMENT] = mapping_of_factor(b->context->mappings, f)}};
    return f->kind == FACTOR_AXIS && !einsum_source_holds(b, o, source, &digit);
}

/* The operand's value with an element for each value of all its digits: what moves along one of them finds a place. */
static reference spelt_out(einsum_builder *b, op *o, const op *source)
{
    uint32_t dst = add_value_like(b, &source->out, -1);
    add_copy(b, o, whole(dst), source, &source->out);
    return whole(dst);
}

/* Does a number move along digits that the operand's value repeats, or has no axis of? */
static bool moves_along_copies(einsum_builder *b, op *o, const op *source, const mapping *index)
{
    const einsum_tensor *v = &b->values[b->of[source->index].value];
    for (size_t i = 0; i < index->count; i++) {
        const factor *f = &index->factors[i];
        if (f->kind == FACTOR_AXIS && (!einsum_tensor_has(v, einsum_axis_number(b, f->axis)) || repeats_along(b, o, source, f)))
            return true;
    }
    return false;
}

/* A table of one row as the only position of an axis, which a list of zeros names as often as its count says. */
static reference with_row_axis(einsum_builder *b, op *o, reference rows, einsum_index *index)
{
    uint32_t dst = add_value_like(b, &op_input(o)->out, -1);
    einsum_tensor *v = &b->values[dst];
    uint32_t *axes = ARENA_ARRAY(b->context->arena, uint32_t, v->rank + 1);
    axes[0] = einsum_axis_number(b, mapping_axis(b->context->mappings, "gather.row", 1));
    memcpy(axes + 1, v->axes, v->rank * sizeof *axes);
    v->axes = axes;
    v->rank++;
    einsum_step *step = add_step(b, MATH_COPY, whole(dst), rows, rows);
    note_computed(b, &step->s);
    einsum_copy_digits(b, step, o, &op_input(o)->out);
    if (!o->bad)
        einsum_settle_sources(b, step, o, op_input(o), NULL);
    *index = (einsum_index){.axis = axes[0], .unit = 1, .step = o->indirect->unit, .div = 1, .positions = 1};
    return whole(dst);
}

static void visit_gather(einsum_builder *b, op *o)
{
    reference rows = b->of[op_input(o)->index], list = b->of[op_index(o)->index];
    uint32_t dst = add_value_like(b, &o->out, -1);
    b->of[o->index] = whole(dst);
    if (has_one_row(o) && !op_count(o)) { /* the list can only say 0 */
        add_copy(b, o, whole(dst), op_input(o), &o->out);
        return;
    }
    if (moves_along_copies(b, o, op_input(o), o->indirect->indexed))
        rows = spelt_out(b, o, op_input(o));
    einsum_index *one = has_one_row(o) ? ARENA_NEW(b->context->arena, einsum_index) : NULL;
    if (one)
        rows = with_row_axis(b, o, rows, one);
    einsum_step *step = add_step(b, MATH_GATHER, whole(dst), rows, list);
    step->s.accumulator = o->out.dtype;
    add_indices(b, step, o, list, one);
    if (!o->bad)
        einsum_copy_digits(b, step, o, &o->out);
    if (!o->bad)
        einsum_settle_sources(b, step, o, op_input(o), op_index(o));
    settle_indices(b, step, o->indirect->indexed, EINSUM_A);
}

/* Does the tile begin after the first value of a digit that its memory repeats? Of an axis that the value lacks all copies are equal
 * (drop_shifts). */
static bool begins_in_copies(einsum_builder *b, op *o, const op *root)
{
    for (component c = 0; c < MAPPING_COMPONENTS; c++)
        for (size_t i = 0; root->out.part[c] && i < root->out.part[c]->count; i++)
            for (uint32_t k = 0; k < o->window->shift_count; k++)
                if (root->out.part[c]->factors[i].axis == o->window->shifts[k].axis && o->window->shifts[k].offset != 0 &&
                    repeats_along(b, o, root, &root->out.part[c]->factors[i]))
                    return true;
    return false;
}

static reference view_of(einsum_builder *b, op *o)
{
    const op *memory = op_root(o);
    reference root = begins_in_copies(b, o, memory) ? spelt_out(b, o, memory) : b->of[memory->index];
    return (reference){root.value, root.window ? add_windows(b, root.window, o->window) : o->window};
}

/* The tile of a tile as one of the outer tile's value, whose places begin at 0 again. */
static const tile_window *inside_window(einsum_builder *b, const tile_window *w, const tile_window *outer)
{
    tile_window *back = ARENA_NEW(b->context->arena, tile_window);
    *back = *outer;
    for (uint32_t i = 0; i < back->shift_count; i++)
        back->shifts[i].offset = -back->shifts[i].offset;
    return add_windows(b, back, w);
}

/* Of a view and the tiles of it that begin at the same number the first one. */
static op *first_begun(op *view)
{
    op *begun = view;
    while (op_input(begun)->starts == view->starts)
        begun = op_input(begun);
    return begun;
}

/* What a view holds that begins where a number of the launch says: rows of the memory, or of a view that begins at another number and was
 * visited, whose list is this number. */
static void visit_start(einsum_builder *b, op *o, op *view)
{
    const run_start *s = view->starts;
    const op *outer = op_input(first_begun(view));
    const op *root = op_root(view);
    reference memory;
    if (s->outer) {
        memory = b->of[outer->index];
        const tile_window *inside = inside_window(b, view->window, outer->window);
        memory.window = memory.window ? add_windows(b, memory.window, inside) : inside;
    } else if (moves_along_copies(b, o, root, s->index)) {
        memory = (reference){spelt_out(b, o, root).value, view->window};
    } else {
        memory = view_of(b, view);
    }
    b->of[view->index] = memory;
    if (s->index->count == 0 || o->bad) /* the number can only say 0 */
        return;
    uint32_t dst = add_value_like(b, &view->out, -1), count = 0;
    einsum_index *indices = ARENA_ARRAY(b->context->arena, einsum_index, EINSUM_SOURCES);
    einsum_step *step = add_step(b, MATH_GATHER, whole(dst), memory, whole(0));
    b->computed[dst] = b->computed[memory.value];
    step->s.accumulator = view->out.dtype;
    if (!add_digits_of(b, step, o, s->index, 1, s->positions, whole(b->of[s->port->index].value), indices, &count))
        return;
    step->s.indices = indices;
    step->s.source_count = 1 + count;
    einsum_copy_digits(b, step, o, &view->out);
    if (!o->bad)
        einsum_settle_sources(b, step, o, view, NULL);
    b->of[view->index] = whole(dst);
}

/* A view when it is read, and those that it is in, the outermost first. */
static void visit_starts(einsum_builder *b, op *o, op *view)
{
    size_t depth = 1;
    for (const run_start *s = view->starts; s->outer; s = s->outer)
        depth++;
    op **views = ARENA_ARRAY(b->context->arena, op *, depth);
    for (size_t i = 0; i < depth; i++, view = op_input(first_begun(view)))
        views[i] = view;
    while (depth-- > 0)
        visit_start(b, o, views[depth]);
}

/* Positions of Domain between two values of the digit; 0: it is none of it. */
static int64_t domain_stride(const einsum_builder *b, const mapping *domain, const einsum_digit *d)
{
    int64_t position = 1;
    for (size_t i = domain->count; i-- > 0;) {
        const factor *f = &domain->factors[i];
        if (f->axis == b->axes[d->axis] && d->weight >= f->weight && d->weight < f->weight * f->live)
            return position * (d->weight / f->weight);
        position *= f->extent;
    }
    return 0;
}

/* The list's digits first, in its order: of two elements for one place the later one stays. */
static void order_digits(const einsum_builder *b, einsum_step *step, const mapping *domain)
{
    for (uint32_t i = 1; i < step->s.digit_count; i++) {
        einsum_digit d = step->digits[i];
        uint32_t k = i;
        for (; k > 0 && domain_stride(b, domain, &step->digits[k - 1]) < domain_stride(b, domain, &d); k--)
            step->digits[k] = step->digits[k - 1];
        step->digits[k] = d;
    }
}

static void visit_scatter(einsum_builder *b, op *o)
{
    reference from = b->of[op_input(o)->index], list = b->of[op_index(o)->index],
              memory = {b->of[op_root(op_into(o))->index].value, op_into(o)->window}, to = memory;
    bool guarded = is_guarded(o);
    choice c = guarded ? begin_choice(b, o, memory) : (choice){0};
    if (guarded && !o->bad) { /* the second is what is there, with the rows */
        to = second_of(b, &c);
        copy_memory(b, o, to, memory);
    }
    einsum_step *step = add_step(b, MATH_SCATTER, to, from, list);
    step->s.accumulator = o->out.dtype;
    add_indices(b, step, o, list, NULL);
    if (!o->bad)
        einsum_copy_digits(b, step, o, &op_input(o)->out);
    if (!o->bad)
        einsum_settle_sources(b, step, o, op_input(o), op_index(o));
    settle_indices(b, step, o->indirect->indexed, EINSUM_DST);
    order_digits(b, step, o->indirect->domain);
    if (has_one_row(o))
        step->s.op = MATH_COPY;
    if (guarded && !o->bad)
        finish_choice(b, o, &c, memory);
}

/* A parameter that comes in and is written: its value is one of its own, which begins as what comes in. */
static void visit_port(einsum_builder *b, op *o)
{
    visit_memory(b, o, o->port);
    if (!o->parameter)
        return;
    uint32_t dst = add_value_like(b, &o->out, -1);
    add_copy(b, o, whole(dst), o, &o->out);
    b->of[o->index] = whole(dst);
}

/* Memory that begins as zeros: all elements of its value. */
static void visit_alloc(einsum_builder *b, op *o)
{
    visit_memory(b, o, -1);
    if (!o->dma && !o->reads_zeros)
        return;
    uint32_t dst = b->of[o->index].value;
    einsum_step *step = add_step(b, MATH_FILL, whole(dst), whole(dst), whole(dst));
    step->s.accumulator = o->out.dtype;
    step->digits = ARENA_ARRAY(b->context->arena, einsum_digit, EINSUM_MAX_DIGITS);
    for (uint32_t i = 0; i < b->values[dst].rank && i < EINSUM_MAX_DIGITS; i++) {
        uint32_t number = b->values[dst].axes[i];
        step->digits[step->s.digit_count++] = (einsum_digit){.axis = number, .kept = true, .weight = 1, .size = b->axes[number]->size};
    }
}

/* Does the stream come from memory that changes? */
static bool chain_changes(const op *o)
{
    while (tensor_kind_is_stream(o->out.kind) && op_input(o))
        o = op_input(o);
    return op_root(o)->changes;
}

/* A copy in memory has a value of its own where what it is made of, or itself, is written once more. */
static bool keeps_apart(const op *o)
{
    return !tensor_kind_is_stream(o->out.kind) && (op_root(o)->changes || (op_input(o) && chain_changes(op_input(o))));
}

static void visit_kept(einsum_builder *b, op *o)
{
    uint32_t dst = add_value_like(b, &o->out, -1);
    add_copy(b, o, whole(dst), op_input(o), &o->out);
    b->of[o->index] = whole(dst);
}

static void visit_one(einsum_builder *b, op *o)
{
    switch (o->kind) {
    case IR_PORT_IN: visit_port(b, o); break;
    case IR_GATHER: visit_gather(b, o); break;
    case IR_SCATTER: visit_scatter(b, o); break;
    case IR_ALLOC: visit_alloc(b, o); break;
    case IR_VIEW: b->of[o->index] = view_of(b, o); break;
    case IR_RESHAPE: visit_reshape(b, o); break;
    case IR_VECTOR_OP: visit_map(b, o); break;
    case IR_VECTOR_REDUCE: visit_reduce(b, o, o->vector_reduce->row, einsum_reduce_digits); break;
    case IR_VECTOR_SLICES: visit_reduce(b, o, o->vector_slices->row, einsum_slices_digits); break;
    case IR_GENERATE: break; /* what it gives is its commit's */
    case IR_CONTRACT: visit_contract(b, o, op_accumulation(b->kernel, o)); break;
    case IR_PORT_OUT:
        visit_output(b, o, o->port, op_input(o)->kind == IR_ALIGN ? op_input(op_input(o)) : op_input(o));
        if (op_input(o)->kind == IR_ALIGN)
            visit_output(b, o, o->port + 1, op_weights(op_input(o)));
        break;
    default:
        if (op_input(o)->kind == IR_GENERATE)
            visit_generated(b, o);
        else if (o->adapter && o->adapter->subtracts)
            visit_difference(b, o);
        else if (o->commit_cast && o->commit_cast->relu)
            visit_relu(b, o);
        else if (op_second(o))
            visit_interleaved(b, o);
        else if (op_into(o))
            visit_write(b, o);
        else if (o->out.dtype != op_input(o)->out.dtype)
            visit_conversion(b, o);
        else if (keeps_apart(o))
            visit_kept(b, o);
        else
            b->of[o->index] = b->of[op_input(o)->index];
    }
}

/* Between unzip and zip there are two streams. */
static bool is_pair(const op *o)
{
    for (; o && o->kind != IR_VECTOR_INIT; o = op_input(o)) {
        if (o->kind == IR_VECTOR_OP && o->vector_op->zip)
            return false;
        if (o->kind == IR_VECTOR_UNZIP)
            return true;
    }
    return false;
}

/* Of a pair each group by itself; of others both are the same. */
static void visit(einsum_builder *b, op *o)
{
    op *in = op_input(o);
    if (in && in->starts && o->kind != IR_VIEW)
        visit_starts(b, o, in);
    if (o->kind == IR_VECTOR_UNZIP) {
        visit_unzip(b, o);
        return;
    }
    if (o->kind == IR_VECTOR_OP && o->vector_op->zip) {
        visit_zip(b, o);
        return;
    }
    if (!in || !is_pair(in)) {
        visit_one(b, o);
        b->other[o->index] = b->of[o->index];
        return;
    }
    for (unsigned g = 0; g < 2; g++) {
        if (o->kind == IR_VECTOR_OP && !(o->vector_op->groups >> g & 1))
            b->of[o->index] = b->of[in->index];
        else
            visit_one(b, o);
        einsum_turn(b);
    }
}

static void count_uses(einsum_builder *b)
{
    for (size_t i = 0; i < b->kernel->op_count; i++) {
        const op *o = b->kernel->ops[i];
        for (size_t j = 0; j < o->operand_count; j++)
            if (operand_access_of(o->operands[j].role) == READS)
                b->uses[o->operands[j].of->index]++;
    }
}

/* Parts of a result that its type leaves open are those of the stage that makes it. */
static void settle_outputs(kernel *k)
{
    for (size_t i = 0; i < k->op_count; i++)
        for (int c = 0; c < MAPPING_COMPONENTS && k->ops[i]->kind == IR_PORT_OUT; c++)
            if (!k->ops[i]->out.part[c] && op_input(k->ops[i])->out.kind == k->ops[i]->out.kind) {
                k->ops[i]->out.part[c] = op_input(k->ops[i])->out.part[c];
                k->ports[k->ops[i]->port].tensor.part[c] = k->ops[i]->out.part[c];
            }
}

/* The axes of size 1 that the ports' types name: no statement counts them, but they are dimensions of the tensors. */
static void add_units(einsum_builder *b)
{
    for (size_t i = 0; i < b->value_count; i++) {
        einsum_tensor *v = &b->values[i];
        const axis *axes[EINSUM_MAX_AXES];
        uint32_t rank = v->port >= 0 ? port_axes(&b->kernel->ports[v->port], b->context->arena, axes, EINSUM_MAX_AXES) : 0, others = 0;
        for (uint32_t k = 0; k < rank; k++)
            others += axes[k]->size > 1;
        if (others != v->rank || rank == others)
            continue;
        uint32_t *numbers = ARENA_ARRAY(b->context->arena, uint32_t, rank);
        for (uint32_t k = 0; k < rank; k++)
            numbers[k] = einsum_axis_number(b, axes[k]);
        v->rank = rank;
        v->axes = numbers;
    }
}

/* Where a result has an axis and its new name, as the product of a tensor and its transpose has, that axis joins `b->own`. */
static void make_statements(einsum_builder *b, pass_context *p, kernel *k)
{
    *b = (einsum_builder){.context = p,
                          .kernel = k,
                          .own = b->own,
                          .own_count = b->own_count,
                          .own_capacity = b->own_capacity,
                          .of = ARENA_ARRAY(p->arena, reference, k->op_count + 1),
                          .other = ARENA_ARRAY(p->arena, reference, k->op_count + 1),
                          .uses = ARENA_ARRAY(p->arena, uint32_t, k->op_count + 1)};
    count_uses(b);
    for (size_t i = 0; i < k->op_count; i++)
        visit(b, k->ops[i]);
    einsum_compact(b);
}

void pass_einsum(pass_context *p, kernel *k)
{
    settle_outputs(k);
    for (size_t i = 0; i < k->op_count; i++)
        if (k->ops[i]->bad || (op_input(k->ops[i]) && op_input(k->ops[i])->bad) || k->bad)
            return;
    einsum_builder b = {0};
    do
        make_statements(&b, p, k);
    while (b.again && !k->bad); /* each time for one axis more */
    add_units(&b);
    k->einsum = einsum_finish(&b);
}
