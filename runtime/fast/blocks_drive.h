/* Blocks in a chain: collect, align, contract and accumulate of a slice as one.
 *
 * The one idea: where these stages stand one after the other and the contraction is a nest that blocks can sum (blocks.h), they are passed
 * over: packets are read where they lie, and complete sums go to the stage after accumulate. The bits are the same. */
#ifndef VISA_RUNTIME_FAST_BLOCKS_DRIVE_H
#define VISA_RUNTIME_FAST_BLOCKS_DRIVE_H

#include "runtime/engine/stage.h"
#include "runtime/fast/blocks.h"

enum { BLOCKS_STAGES = 4 /* that they take the place of */ };

/* The number of the chain's collect, in whose place blocks stand; 0: the chain goes stage by stage. Free the plan with blocks_free. */
unsigned blocks_chain_plan(blocks *p, const struct chain *c);

/* A worker's buffers, for slice after slice; NULL: no memory. */
void *blocks_driver_new(const blocks *p, const struct chain *c);
void blocks_driver_free(void *driver);

/* Pushes all beats of a slice. `from`: what stands in front of collect; next: what follows accumulate. */
bool blocks_drive(void *driver, stage_run *from, stage_run *next);

#endif
