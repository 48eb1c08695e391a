/* What the channels of HBM take for packets that come one after the other.
 *
 * The one idea: a channel adds up what its blocks take, and a bank knows its open row. Packets side by side in a block are counted at once,
 * and a loop that goes over the same blocks again and again is followed twice: from then on each time begins with the rows that it ends
 * with. So a walk takes as long as there are different blocks in it. Rules and their sources: docs/timing.md. */
#ifndef VISA_RUNTIME_TIMING_HBM_TALLY_H
#define VISA_RUNTIME_TIMING_HBM_TALLY_H

#include "runtime/machine/walk.h"
#include "runtime/timing/hbm_address.h"
#include "support/size_divisor.h"
#include "target/target.h"

enum { HBM_TALLY_CHIPS = 4, HBM_TALLY_CHANNELS = 32 * HBM_TALLY_CHIPS };

typedef struct hbm_tally {
    size_divisor chip, block, burst; /* bytes */
    int64_t burst_millicycles, row_millicycles, partial_millicycles;
    int64_t channel_millicycles[HBM_TALLY_CHANNELS];  /* of each chip's, one chip after the other */
    int64_t partial_writes;                           /* blocks that are written in part */
    int64_t looks;                                    /* at a block: what the counting takes */
    bool knows_rows[HBM_TALLY_CHIPS];                 /* those of a chip that no packet touched hold nothing */
    uint16_t open_row[HBM_TALLY_CHANNELS][HBM_BANKS]; /* of 2^15: plus 1; 0: none yet. Not filled before it is needed: it is larger than all
                                                         that a short copy takes */
} hbm_tally;

void hbm_tally_init(hbm_tally *t, const target *k);

/* A packet; it may lie in several chips. */
void hbm_tally_packet(hbm_tally *t, int64_t address, int64_t bytes, bool write);

/* A packet at each position of a walk, whose addresses are in the address space of the DMA. */
void hbm_tally_walk(hbm_tally *t, const walk *w, int64_t bytes, bool write);

#endif
