/* What an einsum is built of: values and their axes, steps and their sources; and what is known of each while it grows. */
#include <string.h>

#include "passes/mathematics/einsum_build.h"
#include "support/budget.h"

uint32_t einsum_axis_number(einsum_builder *b, const axis *a)
{
    enum { AXES_OF_STEP = 8 };
    budget_spend(b->context->arena, 1 + b->axis_count / AXES_OF_STEP);
    for (size_t i = 0; i < b->axis_count; i++)
        if (b->axes[i] == a)
            return (uint32_t)i;
    ARENA_PUSH(b->context->arena, b->axes, b->axis_count, b->axis_capacity, a);
    return (uint32_t)b->axis_count - 1;
}

uint32_t einsum_add_value(einsum_builder *b, dtype type, int64_t port)
{
    einsum_tensor v = {.dtype = type, .port = (int32_t)port};
    ARENA_PUSH(b->context->arena, b->values, b->value_count, b->value_capacity, v);
    ARENA_PUSH(b->context->arena, b->computed, b->computed_count, b->computed_capacity, false);
    return (uint32_t)b->value_count - 1;
}

void einsum_set_axes(einsum_builder *b, einsum_tensor *v, const tensor *t)
{
    const axis *axes[EINSUM_MAX_AXES];
    v->rank = tensor_axes(t, axes, EINSUM_MAX_AXES);
    uint32_t *numbers = ARENA_ARRAY(b->context->arena, uint32_t, v->rank);
    for (uint32_t i = 0; i < v->rank; i++)
        numbers[i] = einsum_axis_number(b, axes[i]);
    v->axes = numbers;
}

uint32_t einsum_add_like(einsum_builder *b, const tensor *t, int64_t port)
{
    uint32_t v = einsum_add_value(b, dtype_is_staging(t->dtype) ? DTYPE_I32 : t->dtype, port);
    einsum_set_axes(b, &b->values[v], t);
    return v;
}

uint32_t einsum_add_axis(einsum_builder *b, uint32_t value, const axis *a)
{
    einsum_tensor *v = &b->values[value];
    uint32_t *axes = ARENA_ARRAY(b->context->arena, uint32_t, v->rank + 1);
    axes[0] = einsum_axis_number(b, a);
    memcpy(axes + 1, v->axes, v->rank * sizeof *axes);
    v->axes = axes;
    v->rank++;
    return axes[0];
}

reference einsum_whole(uint32_t value)
{
    return (reference){.value = value};
}

reference einsum_at(einsum_builder *b, uint32_t value, const axis *a, int64_t place)
{
    tile_window *w = ARENA_NEW(b->context->arena, tile_window);
    *w = (tile_window){.shifts = {{a, place}}, .shift_count = 1};
    return (reference){value, w};
}

const tile_window *einsum_add_windows(einsum_builder *b, const tile_window *of, const tile_window *w)
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

void einsum_add_shifts(einsum_builder *b, einsum_step *s, einsum_side side, const tile_window *w)
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

einsum_step *einsum_add_step(einsum_builder *b, math_op what, reference dst, reference a, reference other)
{
    const reference sources[] = {a, other};
    einsum_step s = {.s = {.op = what, .dst = dst.value, .source_count = math_row_of(what)->fewest_sources}};
    einsum_add_shifts(b, &s, EINSUM_DST, dst.window);
    for (uint32_t i = 0; i < s.s.source_count; i++) {
        s.s.sources[i] = sources[i].value;
        einsum_add_shifts(b, &s, (einsum_side)(EINSUM_A + i), sources[i].window);
    }
    ARENA_PUSH(b->context->arena, b->steps, b->step_count, b->step_capacity, s);
    return &b->steps[b->step_count - 1];
}

void einsum_set_kept_axes(einsum_builder *b, einsum_tensor *v, const einsum_step *step)
{
    uint32_t *axes = ARENA_ARRAY(b->context->arena, uint32_t, EINSUM_MAX_AXES);
    v->axes = axes;
    for (uint32_t i = 0; i < step->s.digit_count; i++)
        if (step->digits[i].kept && !einsum_tensor_has(v, step->digits[i].axis) && v->rank < EINSUM_MAX_AXES)
            axes[v->rank++] = step->digits[i].axis;
}

void einsum_add_copy(einsum_builder *b, op *o, reference to, const op *source, const tensor *t)
{
    einsum_step *step = einsum_add_step(b, MATH_COPY, to, b->of[source->index], b->of[source->index]);
    einsum_note_computed(b, &step->s);
    einsum_copy_digits(b, step, o, t);
    einsum_settle_sources(b, step, o, source, NULL);
}

reference einsum_copy_of(einsum_builder *b, op *o, const op *source, const tensor *t)
{
    reference copy = einsum_whole(einsum_add_like(b, t, -1));
    einsum_add_copy(b, o, copy, source, t);
    return copy;
}

einsum_step *einsum_just_made(einsum_builder *b, reference from)
{
    einsum_step *last = b->step_count ? &b->steps[b->step_count - 1] : NULL;
    return last && last->s.dst == from.value && !from.window && b->values[from.value].port < 0 ? last : NULL;
}

bool einsum_is_only_use(const einsum_builder *b, const op *o, uint32_t value)
{
    for (; o && b->of[o->index].value == value && !b->of[o->index].window; o = op_input(o)) {
        budget_spend(b->context->arena, 1);
        if (b->uses[o->index] != 1 || op_into(o) || o->kind == IR_ALLOC || o->kind == IR_PORT_IN || o->kind == IR_VIEW)
            return false;
        if (!op_input(o) || b->of[op_input(o)->index].value != value)
            return true;
    }
    return true;
}

/* ---- NaNs ---- */

bool einsum_computes_nans(const scalar_step *last)
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

void einsum_note_computed(einsum_builder *b, const einsum_statement *s)
{
    bool computes = s->op == MATH_CONTRACT || s->op == MATH_REDUCE ||
                    (s->op == MATH_MAP && einsum_computes_nans(&s->steps[s->step_count - 1])) ||
                    (s->op == MATH_COPY && b->computed[s->sources[0]]);
    b->computed[s->dst] = b->computed[s->dst] || computes;
}
