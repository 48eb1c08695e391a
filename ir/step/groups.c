#include "ir/step/groups.h"

#include <string.h>

#include "ir/step/total.h"

/* Can D_i be 0 with others inside and outside of it? Not where it is promoted: then there is nothing outside. */
static bool may_be_bare(const step_graph *g, const step_stream *s, uint32_t i)
{
    int64_t known;
    const step_expr *d = step_dim(s, i);
    if (i + 1 == s->rank && step_dim(s, s->rank) == step_expr_present(g->exprs, d))
        return false;
    return i > 0 && i < s->rank && !step_total_is_positive(g, d) &&
           !(step_expr_is_number(step_expr_present(g->exprs, d), &known) && known == 1);
}

/* The product of present(D_j), from <= j <= to. */
static const step_expr *all_present(step_graph *g, const step_stream *s, uint32_t from, uint32_t to)
{
    const step_expr *all = step_expr_number(g->exprs, 1);
    for (uint32_t j = from; j <= to; j++)
        if (may_be_bare(g, s, j))
            all = step_expr_multiply(g->exprs, all, step_expr_present(g->exprs, step_dim(s, j)));
    return all;
}

/* Groups of b dimensions that stand for groups that are not there: one for each place where a dimension from D_b to D_top is 0. */
static const step_expr *bare_groups(step_graph *g, const step_stream *s, uint32_t top, uint32_t b)
{
    const step_expr *sum = step_expr_number(g->exprs, 0);
    for (uint32_t j = b; j <= top; j++)
        if (may_be_bare(g, s, j))
            sum = step_expr_add(g->exprs, sum,
                                step_total_of(g, step_total_places(g, s, s->rank - j), step_expr_absent(g->exprs, step_dim(s, j))));
    return sum;
}

const step_expr *step_groups_inside(step_graph *g, const step_stream *s, uint32_t top, uint32_t b)
{
    return step_expr_add(g->exprs, step_total_places(g, s, s->rank + 1 - b),
                         b > 0 ? bare_groups(g, s, top, b) : step_expr_number(g->exprs, 0));
}

const step_expr *step_groups_count(step_graph *g, const step_stream *s, uint32_t b)
{
    return step_groups_inside(g, s, s->rank, b);
}

const step_expr *step_groups_real(step_graph *g, const step_stream *s, uint32_t b)
{
    return all_present(g, s, b, s->rank);
}

/* Sizes that differ from group to group are a new ragged size, of which the sum is known. */
static const step_expr *ragged_size(step_graph *g, const step_stream *s, uint32_t top, uint32_t i, const step_expr *each)
{
    const step_expr *fresh = step_expr_fresh(g->exprs, "R", true);
    const step_expr *places = i == top ? step_total_places(g, s, s->rank - i) : step_groups_inside(g, s, top, i + 1);
    step_total_define(g, fresh, places, each ? each : fresh, step_groups_inside(g, s, top, i));
    if (i > 0)
        step_total_set_positive(g, fresh);
    else
        step_total_define_largest(g, fresh, step_total_where_any(g, s, step_dim(s, 0))); /* a group that stands for none has 0 */
    return fresh;
}

/* For each group of i + 1 dimensions 1, and 0 for one that stands for none. */
static const step_expr *flag_of(step_graph *g, const step_stream *s, uint32_t top, uint32_t i)
{
    const step_expr *one = step_expr_fresh(g->exprs, "E", true), *places = step_groups_inside(g, s, top, i + 1);
    const step_expr *real = step_expr_present(g->exprs, one), *bare = step_expr_absent(g->exprs, one);
    const step_expr *real_ones = step_total_places(g, s, s->rank - i), *bare_ones = bare_groups(g, s, top, i + 1);
    step_total_define(g, real, places, real, real_ones);
    step_total_define(g, bare, places, bare, bare_ones);
    step_total_define_largest(g, one, step_expr_present(g->exprs, real_ones)); /* what it is a factor of is larger nowhere else */
    step_total_define_largest(g, bare, step_expr_present(g->exprs, bare_ones));
    return real;
}

static const step_expr *size_of(step_graph *g, const step_stream *s, uint32_t top, uint32_t i)
{
    const step_expr *d = step_dim(s, i), *one = step_expr_number(g->exprs, 1), *outside = i < top ? all_present(g, s, i + 1, top) : one;
    if (i == s->rank || (outside == one && !may_be_bare(g, s, i)) || (d == one && i > 0))
        return d;
    bool is_own = outside == one;
    if (step_expr_is_ragged(outside) && !step_expr_is_ragged(d)) {
        outside = flag_of(g, s, top, i);
        is_own = true;
    }
    const step_expr *there = step_expr_multiply(g->exprs, d, outside), *size = there;
    if (i > 0) /* one group stands for none; values there are none */
        size = step_expr_add(g->exprs, there, step_expr_absent(g->exprs, there));
    if (!size || !step_expr_is_ragged(size))
        return size;
    return ragged_size(g, s, top, i, is_own ? size : NULL);
}

/* A size that was made for D_i inside of D_top of some stream. */
typedef struct step_group {
    struct step_group *next;
    const step_expr *const *dims; /* D_a .. D_i */
    uint32_t count, inside, rank;
    const step_expr *size;
} step_group;

/* Streams of the same sizes have the same groups. */
static const step_expr *known_size(step_graph *g, const step_stream *s, uint32_t top, uint32_t i)
{
    uint32_t count = s->rank + 1 - i;
    for (const step_group *k = g->groups; k; k = k->next)
        if (k->count == count && k->inside == top - i && k->rank == s->rank && memcmp(k->dims, s->dims, count * sizeof *k->dims) == 0)
            return k->size;
    step_group *k = ARENA_NEW(g->arena, step_group);
    const step_expr **dims = ARENA_ARRAY(g->arena, const step_expr *, count);
    memcpy(dims, s->dims, count * sizeof *dims);
    *k = (step_group){g->groups, dims, count, top - i, s->rank, size_of(g, s, top, i)};
    g->groups = k;
    return k->size;
}

void step_groups_dims(step_graph *g, const step_stream *s, uint32_t top, uint32_t b, const step_expr **dims)
{
    for (uint32_t i = top + 1; i-- > b;)
        dims[top - i] = known_size(g, s, top, i);
}
