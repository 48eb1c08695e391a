/* Functions of the Vector Engine's float units that are no arithmetic.
 *
 * The one idea: each is a polynomial in f64 after an exact reduction of its argument, rounded once to f32 at the end, without a branch, so
 * that loops over it become vectors. IEEE arithmetic says every step, so every processor gives the same bits; docs/engine/vector.md has the
 * steps and how far they are from the true value. What is given in f64 may lie too near to the middle of two floats to say which one is the
 * nearest: it is then computed again, with twice the bits. A NaN that comes out is NUMERIC_F32_NAN where it becomes a word. */
#ifndef VISA_RUNTIME_ENGINE_VECTOR_MATH_H
#define VISA_RUNTIME_ENGINE_VECTOR_MATH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "support/float_bits.h"

/* ln 2 in two parts: a product of the first one with an integer of up to 32 bits is exact. */
#define VECTOR_LN2_HIGH 0x1.62e42p-1
#define VECTOR_LN2_LOW 0x1.fdf473de6af28p-22
#define VECTOR_LOG2_E 0x1.71547652b82fep+0
/* Added to a number below 2^51, it leaves the nearest integer in the last bits. */
#define VECTOR_TO_INTEGER 0x1.8p52

/* Within 2^9 units of its last place of the middle of two floats, which is more than the steps are wrong. An f32 lacks the last 29 bits, of
 * which the middle is 2^28; with so much more the bits above these 2^10 places are 0. */
static inline bool vector_is_open(double d)
{
    const uint64_t near = UINT64_C(1) << 9, middle = UINT64_C(1) << 28, above = 2 * middle - 2 * near;
    return ((f64_bits(d) + middle + near) & above) == 0;
}

/* x = k ln 2 + r, |r| <= ln 2 / 2 and a little; |x| < 2^20. Gives r, and 2^k. */
static inline double vector_reduce_exp(double x, double *scale)
{
    double t = x * VECTOR_LOG2_E + VECTOR_TO_INTEGER, n = t - VECTOR_TO_INTEGER;
    *scale = f64_of_bits((f64_bits(t) + 1023) << 52);
    return x - n * VECTOR_LN2_HIGH - n * VECTOR_LN2_LOW;
}

/* e^r - 1: r + r^2 (1 / 2! + r / 3! + .. + r^11 / 13!). */
static inline double vector_expm1_of_reduced(double r)
{
    double s = 1.0 / 6227020800;
    s = s * r + 1.0 / 479001600;
    s = s * r + 1.0 / 39916800;
    s = s * r + 1.0 / 3628800;
    s = s * r + 1.0 / 362880;
    s = s * r + 1.0 / 40320;
    s = s * r + 1.0 / 5040;
    s = s * r + 1.0 / 720;
    s = s * r + 1.0 / 120;
    s = s * r + 1.0 / 24;
    s = s * r + 1.0 / 6;
    s = s * r + 1.0 / 2;
    return r + r * r * s;
}

/* Below -104 the result is below half of the least f32, from 88.73 on infinite. */
static inline float vector_exp(float x)
{
    double d = x, scale;
    d = d < -104 ? -104 : d;
    d = d > 89 ? 89 : d;
    double r = vector_reduce_exp(d, &scale);
    return (float)((1.0 + vector_expm1_of_reduced(r)) * scale);
}

/* 1 / (1 + exp(-x)), each step in f32. */
static inline float vector_sigmoid(float x)
{
    float e = vector_exp(-x), sum = 1.0f + e;
    return 1.0f / sum;
}

/* (e^2|x| - 1) / (e^2|x| + 1) with the sign of x; 1 from 9.02 on. */
static inline float vector_tanh(float x)
{
    double a = fabs((double)x), scale;
    a = a > 10 ? 10 : a;
    double r = vector_reduce_exp(2 * a, &scale), e = vector_expm1_of_reduced(r) * scale + (scale - 1.0);
    return (float)copysign(e / (e + 2.0), (double)x);
}

/* 2 / sqrt(pi) e^-x^2 (x + 2 x^3 / 3 + 4 x^5 / 15 + ..), all terms of one sign, with the sign of x; 1 from 3.92 on. Of an x of 4 the
 * terms from the 57th on are below 2^-48 of the sum. Every fourth term is in a sum of its own: one sum would wait for each of 55 products.
 */
static inline double vector_erf(float x)
{
    enum { TERMS = 56, SUMS = 4 };
    /* 2^k / (3 * 5 * .. * (2k + 1)) */
    static const double term[TERMS] = {
        0x1.0000000000000p+0,   0x1.5555555555555p-1,   0x1.1111111111111p-2,   0x1.3813813813814p-4,   0x1.1566abc011567p-6,
        0x1.937e11175f095p-9,   0x1.f09b28ba4d955p-12,  0x1.08db48ebe51c7p-14,  0x1.f28db670be53bp-18,  0x1.a3d5a71b92cd3p-21,
        0x1.3fdfbc45c52eap-24,  0x1.bd0ac3296b624p-28,  0x1.1cd3b01a822a6p-31,  0x1.519297d390c9fp-35,  0x1.747e72912d023p-39,
        0x1.808286c768445p-43,  0x1.74dba97b8be52p-47,  0x1.54e6174c62a5ap-51,  0x1.26d4d5e132b8cp-55,  0x1.e3d36c1c38faap-60,
        0x1.799ec4c4db4d0p-64,  0x1.19050980a3336p-68,  0x1.8fac24452c5fdp-73,  0x1.101e0dcd0ddf3p-77,  0x1.636b2c25f2c57p-82,
        0x1.be03fb2a9a10ep-87,  0x1.0d4adb45318cap-91,  0x1.395bc2a44c468p-96,  0x1.5fd74f512d38cp-101, 0x1.7da878c0310ddp-106,
        0x1.906d9c10fce8bp-111, 0x1.96c8bf0d31af7p-116, 0x1.9086a47b449d0p-121, 0x1.7e978a031f273p-126, 0x1.62de2e635bf7dp-131,
        0x1.3fe183f49b037p-136, 0x1.18718c3c25b5ep-141, 0x1.de9fa7a781366p-147, 0x1.8dd12aeef708ap-152, 0x1.42483cb4a13e1p-157,
        0x1.fd4910eadf32bp-163, 0x1.88b3b6aeeff5cp-168, 0x1.27ae777aaea6fp-173, 0x1.b306925c38de1p-179, 0x1.38d3d3acbe777p-184,
        0x1.b80562010be8bp-190, 0x1.2ecf673a86d1bp-195, 0x1.97ff32292170cp-201, 0x1.0d319d230e257p-206, 0x1.5c0c6e1377238p-212,
        0x1.b9175b58090c0p-218, 0x1.12137bdd39d0dp-223, 0x1.4e1ca0bfaa712p-229, 0x1.8faf67c62dfc9p-235, 0x1.d55ae5e660472p-241,
        0x1.0e9e7ff139d16p-246,
    };
    double a = fabs((double)x), scale;
    a = a > 4 ? 4 : a;
    double z = a * a, z2 = z * z, z4 = z2 * z2;
    double s0 = term[TERMS - 4], s1 = term[TERMS - 3], s2 = term[TERMS - 2], s3 = term[TERMS - 1];
#pragma GCC unroll 16 /* a loop is not taken into a vector */
    for (int k = TERMS - 2 * SUMS; k >= 0; k -= SUMS) {
        s0 = s0 * z4 + term[k];
        s1 = s1 * z4 + term[k + 1];
        s2 = s2 * z4 + term[k + 2];
        s3 = s3 * z4 + term[k + 3];
    }
    double s = (s0 + s1 * z) + (s2 + s3 * z) * z2;
    double r = vector_reduce_exp(-z, &scale), e = (1.0 + vector_expm1_of_reduced(r)) * scale;
    return copysign(0x1.20dd750429b6dp+0 * a * e * s, (double)x);
}

/* x = 2^e m, sqrt(1/2) < m <= sqrt(2); ln m = 2 (s + s^3 / 3 + .. + s^23 / 23), s = (m - 1) / (m + 1). */
static inline double vector_log(float x)
{
    const uint64_t fraction = (UINT64_C(1) << 52) - 1, one = UINT64_C(1023) << 52;
    const double of = x;
    uint64_t bits = f64_bits(of), above, exponent = bits >> 52 & 2047;
    double m = f64_of_bits((bits & fraction) | one);
    above = m > 0x1.6a09e667f3bcdp+0;
    m = above ? m * 0.5 : m;
    double e = f64_of_bits(UINT64_C(0x4330000000000000) | (exponent + above)) - (0x1p52 + 1023); /* as a number */
    double s = (m - 1.0) / (m + 1.0), z = s * s, sum = 1.0 / 23;
    sum = sum * z + 1.0 / 21;
    sum = sum * z + 1.0 / 19;
    sum = sum * z + 1.0 / 17;
    sum = sum * z + 1.0 / 15;
    sum = sum * z + 1.0 / 13;
    sum = sum * z + 1.0 / 11;
    sum = sum * z + 1.0 / 9;
    sum = sum * z + 1.0 / 7;
    sum = sum * z + 1.0 / 5;
    sum = sum * z + 1.0 / 3;
    double high = e * VECTOR_LN2_HIGH, low = e * VECTOR_LN2_LOW + 2.0 * (s + s * z * sum);
    double other = of < INFINITY ? 0 : of; /* a sum, which no compiler makes a branch of: infinity and NaN stay */
    other = of == 0 ? -INFINITY : other;
    other = of < 0 ? NAN : other;
    return high + low + other;
}

/* ---- sine and cosine ---- */

/* r - r^3 / 3! + .. - r^19 / 19! */
static inline double vector_sine_of_reduced(double r)
{
    double z = r * r, s = -1.0 / 121645100408832000;
    s = s * z + 1.0 / 355687428096000;
    s = s * z - 1.0 / 1307674368000;
    s = s * z + 1.0 / 6227020800;
    s = s * z - 1.0 / 39916800;
    s = s * z + 1.0 / 362880;
    s = s * z - 1.0 / 5040;
    s = s * z + 1.0 / 120;
    s = s * z - 1.0 / 6;
    return r * (1.0 + z * s);
}

/* 1 - r^2 / 2! + .. - r^18 / 18! */
static inline double vector_cosine_of_reduced(double r)
{
    double z = r * r, s = -1.0 / 6402373705728000;
    s = s * z + 1.0 / 20922789888000;
    s = s * z - 1.0 / 87178291200;
    s = s * z + 1.0 / 479001600;
    s = s * z - 1.0 / 3628800;
    s = s * z + 1.0 / 40320;
    s = s * z - 1.0 / 720;
    s = s * z + 1.0 / 24;
    s = s * z - 1.0 / 2;
    return 1.0 + z * s;
}

/* Of an angle of n quarter turns and r, |r| <= pi / 4, the sine; the cosine has n and 1. */
static inline double vector_sine_of(double r, uint64_t n)
{
    double s = n & 1 ? vector_cosine_of_reduced(r) : vector_sine_of_reduced(r);
    return n & 2 ? -s : s;
}

/* From 2^16 on, infinities and NaN. */
static inline bool vector_is_far(uint32_t bits)
{
    return (bits & 0x7fffffff) >= 0x47800000;
}

/* x = n pi / 2 + r, of x that is not far. pi / 2 is three parts: a product of each of the first two with n is exact. */
static inline double vector_reduce_near(double x, uint64_t *n)
{
    double t = x * 0x1.45f306dc9c883p-1 + VECTOR_TO_INTEGER, k = t - VECTOR_TO_INTEGER;
    *n = f64_bits(t);
    return x - k * 0x1.921fb544p+0 - k * 0x1.0b4611a6p-34 - k * 0x1.3198a2e037073p-69;
}

static inline double vector_near_sin(float x)
{
    uint64_t n;
    double r = vector_reduce_near((double)x, &n);
    return vector_sine_of(r, n);
}

static inline double vector_near_cos(float x)
{
    uint64_t n;
    double r = vector_reduce_near((double)x, &n);
    return vector_sine_of(r, n + 1);
}

/* Of any x: 2 / pi to as many bits as x needs. */
double vector_far_sin(float x);
double vector_far_cos(float x);

/* ---- with twice the bits: of an x whose value in f64 is open ---- */

float vector_wide_log(float x);
float vector_wide_sin(float x);
float vector_wide_cos(float x);
float vector_wide_erf(float x);

#endif
