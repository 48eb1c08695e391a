/* Where the time of a run went, over the time.
 *
 * The one idea: the run is cut into buckets of equal width, and a bucket counts the cycles that a node spent in each state and how many
 * values a queue held. When the run outgrows the buckets, neighbours are joined and the width doubles; so a record is as large for a long
 * run as for a short one, and exact where a bucket is a cycle. */
#ifndef VISA_RUNTIME_STEP_RECORD_H
#define VISA_RUNTIME_STEP_RECORD_H

#include <stdint.h>

#include "support/arena.h"

typedef enum step_state { STEP_BUSY, STEP_STARVED, STEP_FULL, STEP_MEMORY, STEP_MACHINE, STEP_STATES } step_state;
extern const char *const step_state_names[STEP_STATES];

typedef struct step_record step_record;

step_record *step_record_new(uint32_t nodes, uint32_t queues, arena *a);
/* The node is in this state in the cycles from .. to - 1. */
void step_record_node(step_record *r, uint32_t node, step_state state, int64_t from, int64_t to);
/* A value comes (1) or goes (-1) in that cycle. */
void step_record_queue(step_record *r, uint32_t queue, int64_t cycle, int change);

int64_t step_record_width(const step_record *r);    /* cycles of a bucket */
uint32_t step_record_buckets(const step_record *r); /* that were used */
int64_t step_record_cycles(const step_record *r, uint32_t node, step_state state, uint32_t bucket);
/* The state in which the node was for most of the bucket; STEP_STATES: it had nothing to do, or had ended. */
step_state step_record_state(const step_record *r, uint32_t node, uint32_t bucket);
/* Values in the queue over the bucket's cycles, on average; to be asked in the order of the buckets: `held` begins as 0. */
double step_record_fill(const step_record *r, uint32_t queue, uint32_t bucket, int64_t *held);

#endif
