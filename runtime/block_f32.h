/* Leaves of one f32 lane per word: two products and their sum, each rounded as the definition has it. */
#define BLOCK_LEAF_WORDS 2
#include "runtime/block_body.h"

INLINE vector_f product_f32(const leaves *l, int64_t word, int group, int u)
{
    return (vector_f)spread(l->data + u * l->data_stride + word * group, group) *
           (vector_f)load(l->weights + word * BLOCK_VECTOR);
}

INLINE void leaf(const leaves *l, int64_t i, int group, int wide, vector_f *to)
{
    for (int u = 0; u < wide; u++)
        to[u] = product_f32(l, 2 * i, group, u) + product_f32(l, 2 * i + 1, group, u);
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
