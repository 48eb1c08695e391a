/* What published schedules of the vendor's compiler charge for the same commands: `--timing=schedule`.
 *
 * The one idea: a pass is a base and its slowest stage; a transfer is priced by published transfers of its kind. The numbers
 * are rows of target/static_cost.def and static_point.def, fitted to published figures, not to hardware. */
#ifndef VISA_RUNTIME_TIMING_STATIC_COST_H
#define VISA_RUNTIME_TIMING_STATIC_COST_H

#include "runtime/timing/duration.h"

/* Both replace fill, total and text of a documented duration. */
void static_cost_of_chain(const chain *c, duration *d);
void static_cost_of_dma(const target *t, const command *c, arena *a, duration *d);

#endif
