#include "codegen/reference/twin.h"

#include "codegen/reference/fuse.h"
#include "codegen/reference/sharing.h"
#include "codegen/reference/walk.h"

unsigned twin_side(const plan_statement *s, const plan_statement *of, unsigned side)
{
    unsigned found = EINSUM_A;
    while (found < EINSUM_A + s->source_count && plan_operand(s, found) != plan_operand(of, side))
        found++;
    return found;
}

/* Is there an axis of which each of them writes another place? */
static bool are_apart(const einsum *e, const einsum_statement *a, const einsum_statement *b)
{
    const einsum_tensor *t = &e->tensors[a->dst];
    for (uint32_t i = 0; i < t->rank; i++)
        if (!einsum_walks_axis(a, EINSUM_SIDES, t->axes[i]) &&
            einsum_shift_along(a, EINSUM_DST, t->axes[i]) != einsum_shift_along(b, EINSUM_DST, t->axes[i]))
            return true;
    return false;
}

/* Plain maps: each place of a tensor without windows, computed in vectors or not. */
static bool is_plain(const reference_plan *p, const plan_statement *s)
{
    bool plain = s->of->op == MATH_MAP && !s->absorbed && !s->unbounded && twin_side(s, s, EINSUM_DST) == EINSUM_A + s->source_count &&
                 !fuse_has_window(p->e, s->of->dst);
    for (unsigned i = 0; i < s->source_count && plain; i++)
        plain = !fuse_has_window(p->e, s->sources[i]);
    return plain;
}

static bool may_follow(const reference_plan *p, const plan_statement *first, const plan_statement *s)
{
    bool may = is_plain(p, first) && is_plain(p, s) && first->of->dst == s->of->dst && sharing_same_digits(first->of, s->of) &&
               !sharing_guards_differ(p->e, first, s) && first->vector_lanes == s->vector_lanes && first->vector.axis == s->vector.axis &&
               first->vector.weight == s->vector.weight && first->vector.size == s->vector.size && (!s->first || s->covers || s->completed);
    for (unsigned i = 0; i < s->source_count && may; i++)
        may = twin_side(first, s, EINSUM_A + i) < EINSUM_A + first->source_count;
    return may;
}

/* The last statement in front of number i that is computed, where everything between them is part of others; NULL: none. */
static plan_statement *before(reference_plan *p, uint32_t i)
{
    while (i-- > 0)
        if (!p->statements[i].absorbed)
            return &p->statements[i];
    return NULL;
}

void twin_find(reference_plan *p)
{
    for (uint32_t i = 1; i < p->e->statement_count; i++) {
        plan_statement *s = &p->statements[i], *first = before(p, i), *last = first;
        unsigned count = 1;
        bool apart = first && may_follow(p, first, s) && are_apart(p->e, first->of, s->of);
        for (; apart && last->twin; last = last->twin, count++)
            apart = are_apart(p->e, last->twin->of, s->of);
        if (!apart || count == PLAN_TWINS)
            continue;
        last->twin = s;
        s->absorbed = true;
    }
}
