/* Items that run one after the other, folded together: a point of each, so that the slowest meets a target with the fewest multipliers.
 *
 * The one idea: multipliers add up and the slowest decides, so each item alone takes its cheapest point that is fast enough, which is on
 * its own front; and the only targets that differ are the cycles of points on the fronts. So the front of the chain is exact, and costs no
 * product of the spaces (test/dataflow/dataflow_chain.py tries all of it). */
#ifndef VISA_IR_DATAFLOW_EXPLORE_CHAIN_H
#define VISA_IR_DATAFLOW_EXPLORE_CHAIN_H

#include "ir/dataflow/explore.h"

typedef struct explore_chain_point {
    int64_t latency, multipliers; /* of the slowest item, and of all together */
} explore_chain_point;

typedef struct explore_chain {
    explore *items;
    size_t count;
    explore_chain_point *front; /* by cycles, ascending: the multipliers fall */
    size_t front_count, front_capacity;
} explore_chain;

/* The front of items that were explored. Empty: one of them has no point within its limits. */
void explore_chain_run(explore_chain *c, arena *a);
/* The cheapest point in at most so many cycles, the fastest where 0, with at most so many multipliers (0: any). NULL: none. */
const explore_chain_point *explore_chain_choose(const explore_chain *c, int64_t cycles, int64_t multipliers);
/* What an item takes at a point of the chain: a point of its front. */
const explore_point *explore_chain_item(const explore *item, int64_t latency);

#endif
