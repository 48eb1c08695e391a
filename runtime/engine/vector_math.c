#include "runtime/engine/vector_math.h"

#include <math.h>
#include <string.h>

#include "runtime/tensor/numeric.h"

static double of_bits(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* 2^k, k from -1022 to 1023. */
static double power_of_two(int k)
{
    return of_bits((uint64_t)(k + 1023) << 52);
}

/* ln 2 in two parts: a product of the first one with an integer of up to 32 bits is exact. */
static const double ln2_high = 0x1.62e42p-1, ln2_low = 0x1.fdf473de6af28p-22, log2_e = 0x1.71547652b82fep+0;

/* x = k ln 2 + r, |r| <= ln 2 / 2 and a little. */
static double reduce_exp(double x, int *k)
{
    double n = floor(x * log2_e + 0.5);
    *k = (int)n;
    return x - n * ln2_high - n * ln2_low;
}

/* e^r - 1: r + r^2 / 2! + .. + r^14 / 14!, by Horner's rule. */
static double expm1_of_reduced(double r)
{
    double s = 1.0 / 14;
    for (int n = 13; n > 1; n--)
        s = (1.0 + r * s) / n;
    return r + r * r * s;
}

float vector_exp(float x)
{
    if (!(x < 89.0f)) /* infinite from 88.73 on */
        return isnan(x) ? NAN : INFINITY;
    if (x < -104.0f) /* below half of the least f32 */
        return 0;
    int k;
    double r = reduce_exp(x, &k), e = 1.0 + expm1_of_reduced(r);
    return (float)(e * power_of_two(k));
}

float vector_sigmoid(float x)
{
    float e = vector_exp(-x), sum = 1.0f + e;
    return 1.0f / sum;
}

/* (e^2|x| - 1) / (e^2|x| + 1) with the sign of x. */
float vector_tanh(float x)
{
    if (isnan(x))
        return NAN;
    double a = fabs((double)x), t = 1;
    int k;
    if (a < 10) { /* 1 from 9.02 on */
        double r = reduce_exp(2 * a, &k), less = expm1_of_reduced(r), e = k == 0 ? less : (1.0 + less) * power_of_two(k) - 1.0;
        t = e / (e + 2.0);
    }
    return (float)copysign(t, (double)x);
}

/* x = 2^e m, sqrt(1/2) <= m < sqrt(2); ln m = 2 (s + s^3 / 3 + .. + s^23 / 23), s = (m - 1) / (m + 1). */
float vector_log(float x)
{
    if (isnan(x) || x < 0)
        return NAN;
    if (x == 0)
        return -INFINITY;
    if (isinf(x))
        return x;
    uint64_t bits;
    double d = x;
    memcpy(&bits, &d, sizeof bits);
    int e = (int)(bits >> 52) - 1023;
    double m = of_bits((bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52);
    if (m > 0x1.6a09e667f3bcdp+0)
        m *= 0.5, e++;
    double s = (m - 1.0) / (m + 1.0), z = s * s, sum = 1.0 / 23;
    for (int n = 21; n > 0; n -= 2)
        sum = 1.0 / n + z * sum;
    return (float)(e * ln2_high + (e * ln2_low + 2.0 * s * sum));
}

/* ---- sine and cosine ---- */

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

/* |x| = n pi / 2 + r, |r| <= pi / 4; gives r, and n modulo 4. x is finite. */
static double reduce_angle(float x, unsigned *n)
{
    enum { POINT = 124 };
    uint32_t bits = numeric_f32_bits(x) & 0x7fffffff;
    *n = 0;
    if (bits < 0x3f000000) /* |x| < 1 / 2 */
        return fabs((double)x);
    int exponent = (int)(bits >> 23) - 150; /* of the last bit, -24 to 104 */
    uint32_t mantissa = (bits & 0x7fffff) | 0x800000;
    const unsigned __int128 half = (unsigned __int128)1 << (POINT - 1);
    unsigned __int128 turns = two_over_pi_bits(exponent + POINT) * mantissa % (half << 3); /* of 4 quarters */
    unsigned __int128 nearest = (turns + half) >> POINT;
    *n = (unsigned)nearest & 3;
    unsigned __int128 whole = nearest << POINT;
    double part = turns >= whole ? (double)(turns - whole) : -(double)(whole - turns);
    return part * power_of_two(-POINT) * pi_half;
}

/* r - r^3 / 3! + .. - r^19 / 19! */
static double sine_of_reduced(double r)
{
    double z = r * r, s = 1.0;
    for (int n = 18; n > 0; n -= 2)
        s = 1.0 - z * s / (n * (n + 1));
    return r * s;
}

/* 1 - r^2 / 2! + .. + r^20 / 20! */
static double cosine_of_reduced(double r)
{
    double z = r * r, s = 1.0;
    for (int n = 19; n > 0; n -= 2)
        s = 1.0 - z * s / (n * (n + 1));
    return s;
}

float vector_sin(float x)
{
    if (!isfinite(x))
        return NAN;
    unsigned n;
    double r = reduce_angle(x, &n), s = n & 1 ? cosine_of_reduced(r) : sine_of_reduced(r);
    return (float)(((n & 2) != 0) != (signbit(x) != 0) ? -s : s);
}

float vector_cos(float x)
{
    if (!isfinite(x))
        return NAN;
    unsigned n;
    double r = reduce_angle(x, &n), c = n & 1 ? sine_of_reduced(r) : cosine_of_reduced(r);
    return (float)((n + 1) & 2 ? -c : c);
}
