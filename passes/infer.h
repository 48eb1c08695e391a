/* Parts of a TrfTensor that the kernel leaves open and a rule fixes. */
#ifndef VISA_PASSES_INFER_H
#define VISA_PASSES_INFER_H

#include "passes/pass.h"

void pass_infer(pass_context *p, kernel *k);

#endif
