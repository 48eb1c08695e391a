#include "codegen/reference/elements_plan.h"

#include <stdlib.h>

#include "codegen/reference/fault.h"
#include "codegen/reference/walk.h"

#define MAX_SLOT_BYTES (INT64_C(1) << 36)

bool elements_plan_nodes(plan_statement *s)
{
    const einsum_statement *of = s->of;
    uint16_t stack[SCALAR_MAX_DEPTH];
    unsigned depth = 0;
    s->nodes = calloc((size_t)of->step_count + 1, sizeof *s->nodes);
    for (uint32_t i = 0; s->nodes && i < of->step_count; i++) {
        const scalar_row *row = scalar_row_of(of->steps[i].op);
        unsigned arity = row ? scalar_arity(row) : 0;
        plan_node n = {.op = of->steps[i].op, .argument = of->steps[i].argument};
        depth -= arity;
        for (unsigned k = 0; k < arity; k++)
            n.operands[k] = stack[depth + k];
        stack[depth++] = (uint16_t)s->node_count;
        s->nodes[s->node_count++] = n;
    }
    return s->nodes != NULL;
}

bool elements_plan_approximates(const plan_statement *s)
{
    for (unsigned i = 0; i < s->node_count; i++) {
        const scalar_row *row = scalar_row_of(s->nodes[i].op);
        if (row && row->ulps)
            return true;
    }
    return false;
}

/* ---- the vector digit ---- */

static int64_t lanes_of(const reference_plan *p, int64_t size)
{
    int64_t lanes = 1;
    while (2 * lanes <= p->machine.lanes && 2 * lanes <= size)
        lanes *= 2;
    return lanes;
}

/* Do all its values exist, wherever the other digits are, and is no index tensor read along it? */
static bool walks_freely(const reference_plan *p, const plan_statement *s, const einsum_digit *d)
{
    static const plan_group all[] = {PLAN_BATCH, PLAN_DEPTH};
    const einsum *e = p->e;
    if (walk_passes(e, s, d->axis, all, 2))
        return false;
    for (unsigned i = 0; i < s->source_count; i++)
        for (uint32_t k = 0; k < e->tensors[s->sources[i]].rank; k++)
            if (walk_has_border(e, s->of, (einsum_side)(EINSUM_A + i), e->tensors[s->sources[i]].axes[k]))
                return false;
    for (uint32_t i = 0; i < einsum_index_count(s->of); i++) {
        bool moves_place = s->of->indices[i].axis == d->axis && einsum_digit_indexes(d, einsum_indexed_side(s->of));
        if (moves_place || walk_varies(e, s->sources[i + 1], (einsum_side)(EINSUM_B + i), d))
            return false;
    }
    return true;
}

/* The digit leaves its group, and is walked innermost. */
static void take_vector(const reference_plan *p, plan_statement *s, plan_group group, unsigned number)
{
    plan_digits *digits = &s->digits[group];
    s->vector = digits->items[number];
    s->vector_lanes = lanes_of(p, s->vector.size);
    digits->count--;
    for (unsigned i = number; i < digits->count; i++)
        digits->items[i] = digits->items[i + 1];
}

/* A digit along which the destination's elements lie side by side. The digits of a scatter keep their order.
 */
static bool take_kept(const reference_plan *p, plan_statement *s)
{
    const plan_digits *digits = &s->digits[PLAN_BATCH];
    for (unsigned i = digits->count; i-- > 0;) {
        const einsum_digit *d = &digits->items[i];
        if (walk_stride(p->e, s->of->dst, EINSUM_DST, d) == 1 && lanes_of(p, d->size) > 1 && walks_freely(p, s, d)) {
            take_vector(p, s, PLAN_BATCH, i);
            return true;
        }
        if (s->of->op == MATH_SCATTER)
            break;
    }
    return false;
}

/* One along which a source's elements lie side by side. */
static void take_summed(const reference_plan *p, plan_statement *s)
{
    const plan_digits *digits = &s->digits[PLAN_DEPTH];
    for (unsigned i = digits->count; i-- > 0;)
        for (unsigned k = 0; k < s->source_count; k++)
            if (walk_stride(p->e, s->sources[k], (einsum_side)(EINSUM_A + k), &digits->items[i]) == 1 &&
                lanes_of(p, digits->items[i].size) > 1 && walks_freely(p, s, &digits->items[i])) {
                take_vector(p, s, PLAN_DEPTH, i);
                return;
            }
}

/* ---- the machine's order ---- */

/* Lanes of a packet, up to a power of two; 0: none, terms come one by one. */
static int64_t slots_of(const plan_statement *s)
{
    int64_t span = 1, slots = 1;
    for (unsigned i = 0; i < s->digits[PLAN_DEPTH].count; i++)
        span += (s->digits[PLAN_DEPTH].items[i].size - 1) * s->digits[PLAN_DEPTH].items[i].lane;
    for (uint32_t i = 0; i < s->of->piece_count; i++)
        span += (s->of->pieces[i].size - 1) * s->of->pieces[i].lane;
    while (slots < span)
        slots *= 2;
    return slots > 1 || s->of->piece_count ? slots : 0;
}

int64_t elements_plan_steps(const plan_statement *s)
{
    int64_t steps = 1;
    for (uint32_t i = 0; i < s->of->piece_count; i++)
        steps *= s->of->pieces[i].lane ? 1 : s->of->pieces[i].size;
    return steps;
}

int64_t elements_plan_slot_bytes(const plan_statement *s)
{
    enum { VALUE_BYTES = 4, LIVE_BYTES = 1 };
    int64_t bytes = elements_plan_steps(s);
    return __builtin_mul_overflow(bytes, s->slots, &bytes) ||
                   __builtin_mul_overflow(bytes, VALUE_BYTES * s->vector_lanes + LIVE_BYTES, &bytes)
               ? -1
               : bytes;
}

char *elements_plan(const reference_plan *p, plan_statement *s, uint32_t number)
{
    s->vector_lanes = 1;
    bool kept = take_kept(p, s);
    if (s->of->op != MATH_REDUCE)
        return NULL;
    bool ordered = p->purpose.machine_order && !(scalar_row_of(s->of->fold)->flags & SCALAR_ASSOCIATES);
    if (!kept && !ordered)
        take_summed(p, s);
    s->exact_products = s->wide_bound = true; /* of bound.h: each term is added once, and errors are summed in f64 */
    s->slots = ordered ? slots_of(s) : 0;
    int64_t bytes = s->slots ? elements_plan_slot_bytes(s) : 0;
    if (bytes < 0 || bytes > MAX_SLOT_BYTES)
        return fault_text("statement %u needs more than 2^36 bytes of scratch storage", number);
    s->scratch.value = 0;
    s->scratch.end = s->scratch.plain_end = bytes;
    return NULL;
}
