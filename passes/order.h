/* In which order work is issued that does not depend on each other (docs/timing.md, Order).
 *
 * The one idea: the text says what is computed, not when. A piece of work must stay after another one only where both touch the same bytes
 * and one of them writes, where both feed or drain streams from outside, or where `#[after(..)]` says so; among the rest a list scheduler
 * chooses, for each context, by the length of the longest path to the end. */
#ifndef VISA_PASSES_ORDER_H
#define VISA_PASSES_ORDER_H

#include "ir/work.h"

/* What must stay in order. */
typedef struct order_graph order_graph;

/* Of the kernel's work in the order of issue that it has, which lives as long. NULL: there are no two pieces of work of one context that
 * may change places, or too many to look at. */
order_graph *order_graph_make(const kernel *k, const work_list *works, arena *a);
size_t order_work_count(const order_graph *g);
const op *order_work(const order_graph *g, size_t i);
/* Numbers of the pieces of work that must be complete before number i. */
const uint32_t *order_before(const order_graph *g, size_t i, size_t *count);

/* When the last one ends, if nothing but the bytes that they share disturbs them, in the order and with the addresses that the work of the
 * kernel has. `cycles` by the index of the last operation. */
int64_t order_length(const kernel *k, const work_list *works, const int64_t *cycles, arena *a);

/* No order of these durations ends before this: the longest way through the graph, or all that one context does. `cycles` by the index of
 * the last operation. */
int64_t order_least(const order_graph *g, const int64_t *cycles, arena *a);

/* How the next one is chosen of those that may begin. */
typedef enum order_rule {
    ORDER_TEXT,     /* as the text has them */
    ORDER_EARLIEST, /* the one that can begin first, then the one with the longest path to the end */
    ORDER_LONGEST,  /* the one with the longest path to the end */
    ORDER_READY,    /* the one that can begin first, then the one that the text has first: copies run ahead in their order */
    ORDER_RULES
} order_rule;

/* An order for these durations, cycles by the index of the last operation: each may come at most `window` places before its place in the
 * text. Returns when the last one ends if nothing disturbs them; `issue` has room for all. */
int64_t order_choose(const order_graph *g, const int64_t *cycles, order_rule rule, size_t window, arena *a, const op **issue);

#endif
