#include "ir/dataflow/explore_chain.h"

#include "support/budget.h"
#include "support/order.h"

/* The front of an item is by multipliers, its cycles fall: the first that is fast enough. */
const explore_point *explore_chain_item(const explore *item, int64_t latency)
{
    size_t low;
    ORDER_FIRST(&low, item->count, i, item->front[i].latency > latency);
    return low < item->count ? &item->front[low] : NULL;
}

/* Multipliers of all items in at most so many cycles, INT64_MAX where they are too many; -1: an item has no such point. */
static int64_t multipliers_in(const explore_chain *c, int64_t latency)
{
    int64_t sum = 0;
    for (size_t i = 0; i < c->count; i++) {
        const explore_point *p = explore_chain_item(&c->items[i], latency);
        if (!p)
            return -1;
        if (__builtin_add_overflow(sum, p->multipliers, &sum))
            sum = INT64_MAX;
    }
    return sum;
}

void explore_chain_run(explore_chain *c, arena *a)
{
    size_t count = 0, at = 0;
    c->front_count = 0;
    for (size_t i = 0; i < c->count; i++)
        count += c->items[i].count;
    int64_t *targets = ARENA_ARRAY(a, int64_t, count + 1);
    for (size_t i = 0; i < c->count; i++)
        for (size_t k = 0; k < c->items[i].count; k++)
            targets[at++] = c->items[i].front[k].latency;
    order_sort(targets, count, sizeof *targets, order_numbers);
    for (size_t i = 0; i < count; i++) {
        budget_spend(a, c->count);
        int64_t sum = multipliers_in(c, targets[i]);
        if (sum >= 0 && (c->front_count == 0 || sum < c->front[c->front_count - 1].multipliers))
            ARENA_PUSH(a, c->front, c->front_count, c->front_capacity, ((explore_chain_point){targets[i], sum}));
    }
}

const explore_chain_point *explore_chain_choose(const explore_chain *c, int64_t cycles, int64_t multipliers)
{
    const explore_chain_point *best = NULL;
    for (size_t i = 0; i < c->front_count; i++) {
        const explore_chain_point *p = &c->front[i];
        if ((cycles != 0 && p->latency > cycles) || (multipliers != 0 && p->multipliers > multipliers))
            continue;
        if (!best || cycles != 0) /* ascending: the last is the cheapest, the first the fastest */
            best = p;
    }
    return best;
}
