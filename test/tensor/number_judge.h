/* The judge of number formats: all values of a format, built from its definition in double, and for a narrowing cast the nearest
 * of them by the tie rule. It knows nothing of bit patterns of f32. */
#ifndef VISA_TEST_TENSOR_NUMBER_JUDGE_H
#define VISA_TEST_TENSOR_NUMBER_JUDGE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "target/target.h"

/* A format: its codes without sign, ascending values. */
typedef struct format {
    dtype type;
    int exponent_bits, fraction_bits, bias;
    bool ieee_top;  /* the highest exponent means infinity and NaN; else only the last code is NaN */
    bool flush;     /* no subnormals */
    bool ties_even; /* else ties away from zero */
    uint32_t nan;
} format;

static const format formats[] = {
    {DTYPE_BF16, 8, 7, 127, true, true, true, 0x7fc0},
    {DTYPE_F8E4M3, 4, 3, 7, false, false, true, 0x7f},
    {DTYPE_F8E5M2, 5, 2, 15, true, false, false, 0x7e},
};
enum { FORMATS = sizeof formats / sizeof *formats };

static inline uint32_t infinity_code(const format *f)
{
    return ((1u << f->exponent_bits) - 1) << f->fraction_bits;
}

/* Codes below this one are finite magnitudes. */
static inline uint32_t finite_codes(const format *f)
{
    return f->ieee_top ? infinity_code(f) : (1u << (f->exponent_bits + f->fraction_bits)) - 1;
}

/* The value of a finite magnitude code by the format's definition; one past the largest is the next power of
 * two that the format would have. */
static inline double magnitude_of(const format *f, uint32_t code)
{
    int exponent = (int)(code >> f->fraction_bits);
    uint32_t fraction = code & ((1u << f->fraction_bits) - 1);
    if (exponent == 0)
        return f->flush ? 0 : ldexp(fraction, 1 - f->bias - f->fraction_bits);
    return ldexp((1u << f->fraction_bits) + fraction, exponent - f->bias - f->fraction_bits);
}

static inline double expected_value(const format *f, uint32_t code)
{
    unsigned magnitude_bits = (unsigned)(f->exponent_bits + f->fraction_bits);
    double sign = code >> magnitude_bits ? -1 : 1;
    uint32_t magnitude = code & ((1u << magnitude_bits) - 1);
    if (magnitude < finite_codes(f))
        return copysign(magnitude_of(f, magnitude), sign);
    if (f->ieee_top && magnitude == infinity_code(f))
        return copysign(INFINITY, sign);
    return NAN;
}

/* The two neighbours of `a` in the table: the highest code whose value is at most a. */
static inline uint32_t code_below(const format *f, double a)
{
    uint32_t low = 0, high = finite_codes(f);
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (magnitude_of(f, middle) <= a)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static inline uint32_t nearest_code(const format *f, double a)
{
    double smallest_normal = ldexp(1, 1 - f->bias);
    if (f->flush && a < smallest_normal)
        return 0;
    if (isinf(a))
        return f->ieee_top ? infinity_code(f) : finite_codes(f) - 1;
    uint32_t below = code_below(f, a), above = below + 1;
    double down = a - magnitude_of(f, below), up = magnitude_of(f, above) - a;
    bool take_above = up < down || (up == down && (!f->ties_even || below & 1));
    uint32_t code = take_above ? above : below;
    if (!f->ieee_top && code == finite_codes(f))
        code--;
    if (f->type == DTYPE_F8E5M2 && a < smallest_normal && code > 3)
        code = 3;
    return code;
}

static inline uint32_t expected_code(const format *f, float x)
{
    if (isnan(x))
        return f->nan;
    uint32_t sign = signbit(x) ? 1u << (f->exponent_bits + f->fraction_bits) : 0;
    return nearest_code(f, fabs((double)x)) | sign;
}

#endif
