/* Reducer, second half: which time loops are summed, and in what order results leave. */
#ifndef VISA_PASSES_ACCUMULATE_H
#define VISA_PASSES_ACCUMULATE_H

#include "passes/pass.h"

void pass_accumulate(pass_context *p, kernel *k);

#endif
