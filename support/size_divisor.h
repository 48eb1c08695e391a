/* A positive number that others are divided by often: where it is a power of two, as sizes of a machine are, nothing is divided. */
#ifndef VISA_SUPPORT_SIZE_DIVISOR_H
#define VISA_SUPPORT_SIZE_DIVISOR_H

#include <stdint.h>

typedef struct size_divisor {
    int64_t value;
    int shift; /* its logarithm; -1: it is no power of two */
} size_divisor;

static inline size_divisor size_divisor_of(int64_t value)
{
    return (size_divisor){value, (value & (value - 1)) == 0 ? __builtin_ctzll((uint64_t)value) : -1};
}

/* Of numbers that are not negative. */
static inline int64_t size_quotient(int64_t n, size_divisor d)
{
    return d.shift >= 0 ? n >> d.shift : n / d.value;
}

static inline int64_t size_rest(int64_t n, size_divisor d)
{
    return d.shift >= 0 ? n & (d.value - 1) : n % d.value;
}

#endif
