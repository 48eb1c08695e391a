/* What a kernel computes, over axis digits.
 *
 * The one idea: statements over logical tensors (values), in terms of axes and their digits; no stage and no layout is in it. It is
 * derived from the tensors' types alone (passes/einsum.c), and what becomes of it in a binary is codegen/einsum.h. */
#ifndef VISA_IR_EINSUM_H
#define VISA_IR_EINSUM_H

#include "ir/mapping.h"
#include "ir/tile.h"
#include "target/target.h"

enum { EINSUM_MAX_AXES = 32, EINSUM_MAX_DIGITS = 64 };

typedef struct einsum_value {
    dtype dtype;
    int64_t port; /* -1: intermediate */
    uint32_t rank;
    const axis *axes[EINSUM_MAX_AXES]; /* outermost first */
} einsum_value;

/* A digit of an axis. A source that does not hold it is repeated over it. */
typedef struct einsum_part {
    const axis *axis;
    bool kept;
    int64_t weight, size;
    bool a_repeats, b_repeats;
    int64_t lane; /* summed by the tree: so many lanes are between its values; 0: over time, kept, or of a group */
    unsigned group; /* summed, in a step with pieces: of which group, from 1 on, it counts positions */
    int64_t stride; /* positions of the group between its values */
    bool renames; /* source a is read under an axis's old name (einsum_relabel) */
} einsum_part;

/* A group of axes that is summed stands in several places: where its positions p are value p / weight % size of one. */
typedef struct einsum_place {
    unsigned group;
    int64_t weight, size;
    int64_t lane; /* as of a digit */
} einsum_place;

/* A tensor is accessed `offset` coordinates of the axis further: it is seen through a tile. */
typedef struct einsum_offset {
    unsigned side; /* 0 dst, 1 a, 2 b */
    const axis *axis;
    int64_t offset;
} einsum_offset;
enum { EINSUM_MAX_OFFSETS = 3 * TILE_MAX_SHIFTS };

typedef struct einsum_step {
    bool contract;
    uint32_t dst, a, b;
    dtype accumulator;
    uint32_t offset_count;
    einsum_offset *offsets;
    uint32_t place_count; /* 0: the summed digits are in the order in which the machine adds; else the places are, outermost first */
    einsum_place *places;
    uint32_t count;
    einsum_part *digits; /* EINSUM_MAX_DIGITS while it is built */
} einsum_step;

/* An axis of a value that a reshape names anew: a step without digits of it reads it through those of other axes. */
typedef struct einsum_relabel {
    const axis *axis;
    uint32_t term_count;
    window_term *terms;
} einsum_relabel;

typedef struct kernel_einsum {
    einsum_value *values;
    size_t value_count, value_capacity;
    einsum_step *steps;
    size_t step_count, step_capacity;
    einsum_relabel *relabels;
    size_t relabel_count, relabel_capacity;
    const char *text; /* "MK,NK->MN" */
} kernel_einsum;

#endif
