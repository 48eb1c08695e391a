/* What the cycle model says of a kernel's contractions: the chains that read the TRF, in program order. */
#ifndef VISA_RUNTIME_TIMING_CONTRACTION_CYCLES_H
#define VISA_RUNTIME_TIMING_CONTRACTION_CYCLES_H

#include "codegen/container.h"

typedef struct contraction_cycles {
    int64_t cycles, fill_cycles, drain_cycles;
    int64_t load_cycles; /* of the chain that stored what it reads, alone; 0: there is none */
    const char *load_binds;
    const int64_t *busy;         /* of each engine (runtime/timing/duration.h) */
    const char *binds, *formula; /* "collect"; "8 + max(32 x 2, 32 x 1)" */
} contraction_cycles;

/* False: diagnosed. */
bool contraction_cycles_of(const target *t, const binary_kernel *k, arena *a, diag_list *diags, contraction_cycles **out, size_t *count);

#endif
