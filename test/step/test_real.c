/* Numbers known up to an error, against f32: what a machine may give lies within the bound, and what is a little further away does not. */
#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "runtime/step/real.h"
#include "test/suite.h"

enum { ROUNDS = 100000 };

static uint64_t state = 88172645463325252u;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static double between_0_and_1(void)
{
    return (double)(draw() >> 11) * 0x1p-53;
}

/* Of many sizes, now and then a small integer, zero or an infinity. */
static float number(void)
{
    static const float special[] = {0, 1, -1, 2, INFINITY, -INFINITY, NAN, 0x1p127f, -0x1p127f, 0x1p-120f};
    uint64_t kind = draw() % 16;
    double x = (between_0_and_1() - 0.5) * 4;
    return kind == 0  ? special[draw() % 10]
           : kind < 3 ? (float)(draw() % 9) - 4
                      : (float)(kind < 13 ? x * 3 : ldexp(x, (int)(draw() % 150) - 75));
}

/* A number that is known up to an error, which the machine's is one of. */
static real about(float machine)
{
    if (!isfinite(machine) || draw() % 3 == 0)
        return real_exact((double)machine);
    double error = fabs((double)machine) * ldexp(between_0_and_1(), -(int)(draw() % 24));
    return (real){.x = (double)machine + error * (2 * between_0_and_1() - 1) * 0.999, .error = error};
}

static real known(double x, double error)
{
    return (real){.x = x, .error = error};
}

static bool allows(real r, float machine)
{
    double m = (double)machine;
    if (isinf(r.error) || (isnan(r.x) && isnan(m)) || r.x == m)
        return true;
    return fabs(r.x - m) <= r.error + 0x1p-125;
}

static float machine_max(float a, float b)
{
    return isnan(a) || a > b ? a : b;
}

static float machine_min(float a, float b)
{
    return isnan(a) || a < b ? a : b;
}

static float machine_silu(float a)
{
    return a / (1 + expf(-a));
}

static float machine_gelu(float a)
{
    return a / 2 * (1 + tanhf(0.7978845608f * (a + 0.044715f * a * a * a)));
}

enum { FUNCTIONS = 18 };

static const char *const names[FUNCTIONS] = {"add", "sub", "mul", "div",  "max",   "min",  "lt",   "le",   "eq",
                                             "neg", "exp", "ln",  "sqrt", "rsqrt", "tanh", "relu", "silu", "gelu"};

static float machine_of(int f, float a, float b)
{
    switch (f) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3: return a / b;
    case 4: return machine_max(a, b);
    case 5: return machine_min(a, b);
    case 6: return a < b;
    case 7: return a <= b;
    case 8: return a <= b && a >= b;
    case 9: return -a;
    case 10: return expf(a);
    case 11: return logf(a);
    case 12: return sqrtf(a);
    case 13: return 1 / sqrtf(a);
    case 14: return tanhf(a);
    case 15: return machine_max(a, 0);
    case 16: return machine_silu(a);
    default: return machine_gelu(a);
    }
}

static real real_of(int f, real a, real b)
{
    static real (*const two[])(real, real) = {real_add, real_sub, real_mul, real_div, real_max, real_min, real_lt, real_le, real_eq};
    static real (*const one[])(real) = {real_neg, real_exp, real_ln, real_sqrt, real_rsqrt, real_tanh, real_relu, real_silu, real_gelu};
    return f < 9 ? two[f](a, b) : one[f - 9](a);
}

START_TEST(what_f32_gives_is_within_the_bound)
{
    int open = 0, rounds = suite_rounds(ROUNDS);
    for (int i = 0; i < rounds; i++)
        for (int f = 0; f < FUNCTIONS; f++) {
            float a = number(), b = draw() % 8 ? number() : a;
            real x = about(a), y = about(b);
            if (memcmp(&a, &b, sizeof a) == 0 && draw() % 2) {
                x.same = 1;
                y = x;
            }
            real r = real_of(f, x, y);
            open += isinf(r.error);
            if (!(r.error >= 0)) /* an assertion that holds costs a system call */
                ck_abort_msg("%s(%a +- %a, %a +- %a): error %a", names[f], x.x, x.error, y.x, y.error, r.error);
            if (!allows(r, machine_of(f, a, b)))
                ck_abort_msg("%s(%a in %a +- %a, %a in %a +- %a) = %a, not %a +- %a", names[f], (double)a, x.x, x.error, (double)b, y.x,
                             y.error, (double)machine_of(f, a, b), r.x, r.error);
        }
    ck_assert_msg(open < rounds * FUNCTIONS / 8, "%d of %d may be anything", open, rounds * FUNCTIONS);
}
END_TEST

/* Of exact numbers of ordinary size every function is known, and to some 20 bits of what goes in and comes out. */
START_TEST(a_little_further_away_is_outside)
{
    for (int i = 0; i < ROUNDS; i++)
        for (int f = 0; f < FUNCTIONS; f++) {
            float a = (float)(0.25 + 3 * between_0_and_1()), b = (float)(0.25 + 3 * between_0_and_1());
            a = f < 11 || f > 13 ? (draw() % 2 ? a : -a) : a;
            real r = real_of(f, real_exact((double)a), real_exact((double)b));
            double away = 0x1p-19 * (1 + fabs((double)a) + fabs(r.x));
            ck_assert_msg(r.error < away, "%s(%a, %a) = %a +- %a", names[f], (double)a, (double)b, r.x, r.error);
            ck_assert(!allows(r, (float)(r.x + 2 * away)));
            ck_assert(!allows(r, (float)(r.x - 2 * away)));
        }
}
END_TEST

START_TEST(comparisons_that_touch_may_be_anything)
{
    real a = known(1, 0.25), b = known(1.5, 0.25), c = known(2, 0.125);
    ck_assert(isinf(real_lt(a, b).error) && isinf(real_eq(a, b).error));
    ck_assert(real_le(a, b).x == 1 && real_le(a, b).error == 0); /* 1.25 <= 1.25 */
    ck_assert(real_lt(a, c).x == 1 && real_lt(c, a).x == 0 && real_lt(c, a).error == 0);
    ck_assert(real_eq(a, c).x == 0 && real_eq(a, c).error == 0);
    ck_assert(real_lt(real_exact(2), real_exact(2)).x == 0 && real_le(real_exact(2), real_exact(2)).x == 1);
    ck_assert(real_eq(real_exact(2), real_exact(2)).x == 1);
    ck_assert(isinf(real_select(real_lt(a, b), a, c).error));
    ck_assert(real_select(real_exact(1), a, c).x == 1 && real_select(real_exact(0), a, c).x == 2);
    ck_assert(isinf(real_select(known(0.5, 1), a, c).error) && real_select(known(0.5, 0.25), a, c).x == 1);
    ck_assert(isinf(real_div(a, known(0.5, 0.5)).error) && isinf(real_ln(known(0.5, 0.5)).error));
    ck_assert(isinf(real_exp(known(88, 2)).error) && real_exp(known(100, 2)).x > 0x1p1000);
    ck_assert(real_exp(real_sub(real_exact(-INFINITY), a)).x == 0 && real_exp(real_exact(-INFINITY)).error == 0);
}
END_TEST

/* Of a number compared with itself everything is known that needs no value, and who is the largest is that number. */
START_TEST(a_number_beside_itself)
{
    real a = {1, 0.25, 7}, b = {1.25, 0.25, 8}, c = {2, 0.125, 9}, none = {NAN, 0, 3}, open = real_anything;
    open.same = 5;
    ck_assert(real_eq(a, a).x == 1 && real_eq(a, a).error == 0 && real_le(a, a).x == 1 && real_lt(a, a).error == 0 && real_lt(a, a).x == 0);
    ck_assert(isinf(real_eq(a, b).error) && real_sub(a, a).error == 0 && real_sub(a, a).x == 0 && real_sub(a, b).error > 0);
    ck_assert(real_max(a, c).same == 9 && real_min(a, c).same == 7 && real_max(a, a).same == 7 && real_min(a, a).same == 7);
    ck_assert(real_max(a, b).same == 0 && real_min(a, b).same == 0 && real_relu(c).same == 9 && real_neg(c).same == 0);
    ck_assert(real_eq(none, none).x == 0 && real_le(none, none).x == 0 && isnan(real_sub(none, none).x));
    ck_assert(isinf(real_eq(open, open).error) && isinf(real_le(open, open).error) && isinf(real_sub(open, open).error));
    ck_assert(real_lt(open, open).x == 0 && real_lt(open, open).error == 0); /* no number is less than itself */
    ck_assert(real_select(open, c, c).same == 9 && isinf(real_select(open, a, c).error) &&
              isinf(real_eq(real_anything, real_anything).error));
}
END_TEST

/* Sums in two orders, f32 after each term. */
START_TEST(sums_in_any_order_are_within_the_bound)
{
    for (int i = 0; i < ROUNDS / 10; i++) {
        int count = (int)(draw() % 40);
        real_sum sum = {0}, products = {0};
        float x[40], forth = 0, back = 0, product = 0;
        for (int k = 0; k < count; k++) {
            x[k] = (float)(between_0_and_1() - 0.5);
            real r = about(x[k]);
            real_sum_add(&sum, r);
            real_sum_add_product(&products, r, real_exact((double)x[k]));
            forth += x[k];
            product += x[k] * x[k];
        }
        for (int k = count; k-- > 0;)
            back += x[k];
        real r = real_sum_end(&sum);
        ck_assert(allows(r, forth) && allows(r, back) && allows(real_sum_end(&products), product));
        ck_assert(!allows(r, (float)(r.x + 2 * r.error + 0x1p-20)));
    }
}
END_TEST

/* Whole multiples of a power of two: exact while f32 has every part of the sum, in whatever order. What is said to be exact is. */
START_TEST(sums_that_f32_has_are_exact)
{
    int exact = 0, open = 0;
    for (int i = 0; i < ROUNDS / 10; i++) {
        int count = (int)(draw() % 12), bits = 1 + (int)(draw() % 26);
        double unit = ldexp(1, (int)(draw() % 40) - 20);
        real_sum sum = {0}, products = {0};
        float x[12], forth = 0, back = 0, product = 0;
        double size = 0, product_size = 0;
        for (int k = 0; k < count; k++) {
            x[k] = (float)(floor((between_0_and_1() - 0.5) * ldexp(1, bits)) * unit);
            real_sum_add(&sum, real_exact((double)x[k]));
            real_sum_add_product(&products, real_exact((double)x[k]), real_exact(3 * unit));
            forth += x[k];
            product += x[k] * (float)(3 * unit);
            size += fabs((double)x[k]);
            product_size += fabs((double)x[k] * 3 * unit);
        }
        for (int k = count; k-- > 0;)
            back += x[k];
        real r = real_sum_end(&sum), p = real_sum_end(&products);
        ck_assert(allows(r, forth) && allows(r, back) && allows(p, product));
        ck_assert(r.error == 0 || size >= 0x1p24 * unit);
        ck_assert(p.error == 0 || product_size >= 0x1p24 * unit * unit);
        exact += r.error == 0 && count > 1;
        open += r.error > 0;
    }
    ck_assert(exact > ROUNDS / 100 && open > ROUNDS / 1000);
    real_sum wide = {0}, alone = {0}, inexact = {0}, tiny = {0};
    real_sum_add(&wide, real_exact(0x1p24));
    real_sum_add(&wide, real_exact(1));
    real_sum_add(&wide, real_exact(-0x1p24)); /* 1, and 0 in this order */
    real_sum_add(&alone, (real){5, 0.5, 7});
    real_sum_add(&inexact, real_exact(1));
    real_sum_add(&inexact, known(1, 0x1p-30));
    real_sum_add_product(&tiny, real_exact(0x1p-100), real_exact(0x1p-40));
    ck_assert(real_sum_end(&wide).error >= 1 && real_sum_end(&alone).same == 7 && real_sum_end(&alone).error == 0.5);
    ck_assert(real_sum_end(&inexact).error > 0 && real_sum_end(&tiny).error > 0);
}
END_TEST

/* No number where infinities meet, anything where f32 may overflow on the way. */
START_TEST(sums_of_infinities)
{
    real_sum one = {0}, two = {0}, large = {0}, none = {0};
    real_sum_add(&one, real_exact(-INFINITY));
    real_sum_add(&one, known(5, 1));
    real_sum_add(&two, real_exact(INFINITY));
    real_sum_add(&two, real_exact(-INFINITY));
    real_sum_add(&large, real_exact(0x1.8p127));
    real_sum_add(&large, real_exact(-0x1.8p127));
    real_sum_add_product(&none, real_exact(INFINITY), real_exact(0));
    ck_assert(isinf(real_sum_end(&one).x) && real_sum_end(&one).error == 0);
    ck_assert(isnan(real_sum_end(&two).x) && isnan(real_sum_end(&none).x) && isinf(real_sum_end(&large).error));
}
END_TEST

int main(void)
{
    TCase *t = suite_case("real");
    suite_tests(t, what_f32_gives_is_within_the_bound, a_little_further_away_is_outside, comparisons_that_touch_may_be_anything,
                a_number_beside_itself, sums_in_any_order_are_within_the_bound, sums_that_f32_has_are_exact, sums_of_infinities);
    return suite_status("real", t);
}
