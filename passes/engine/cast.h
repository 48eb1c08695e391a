/* Cast Engine: each beat of 8 results becomes 8 narrow elements of a flit. */
#ifndef VISA_PASSES_ENGINE_CAST_H
#define VISA_PASSES_ENGINE_CAST_H

#include "passes/pass.h"

void pass_cast(pass_context *p, kernel *k);

#endif
