/* Integers at AVX-512 with lanes of one sum in a vector (block_lanes.h): 32 of a packet and of a Row's weights, widened as they are loaded.
 */
#define LANES_PART 32
#define LANES_BIASED 0
#include "runtime/fast/block_lanes_512.h"

INLINE lanes_vector lanes_data(const block_word *words)
{
    return (lanes_vector)_mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)words));
}

INLINE lanes_vector lanes_data_kept(const block_word *words, const block_word *keep)
{
    __m256i lanes = _mm256_loadu_si256((const __m256i *)(const void *)words);
    return (lanes_vector)_mm512_cvtepi8_epi16(_mm256_and_si256(lanes, _mm256_loadu_si256((const __m256i *)(const void *)keep)));
}

INLINE lanes_vector lanes_products(lanes_vector sum, lanes_vector data, lanes_vector weights)
{
    return sum + (lanes_vector)_mm512_madd_epi16((__m512i)data, (__m512i)weights);
}

LANES_SET(block_lanes_avx512_int, CPU_AVX512)
