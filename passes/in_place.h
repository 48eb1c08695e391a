/* Chains that write over what they still read. */
#ifndef VISA_PASSES_IN_PLACE_H
#define VISA_PASSES_IN_PLACE_H

#include "passes/pass.h"

void pass_in_place(pass_context *p, kernel *k);

#endif
