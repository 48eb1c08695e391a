/* Fetch Engine: the loops that read DM, and the bytes of one access. */
#ifndef VISA_PASSES_ENGINE_FETCH_H
#define VISA_PASSES_ENGINE_FETCH_H

#include "passes/pass.h"

void pass_fetch(pass_context *p, kernel *k);

#endif
