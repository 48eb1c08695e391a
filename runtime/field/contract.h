/* Lane products over a field: which lanes of a step count. */
#ifndef VISA_RUNTIME_FIELD_CONTRACT_H
#define VISA_RUNTIME_FIELD_CONTRACT_H

#include "runtime/field/engine.h"

/* MASK_SOME: those of `live`, until the next call. */
mask_state field_contract_live(field_stage_run *r, int64_t step, const unsigned char **live);

#endif
