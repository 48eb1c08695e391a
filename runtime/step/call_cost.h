/* What calls of an operator's kernel cost on the machine that all kernels of a program share.
 *
 * The one idea: a call begins when the machine has ended the one before it; of calls in a row of one operator, whose inputs were there, it
 * begins earlier, by what the schedule of so many calls as one kernel says (runtime/timing/calls.h). */
#ifndef VISA_RUNTIME_STEP_CALL_COST_H
#define VISA_RUNTIME_STEP_CALL_COST_H

#include <stdbool.h>
#include <stdint.h>

/* Calls after the first one of several in a row that are told apart: from the last of them on the machine is in its rhythm. */
enum { STEP_CALL_STEPS = 3 };

typedef struct step_call_cost {
    bool ahead;                        /* a call begins with its copies while the one before it computes */
    int64_t cycles, next_cycles;       /* of a call that loads everything; of one that finds what is kept */
    int64_t row_cycles;                /* from one end to the next, of calls in a row */
    int64_t overlaps[STEP_CALL_STEPS]; /* cycles before a call's end at which the next one begins: of the first in a row, the second, .. */
    int64_t offchip_bytes, next_bytes; /* that its commands read from HBM and write there, of those two */
    int64_t onchip_bytes;              /* DM of all its slices, for two calls where one may begin ahead, and the TRF */
} step_call_cost;

struct step_kernel_run;
const step_call_cost *step_call_cost_of(const struct step_kernel_run *r);

#endif
