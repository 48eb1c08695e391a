/* What a DMA command costs at its engine, at the busiest HBM channel and at the busiest DMN.
 *
 * The one idea: each memory adds up what falls on each of its parts at the command's own addresses; the slowest part is what the command
 * takes. Where both sides can be told apart, that is a matter of their loops, and else of every step. Rules and their sources:
 * docs/timing.md. */
#ifndef VISA_RUNTIME_TIMING_DMA_COST_H
#define VISA_RUNTIME_TIMING_DMA_COST_H

#include "codegen/command.h"

typedef struct dma_cost {
    int64_t steps;        /* packets */
    int64_t requests;     /* 256 bytes of a packet at most, one per cycle, engine and side */
    int64_t engines;      /* that share the steps: each has those at its two DMNs */
    int64_t engine_steps; /* of the engine that has most */
    int64_t link_cycles;  /* bytes between chips, into the chip that gets most */
    int64_t hbm_cycles;   /* the busiest channel */
    int64_t dmn_cycles;   /* the busiest DMN */
    int64_t piece_bytes;  /* contiguous in HBM from step to step, 0: HBM is on neither side */
    int64_t pieces;
    int64_t unaligned_pieces; /* of those walked: that do not begin at a block of 256 bytes */
    int64_t partial_writes;   /* blocks of HBM that are written in part */
    int64_t copies;           /* slices of a cluster that get the same bytes */
    bool copies_inside;       /* they are nearer to each other than those that get others */
    bool spreads;             /* not all slices get the same bytes */
    bool to_dm;
    int64_t clusters; /* whose DM is touched */
    int64_t looks;    /* at a block of HBM or a place: the work that it was to find all this out */
    int64_t walked;   /* steps whose addresses were looked at; fewer than steps: the rest is in proportion */
} dma_cost;

/* False when the sizes multiply to more than 2^40 steps. */
bool dma_cost_of(const target *t, const command *c, dma_cost *out);

#endif
