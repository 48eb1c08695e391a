/* What the device itself took, as its users published: `--timing=measured`.
 *
 * The one idea: the same commands as by documented rates, with a fixed part and rates of their own; copies go by the number of engines. The
 * numbers are rows of target/measured_cost.def; test/machine/measured.py fits them to one half of the published figures and judges by the
 * other. */
#ifndef VISA_RUNTIME_TIMING_MEASURED_COST_H
#define VISA_RUNTIME_TIMING_MEASURED_COST_H

#include "runtime/timing/duration.h"

typedef struct measured_costs {
#define MEASURED_COST(field, value, unit, source) int64_t field;
#include "target/measured_cost.def"
#undef MEASURED_COST
} measured_costs;
const measured_costs *measured_costs_of(void);

/* Both replace fill, total and text of a documented duration. */
void measured_cost_of_chain(const chain *c, duration *d);
void measured_cost_of_dma(const target *t, const command *c, arena *a, duration *d);

/* Bytes a cycle of a copy by so many DMA engines, in runs of so many bytes of HBM: longer ones than a block are slower, by each doubling.
 */
int64_t measured_rate(const target *t, int64_t engines, int64_t run_bytes);

/* Counter cycles that steps of so many documented cycles take. */
int64_t measured_cycles_of(int64_t documented);

#endif
