#include "runtime/engine/vector_math.h"

#include "runtime/tensor/numeric.h"

/* 2 / pi, the 256 bits after its point. */
static const uint64_t two_over_pi[4] = {UINT64_C(0xa2f9836e4e441529), UINT64_C(0xfc2757d1f534ddc0), UINT64_C(0xdb6295993c439041),
                                        UINT64_C(0xfe5163abdebbc561)};

/* ---- numbers of twice the bits: the sum of two f64, of which the high one is the sum rounded ---- */

typedef struct wide {
    double high, low;
} wide;

static const wide pi_half = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
static const wide ln2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
static const wide two_over_root_pi = {0x1.20dd750429b6dp+0, 0x1.1ae3a914fed80p-56};

/* The magnitude of a is that of b or more. */
static wide wide_of(double a, double b)
{
    double high = a + b;
    return (wide){high, b - (high - a)};
}

static wide wide_add(wide a, wide b)
{
    double high = a.high + b.high, of_b = high - a.high, lost = (a.high - (high - of_b)) + (b.high - of_b);
    return wide_of(high, lost + (a.low + b.low));
}

static wide wide_mul(wide a, wide b)
{
    double high = a.high * b.high;
    return wide_of(high, fma(a.high, b.high, -high) + (a.high * b.low + a.low * b.high));
}

static wide wide_div(wide a, double b)
{
    double high = a.high / b;
    return wide_of(high, (fma(-high, b, a.high) + a.low) / b);
}

/* 1 + a s / b */
static wide wide_step(wide s, wide a, double b)
{
    return wide_add((wide){1, 0}, wide_div(wide_mul(a, s), b));
}

/* The nearest f32: where the rest leaves the sum between two f64, the odd one of them stands for what is between, and is no middle of two
 * f32. */
static float wide_nearest(wide a)
{
    uint64_t bits = f64_bits(a.high);
    if (a.low != 0 && !(bits & 1))
        bits += (a.low > 0) == (a.high > 0) ? 1 : UINT64_MAX;
    return (float)f64_of_bits(bits);
}

/* ---- angles ---- */

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

/* |x| = (n + part) pi / 2, |part| <= 1/2; gives the part times 2^124, and n modulo 4. |x| is finite and 1/2 or more. */
static __int128 reduce_angle(float x, unsigned *n)
{
    enum { POINT = 124 };
    uint32_t bits = f32_bits(x) & 0x7fffffff;
    int exponent = (int)(bits >> 23) - 150; /* of the last bit, -24 to 104 */
    uint32_t mantissa = (bits & 0x7fffff) | 0x800000;
    const unsigned __int128 half = (unsigned __int128)1 << (POINT - 1);
    unsigned __int128 turns = two_over_pi_bits(exponent + POINT) * mantissa % (half << 3); /* of 4 quarters */
    unsigned __int128 nearest = (turns + half) >> POINT;
    *n = (unsigned)nearest & 3;
    unsigned __int128 whole = nearest << POINT;
    return (__int128)(turns - whole);
}

/* Of quarter turns n to the sine of x; x is far. */
static double far_sine(float x, unsigned turned)
{
    unsigned n;
    if (!isfinite(x))
        return NAN;
    double r = (double)reduce_angle(x, &n) * 0x1p-124 * pi_half.high;
    return vector_sine_of(r, n + turned);
}

double vector_far_sin(float x)
{
    return far_sine(x, signbit(x) ? 2 : 0);
}

double vector_far_cos(float x)
{
    return far_sine(x, 1);
}

/* 1 - z / (m (m - 1)) (1 - z / ((m - 2) (m - 3)) (..)), m to `last` the other way round: of z = r^2 the sine over r with an odd last, else
 * the cosine. */
static wide wide_series(wide z, int last)
{
    wide s = {1, 0}, minus = {-z.high, -z.low};
    for (int m = last; m > 1; m -= 2)
        s = wide_step(s, minus, m * (m - 1));
    return s;
}

/* The sine of |x| and so many quarter turns. */
static float wide_sine(float x, unsigned turned)
{
    enum { TERMS_TO = 28 };
    unsigned n = 0;
    wide r = {fabs((double)x), 0};
    if (r.high >= 0.5) {
        __int128 part = reduce_angle(x, &n);
        double high = (double)part;
        r = wide_mul((wide){high * 0x1p-124, (double)(part - (__int128)high) * 0x1p-124}, pi_half);
    }
    n += turned;
    wide z = wide_mul(r, r), s = n & 1 ? wide_series(z, TERMS_TO) : wide_mul(r, wide_series(z, TERMS_TO + 1));
    float y = wide_nearest(s);
    return n & 2 ? -y : y;
}

float vector_wide_sin(float x)
{
    return wide_sine(x, signbit(x) ? 2 : 0);
}

float vector_wide_cos(float x)
{
    return wide_sine(x, 1);
}

/* ---- logarithm and error function ---- */

/* As vector_log, with terms to s^41 / 41. */
float vector_wide_log(float x)
{
    enum { TERMS_TO = 41 };
    int e;
    double m = frexp((double)x, &e);
    if (m < 0x1.6a09e667f3bcdp-1)
        m *= 2, e--;
    double over = m + 1, first = (m - 1) / over;
    wide s = wide_of(first, fma(-first, over, m - 1) / over), z = wide_mul(s, s), sum = {0, 0};
    for (int n = TERMS_TO; n > 0; n -= 2)
        sum = wide_add(wide_mul(sum, z), wide_div((wide){1, 0}, n));
    sum = wide_mul((wide){2 * s.high, 2 * s.low}, sum);
    return wide_nearest(wide_add(wide_mul((wide){e, 0}, ln2), sum));
}

/* As vector_erf, with 90 terms; e^-z is e^(-z / 256) to the power of 256. |x| is at most 4. */
float vector_wide_erf(float x)
{
    enum { TERMS = 90, EXP_TERMS = 18, SQUARES = 8 };
    double a = fabs((double)x);
    wide z = {a * a, 0}, s = {1, 0}, part = {-z.high / (1 << SQUARES), 0}, e = {1, 0};
    for (int n = TERMS; n > 0; n--)
        s = wide_step(s, (wide){2 * z.high, 0}, 2 * n + 1);
    for (int n = EXP_TERMS; n > 0; n--)
        e = wide_step(e, part, n);
    for (int n = 0; n < SQUARES; n++)
        e = wide_mul(e, e);
    float y = wide_nearest(wide_mul(wide_mul(two_over_root_pi, (wide){a, 0}), wide_mul(e, s)));
    return signbit(x) ? -y : y;
}
