/* Axes that chips share.
 *
 * The one idea: each chip answers the question of its part as if that were all, beside the others and with nothing from them. So `M` is
 * `M % 256` wherever one chip would have it, and which part that is stands in Chip. What has no such axis is in the HBM of every chip.
 * Where the parts would be odd, or not the same, all are padded to one that slices divide, `N # 1024 % 256` of 1000, and the last chip has
 * less. */
#ifndef VISA_LIBVISA_TUNE_CHIPS_H
#define VISA_LIBVISA_TUNE_CHIPS_H

#include <stddef.h>
#include <stdint.h>

#include "support/arena.h"

typedef struct tune_share {
    const char *axis;          /* NULL: chips do not share it */
    int64_t size, chips, part; /* positions in all, and of a chip */
} tune_share;

/* A part that slices divide, where the even one is not such, or there is none; 0: none, or the last chip would have nothing. */
int64_t tune_padded_part(int64_t size, int64_t chips);

/* An axis of so many positions over chips, of which each has a part, padded where they are more than all; *text: as a chip has it. */
tune_share tune_share_of(const char *axis, int64_t size, int64_t chips, int64_t part, arena *a, const char **text);

/* All chips. */
int64_t tune_chips_of(const tune_share *shares, size_t count);

/* "M / 256, 2": Chip of a tensor that has these of the axes, a bit each; "1" where there is one chip. */
const char *tune_chip_mapping(const tune_share *shares, size_t count, unsigned has, arena *a);

/* The type of the Chip of a port: "Chip", or, of what is in the HBM of several chips, "m![M / 256, 2]". */
const char *tune_chip_type(const tune_share *shares, size_t count, unsigned has, arena *a);

#endif
