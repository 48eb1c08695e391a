/* What copies and accesses of a kernel cost, remembered: those that walk the same way are walked once.
 *
 * The one idea: a cost depends on the command's loops and addresses alone, and of an address in DM on its slice or its bank alone. So a
 * kernel that is tried in another order, with its memory elsewhere, has the costs that it had, and so has the next kernel that copies the
 * same. It counts as the kernel's work again: a kernel takes as many steps whatever was there before it. */
#ifndef VISA_RUNTIME_TIMING_KNOWN_COSTS_H
#define VISA_RUNTIME_TIMING_KNOWN_COSTS_H

#include "runtime/timing/dma_cost.h"
#include "support/memo.h"

typedef struct known_costs {
    const target *target; /* of all of them */
    arena *arena;
    memo *copies, *streaks;
    uint64_t kernel; /* which one asks; the first is 1 */
} known_costs;

/* Lives in the arena. */
known_costs *known_costs_new(const target *t, arena *a);
/* Another kernel asks from here on. */
void known_costs_begin(known_costs *known);
/* dma_cost_of, whose work is counted once for each kernel, and dm_bank_streak up to the machine's limit. */
bool known_copy_cost(known_costs *known, const command *c, dma_cost *out);
int64_t known_bank_streak(known_costs *known, const command *c);
/* How many are remembered. */
size_t known_costs_count(const known_costs *known);

#endif
