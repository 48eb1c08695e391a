/* What must match the machine and must flow through unchanged. */
#ifndef VISA_PASSES_VERIFY_H
#define VISA_PASSES_VERIFY_H

#include "passes/pass.h"

void pass_verify(pass_context *p, kernel *k);
/* Refuses a stream that the counters of its commands (docs/isa.md) cannot count: time steps, elements of a packet. */
void verify_counts(pass_context *p, kernel *k, op *o);

#endif
