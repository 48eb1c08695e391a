/* Integers at AVX2 with lanes of one sum in a vector (block_lanes.h): 16 of a packet and of a Row's weights, widened as they are loaded. */
#define LANES_PART 16
#define LANES_VECTOR 8
#define LANES_WIDE 2
#define LANES_WIDE_FEW 2
#define LANES_AHEAD 8
#define LANES_ROWS 4
#define LANES_TOGETHER 4
#define LANES_BIASED 0
#include <immintrin.h>

#include "runtime/fast/block_lanes.h"

INLINE lanes_vector widened(__m128i lanes)
{
    return (lanes_vector)_mm256_cvtepi8_epi16(lanes);
}

INLINE lanes_vector lanes_data(const block_word *words)
{
    return widened(_mm_loadu_si128((const __m128i *)(const void *)words));
}

INLINE lanes_vector lanes_data_kept(const block_word *words, const block_word *keep)
{
    __m128i lanes = _mm_loadu_si128((const __m128i *)(const void *)words);
    return widened(_mm_and_si128(lanes, _mm_loadu_si128((const __m128i *)(const void *)keep)));
}

INLINE lanes_vector lanes_products(lanes_vector sum, lanes_vector data, lanes_vector weights)
{
    return sum + (lanes_vector)_mm256_madd_epi16((__m256i)data, (__m256i)weights);
}

INLINE lanes_cells lanes_total(const lanes_vector *sum, int rows, int apart)
{
    const __m256i none = _mm256_setzero_si256();
    __m256i low = _mm256_hadd_epi32((__m256i)sum[0], rows > 1 ? (__m256i)sum[apart] : none);
    __m256i high = rows > 2 ? _mm256_hadd_epi32((__m256i)sum[2 * apart], (__m256i)sum[3 * apart]) : none;
    __m256i all = _mm256_hadd_epi32(low, high);
    return (lanes_cells)_mm256_castsi256_si128(all) + (lanes_cells)_mm256_extracti128_si256(all, 1);
}

LANES_SET(block_lanes_int, CPU_AVX2)
