#include "runtime/machine/nest.h"

#include <stdlib.h>

#include "support/order.h"

enum { MOST_BOUNDARIES = 2 + 2 * COMMAND_MAX_ENTRIES + 2 * NEST_MOST_MASKS * COMMAND_MAX_ENTRIES };

typedef struct boundaries {
    int64_t at[MOST_BOUNDARIES]; /* steps */
    size_t count;
    int64_t steps;
} boundaries;

/* A boundary at or past the end is none. */
static void add(boundaries *b, int64_t at)
{
    if (at < b->steps)
        b->at[b->count++] = at;
}

static void add_masks(boundaries *b, const mask_set *masks)
{
    for (size_t i = 0; i < masks->count; i++)
        for (unsigned j = 0; j < masks->masks[i].step_term_count; j++) {
            const mask_term *t = &masks->masks[i].step_terms[j];
            int64_t end;
            add(b, t->div);
            if (!__builtin_mul_overflow(t->div, t->mod, &end))
                add(b, end);
        }
}

/* Every place where a counter of some sequencer carries. */
static void collect(boundaries *b, const contraction *k, const accumulate *sums)
{
    int64_t inner = 1;
    b->at[b->count++] = 1; /* there is a loop, even around a single step */
    add(b, k->tiling);
    for (unsigned i = k->weights.table.count; i-- > 0; inner *= k->weights.table.size[i])
        add(b, inner);
    inner = 1;
    for (unsigned i = sums->count; i-- > 0; inner *= sums->loops[i].size)
        add(b, inner);
    add_masks(b, &k->masks);
    order_sort(b->at, b->count, sizeof *b->at, order_numbers);
    size_t kept = 0;
    for (size_t i = 0; i < b->count; i++)
        if (kept == 0 || b->at[kept - 1] != b->at[i])
            b->at[kept++] = b->at[i];
    b->count = kept;
}

/* What a step more at `at` steps adds to the weights' address. */
static int64_t weight_stride(const walk *w, int64_t at)
{
    int64_t inner = 1;
    for (unsigned i = w->count; i-- > 0; inner *= w->size[i])
        if (at >= inner && at < inner * w->size[i])
            return w->stride[i] * (at / inner);
    return 0;
}

static int64_t mask_stride(const mask *m, int64_t at)
{
    int64_t sum = 0;
    for (unsigned j = 0; j < m->step_term_count; j++) {
        const mask_term *t = &m->step_terms[j];
        if (at >= t->div && at / t->div < t->mod)
            sum += at / t->div * t->weight;
    }
    return sum;
}

static bool is_reduced(const accumulate *sums, int64_t at)
{
    int64_t inner = 1;
    for (unsigned i = sums->count; i-- > 0; inner *= sums->loops[i].size)
        if (at >= inner && at < inner * sums->loops[i].size)
            return sums->loops[i].reduced;
    return false;
}

static bool make_loop(nest_loop *l, int64_t at, int64_t end, const contraction *k, const accumulate *sums)
{
    *l = (nest_loop){.size = end / at,
                     .steps = at,
                     .packets = at >= k->tiling ? at / k->tiling : 0,
                     .weights = weight_stride(&k->weights.table, at),
                     .reduced = is_reduced(sums, at)};
    for (size_t i = 0; i < k->masks.count; i++)
        l->masks[i] = mask_stride(&k->masks.masks[i], at);
    return end % at == 0;
}

/* Do two kept iterations never meet in a slot? Sorted by stride, each loop must step over all before it. */
static bool slots_apart(const accumulate *sums)
{
    bool used[COMMAND_MAX_ENTRIES] = {false};
    int64_t reach = 0;
    for (unsigned round = 0; round < sums->count; round++) {
        unsigned least = sums->count;
        bool inside = false;
        for (unsigned i = 0; i < sums->count; i++) {
            inside |= sums->loops[i].reduced;
            if (inside && !sums->loops[i].reduced && !used[i] &&
                (least == sums->count || sums->loops[i].slot_stride < sums->loops[least].slot_stride))
                least = i;
        }
        if (least == sums->count)
            return true;
        if (sums->loops[least].slot_stride <= reach)
            return false;
        used[least] = true;
        reach += sums->loops[least].slot_stride * (sums->loops[least].size - 1);
    }
    return true;
}

bool nest_make(nest *n, const contraction *k, const accumulate *sums)
{
    boundaries b = {.steps = k->steps};
    *n = (nest){.slots = 1};
    if (k->masks.count > NEST_MOST_MASKS || k->masks.per_unit || !slots_apart(sums))
        return false;
    collect(&b, k, sums);
    if (b.count > NEST_MOST_LOOPS)
        return false;
    for (size_t i = b.count; i-- > 0;)
        if (!make_loop(&n->loops[n->count++], b.at[i], i + 1 < b.count ? b.at[i + 1] : b.steps, k, sums))
            return false;
    n->outermost_reduced = n->count;
    for (unsigned i = n->count; i-- > 0;)
        if (n->loops[i].reduced)
            n->outermost_reduced = i;
    for (unsigned i = n->outermost_reduced; i < n->count; i++)
        n->slots *= n->loops[i].reduced ? 1 : n->loops[i].size;
    return true;
}
