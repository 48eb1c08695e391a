/* What is legal but leaves the machine idle. */
#ifndef VISA_PASSES_ADVICE_H
#define VISA_PASSES_ADVICE_H

#include "passes/pass.h"

void pass_advice(pass_context *p, kernel *k);

#endif
