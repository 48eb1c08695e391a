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

static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Of non-negative numbers; one that overflows is as large as it can be. */
static inline int64_t product_bounded(int64_t a, int64_t b)
{
    int64_t result;
    return __builtin_mul_overflow(a, b, &result) ? INT64_MAX : result;
}

static inline int64_t sum_bounded(int64_t a, int64_t b)
{
    int64_t result;
    return __builtin_add_overflow(a, b, &result) ? INT64_MAX : result;
}

/* The least power of two that is n or more. */
static inline int64_t power_of_two_above(int64_t n)
{
    int64_t power = 1;
    while (power < n)
        power *= 2;
    return power;
}

/* The largest divisor of n that is at most `limit`; 1 when n has no other (a prime). */
static inline int64_t largest_divisor(int64_t n, int64_t limit)
{
    if (limit < 1 || n < 1)
        return 1;
    /* what it is multiplied by, upwards, as long as that is the smaller of both */
    int64_t by = ceil_div(n, smaller(n, limit));
    for (; by <= n / by; by++)
        if (n % by == 0)
            return n / by;
    int64_t d = smaller(limit, by);
    while (d > 1 && n % d != 0)
        d--;
    return d;
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
