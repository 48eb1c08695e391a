/* to_trf: which flits go to which Row. */
#ifndef VISA_PASSES_ENGINE_TRF_STORE_H
#define VISA_PASSES_ENGINE_TRF_STORE_H

#include "passes/pass.h"

void pass_trf_store(pass_context *p, kernel *k);

#endif
