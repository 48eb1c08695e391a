/* DMA Engine: packets between HBM and DM, two walks in lock step.
 *
 * The one idea: HBM and DM are each one virtual address space (chip * 2^36 + byte; slice number * slice
 * stride + byte) in which only windows are backed by memory; a run of packets that is contiguous on both
 * sides is one copy. */
#ifndef VISA_RUNTIME_DMA_H
#define VISA_RUNTIME_DMA_H

#include "runtime/machine_state.h"

enum { DMA_CHIP_ADDRESS_BITS = 36 };

bool dma_run(machine *m, const command *c, int number, fault *f);

#endif
