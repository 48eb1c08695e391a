/* Floats with fused multiply-add, from bf16 as they lie: where products are exact, which block_range decides, rounding them changes
 * nothing, and a leaf is a product and a fused one (block_fused.c has the same for longer vectors). */
#define BLOCK_VECTOR 8
#define BLOCK_WIDE 2
#define BLOCK_WIDENS 1
#define BLOCK_HALVES
#define BLOCK_LOOK look
#include <immintrin.h>

#define BLOCK_PRODUCT_AND(l, word, group, u, sum) \
    ((vector_f)_mm256_fmadd_ps((__m256)spread((l)->data[u] + (word) * (group), group), (__m256)load((l)->weights + (word)*BLOCK_VECTOR), \
                               (__m256)(sum)))
#include "runtime/fast/block_f32.h"

static void look(const unsigned char *bytes, int64_t words, block_exponents *seen)
{
    exponents(&bytes, 1, words, seen);
}

BLOCK_SET(block_avx2_fused, float, column_float, CPU_AVX2, true, BLOCK_BF16)
