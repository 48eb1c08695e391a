#define BLOCK_VECTOR 16
#define BLOCK_WIDE 4
#include <immintrin.h>

#include "runtime/fast/block_f32.h"

#define BLOCK_FILL UINT32_C(0)
#include "runtime/fast/block_int.h"

INLINE vector_w dot(vector_w sum, vector_w data, vector_w weights)
{
    return sum + (vector_w)_mm512_madd_epi16((__m512i)data, (__m512i)weights);
}

BLOCK_SET(block_avx512_float, float, column_float, CPU_AVX512, true, BLOCK_F32)
BLOCK_SET(block_avx512_int, int, column_int, CPU_AVX512, false, BLOCK_I16X2)
