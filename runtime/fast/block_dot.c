/* AVX-512 with dot products: VPDPBUSD wraps as the accumulator does. */
#define BLOCK_VECTOR 16
#define BLOCK_WIDE 4
#include <immintrin.h>

#include "runtime/fast/block_body.h"

#define BLOCK_FILL UINT32_C(0x80808080)
#include "runtime/fast/block_int.h"

INLINE vector_w dot(vector_w sum, vector_w data, vector_w weights)
{
    return (vector_w)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)data, (__m512i)weights);
}

BLOCK_SET(block_dot_int, int, column_int, CPU_DOT, false, BLOCK_I8X4)
