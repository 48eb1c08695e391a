/* bf16 as a C programmer has it: the bits of the upper half of an f32, rounded to nearest even. */
#ifndef VISA_BENCH_BF16_H
#define VISA_BENCH_BF16_H

#include "../support/float_bits.h"

static inline float widened(uint16_t code)
{
    return f32_of_bits((uint32_t)code << 16);
}

static inline uint16_t narrowed(float f)
{
    uint32_t bits = f32_bits(f);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
