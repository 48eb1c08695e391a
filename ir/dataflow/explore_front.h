/* The front of a walk: the points of which no other has fewer cycles and not more multipliers, by multipliers, each with its ways in order.
 */
#ifndef VISA_IR_DATAFLOW_EXPLORE_FRONT_H
#define VISA_IR_DATAFLOW_EXPLORE_FRONT_H

#include "ir/dataflow/explore.h"

/* Is there a point with fewer of one and not more of the other? */
bool explore_dominated(const explore *x, int64_t latency, int64_t multipliers);
/* Adds a combination of levels, which has `ways`, unless it is dominated, and drops what it dominates. Combinations come in order. */
void explore_add(explore *x, int64_t latency, int64_t multipliers, const int64_t *levels, int64_t ways);

#endif
