/* Number formats: what the bits of an element mean, and how a value becomes bits.
 *
 * The one idea: the casts are arithmetic on bit patterns, defined once here for the machine and for tensor
 * files, with the rules of docs/numerics.md; everything is inline so that a loop over elements vectorises.
 *
 * The functions need the default floating-point environment: round to nearest even, subnormals not flushed.
 */
#ifndef VISA_RUNTIME_TENSOR_NUMERIC_H
#define VISA_RUNTIME_TENSOR_NUMERIC_H

#include <stdint.h>

#include "support/float_bits.h"
#include "target/target.h"

enum {
    NUMERIC_BF16_NAN = 0x7fc0,
    NUMERIC_F8E4M3_NAN = 0x7f,
    NUMERIC_F8E4M3_MAX = 0x7e, /* 448; infinities and overflow become this */
    NUMERIC_F8E5M2_NAN = 0x7e,
    NUMERIC_F8E5M2_INFINITY = 0x7c,
};

#define NUMERIC_F32_NAN UINT32_C(0x7fc00000)

/* Exact, but that a subnormal becomes zero of its sign and every NaN the one NaN 0x7fc00000. */
static inline float numeric_bf16_to_f32(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
        bits = NUMERIC_F32_NAN;
    if (magnitude < 0x00800000)
        bits &= 0x80000000;
    return f32_of_bits(bits);
}

/* Nearest, ties to even; overflow is infinity, an f32 subnormal zero of its sign, NaN 0x7fc0. */
static inline uint16_t numeric_f32_to_bf16(float x)
{
    uint32_t bits = f32_bits(x), magnitude = bits & 0x7fffffff;
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    if (magnitude < 0x00800000)
        rounded = bits >> 16 & 0x8000;
    if (magnitude > 0x7f800000)
        rounded = NUMERIC_BF16_NAN;
    return (uint16_t)rounded;
}

/* Exact. An f8 magnitude shifted to the place of an f32's exponent and fraction lacks the difference of the two
 * biases; a subnormal is a whole number of the smallest one. (Multiplying the shifted bits would be shorter, but
 * f32 subnormals cost processors a hundred cycles.) */
static inline float numeric_f8e4m3_to_f32(uint8_t x)
{
    uint32_t magnitude = x & 0x7f, sign = (uint32_t)(x & 0x80) << 24;
    uint32_t bits = magnitude < 8 ? f32_bits((float)(int32_t)magnitude * 0x1p-9f) : (magnitude << 20) + (UINT32_C(120) << 23);
    return f32_of_bits(magnitude == 0x7f ? NUMERIC_F32_NAN : bits | sign);
}

static inline float numeric_f8e5m2_to_f32(uint8_t x)
{
    uint32_t magnitude = x & 0x7f, sign = (uint32_t)(x & 0x80) << 24;
    uint32_t bits = magnitude < 4 ? f32_bits((float)(int32_t)magnitude * 0x1p-16f) : (magnitude << 21) + (UINT32_C(112) << 23);
    bits |= sign;
    if (magnitude == NUMERIC_F8E5M2_INFINITY)
        bits = 0x7f800000 | sign;
    if (magnitude > NUMERIC_F8E5M2_INFINITY)
        bits = NUMERIC_F32_NAN;
    return f32_of_bits(bits);
}

/* Nearest, ties to even, subnormals included; beyond 448 and infinity become 448 of their sign, NaN 0x7f. */
static inline uint8_t numeric_f32_to_f8e4m3(float x)
{
    uint32_t bits = f32_bits(x), magnitude = bits & 0x7fffffff, code;
    if (magnitude > 0x7f800000)
        return NUMERIC_F8E4M3_NAN;
    if (magnitude >= 0x43e00000) { /* 448 */
        code = NUMERIC_F8E4M3_MAX;
    } else if (magnitude >= 0x3c800000) { /* 2^-6, the smallest normal */
        uint32_t rebiased = magnitude - (UINT32_C(120) << 23);
        code = (rebiased + 0x7ffff + (rebiased >> 20 & 1)) >> 20;
    } else { /* the sum's last place is 2^-9, so the addition rounds as the format does */
        code = f32_bits(f32_of_bits(magnitude) + 0x1p14f) & 0xf;
    }
    return (uint8_t)(code | (bits >> 24 & 0x80));
}

/* Nearest, ties away from zero; subnormals stay below the smallest normal (code 3); overflow is infinity,
 * NaN 0x7e. Provisional: the only published model (docs/numerics.md). */
static inline uint8_t numeric_f32_to_f8e5m2(float x)
{
    uint32_t bits = f32_bits(x), magnitude = bits & 0x7fffffff, code;
    if (magnitude > 0x7f800000)
        return NUMERIC_F8E5M2_NAN;
    if (magnitude >= 0x38800000) { /* 2^-14, the smallest normal */
        code = (magnitude - (UINT32_C(112) << 23) + 0x100000) >> 21;
        code = code < NUMERIC_F8E5M2_INFINITY ? code : NUMERIC_F8E5M2_INFINITY;
    } else { /* in double, where adding a half is exact */
        code = (uint32_t)((double)f32_of_bits(magnitude) * 0x1p16 + 0.5);
        code = code < 3 ? code : 3;
    }
    return (uint8_t)(code | (bits >> 24 & 0x80));
}

/* The sixteen numbers, exact. */
static inline float numeric_f4e2m1_to_f32(unsigned code)
{
    uint32_t magnitude = code & 7, sign = (uint32_t)(code & 8) << 28;
    uint32_t bits = magnitude < 2 ? magnitude * UINT32_C(0x3f000000) : (magnitude << 22) + (UINT32_C(126) << 23);
    return f32_of_bits(bits | sign);
}

/* Nearest, ties to even, beyond 6 it is 6 of the sign, of a NaN 0. No engine does it: files and constants do. */
static inline unsigned numeric_f32_to_f4e2m1(float x)
{
    float magnitude = x < 0 ? -x : x;
    unsigned code = 0;
    static const float between[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
    while (code < 7 && (magnitude > between[code] || (magnitude == between[code] && code % 2)))
        code++;
    return code | (f32_bits(x) >> 28 & (x == x ? 8u : 0u));
}

/* Two i4 per byte, element 0 in the low nibble. */
static inline unsigned numeric_i4_bits(const void *buffer, int64_t element)
{
    return ((const unsigned char *)buffer)[element >> 1] >> (element & 1) * 4 & 0xf;
}

/* Sign extension of the low four bits. */
static inline int32_t numeric_i4_extend(unsigned bits)
{
    return (int32_t)((bits & 0xf) ^ 8) - 8;
}

static inline int32_t numeric_i4_get(const void *buffer, int64_t element)
{
    return numeric_i4_extend(numeric_i4_bits(buffer, element));
}

/* Keeps the low four bits of `value`; the other nibble of the byte stays. */
static inline void numeric_i4_put(void *buffer, int64_t element, int32_t value)
{
    unsigned char *byte = &((unsigned char *)buffer)[element >> 1];
    unsigned at = (element & 1) * 4;
    *byte = (unsigned char)((*byte & ~(0xfu << at)) | ((uint32_t)value & 0xf) << at);
}

/* i32 narrowed to an integer type: keeps the low bits (wraps), sign-extended again. */
int32_t numeric_wrap(dtype t, int32_t value);

/* `bytes` holds one i4, or the code of one f4e2m1, per byte, sign-extended or not, and `packed` (elements + 1) / 2 bytes. A last odd
 * nibble is written as zero. The buffers must not overlap. */
void numeric_i4_pack(const unsigned char *bytes, int64_t elements, unsigned char *packed);
/* One sign-extended i4 per byte, or the code of one f4e2m1. */
void numeric_i4_unpack(dtype t, const unsigned char *packed, int64_t elements, unsigned char *bytes);

/* Element number `element` of a little-endian buffer, by the widening rules above; exact for every type. */
double numeric_to_double(dtype t, const void *buffer, int64_t element);

/* Floats: rounded to f32 and then cast by the rules above. Integers: rounded to the nearest, ties to even,
 * and wrapped to the type's low bits; NaN and infinity become 0. */
void numeric_from_double(dtype t, void *buffer, int64_t element, double value);

#endif
