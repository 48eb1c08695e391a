#include "passes/mathematics/einsum_guard.h"

#include "passes/mathematics/einsum_map.h"

bool einsum_is_guarded(const op *o)
{
    return o->runs_if && o->runs_if != op_root(op_into(o))->runs_if;
}

static scalar_step constant_of(uint64_t bits)
{
    return (scalar_step){SCALAR_CONSTANT_I32, (uint32_t)bits};
}

/* Is the number of the sources from `source` on in the guard's range? One of 64 bits is two, the low half first. */
static void append_guard(einsum_expression *x, const run_guard *g, uint32_t source)
{
    const scalar_step low = {SCALAR_SOURCE, source}, high = {SCALAR_SOURCE, source + 1};
    const scalar_step below = {SCALAR_LT_U32, 0}, minus = {SCALAR_SUB_I32, 0}, not = {SCALAR_NOT_BOOL, 0};
    if (g->bits == 8) {
        const scalar_step steps[] = {
            constant_of(g->span), low, constant_of(g->first), minus, constant_of(UINT8_MAX), {SCALAR_AND_I32, 0}, below, not };
        einsum_append(x, steps, sizeof steps / sizeof *steps);
    } else if (g->bits == 32) {
        const scalar_step steps[] = {constant_of(g->span), low, constant_of(g->first), minus, below, not };
        einsum_append(x, steps, sizeof steps / sizeof *steps);
    } else {
        const scalar_step low_part[] = {low, constant_of(g->first), minus};
        const scalar_step high_part[] = {
            high,           constant_of(g->first >> 32), minus, low, constant_of(g->first), below, constant_of(1),
            constant_of(0), {SCALAR_SELECT_I32, 0},      minus};
        const size_t highs = sizeof high_part / sizeof *high_part;
        einsum_append(x, high_part, highs); /* high < span's, or equal and low at most span's */
        einsum_append(x, &(scalar_step){SCALAR_CONSTANT_I32, (uint32_t)(g->span >> 32)}, 1);
        einsum_append(x, &below, 1);
        einsum_append(x, high_part, highs);
        einsum_append(x, &(scalar_step){SCALAR_CONSTANT_I32, (uint32_t)(g->span >> 32)}, 1);
        einsum_append(x, &(scalar_step){SCALAR_EQ_I32, 0}, 1);
        einsum_append(x, &(scalar_step){SCALAR_CONSTANT_I32, (uint32_t)g->span}, 1);
        einsum_append(x, low_part, sizeof low_part / sizeof *low_part);
        einsum_append(x, &below, 1);
        einsum_append(x, &not, 1);
        einsum_append(x, &(scalar_step){SCALAR_AND_BOOL, 0}, 1);
        einsum_append(x, &(scalar_step){SCALAR_OR_BOOL, 0}, 1);
    }
}

/* A number that is 1 where all guards up to `outer` hold, else 0. */
static uint32_t add_guards(einsum_builder *b, op *o, const run_guard *outer)
{
    uint32_t dst = einsum_add_value(b, DTYPE_I32, -1);
    einsum_step *step = einsum_add_step(b, MATH_MAP, einsum_whole(dst), einsum_whole(dst), einsum_whole(dst));
    einsum_expression x = {.count = 0};
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
            const axis *axes[1];
            mapping_axes(g->port->out.part[ELEMENT], axes, 1);
            einsum_add_shifts(b, step, (einsum_side)(EINSUM_A + first + 1), einsum_at(b, value, axes[0], 1).window);
        }
        append_guard(&x, g, first);
        if (first > 0)
            einsum_append(&x, &(scalar_step){SCALAR_AND_BOOL, 0}, 1);
    }
    const scalar_step choice[] = {constant_of(1), constant_of(0), {SCALAR_SELECT_I32, 0}};
    einsum_append(&x, choice, sizeof choice / sizeof *choice);
    step->digits = einsum_room_for_digits(b);
    einsum_set_expression(b, step, &x, DTYPE_I32);
    return dst;
}

void einsum_copy_memory(einsum_builder *b, op *o, reference to, reference memory)
{
    einsum_step *step = einsum_add_step(b, MATH_COPY, to, memory, memory);
    einsum_note_computed(b, &step->s);
    einsum_copy_digits(b, step, o, &op_into(o)->out);
    if (!o->bad)
        einsum_settle_sources(b, step, o, op_into(o), NULL);
}

einsum_choice einsum_begin_choice(einsum_builder *b, op *o, reference memory)
{
    einsum_choice c = {.both = einsum_add_like(b, &op_into(o)->out, -1), .axis = mapping_axis(b->context->mappings, "if.taken", 2)};
    einsum_add_axis(b, c.both, c.axis);
    einsum_copy_memory(b, o, einsum_whole(c.both), memory);
    return c;
}

reference einsum_second_of(einsum_builder *b, const einsum_choice *c)
{
    return einsum_at(b, c->both, c->axis, 1);
}

void einsum_finish_choice(einsum_builder *b, op *o, const einsum_choice *c, reference memory)
{
    uint32_t place = add_guards(b, o, op_root(op_into(o))->runs_if);
    einsum_step *step = einsum_add_step(b, MATH_GATHER, memory, einsum_whole(c->both), einsum_whole(place));
    einsum_index *index = ARENA_NEW(b->context->arena, einsum_index);
    *index = (einsum_index){.axis = einsum_axis_number(b, c->axis), .unit = 1, .step = 1, .div = 1, .positions = 2};
    step->s.accumulator = b->values[c->both].dtype;
    step->s.indices = index;
    b->computed[memory.value] = b->computed[memory.value] || b->computed[c->both];
    einsum_copy_digits(b, step, o, &op_into(o)->out);
}

void einsum_write_guarded(einsum_builder *b, op *o, reference from, reference memory, const op *source)
{
    einsum_choice c = einsum_begin_choice(b, o, memory);
    einsum_step *step = einsum_add_step(b, MATH_COPY, einsum_second_of(b, &c), from, from);
    einsum_note_computed(b, &step->s);
    einsum_copy_digits(b, step, o, &op_into(o)->out);
    if (source && !o->bad)
        einsum_settle_sources(b, step, o, source, NULL);
    einsum_finish_choice(b, o, &c, memory);
}

void einsum_generate(einsum_builder *b, op *o)
{
    reference memory = {b->of[op_root(op_into(o))->index].value, op_into(o)->window};
    bool guarded = einsum_is_guarded(o);
    einsum_choice c = guarded ? einsum_begin_choice(b, o, memory) : (einsum_choice){0};
    reference to = guarded ? einsum_second_of(b, &c) : memory;
    einsum_step *step = einsum_add_step(b, MATH_MAP, to, to, to);
    step->s.source_count = 0;
    einsum_set_expression(b, step, &(einsum_expression){.steps = {op_input(o)->generate->number}, .count = 1},
                          op_input(o)->generate->number.op == SCALAR_CONSTANT_F32 ? DTYPE_F32 : DTYPE_I32);
    einsum_copy_digits(b, step, o, &op_into(o)->out);
    if (guarded)
        einsum_finish_choice(b, o, &c, memory);
}
