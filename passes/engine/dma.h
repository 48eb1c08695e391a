/* DMA Engine: one table that walks source and destination in lock step. */
#ifndef VISA_PASSES_ENGINE_DMA_H
#define VISA_PASSES_ENGINE_DMA_H

#include "passes/pass.h"

void pass_dma(pass_context *p, kernel *k);

/* Memory that begins as zeros: the commands that write them, on the operation that is the memory. */
void dma_zero(pass_context *p, op *memory);

#endif
