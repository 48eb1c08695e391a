/* The Vector Engine's reduction over slices, and the part of its pass that comes after it.
 *
 * The one idea: what the slices of a cluster have computed so far stands in an exchange; a slice that receives folds, step by step, the
 * packets of its group, in ascending order of the slices, and goes on with its pass. */
#ifndef VISA_RUNTIME_ENGINE_VECTOR_SLICES_H
#define VISA_RUNTIME_ENGINE_VECTOR_SLICES_H

#include "runtime/engine/vector.h"

typedef struct vector_slices {
    vector_pass pass; /* after it; first, as stage_vector has it */
    const vector_op_row *row;
    vector_function function;
    stream_word identity;
    int64_t ring;    /* slices */
    int64_t packets; /* that leave */
    unsigned count;
    struct {
        int64_t size, stride, place; /* steps of what arrives; place 0: a loop of what leaves */
    } loops[COMMAND_MAX_ENTRIES];
} vector_slices;

/* The step of what arrives whose packets make packet `packet` in a slice of that number. */
int64_t vector_slices_step(const vector_slices *k, int64_t slice, int64_t packet);

#endif
