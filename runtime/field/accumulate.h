/* The Reducer's slots over a field: what a step does, and where a sum leaves. */
#ifndef VISA_RUNTIME_FIELD_ACCUMULATE_H
#define VISA_RUNTIME_FIELD_ACCUMULATE_H

#include "runtime/engine/accumulate.h"

/* What a step does. */
typedef struct field_step_place {
    int64_t slot, emission;
    bool stores, emits;
} field_step_place;
field_step_place field_accumulate_place(const accumulate *k, int64_t step);

/* The Row and column in a lane of a beat; false: filling, which is zero where `zero`. */
bool field_accumulate_lane(const accumulate *k, int64_t beat, int64_t lane, int64_t *row, int64_t *column, bool *zero);

#endif
