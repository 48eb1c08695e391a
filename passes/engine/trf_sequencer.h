/* TRF Sequencer: which weights meet each packet. */
#ifndef VISA_PASSES_ENGINE_TRF_SEQUENCER_H
#define VISA_PASSES_ENGINE_TRF_SEQUENCER_H

#include "passes/pass.h"

void pass_trf_sequencer(pass_context *p, kernel *k);

#endif
