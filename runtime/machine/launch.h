/* The conditions on numbers of a launch (command `guard`), and launches in which each of them holds.
 *
 * The one idea: what follows a condition that does not hold is not run, so nothing of it is compared. Which conditions hold follows
 * from the numbers alone, without a run; a check looks for numbers with which those hold that did not yet. */
#ifndef VISA_RUNTIME_MACHINE_LAUNCH_H
#define VISA_RUNTIME_MACHINE_LAUNCH_H

#include "codegen/container.h"
#include "support/arena.h"

/* Of all contexts together. */
size_t launch_conditions(const binary_kernel *k);
/* Does this `guard` let the commands after it run? As in launch_hold. */
bool launch_lets_run(const binary_kernel *k, const command *guard, const unsigned char *const *numbers);
/* How many conditions hold with these numbers that did not in `held`, by condition, which has them afterwards. numbers[i]: the logical
 * bytes of input port i, or NULL. A number that is at no port is taken to let its condition hold: nothing is known of it. */
size_t launch_hold(const binary_kernel *k, const unsigned char *const *numbers, bool *held);

#endif
