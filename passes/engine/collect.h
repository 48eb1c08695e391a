/* Collect Engine: a packet of any size becomes whole flits. */
#ifndef VISA_PASSES_ENGINE_COLLECT_H
#define VISA_PASSES_ENGINE_COLLECT_H

#include "passes/pass.h"

/* The Time and the Packet of a stream once it is cut into flits, and how many flits a packet is; false: there are none. */
bool collect_flits(pass_context *p, const tensor *in, int64_t *flits, const mapping **time, const mapping **packet);

#endif
