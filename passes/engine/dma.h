/* What the DMA's rule offers to other passes. */
#ifndef VISA_PASSES_ENGINE_DMA_H
#define VISA_PASSES_ENGINE_DMA_H

#include "passes/pass.h"

/* Memory that begins as zeros: the commands that write them, on the operation that is the memory. */
void dma_zero(pass_context *p, op *memory);

/* Memory that begins as zeros: the commands that write them, on the operation that is the memory. */
void dma_zero(pass_context *p, op *memory);

#endif
