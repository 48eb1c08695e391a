/* What a kernel costs, for who chooses between two forms of it: when its schedule ends, and how long each piece of work takes alone. */
#ifndef VISA_RUNTIME_TIMING_PRICE_H
#define VISA_RUNTIME_TIMING_PRICE_H

#include "codegen/container.h"
#include "runtime/timing/known_costs.h"
#include "runtime/timing/timing_preset.h"

typedef struct price {
    int64_t cycles;          /* of the kernel (docs/timing.md) */
    const int64_t *each[3];  /* by context: cycles of its chains and DMA commands in their order, when nothing disturbs them */
    const uint32_t *line[3]; /* likewise: the source's line of its first command, 0: none */
    size_t count[3];
} price;

/* False: the commands cannot be followed, or more than `steps` cycles of the TRF would have to be followed one by one for one of them.
 * Nothing is reported. `known`: costs that other forms of the kernel had; NULL: none. Lives in the arena. */
bool price_make(const target *t, const binary_kernel *k, timing_preset preset, int64_t steps, known_costs *known, arena *a, price *out);

#endif
