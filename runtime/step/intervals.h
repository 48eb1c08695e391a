/* The operators of a run in the terms of dataflow models (docs/dataflow.md): cII, eII and L next to what was measured.
 *
 * The one idea: a calculation is a value of each input (of a load, a value that leaves), and takes what its FLOPs take of the operator's
 * compute, or its bytes of the memory off the chip if nobody else used it, or a call of its kernel. What the run took longer is rounding,
 * reading on the chip, and sharing. */
#ifndef VISA_RUNTIME_STEP_INTERVALS_H
#define VISA_RUNTIME_STEP_INTERVALS_H

#include "runtime/step/engine.h"
#include "support/strbuf.h"

/* In cycles: of a calculation, of a value that leaves, of all. */
typedef struct step_intervals {
    double cii, eii, latency;
    int64_t measured; /* busy, or waiting for memory or the machine */
} step_intervals;

/* False: it neither computes nor moves bytes off the chip. */
bool step_intervals_of(const step_run *r, uint32_t node, step_intervals *out);
/* A table. */
void step_intervals_put(strbuf *s, const step_run *r);

#endif
