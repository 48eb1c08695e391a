/* What the DMA's rule offers to other passes: the loops of a copy, before they are commands. */
#ifndef VISA_PASSES_ENGINE_DMA_H
#define VISA_PASSES_ENGINE_DMA_H

#include "passes/pass.h"

enum { COPY_SPACES = 4, COPY_MAX_LOOPS = 64, COPY_MAX_COMMANDS = 4096 };

/* One loop of a copy, in bits on both sides. */
typedef struct copy_loop {
    const mapping *term;
    int64_t size, source, destination;
} copy_loop;

/* A command in the making: loops innermost first, after sorting. */
typedef struct copy {
    copy_loop loops[COPY_MAX_LOOPS];
    size_t count;
    int64_t source, destination; /* bits from the bases */
    int64_t run_bits;            /* contiguous on both sides */
} copy;

typedef struct copy_list {
    arena *arena;
    copy *items;
    size_t count, capacity;
    bool too_many;
} copy_list;

/* A tensor's components and the distance, in bits, of their positions in the DMA address space (docs/isa.md, dma). Returns how many. */
size_t dma_spaces(const pass_context *p, const tensor *t, sequence_space *out);
/* Where the copy begins on one side, in bytes of the DMA address space: a tile of other units begins in them. */
int64_t dma_base(const pass_context *p, const op *o);
/* The copies of a derived walk: several where a digit's live values are no whole number of loops. */
copy_list copy_expand(arena *a, const sequence *seq, const sequence_space *destination);
/* Innermost first: takes loops into the contiguous run, then merges neighbours that continue each other on both sides. */
void copy_merge(pass_context *p, copy *c, int64_t element_bits);

/* Memory that begins as zeros: the commands that write them, on the operation that is the memory. */
void dma_zero(pass_context *p, op *memory);

#endif
