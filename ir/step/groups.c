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
    uint32_t count, inside, rank, min;
    const step_expr *of;   /* what the size is made of; NULL: a dimension's */
    const step_stream *by; /* whose values determine it; NULL: none do */
    step_group_use use;
    const step_expr *size;
} step_group;

/* The entry, whose size is NULL where it is new. */
static step_group *group_of(step_graph *g, step_group key)
{
    for (step_group *k = g->groups; k; k = k->next)
        if (k->count == key.count && k->inside == key.inside && k->rank == key.rank && k->min == key.min && k->of == key.of &&
            k->by == key.by && k->use == key.use && memcmp(k->dims, key.dims, key.count * sizeof *k->dims) == 0)
            return k;
    step_group *k = ARENA_NEW(g->arena, step_group);
    const step_expr **dims = ARENA_ARRAY(g->arena, const step_expr *, key.count);
    memcpy(dims, key.dims, key.count * sizeof *dims);
    *k = key;
    k->dims = dims;
    k->next = g->groups;
    g->groups = k;
    return k;
}

/* Streams of the same sizes have the same groups. */
static const step_expr *known_size(step_graph *g, const step_stream *s, uint32_t top, uint32_t i)
{
    step_group *k = group_of(g, (step_group){.dims = s->dims, .count = s->rank + 1 - i, .inside = top - i, .rank = s->rank});
    if (!k->size)
        k->size = size_of(g, s, top, i);
    return k->size;
}

typedef struct homes {
    step_graph *g;
    const step_stream *s;
    uint32_t b;
    bool inside; /* some ragged size differs inside of groups of b dimensions */
} homes;

/* A size occurs first at the places of some dimensions of the stream; where that is none, it is taken for one of each group. */
static const step_expr *look_home(void *user, const step_expr *symbol)
{
    homes *h = user;
    const step_expr *home = step_expr_is_ragged(symbol) ? step_total_home(h->g, symbol) : NULL;
    for (uint32_t k = 0; home && k <= h->s->rank + 1; k++)
        if (step_total_places(h->g, h->s, k) == home) {
            h->inside = h->inside || k > h->s->rank + 1 - h->b;
            break;
        }
    return symbol;
}

/* Do tiles of one group differ in it? */
static bool differs_inside(step_graph *g, const step_stream *s, uint32_t b, const step_expr *each)
{
    homes h = {.g = g, .s = s, .b = b};
    step_expr_replace(g->exprs, each, look_home, &h);
    return h.inside;
}

static const step_expr *symbol_of(step_graph *g, const step_stream *s, step_group key, bool *is_new)
{
    key.dims = s->dims;
    key.count = s->rank + 1;
    key.rank = s->rank;
    step_group *k = group_of(g, key);
    *is_new = !k->size;
    if (*is_new)
        k->size = step_expr_fresh(g->exprs, "R", true);
    return k->size;
}

const step_expr *step_groups_size(step_graph *g, const step_stream *s, uint32_t b, step_group_use use, const step_expr *of, bool *is_new)
{
    return symbol_of(g, s, (step_group){.inside = b, .of = of, .use = use}, is_new);
}

const step_expr *step_groups_absorbed(step_graph *g, const step_stream *s, uint32_t min, uint32_t max, const step_expr *of, bool *is_new)
{
    return symbol_of(g, s, (step_group){.inside = max, .min = min, .of = of, .use = STEP_GROUP_ABSORBED}, is_new);
}

const step_expr *step_groups_counted(step_graph *g, const step_stream *by, uint32_t b, bool is_ragged)
{
    step_group *k = group_of(g, (step_group){.dims = by->dims, .count = by->rank + 1, .inside = b, .rank = by->rank, .by = by});
    if (!k->size)
        k->size = step_expr_fresh(g->exprs, "F", is_ragged);
    return k->size;
}

const step_expr *step_groups_shared(step_graph *g, const step_stream *s, uint32_t b, const step_expr *each)
{
    bool is_new;
    if (!each || !step_expr_is_ragged(each) || !differs_inside(g, s, b, each))
        return each;
    return step_groups_size(g, s, b, STEP_GROUP_SHARED, each, &is_new);
}

const step_expr *step_groups_joined(step_graph *g, const step_stream *s, uint32_t b, const step_expr *each, const step_expr *folded)
{
    bool is_new;
    if (!differs_inside(g, s, b, each))
        return step_expr_multiply(g->exprs, each, folded);
    const step_expr *size = step_groups_size(g, s, b, STEP_GROUP_JOINED, each, &is_new);
    if (is_new)
        step_total_define(g, size, step_groups_count(g, s, b), size, step_total_of(g, step_cardinality(g, s), each));
    return size;
}

void step_groups_dims(step_graph *g, const step_stream *s, uint32_t top, uint32_t b, const step_expr **dims)
{
    for (uint32_t i = top + 1; i-- > b;)
        dims[top - i] = known_size(g, s, top, i);
}
