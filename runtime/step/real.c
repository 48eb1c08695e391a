#include "runtime/step/real.h"

#include <math.h>

static const double half_step = 0x1p-24;   /* of a rounding to f32, relative */
static const double function = 0x1p-21;    /* of expf, logf, tanhf and what is made of them, relative: a few of the last place */
static const double least = 0x1p-126;      /* below it steps no longer shrink, and numbers may be taken for zero */
static const double overflow = 0x1p128;    /* from here on f32 is infinite */
static const double silu_least = 0x1p-120; /* silu is smaller than that where exp(-a) overflows f32 */

const real real_anything = {0, INFINITY, 0};

real real_exact(double x)
{
    return (real){.x = x};
}

static real within(double x, double error)
{
    return (real){.x = x, .error = error};
}

static bool are_same(real a, real b)
{
    return a.same == b.same && a.same != 0;
}

static bool is_anything(real a)
{
    return isinf(a.error) || isnan(a.error);
}

/* Infinite or no number. */
static bool is_special(real a)
{
    return !isfinite(a.x);
}

static bool is_zero(real a)
{
    return a.x == 0 && a.error == 0;
}

static bool may_be_zero(real a)
{
    return fabs(a.x) <= a.error;
}

static double low(real a)
{
    return a.x - a.error;
}

static double high(real a)
{
    return a.x + a.error;
}

/* Of an operation whose result is between two numbers, and rounded to f32 by so much. */
static real between(double from, double x, double to, double relative)
{
    if (isnan(from) || isnan(x) || isnan(to))
        return real_anything;
    double size = fmax(fabs(from), fabs(to)), loss = size * relative;
    if (from - fabs(from) * relative >= overflow)
        return real_exact(INFINITY);
    if (to + fabs(to) * relative <= -overflow)
        return real_exact(-INFINITY);
    if (size + loss >= overflow * (1 - half_step))
        return real_anything;
    bool may_be_tiny = size > 0 && (from < 0) == (to < 0) ? fmin(fabs(from), fabs(to)) < least : size > 0;
    return within(x, fmax(x - from, to - x) + loss + (may_be_tiny ? least : 0));
}

static real around(double x, double error, double relative)
{
    return between(x - error, x, x + error, relative);
}

/* f32 rounds these correctly, so a result that it has is exact. */
static real rounded_once(double x, double error)
{
    bool has_it = error == 0 && (double)(float)x == x && (x == 0 || fabs(x) >= least) && fabs(x) < overflow;
    return has_it ? real_exact(x) : around(x, error, half_step);
}

real real_add(real a, real b)
{
    if (is_anything(a) || is_anything(b))
        return real_anything;
    if (is_special(a) || is_special(b))
        return real_exact(a.x + b.x);
    return rounded_once(a.x + b.x, a.error + b.error);
}

real real_sub(real a, real b)
{
    if (are_same(a, b) && !is_anything(a) && !is_special(a))
        return real_exact(0);
    return real_add(a, real_neg(b));
}

/* What an error can do to a product. */
static double product_error(real a, real b)
{
    return fabs(a.x) * b.error + fabs(b.x) * a.error + a.error * b.error;
}

/* An infinity times a number whose sign is known, or is zero. */
static bool special_product(real a, real b, real *out)
{
    if (!is_special(a) && !is_special(b))
        return false;
    bool sign_unknown = (isinf(a.x) && !is_zero(b) && may_be_zero(b)) || (isinf(b.x) && !is_zero(a) && may_be_zero(a));
    *out = sign_unknown ? real_anything : real_exact(a.x * b.x);
    return true;
}

real real_mul(real a, real b)
{
    real out;
    if (is_anything(a) || is_anything(b))
        return real_anything;
    if (special_product(a, b, &out))
        return out;
    return rounded_once(a.x * b.x, product_error(a, b));
}

real real_div(real a, real b)
{
    if (is_anything(a) || is_anything(b))
        return real_anything;
    if (isnan(a.x) || isnan(b.x) || (isinf(a.x) && isinf(b.x)) || (is_zero(a) && is_zero(b)))
        return real_exact(NAN);
    if (may_be_zero(b)) /* and of a zero the sign is not known */
        return real_anything;
    if (is_special(a) || is_special(b))
        return real_exact(a.x / b.x);
    double z = a.x / b.x;
    return rounded_once(z, (a.error + fabs(z) * b.error) / (fabs(b.x) - b.error));
}

real real_max(real a, real b)
{
    if (is_anything(a) || is_anything(b))
        return real_anything;
    if (low(a) >= high(b) || isnan(a.x) || are_same(a, b))
        return a;
    if (low(b) >= high(a) || isnan(b.x))
        return b;
    return within(fmax(a.x, b.x), fmax(a.error, b.error));
}

real real_min(real a, real b)
{
    if (is_anything(a) || is_anything(b))
        return real_anything;
    if (high(a) <= low(b) || isnan(a.x) || are_same(a, b))
        return a;
    if (high(b) <= low(a) || isnan(b.x))
        return b;
    return within(fmin(a.x, b.x), fmax(a.error, b.error));
}

static real decided(bool yes, bool no)
{
    return yes ? real_exact(1) : no ? real_exact(0) : real_anything;
}

static bool is_comparable(real a, real b)
{
    return !is_anything(a) && !is_anything(b);
}

real real_lt(real a, real b)
{
    bool known = is_comparable(a, b), number = !isnan(a.x) && !isnan(b.x);
    return decided(known && high(a) < low(b), are_same(a, b) || (known && (!number || low(a) >= high(b))));
}

real real_le(real a, real b)
{
    bool known = is_comparable(a, b), number = !isnan(a.x) && !isnan(b.x);
    return decided(known && (high(a) <= low(b) || (are_same(a, b) && number)), known && (!number || low(a) > high(b)));
}

real real_eq(real a, real b)
{
    bool known = is_comparable(a, b), number = !isnan(a.x) && !isnan(b.x), exact = a.error == 0 && b.error == 0;
    return decided(known && ((exact && a.x == b.x) || (are_same(a, b) && number)),
                   known && (!number || high(a) < low(b) || high(b) < low(a)));
}

real real_select(real condition, real b, real c)
{
    if (are_same(b, c))
        return b;
    if (is_anything(condition))
        return real_anything;
    if (is_zero(condition))
        return c;
    return isnan(condition.x) || !may_be_zero(condition) ? b : real_anything;
}

real real_neg(real a)
{
    return within(-a.x, a.error);
}

/* A function that only grows, or only falls. */
static real monotone(double (*f)(double), real a, double relative)
{
    double one = f(low(a)), other = f(high(a));
    return between(fmin(one, other), f(a.x), fmax(one, other), relative);
}

real real_exp(real a)
{
    if (is_anything(a))
        return real_anything;
    return is_special(a) ? real_exact(exp(a.x)) : monotone(exp, a, function);
}

/* What a function that begins at zero gives for a number that is not, or may not be, above it. False: it is. */
static bool not_positive(real a, double at_zero, real *out)
{
    if (is_anything(a) || (low(a) <= 0 && high(a) >= 0 && !is_zero(a)))
        *out = real_anything;
    else if (isnan(a.x) || high(a) < 0)
        *out = real_exact(NAN);
    else if (is_zero(a))
        *out = isinf(at_zero) && at_zero > 0 ? real_anything : real_exact(at_zero); /* 1 / 0, whose sign is not known */
    else
        return false;
    return true;
}

static double rsqrt(double x)
{
    return 1 / sqrt(x);
}

real real_ln(real a)
{
    real out;
    if (not_positive(a, -INFINITY, &out))
        return out;
    return isinf(a.x) ? a : monotone(log, a, function);
}

real real_sqrt(real a)
{
    real out;
    if (not_positive(a, 0, &out))
        return out;
    if (isinf(a.x))
        return a;
    return a.error == 0 ? rounded_once(sqrt(a.x), 0) : monotone(sqrt, a, half_step);
}

real real_rsqrt(real a)
{
    real out;
    if (not_positive(a, INFINITY, &out))
        return out;
    return isinf(a.x) ? real_exact(0) : monotone(rsqrt, a, 3 * half_step);
}

real real_tanh(real a)
{
    if (is_anything(a))
        return real_anything;
    return is_special(a) ? real_exact(tanh(a.x)) : monotone(tanh, a, function);
}

real real_relu(real a)
{
    return real_max(a, real_exact(0));
}

/* Where the formula of a function is no number at the lower end, the machine's is none, too. */
static bool ends(real a, real *out)
{
    if (is_anything(a))
        *out = real_anything;
    else if (is_special(a))
        *out = real_exact(a.x > 0 ? a.x : NAN);
    else
        return false;
    return true;
}

real real_silu(real a)
{
    real out;
    if (ends(a, &out))
        return out;
    return around(a.x / (1 + exp(-a.x)), 1.1 * a.error + (is_zero(a) ? 0 : silu_least), function); /* its slope is below 1.1 */
}

/* Below zero 1 + tanh loses digits: its error is one of a. */
real real_gelu(real a)
{
    static const double sqrt_2_over_pi = 0.79788456080286535588;
    real out;
    if (ends(a, &out))
        return out;
    double y = a.x / 2 * (1 + tanh(sqrt_2_over_pi * (a.x + 0.044715 * a.x * a.x * a.x)));
    return around(y, 1.2 * a.error + (fabs(a.x) + a.error) * function, half_step); /* its slope is below 1.2 */
}

/* ---- sums ---- */

/* The largest power of two of which x, finite and not 0, is a whole multiple. */
static int unit_of(double x)
{
    union {
        double x;
        uint64_t bits;
    } of = {x};
    uint64_t mantissa = (of.bits & 0xfffffffffffff) | UINT64_C(1) << 52;
    int exponent = (int)(of.bits >> 52 & 0x7ff);
    return exponent == 0 ? -1074 : exponent - 1075 + __builtin_ctzll(mantissa);
}

static void sum_unit(real_sum *s, real a)
{
    if (a.error != 0) {
        s->rounded = true;
        return;
    }
    if (a.x == 0)
        return;
    int unit = unit_of(a.x);
    s->unit = s->has_unit && s->unit < unit ? s->unit : unit;
    s->has_unit = true;
}

static bool is_exact_sum(const real_sum *s)
{
    return !s->rounded && (!s->has_unit || (s->unit >= -126 && s->size < ldexp(0x1p24, s->unit) && s->size < overflow));
}

static void sum_add(real_sum *s, real a, double rounding)
{
    if (s->count++ == 0)
        s->first = a;
    s->anything = s->anything || is_anything(a);
    if (is_special(a)) {
        s->special += a.x;
        s->has_special = true;
        return;
    }
    if (!s->rounded)
        sum_unit(s, a);
    s->finite += a.x;
    s->error += a.error + rounding;
    s->size += fabs(a.x) + a.error + rounding;
}

void real_sum_add(real_sum *s, real a)
{
    sum_add(s, a, 0);
}

/* Exact, and of a size that f32 has: f32 rounds it, if at all, like any other. */
static bool is_plain_product(real a, real b)
{
    double x = fabs(a.x * b.x);
    return a.error == 0 && b.error == 0 && x >= least;
}

void real_sum_add_product(real_sum *s, real a, real b)
{
    real out;
    if (is_anything(a) || is_anything(b))
        sum_add(s, real_anything, 0);
    else if (special_product(a, b, &out))
        sum_add(s, out, 0);
    else
        sum_add(s, within(a.x * b.x, product_error(a, b)), is_zero(a) || is_zero(b) || is_plain_product(a, b) ? 0 : least);
    s->first.same = 0;
}

/* Each term is rounded once as a product and as often as there are terms in sums. */
real real_sum_end(const real_sum *s)
{
    if (s->count == 1 && s->first.same != 0)
        return s->first;
    if (!s->anything && !s->has_special && is_exact_sum(s))
        return real_exact(s->finite);
    double loss = s->size * half_step * (double)(s->count + 2);
    if (s->anything || isnan(s->size) || s->size + loss >= overflow * (1 - half_step))
        return real_anything;
    return s->has_special ? real_exact(s->special) : within(s->finite, s->error + loss);
}
