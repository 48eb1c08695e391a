/* What begins on each line of the source, and how long it takes, for an editor. */
#ifndef VISA_RUNTIME_TIMING_LINE_CYCLES_H
#define VISA_RUNTIME_TIMING_LINE_CYCLES_H

#include "codegen/container.h"
#include "runtime/timing/timing_preset.h"

typedef struct line_cycles {
    uint32_t line;
    int64_t cycles, runs; /* of all that begins there; how many these are */
} line_cycles;
typedef struct line_cycles_list {
    line_cycles *items; /* by line */
    size_t count, capacity;
} line_cycles_list;

/* Of all kernels of a binary; one whose schedule cannot be made has none. */
void line_cycles_make(const binary *b, timing_preset preset, arena *a, line_cycles_list *out);

#endif
