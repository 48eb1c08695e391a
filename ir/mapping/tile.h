/* Tiles: the part of a buffer mapping that a window of an index selects.
 *
 * The one idea: a tile keeps every position of the mapping where it is. The digits of the index that a window fixes become a
 * gap, those that it shortens are resized and padded back, and the window's start is a displacement, once in positions of
 * the buffer and once in coordinates of its axes. So tiles of tiles add up. */
#ifndef VISA_IR_MAPPING_TILE_H
#define VISA_IR_MAPPING_TILE_H

#include "ir/mapping/mapping.h"

typedef struct tile_shift {
    const axis *axis;
    int64_t offset; /* coordinates */
} tile_shift;

/* A digit that a window fixes or shortens. */
typedef struct tile_cut {
    const axis *axis;
    int64_t weight, lost; /* coordinates: of its step, and of the span that its values no longer have */
} tile_cut;

enum { TILE_MAX_SHIFTS = 16, TILE_UNITS = 3 };

/* Where a tile, or a tile of a tile, lies in its buffer. */
typedef struct tile_window {
    int64_t displacement;      /* positions of Element (elements) */
    int64_t units[TILE_UNITS]; /* positions of Chip, Cluster and Slice */
    tile_shift shifts[TILE_MAX_SHIFTS];
    tile_cut cuts[TILE_MAX_SHIFTS];
    uint32_t shift_count, cut_count;
} tile_window;

typedef enum tile_status {
    TILE_OK,
    TILE_SPLIT,   /* the index is not in the mapping as digits of its own */
    TILE_TERMS,   /* more than one position of an index of several digits */
    TILE_RANGE,   /* start + length is beyond the index, or length is below 1 */
    TILE_PADDING, /* the window reaches padding of the mapping */
    TILE_DEEP,    /* more than TILE_MAX_SHIFTS digits or shifted axes */
} tile_status;

/* The tile of `m`, a tensor's Element; its own window is added to *window. `guard`, when not NULL, is m as it may be written (dead
 * positions outside an earlier window are PAD_BOTTOM) and is replaced by the tile's. On failure nothing is changed. */
tile_status mapping_tile(mapping_context *c, const mapping *m, const mapping *index, int64_t length, int64_t start, const mapping **out,
                         const mapping **guard, tile_window *window);

#endif
