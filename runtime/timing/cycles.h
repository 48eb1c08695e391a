/* How long a kernel will run, before it does.
 *
 * The one idea: the commands alone say how many cycles each takes, so a run that nobody would wait for is refused, and one that takes
 * long is announced, before its first byte moves. */
#ifndef VISA_RUNTIME_TIMING_CYCLES_H
#define VISA_RUNTIME_TIMING_CYCLES_H

#include "codegen/container.h"

/* The cycles of the machine, or of its schedule where those of its commands one after the other would pass `most`. False with
 * E_RUN_CYCLES: more than `most`. Commands that are not legal count nothing: the run says what is wrong with them. */
bool cycles_within(const target *t, const binary_kernel *k, uint64_t most, arena *a, uint64_t *cycles, diag_list *diags);

#endif
