#include "runtime/engine/vector_math.h"

#include "runtime/tensor/numeric.h"

/* 2 / pi, the 256 bits after its point. */
static const uint64_t two_over_pi[4] = {UINT64_C(0xa2f9836e4e441529), UINT64_C(0xfc2757d1f534ddc0), UINT64_C(0xdb6295993c439041),
                                        UINT64_C(0xfe5163abdebbc561)};
static const double pi_half = 0x1.921fb54442d18p+0;

/* Bits n to n + 63 after its point, n from -64 to 192. */
static uint64_t two_over_pi_word(int n)
{
    if (n < 0)
        return two_over_pi[0] >> -n % 64 & (n == -64 ? 0 : ~UINT64_C(0));
    uint64_t high = two_over_pi[n / 64] << n % 64, low = n % 64 ? two_over_pi[n / 64 + 1] >> (64 - n % 64) : 0;
    return high | low;
}

/* floor(2 / pi * 2^n) modulo 2^128, n from 64 to 255. */
static unsigned __int128 two_over_pi_bits(int n)
{
    return (unsigned __int128)two_over_pi_word(n - 128) << 64 | two_over_pi_word(n - 64);
}

/* |x| = n pi / 2 + r, |r| <= pi / 4; gives r, and n modulo 4. x is finite and 1/2 or more. */
static double reduce_angle(float x, unsigned *n)
{
    enum { POINT = 124 };
    uint32_t bits = numeric_f32_bits(x) & 0x7fffffff;
    int exponent = (int)(bits >> 23) - 150; /* of the last bit, -24 to 104 */
    uint32_t mantissa = (bits & 0x7fffff) | 0x800000;
    const unsigned __int128 half = (unsigned __int128)1 << (POINT - 1);
    unsigned __int128 turns = two_over_pi_bits(exponent + POINT) * mantissa % (half << 3); /* of 4 quarters */
    unsigned __int128 nearest = (turns + half) >> POINT;
    *n = (unsigned)nearest & 3;
    unsigned __int128 whole = nearest << POINT;
    double part = turns >= whole ? (double)(turns - whole) : -(double)(whole - turns);
    return part * 0x1p-124 * pi_half;
}

float vector_far_sin(float x)
{
    unsigned n;
    if (!isfinite(x))
        return NAN;
    double r = reduce_angle(x, &n);
    return vector_sine_of(r, signbit(x) ? n + 2 : n);
}

float vector_far_cos(float x)
{
    unsigned n;
    if (!isfinite(x))
        return NAN;
    double r = reduce_angle(x, &n);
    return vector_sine_of(r, n + 1);
}
