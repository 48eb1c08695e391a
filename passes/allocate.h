/* Where tensors live: addresses of ports that have none, capacities, overlap, TRF halves. */
#ifndef VISA_PASSES_ALLOCATE_H
#define VISA_PASSES_ALLOCATE_H

#include "passes/pass.h"

void pass_allocate(pass_context *p, kernel *k);
/* Of a good kernel, for another order of issue: places again what the compiler places. Nothing is reported; false: it does not fit. */
bool allocate_again(pass_context *p, kernel *k);

#endif
