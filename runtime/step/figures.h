/* What a run of a stream program took, in a few numbers. */
#ifndef VISA_RUNTIME_STEP_FIGURES_H
#define VISA_RUNTIME_STEP_FIGURES_H

#include <stdint.h>

typedef struct step_figures {
    int64_t cycles, offchip_bytes, onchip_paper, onchip_artifact, allocated_flops_per_cycle;
    int64_t moves; /* values that operators took and sent, and requests: what it costs to simulate */
} step_figures;

#endif
