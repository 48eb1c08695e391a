/* Where memories lie that are needed for a while each: dynamic storage allocation.
 *
 * The one idea: two memories that are live in one step share no byte, others may; what counts is the peak, one past the last byte that is
 * ever used. In a packing that cannot be pushed lower every memory lies at 0, on one that is live at the same time, or on one that cannot
 * move. So every best packing is found by putting memories down in some order, each as low as those before it allow: some orders that do
 * well, and for a few memories all that matter, by branch and bound (first fit by offset; Gergov, and Buchsbaum et al. on the bound from
 * the load of a step). */
#ifndef VISA_PASSES_STORAGE_H
#define VISA_PASSES_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/arena.h"

/* A memory of `bytes` (more than 0), needed in steps first..last, both of them too. */
typedef struct storage_item {
    int64_t bytes, alignment; /* a multiple of `alignment` bytes is its offset; at least 1 */
    int64_t first, last;
    int64_t offset; /* bytes; what storage_pack() finds, or of one that is fixed what it must stay */
    bool fixed;
} storage_item;

typedef struct storage_result {
    int64_t peak;  /* bytes */
    int64_t bound; /* bytes; no packing has less */
    bool is_least; /* no packing has a lower peak: it was searched through, or the bound is reached */
} storage_result;

/* Sets the offset of each item that is not fixed; a peak of at most `enough` bytes is not lowered further (0: the least is looked for). The
 * order of the items has no influence on the peak's being least, only on which of equal packings is taken. At most 2^40 bytes each. Work:
 * count^2 x orders, and a bounded search. */
storage_result storage_pack(storage_item *items, size_t count, int64_t enough, arena *a);

#endif
