/* The Vector Register File: what to_vrf stores, and how an operation of the Vector Engine reads it. Both are called by pass_vector, in the
 * order of the text, since what a pass gives may be stored and read by the next one. */
#ifndef VISA_PASSES_ENGINE_VRF_H
#define VISA_PASSES_ENGINE_VRF_H

#include "passes/pass.h"

/* Checks what a to_vrf stores and fills op.to_vrf. */
void vrf_store(pass_context *p, kernel *k, op *o);
/* Checks the VRF operand of an operation against its stream, whose Time and Packet are known, and fills op.sequencer. */
void vrf_read(pass_context *p, kernel *k, op *o);
/* Memories have moved: the walks begin elsewhere. */
void vrf_rebase(pass_context *p, kernel *k);

#endif
