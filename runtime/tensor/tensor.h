/* A logical tensor in memory.
 *
 * The one idea: dense, row-major, little-endian elements of a shape; what a tensor file holds and what the
 * reference kernel computes with, without padding and without a place in the machine. i4 elements are packed
 * two per byte, element 0 in the low nibble. */
#ifndef VISA_RUNTIME_TENSOR_TENSOR_H
#define VISA_RUNTIME_TENSOR_TENSOR_H

#include "support/arena.h"
#include "target/target.h"

typedef struct tensor_type {
    dtype dtype;
    int rank;
    const int64_t *shape;     /* elements, outermost first; NULL when rank is 0 */
    const char *const *names; /* of the axes, or NULL */
} tensor_type;

typedef struct tensor {
    tensor_type type;
    unsigned char *bytes; /* malloc; NULL: empty */
    size_t size;          /* bytes */
} tensor;

/* Product of the shape; -1 when an extent is negative or the product passes 2^60. */
int64_t tensor_elements(const tensor_type *type);
/* Bytes of so many elements in memory (a last odd i4 takes a byte); -1 when negative or past 2^62. */
int64_t tensor_bytes(dtype t, int64_t elements);

/* Zeroed elements; shape and names are copied to the arena. False when the sizes overflow or no memory is
 * left. */
bool tensor_new(const tensor_type *type, arena *a, tensor *out);
void tensor_free(tensor *t);

/* "[M=32, K=16]" with names, "[32, 16]" without. */
const char *tensor_shape_text(const tensor_type *type, arena *a);

/* The tensor whose axis i is axis order[i] of `from`. False: no memory. order is a permutation of 0 ..
 * rank-1. */
bool tensor_permute(const tensor *from, const int *order, arena *a, tensor *out);

/* The same numbers for the same seed everywhere. Integers cover their whole range, floats are in [-1, 1)
 * before they are rounded to the type. On so many threads, if it is worth it; the numbers do not depend on them. */
void tensor_fill_random(tensor *t, uint64_t seed, unsigned threads);
/* An i32 tensor, or one of u8, of numbers that index_values_draw gives with the seed. */
struct index_values;
void tensor_fill_multiples(tensor *t, uint64_t seed, const struct index_values *of);

#endif
