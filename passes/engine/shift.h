/* Stream Adapter, advanced: which flits to collect, how to turn and where to shift them, so that OutTime and OutPacket
 * read them. */
#ifndef VISA_PASSES_ENGINE_SHIFT_H
#define VISA_PASSES_ENGINE_SHIFT_H

#include "passes/pass.h"

/* Ordered by how much was right before it failed: of several attempts the one that came furthest is reported. */
typedef enum shift_failure {
    SHIFT_FLITS,  /* no 1, 2 or 3 flits hold it */
    SHIFT_TIME,   /* what is left of Time is not the outer part of OutTime */
    SHIFT_DIGIT,  /* OutTime or OutPacket asks for what the flits do not hold */
    SHIFT_UNUSED, /* the flits hold what neither asks for */
    SHIFT_LANE,
    SHIFT_LOOPS,
    SHIFT_TILING,
    SHIFT_STRIDE,
    SHIFT_BORDER, /* what is zero must lie before or after everything that was collected */
    SHIFT_START,
    SHIFT_FITS,
} shift_failure;

typedef struct shift_plan {
    shift_failure failure;
    int64_t collect_flits, transpose_rows;
    const mapping *collected; /* the elements of the flits, transposed */
    const mapping *rest;      /* what is left of Time */
    shift_config shift;       /* shifts 1: the packet does not move */
    int64_t tiling;           /* steps for which a packet is repeated */
    const mapping *term;      /* at fault */
    int64_t stride, wanted;   /* at fault, elements; SHIFT_START: elements of a place, places */
    sequence seq;             /* at fault: SHIFT_DIGIT */
} shift_plan;

/* Does the stream hold a window that the computation opens into its terms? */
bool shift_is_asked(const op *align);
/* The plan with the fewest flits, not transposed if possible; false: plan->failure says why there is none. */
bool shift_derive(pass_context *p, const op *align, shift_plan *plan);
void shift_refuse(pass_context *p, kernel *k, op *align, const shift_plan *plan);

#endif
