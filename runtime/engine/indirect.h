/* Indirect DMA: packets between HBM and DM, of which an element of a list says how far the HBM side is moved.
 *
 * The one idea: three walks in lock step, source, destination and list, in the order of the loops; so of two steps that write the same
 * bytes the later one stays. An element that names no position stops the run: nothing else would tell. */
#ifndef VISA_RUNTIME_ENGINE_INDIRECT_H
#define VISA_RUNTIME_ENGINE_INDIRECT_H

#include "codegen/copy_command.h"
#include "runtime/machine/machine_state.h"

bool indirect_run(machine *m, const command *c, int number, fault *f);
/* Bytes that an element moves the HBM side by; false with the fault. `step`: of the command, for the message. */
bool indirect_moves(const command *c, const copy_command *k, int64_t element, int64_t step, int64_t *bytes, fault *f);

#endif
