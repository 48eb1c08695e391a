/* DMA Engine: packets between HBM and DM, two walks in lock step.
 *
 * The one idea: HBM and DM are each one virtual address space (chip * chip stride + byte; slice number * slice
 * stride + byte) in which only windows are backed by memory; a run of packets that is contiguous on both
 * sides is one copy. */
#ifndef VISA_RUNTIME_ENGINE_DMA_H
#define VISA_RUNTIME_ENGINE_DMA_H

#include "runtime/machine/machine_state.h"

bool dma_run(machine *m, const command *c, int number, fault *f);

#endif
