/* DMA Engine: one table that walks source and destination in lock step. */
#ifndef VISA_PASSES_ENGINE_DMA_H
#define VISA_PASSES_ENGINE_DMA_H

#include "passes/pass.h"

void pass_dma(pass_context *p, kernel *k);

#endif
