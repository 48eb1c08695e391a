/* Integers with VPDPBUSD and lanes of one sum in a vector (block_lanes.h): 64 of a packet, which it takes as unsigned ones, 128 more, and
 * of a Row's weights. A sum wraps as the accumulator does. */
#define LANES_PART 64
#define LANES_BIASED 1
#include "runtime/fast/block_lanes_512.h"

INLINE lanes_vector lanes_weights(const block_word *words)
{
    return (lanes_vector)_mm512_loadu_si512(words);
}

INLINE lanes_vector lanes_bias(void)
{
    return (lanes_vector){0} + UINT32_C(0x80808080);
}

INLINE lanes_vector lanes_data(const block_word *words)
{
    return lanes_weights(words) ^ lanes_bias();
}

INLINE lanes_vector lanes_data_kept(const block_word *words, const block_word *keep)
{
    return (lanes_weights(words) & lanes_weights(keep)) ^ lanes_bias();
}

INLINE lanes_vector lanes_products(lanes_vector sum, lanes_vector data, lanes_vector weights)
{
    return (lanes_vector)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)data, (__m512i)weights);
}

LANES_SET(block_lanes_dot_int, CPU_DOT)
