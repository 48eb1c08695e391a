/* What of an operator's memory on the chip lies off it, where the chip holds less than all operators want.
 *
 * The one idea: room goes to those whose bytes would be moved most often, byte for byte, in the order of the graph where that is equal; so
 * what does not fit causes the least traffic that it can. Of everything that an operator writes to its memory and reads there, the
 * share that lies off the chip is moved (docs/step.md, "Less memory than it wants"). */
#ifndef VISA_TARGET_STEP_SPILL_H
#define VISA_TARGET_STEP_SPILL_H

#include <stdbool.h>
#include <stdint.h>

#include "support/arena.h"

/* Of one operator. */
typedef struct step_spill {
    int64_t bytes;    /* of memory that it wants */
    int64_t accesses; /* bytes that it writes to memory and reads there, in all of the run */
    uint32_t owner;   /* the operator whose memory that is: itself, or of a reader the one that made the buffer */
    bool stays;       /* the memory of a kernel: it gets room first, and is never moved */
    int64_t spilled;  /* bytes of its memory that lie off the chip */
} step_spill;

/* Fills `spilled`; returns their sum. */
int64_t step_spill_share_out(step_spill *operators, uint32_t count, int64_t capacity, arena *a);
/* Bytes that are moved for so many bytes of accesses to the owner's memory. */
int64_t step_spill_moved(const step_spill *owner, int64_t accesses);

#endif
