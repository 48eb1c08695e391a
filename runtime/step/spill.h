/* A run with less memory on the chip than its operators want.
 *
 * The one idea: what operators want is known when a run has ended, and what fits follows from it (target/step/spill.h). So a program is run
 * twice: first without values and with room for everything, then with the shares that follow; in the second run what is written to memory
 * off the chip and read there is asked for, in time. */
#ifndef VISA_RUNTIME_STEP_SPILL_H
#define VISA_RUNTIME_STEP_SPILL_H

#include "runtime/step/engine.h"
#include "target/step/spill.h"

/* Is there room for what its kernels keep on the chip, which never leaves it? False: diagnosed. */
bool step_spill_has_room(const step_program *p, const struct step_kernel_run *const *kernels, diag_list *diags);

/* The first run, and what follows from it, in r->spills; without a capacity nothing. False: diagnosed. */
bool step_spill_prepare(step_run *r, diag_list *diags);

/* Bytes of memory on the chip that an operator wants: by the equations, and where it runs a kernel what that takes on its machine. */
step_onchip step_spill_wanted(const step_run *r, uint32_t node);
int64_t step_spill_bytes(const step_run *r); /* that lie off the chip */

#endif
