/* Memory off the chip, in time: who asks for how many requests, and when the last one is answered.
 *
 * The one idea: memory is simulated cycle by cycle, and only while somebody waits for it. In every cycle each node that waits
 * issues a group of up to p requests, readers in the order of the graph, then writers. Requests go round the channels by one running
 * offset that moves on by i after the i-th request of a cycle and by their number at its end; a channel takes a request every
 * `interval` cycles and answers after `startup` more (reference/step.md section 6.3). */
#ifndef VISA_RUNTIME_STEP_OFFCHIP_H
#define VISA_RUNTIME_STEP_OFFCHIP_H

#include "codegen/step/program.h"

typedef struct step_offchip step_offchip;

step_offchip *step_offchip_new(const step_machine *m, uint32_t node_count, arena *guard);
void step_offchip_free(step_offchip *o);

/* Node `node` asks at cycle `now` for `requests` (at least 1); its first group is issued in the next cycle. */
void step_offchip_ask(step_offchip *o, uint32_t node, bool writes, int64_t requests, int64_t now);

/* The next cycle in which something is to be issued; INT64_MAX when nobody waits. */
int64_t step_offchip_next(const step_offchip *o);

typedef struct step_answer {
    uint32_t node;
    int64_t cycle; /* in which its last response is there */
} step_answer;

/* Issues in the cycles from the next one up to, but not including, `end`, and stops after the first cycle in which a node has issued
 * its last request. Returns how many such nodes there are and points *answers at them; valid until the next call. */
uint32_t step_offchip_run(step_offchip *o, int64_t end, const step_answer **answers);

int64_t step_offchip_requests(const step_offchip *o); /* issued so far */

#endif
