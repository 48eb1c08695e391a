/* Floats with fused multiply-add: where products are exact, which block_range decides, rounding them changes nothing, and a leaf is a
 * product and a fused one instead of two products and a sum. bf16 words are widened as they are packed. */
#define BLOCK_VECTOR 16
#define BLOCK_WIDE 4
#define BLOCK_HALVES
#include <immintrin.h>

#define BLOCK_PRODUCT_AND(l, word, group, u, sum) \
    ((vector_f)_mm512_fmadd_ps((__m512)spread((l)->data[u] + (word) * (group), group), (__m512)load((l)->weights + (word)*BLOCK_VECTOR), \
                               (__m512)(sum)))
#include "runtime/fast/block_f32.h"

BLOCK_SET(block_fused_float, float, column_float, CPU_AVX512, true, BLOCK_BF16)
