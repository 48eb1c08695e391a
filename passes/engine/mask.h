/* Which lanes count: positions of the computation that are padding must contribute nothing to a sum. */
#ifndef VISA_PASSES_ENGINE_MASK_H
#define VISA_PASSES_ENGINE_MASK_H

#include "passes/pass.h"

void pass_mask(pass_context *p, kernel *k);

#endif
