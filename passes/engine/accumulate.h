/* Reducer, second half: which time loops are summed, and in what order results leave. */
#ifndef VISA_PASSES_ENGINE_ACCUMULATE_H
#define VISA_PASSES_ENGINE_ACCUMULATE_H

#include "passes/pass.h"

/* What accumulate puts inside the kept part of OutTime, and OutPacket, by its kind. Row and Packet of its input are known. */
void accumulate_inner(pass_context *p, const op *o, const mapping **inner, const mapping **out_packet);

#endif
