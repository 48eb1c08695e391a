#include "passes/mathematics/einsum_map.h"

#include <string.h>

#include "passes/mathematics/einsum_guard.h"

void einsum_append(einsum_expression *x, const scalar_step *steps, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (x->count < SCALAR_MAX_STEPS)
            x->steps[x->count] = steps[i];
        x->count += x->count <= SCALAR_MAX_STEPS;
    }
}

void einsum_set_expression(einsum_builder *b, einsum_step *step, const einsum_expression *x, dtype result)
{
    scalar_step *steps = ARENA_ARRAY(b->context->arena, scalar_step, x->count);
    memcpy(steps, x->steps, x->count * sizeof *steps);
    step->s.steps = steps;
    step->s.step_count = x->count;
    step->s.accumulator = result;
    einsum_note_computed(b, &step->s);
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
static void substitute(const einsum_builder *b, einsum_expression *x, const op *o, const map_sources *from, const scalar_step *stream,
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
            einsum_append(x, beside, beside_count);
        else if (number)
            einsum_append(x, &(scalar_step){leaf, v->constants[number - 1]}, 1);
        else if (s->op == SCALAR_SOURCE)
            einsum_append(x, stream, stream_count);
        else
            einsum_append(x, s, 1);
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
static void substitute_guarded(const einsum_builder *b, einsum_expression *x, const op *o, const map_sources *from)
{
    const vector_op_row *row = o->vector_op->row;
    scalar_step stream[2], tagged[2], guard[VECTOR_GUARD_STEPS];
    bool is_float = row->to == DTYPE_F32, always;
    uint32_t stream_count = element_of(b, from, 0, is_float, stream),
             tagged_count = element_of(b, from, from->tag, op_tag(o)->out.dtype == DTYPE_F32, tagged);
    einsum_append(
        x, guard,
        vector_guard_steps(o->vector_op->tags, op_tag(o)->vector_tag->of, op_tag(o)->out.dtype, tagged, tagged_count, guard, &always));
    substitute(b, x, o, from, stream, stream_count);
    if (is_float && x->count <= SCALAR_MAX_STEPS && einsum_computes_nans(&x->steps[x->count - 1]))
        einsum_append(x, &(scalar_step){SCALAR_CANONICAL_F32, 0}, 1);
    einsum_append(x, stream, stream_count);
    einsum_append(x, &(scalar_step){is_float ? SCALAR_SELECT_F32 : SCALAR_SELECT_I32, 0}, 1);
}

/* Is it an expression that a statement can have, over the step's sources? */
static bool is_expression(const einsum_builder *b, const einsum_statement *s, const einsum_expression *x)
{
    dtype types[EINSUM_SOURCES];
    for (uint32_t i = 0; i < s->source_count; i++)
        types[i] = b->values[s->sources[i]].dtype;
    return x->count <= SCALAR_MAX_STEPS && scalar_result(x->steps, x->count, types, s->source_count) != SCALAR_NONE;
}

/* The statement that made the value computes this as well, where nothing else needs the value and the expression does not outgrow it. */
static bool extend_map(einsum_builder *b, op *o, reference from)
{
    einsum_step *last = einsum_just_made(b, from);
    map_sources sources = sources_of(o, false);
    if (!last || sources.count > 1 || last->s.op != MATH_MAP || !einsum_is_only_use(b, op_input(o), from.value) ||
        b->values[from.value].dtype != last->s.accumulator)
        return false;
    einsum_expression x = {.count = 0}, stream = {.count = 0};
    einsum_append(&stream, last->s.steps, last->s.step_count);
    if (reads_bits(o->vector_op->row) && einsum_computes_nans(&last->s.steps[last->s.step_count - 1]))
        einsum_append(&stream, &(scalar_step){SCALAR_CANONICAL_F32, 0}, 1);
    if (stream.count > SCALAR_MAX_STEPS)
        return false;
    substitute(b, &x, o, &sources, stream.steps, stream.count);
    if (!is_expression(b, &last->s, &x))
        return false;
    b->computed[from.value] = false; /* what it was computed by is no longer there */
    einsum_set_expression(b, last, &x, o->out.dtype);
    b->values[from.value].dtype = o->out.dtype;
    b->of[o->index] = from;
    return true;
}

void einsum_map(einsum_builder *b, op *o)
{
    reference from = b->of[op_input(o)->index];
    int taken = takes_all(o);
    if (taken == 0 || (taken == 2 ? false : extend_map(b, o, from))) {
        b->of[o->index] = from;
        return;
    }
    map_sources sources = sources_of(o, taken == 2);
    uint32_t dst = einsum_add_like(b, &o->out, -1);
    einsum_step *step = einsum_add_step(b, MATH_MAP, einsum_whole(dst), from, from);
    step->s.source_count = sources.count;
    for (unsigned i = 0; i < sources.count; i++) {
        reference source = b->of[sources.items[i]->index];
        step->s.sources[i] = source.value;
        einsum_add_shifts(b, step, (einsum_side)(EINSUM_A + i), source.window);
    }
    einsum_expression x = {.count = 0};
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
    einsum_set_expression(b, step, &x, o->out.dtype);
    einsum_copy_digits(b, step, o, &o->out);
    if (!o->bad)
        einsum_settle_list(b, step, o, sources.items, sources.count, 0);
    b->of[o->index] = einsum_whole(dst);
}

/* ---- two streams ---- */

void einsum_zip(einsum_builder *b, op *o)
{
    const op *sources[] = {op_input(o), op_input(o)};
    const vector_op_config *v = o->vector_op;
    reference from[] = {b->of[sources[0]->index], b->other[sources[0]->index]};
    uint32_t dst = einsum_add_like(b, &o->out, -1);
    einsum_step *step = einsum_add_step(b, MATH_MAP, einsum_whole(dst), from[0], from[0]);
    einsum_expression x = {.count = 0};
    step->s.source_count = 2;
    step->s.shift_count = 0;
    for (unsigned i = 0; i < 2; i++) {
        step->s.sources[i] = from[i].value;
        einsum_add_shifts(b, step, (einsum_side)(EINSUM_A + i), from[i].window);
    }
    for (uint32_t i = 0; i < v->row->step_count; i++) {
        const scalar_step *s = &v->row->steps[i];
        scalar_step element = {SCALAR_SOURCE, s->op == SCALAR_SOURCE ? vector_mode_of(v->mode, s->argument) : 0};
        einsum_append(&x, s->op == SCALAR_SOURCE ? &element : s, 1);
        if (s->op == SCALAR_SOURCE && reads_bits(v->row) && b->computed[from[element.argument].value])
            einsum_append(&x, &(scalar_step){SCALAR_CANONICAL_F32, 0}, 1);
    }
    einsum_set_expression(b, step, &x, o->out.dtype);
    einsum_copy_digits(b, step, o, &o->out);
    if (!o->bad)
        einsum_settle_list(b, step, o, sources, 2, 2);
    b->of[o->index] = b->other[o->index] = einsum_whole(dst);
}

void einsum_unzip(einsum_builder *b, op *o)
{
    reference from = b->of[op_input(o)->index], *to[] = {&b->of[o->index], &b->other[o->index]};
    for (int g = 0; g < 2; g++) {
        *to[g] = einsum_at(b, from.value, o->vector_unzip->by, g);
        to[g]->window = from.window ? einsum_add_windows(b, from.window, to[g]->window) : to[g]->window;
    }
}

/* ---- others ---- */

void einsum_reduce(einsum_builder *b, op *o, const vector_op_row *row, void (*digits)(einsum_builder *, einsum_step *, op *))
{
    reference from = b->of[op_input(o)->index];
    uint32_t dst = einsum_add_value(b, o->out.dtype, -1);
    einsum_step *step = einsum_add_step(b, MATH_REDUCE, einsum_whole(dst), from, from);
    einsum_set_expression(b, step, &(einsum_expression){.steps = {{SCALAR_SOURCE, 0}}, .count = 1}, o->out.dtype);
    step->s.fold = vector_fold_of(row);
    digits(b, step, o);
    einsum_set_kept_axes(b, &b->values[dst], step);
    if (!o->bad)
        einsum_settle_sources(b, step, o, op_input(o), NULL);
    b->of[o->index] = einsum_whole(dst);
}

/* A statement of its own: an expression over the elements of a source. `result`: its type; to: what it assigns. */
static void add_map(einsum_builder *b, op *o, reference to, const op *source, const tensor *t, const scalar_step *steps, uint32_t count,
                    dtype result)
{
    reference from = b->of[source->index];
    einsum_step *step = einsum_add_step(b, MATH_MAP, to, from, from);
    step->s.sources[0] = from.value;
    step->s.source_count = 1;
    einsum_add_shifts(b, step, EINSUM_A, from.window);
    einsum_expression x = {.count = 0};
    einsum_append(&x, steps, count);
    einsum_set_expression(b, step, &x, result);
    einsum_copy_digits(b, step, o, t);
    if (!o->bad)
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

void einsum_interleave(einsum_builder *b, op *o)
{
    const op *sources[] = {op_input(o), op_second(o)};
    uint32_t dst = einsum_add_like(b, &o->out, -1);
    for (int i = 0; i < 2 && !o->bad; i++) {
        einsum_step *step =
            einsum_add_step(b, MATH_COPY, einsum_at(b, dst, o->interleave, i), b->of[sources[i]->index], b->of[sources[i]->index]);
        einsum_note_computed(b, &step->s);
        einsum_copy_digits(b, step, o, &o->out);
        drop_axis(step, einsum_axis_number(b, o->interleave));
        einsum_settle_sources(b, step, o, sources[i], NULL);
    }
    b->of[o->index] = einsum_whole(dst);
}

void einsum_difference(einsum_builder *b, op *o)
{
    const scalar_step steps[] = {{SCALAR_SOURCE, 0}, {SCALAR_CONSTANT_I32, (uint32_t)o->adapter->zero_point}, {SCALAR_SUB_I32, 0}};
    if (op_second(o))
        einsum_interleave(b, o);
    const op *source = op_second(o) ? o : op_input(o);
    uint32_t dst = einsum_add_like(b, &o->out, -1);
    add_map(b, o, einsum_whole(dst), source, &o->out, steps, sizeof steps / sizeof *steps, DTYPE_I32);
    b->of[o->index] = einsum_whole(dst);
}

void einsum_relu(einsum_builder *b, op *o)
{
    const tensor *t = op_into(o) ? &op_into(o)->out : &o->out;
    bool guarded = op_into(o) && einsum_is_guarded(o), fresh = guarded || !op_into(o);
    reference memory = op_into(o) ? (reference){b->of[op_root(op_into(o))->index].value, op_into(o)->window} : einsum_whole(0);
    reference to = fresh ? einsum_whole(einsum_add_like(b, t, -1)) : memory;
    add_map(b, o, to, op_input(o), t, scalar_relu_steps, SCALAR_RELU_STEPS, DTYPE_F32);
    if (guarded)
        einsum_write_guarded(b, o, to, memory, NULL);
    if (!op_into(o))
        b->of[o->index] = to;
}
