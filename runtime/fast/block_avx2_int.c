/* Four vectors of packets at once: sums without a tree need one register each, and weights are loaded once for four products. */
#define BLOCK_VECTOR 8
#define BLOCK_WIDE 4
#define BLOCK_WIDENS 1
#define BLOCK_BYTES
#include <immintrin.h>

#include "runtime/fast/block_body.h"

#define BLOCK_FILL UINT32_C(0)
#include "runtime/fast/block_int.h"

INLINE vector_w dot(vector_w sum, vector_w data, vector_w weights)
{
    return sum + (vector_w)_mm256_madd_epi16((__m256i)data, (__m256i)weights);
}

BLOCK_SET(block_avx2_int, int, column_int, CPU_AVX2, false, BLOCK_I8X2)
