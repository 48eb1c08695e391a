/* Integers in C for any processor, with lanes of one sum in a vector (block_lanes.h): eight of a packet and of a Row's weights. */
#define LANES_PART 8
#define LANES_VECTOR 4
#define LANES_WIDE 2
#define LANES_WIDE_FEW 2
#define LANES_ROWS 4
#define LANES_TOGETHER 4
#define LANES_AHEAD 8
#define LANES_BIASED 0
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "runtime/fast/block_lanes.h"

typedef int32_t lanes_words __attribute__((vector_size(16)));

/* Eight bytes as 16 bits each. */
INLINE lanes_vector widened(uint64_t bytes)
{
#if defined(__SSE2__) /* each byte twice, of which the upper one stays with its sign */
    __m128i lanes = _mm_cvtsi64_si128((long long)bytes);
    return (lanes_vector)_mm_srai_epi16(_mm_unpacklo_epi8(lanes, lanes), 8);
#else
    typedef int8_t narrow __attribute__((vector_size(8)));
    typedef int16_t wide __attribute__((vector_size(16)));
    return (lanes_vector) __builtin_convertvector((narrow)bytes, wide);
#endif
}

INLINE uint64_t lanes_load(const block_word *words)
{
    uint64_t bytes;
    memcpy(&bytes, words, sizeof bytes);
    return bytes;
}

INLINE lanes_vector lanes_data(const block_word *words)
{
    return widened(lanes_load(words));
}

INLINE lanes_vector lanes_data_kept(const block_word *words, const block_word *keep)
{
    return widened(lanes_load(words) & lanes_load(keep));
}

INLINE lanes_vector lanes_products(lanes_vector sum, lanes_vector data, lanes_vector weights)
{
#if defined(__SSE2__)
    return sum + (lanes_vector)_mm_madd_epi16((__m128i)data, (__m128i)weights);
#else
    lanes_words low = ((lanes_words)(data << 16) >> 16) * ((lanes_words)(weights << 16) >> 16);
    return sum + (lanes_vector)(low + ((lanes_words)data >> 16) * ((lanes_words)weights >> 16));
#endif
}

/* Of two Rows the sums of two lanes each: a, b, a, b. */
INLINE lanes_vector lanes_two(lanes_vector a, lanes_vector b)
{
    return __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
}

INLINE lanes_cells lanes_total(const lanes_vector *sum, int rows, int apart)
{
    const lanes_vector none = {0};
    lanes_vector low = lanes_two(sum[0], rows > 1 ? sum[apart] : none);
    lanes_vector high = rows > 2 ? lanes_two(sum[2 * apart], sum[3 * apart]) : none;
    return __builtin_shufflevector(low, high, 0, 1, 4, 5) + __builtin_shufflevector(low, high, 2, 3, 6, 7);
}

LANES_SET(block_lanes_plain_int, CPU_PLAIN)
