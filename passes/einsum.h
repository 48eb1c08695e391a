/* What a kernel computes, over axis digits.
 *
 * The one idea: every move is the identity on the tensor, so only conversions and contractions are statements. A
 * contraction's digits are those of the computation mapping; which of them are kept is said by the tensors behind
 * contract and accumulate. Nothing here looks at a configuration of the data path but the loops' kept/summed marks. */
#ifndef VISA_PASSES_EINSUM_H
#define VISA_PASSES_EINSUM_H

#include "passes/pass.h"

enum { EINSUM_MAX_AXES = 32, EINSUM_MAX_DIGITS = 64 };

typedef struct einsum_value {
    dtype dtype;
    int64_t port; /* -1: intermediate */
    uint32_t rank;
    const axis *axes[EINSUM_MAX_AXES]; /* outermost first */
} einsum_value;

typedef struct einsum_part {
    const axis *axis;
    bool kept;
    int64_t weight, size;
} einsum_part;

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
    uint32_t count;
    einsum_part *digits; /* EINSUM_MAX_DIGITS while it is built */
} einsum_step;

struct kernel_einsum {
    einsum_value *values;
    size_t value_count, value_capacity;
    einsum_step *steps;
    size_t step_count, step_capacity;
    const char *text;
};

void pass_einsum(pass_context *p, kernel *k);

#endif
