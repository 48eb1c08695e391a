/* Real numbers that are known up to an error, and what can be done to them.
 *
 * The one idea: `x` is what the mathematics gives, in double, and a machine of f32 is not further away than `error`: for what came in, and
 * for its own rounding of each result. An error of INFINITY: it may be anything. What is infinite or no number is exactly that. A
 * comparison is decided where the ranges of its two sides lie apart, or both are the same number, as the largest of a row is one of the
 * row; else it may be anything. Used by the judge (runtime/step/judge.h). */
#ifndef VISA_RUNTIME_STEP_REAL_H
#define VISA_RUNTIME_STEP_REAL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct real {
    double x, error;
    uint64_t same; /* two that share it are one number of the machine, however little is known of it; 0: shared with none */
} real;

extern const real real_anything;
real real_exact(double x);

real real_add(real a, real b);
real real_sub(real a, real b);
real real_mul(real a, real b);
real real_div(real a, real b);
real real_max(real a, real b);
real real_min(real a, real b);
real real_lt(real a, real b); /* 1 or 0 */
real real_le(real a, real b);
real real_eq(real a, real b);
real real_select(real condition, real b, real c); /* b where it is not 0 */
real real_neg(real a);
real real_exp(real a);
real real_ln(real a);
real real_sqrt(real a);
real real_rsqrt(real a);
real real_tanh(real a);
real real_relu(real a);
real real_silu(real a);
real real_gelu(real a);

/* A sum in f32, in any order. Of exact terms it is exact where f32 has every part of it: they are whole multiples of one power of two, and
 * all of them together are less than 2^24 times that. One term alone is itself. */
typedef struct real_sum {
    double finite, special, error, size;
    int64_t count;
    real first;
    int unit;     /* all finite terms are whole multiples of 2^unit, once `has_unit` holds */
    bool rounded; /* some term is not exact, or is a product that f32 may not have */
    bool anything, has_special, has_unit;
} real_sum;
void real_sum_add(real_sum *s, real a);
void real_sum_add_product(real_sum *s, real a, real b);
real real_sum_end(const real_sum *s);

#endif
