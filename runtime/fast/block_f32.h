/* Leaves of one f32 lane per word: two products and their sum, each rounded as the definition has it.
 * BLOCK_PRODUCT_AND(l, word, group, u, sum) adds the product of a word to the sum; a file whose products are exact has its own. */
#define BLOCK_LEAF_WORDS 2
#include "runtime/fast/block_body.h"

INLINE vector_f product_f32(const leaves *l, int64_t word, int group, int u)
{
    return (vector_f)spread(l->data[u] + word * group, group) * (vector_f)load(l->weights + word * BLOCK_VECTOR);
}

#ifndef BLOCK_PRODUCT_AND
#define BLOCK_PRODUCT_AND(l, word, group, u, sum) ((sum) + product_f32(l, word, group, u))
#endif

INLINE void leaf(const leaves *l, int64_t i, int group, int wide, vector_f *to)
{
    for (int u = 0; u < wide; u++)
        to[u] = BLOCK_PRODUCT_AND(l, 2 * i + 1, group, u, product_f32(l, 2 * i, group, u));
}

INLINE void masked_leaf(const leaves *l, int64_t i, int group, int wide, vector_f *to)
{
    const vector_f none = -(vector_f){0};
    bool low = l->keep[2 * i] != 0, high = l->keep[2 * i + 1] != 0;
    for (int u = 0; u < wide; u++) {
        to[u] = low ? product_f32(l, 2 * i, group, u) : none;
        to[u] = to[u] + (high ? product_f32(l, 2 * i + 1, group, u) : none);
    }
}
