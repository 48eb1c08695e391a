/* Mappings that cost more than they need to, with what they cost and what to write instead.
 *
 * The one idea: each rule compares what a command takes with what the same bytes or products would take in the shape that the
 * memory or the multipliers like; it speaks only when the difference is above zero. Sources: docs/timing.md. */
#ifndef VISA_RUNTIME_TIMING_LINT_H
#define VISA_RUNTIME_TIMING_LINT_H

#include "runtime/timing/analysis.h"
#include "support/diag.h"

typedef struct lint {
    diag_id rule; /* of the warnings of -Wperformance, which see the mapping and not the time */
    uint32_t line;
    int64_t cost;          /* estimated cycles of this line's commands that the other mapping saves */
    int64_t times;         /* how many commands of the line say the same */
    int64_t kernel_cycles; /* of the whole kernel with that alone, -1: not known */
    const char *found;     /* what is there, in numbers */
    const char *nearest;   /* what to write */
} lint;

/* The dearest first. */
void lint_make(const analysis *x, arena *a, lint **out, size_t *count);

#endif
