/* Axes that chips share.
 *
 * The one idea: each chip answers the question of its part as if that were all, beside the others and with nothing from them. So `M` is
 * `M % 256` wherever one chip would have it, and which part that is stands in Chip. What has no such axis is in the HBM of every chip. */
#ifndef VISA_LIBVISA_TUNE_CHIPS_H
#define VISA_LIBVISA_TUNE_CHIPS_H

#include <stddef.h>
#include <stdint.h>

#include "support/arena.h"

typedef struct tune_share {
    const char *axis;    /* NULL: chips do not share it */
    int64_t chips, part; /* positions of a chip */
} tune_share;

/* An axis of so many positions over chips, which share it evenly; *text: as a chip has it. */
tune_share tune_share_of(const char *axis, int64_t size, int64_t chips, arena *a, const char **text);

/* All chips. */
int64_t tune_chips_of(const tune_share *shares, size_t count);

/* "M / 256, 2": Chip of a tensor that has these of the axes, a bit each; "1" where there is one chip. */
const char *tune_chip_mapping(const tune_share *shares, size_t count, unsigned has, arena *a);

/* The type of the Chip of a port: "Chip", or, of what is in the HBM of several chips, "m![M / 256, 2]". */
const char *tune_chip_type(const tune_share *shares, size_t count, unsigned has, arena *a);

#endif
