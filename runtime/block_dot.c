/* AVX-512 with dot products. VDPBF16PS from -0.0 is the sum of two products, rounded once: what the tree's first
 * level is when the products are exact, which block_range decides. VPDPBUSD wraps as the accumulator does. */
#define BLOCK_VECTOR 16
#define BLOCK_WIDE 4
#include <immintrin.h>

#define BLOCK_LEAF_WORDS 1
#include "runtime/block_body.h"

enum { HIGH_HALF = 16 /* bits below it */ };

INLINE void leaf(const leaves *l, int64_t i, int group, int wide, vector_f *to)
{
    const vector_f none = -(vector_f){0};
    for (int u = 0; u < wide; u++)
        to[u] = (vector_f)_mm512_dpbf16_ps((__m512)none, (__m512bh)spread(l->data + u * l->data_stride + i * group, group),
                                           (__m512bh)load(l->weights + i * BLOCK_VECTOR));
}

/* The product of the lanes in the lower or upper half of the words. */
INLINE vector_f product_half(vector_w data, vector_w weights, bool upper)
{
    if (upper)
        return (vector_f)(data >> HIGH_HALF << HIGH_HALF) * (vector_f)(weights >> HIGH_HALF << HIGH_HALF);
    return (vector_f)(data << HIGH_HALF) * (vector_f)(weights << HIGH_HALF);
}

INLINE void masked_leaf(const leaves *l, int64_t i, int group, int wide, vector_f *to)
{
    const vector_f none = -(vector_f){0};
    block_word keep = l->keep[i];
    if (keep == UINT32_MAX) {
        leaf(l, i, group, wide, to);
        return;
    }
    for (int u = 0; u < wide; u++)
        to[u] = keep ? product_half(spread(l->data + u * l->data_stride + i * group, group), load(l->weights + i * BLOCK_VECTOR),
                                    keep >> HIGH_HALF != 0)
                     : none;
}

#define BLOCK_FILL UINT32_C(0x80808080)
#include "runtime/block_int.h"

INLINE vector_w dot(vector_w sum, vector_w data, vector_w weights)
{
    return (vector_w)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)data, (__m512i)weights);
}

BLOCK_SET(block_dot_float, float, column_float, CPU_DOT, true, BLOCK_BF16X2)
BLOCK_SET(block_dot_int, int, column_int, CPU_DOT, false, BLOCK_I8X4)
