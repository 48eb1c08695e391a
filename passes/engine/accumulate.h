/* Reducer, second half: which time loops are summed, and in what order results leave. */
#ifndef VISA_PASSES_ENGINE_ACCUMULATE_H
#define VISA_PASSES_ENGINE_ACCUMULATE_H

#include "passes/pass.h"

/* What accumulate puts inside the kept part of OutTime, and OutPacket, by its kind. Row and Packet of its input are known. */
void accumulate_inner(pass_context *p, const op *o, const mapping **inner, const mapping **out_packet);

/* One more loop inside those that there are, joined with the innermost where both are kept or both reduced. False: that is one too many. */
bool slot_loops_add(accumulate_loop *loops, uint32_t *count, int64_t size, bool reduced);
/* Gives the kept loops inside the outermost reduced one their slots; how many slots that are. */
int64_t slot_loops_number(accumulate_loop *loops, uint32_t count);

#endif
