/* Arithmetic on sizes (non-negative; the second operand is positive). */
#ifndef VISA_SUPPORT_INTEGER_H
#define VISA_SUPPORT_INTEGER_H

#include <stdint.h>

static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* The next multiple of `unit`; the caller knows that it is in range. */
static inline int64_t round_up(int64_t n, int64_t unit)
{
    return ceil_div(n, unit) * unit;
}

/* The greatest common divisor; of 0 and b: b. */
static inline int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

#endif
