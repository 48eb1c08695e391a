/* The sizes that a read of the TRF may have, each with its verdict: what pass_trf_sequencer chooses from, for who wants to know why. */
#ifndef VISA_PASSES_ENGINE_TRF_SEQUENCER_H
#define VISA_PASSES_ENGINE_TRF_SEQUENCER_H

#include "passes/pass.h"
#include "support/strbuf.h"

/* Of an IR_ALIGN whose mappings are known: the run that Element and OutPacket have in common, each size of a read with its verdict, live
 * bytes and padding of the one that is taken, and how much of the multipliers has data. False, and nothing is written: they are not known.
 */
bool trf_sequencer_explain(pass_context *p, const op *o, strbuf *out);

#endif
