/* The same memory under other axes. */
#ifndef VISA_PASSES_RESHAPE_H
#define VISA_PASSES_RESHAPE_H

#include "passes/pass.h"

void pass_reshape(pass_context *p, kernel *k);

#endif
