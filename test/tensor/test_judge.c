/* runtime/tensor/judge.h: no alarm where sums are right, however unlucky the model lets them be; and each of its
 * tests sees what it is for. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/tensor/judge.h"
#include "runtime/tensor/numeric.h"
#include "test/suite.h"

enum { M = 24, N = 20, OUTPUTS = M * N };

static arena *memory;
static uint64_t state;
static const int64_t shape[] = {M, N};
static const char *const names[] = {"M", "N"};

static void setup(void)
{
    memory = arena_new();
    state = 1;
}

static void teardown(void)
{
    arena_free(memory);
}

/* In [0, 1). */
static double uniform(void)
{
    state += 0x9e3779b97f4a7c15;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static double normal(void)
{
    return sqrt(-2 * log(1 - uniform())) * cos(2 * 3.14159265358979 * uniform());
}

/* Outputs of f32 with values of about 1 and errors that the model allows to deviate by `deviation`. */
typedef struct outputs {
    tensor_type type;
    float machine[OUTPUTS], sums[OUTPUTS];
    double bounds[OUTPUTS], false_alarm;
} outputs;

/* V = b^2 / R, as long as that is the less of the two. */
#define ROUNDINGS 2.0
#define DEVIATION 0x1p-12

static outputs *exact_outputs(double false_alarm)
{
    outputs *o = ARENA_NEW(memory, outputs);
    *o = (outputs){.type = {DTYPE_F32, 2, shape, names}, .false_alarm = false_alarm};
    for (int i = 0; i < OUTPUTS; i++) {
        o->sums[i] = o->machine[i] = (float)normal();
        o->bounds[i] = DEVIATION * sqrt(ROUNDINGS);
    }
    return o;
}

static judge_verdict judged(const outputs *o, double roundings)
{
    judge_verdict v;
    judge_case c = {&o->type, (const unsigned char *)o->machine, o->sums, o->bounds, NULL, roundings, o->false_alarm};
    ck_assert(judge_output(&c, &v));
    return v;
}

/* ---- false alarms ---- */

static double coin(void)
{
    return uniform() < 0.5 ? -1 : 1;
}

/* The walk's limit of V is far above these errors' deviation only if bounds are small; here they are large,
 * so that V = b^2 / R does not hold. */
static double allowed_deviation(const outputs *o)
{
    double walk = 0x1p-24 * 2 * log(2 * ROUNDINGS * OUTPUTS / (o->false_alarm / 4)) * o->bounds[0];
    return sqrt(walk < DEVIATION * DEVIATION ? walk : DEVIATION * DEVIATION);
}

/* Errors as large as the model has them: a coin with both sides at the deviation has every tail that (1) of
 * judge.h allows up to its value, a normal variable all of them. Alarms are not more frequent than computed,
 * of which the tests' bounds are seen to be not void: a tenth of a run's share is used. */
START_TEST(alarms_are_as_rare_as_computed)
{
    enum { RUNS = 4000 };
    double rate = _i % 2 ? 0.3 : 0.02;
    bool coins = _i / 2;
    int alarms = 0;
    for (int run = 0; run < RUNS; run++) {
        outputs *o = exact_outputs(rate);
        double deviation = allowed_deviation(o);
        for (int i = 0; i < OUTPUTS; i++)
            o->machine[i] = (float)(o->sums[i] + deviation * (coins ? coin() : normal()));
        alarms += judged(o, ROUNDINGS).worst > 1;
    }
    ck_assert_msg(alarms <= rate * RUNS, "%d alarms in %d runs, %g allowed", alarms, RUNS, rate * RUNS);
    ck_assert_msg(coins || alarms >= rate * RUNS / 50, "%d alarms in %d runs of normal errors: the limits are void", alarms, RUNS);
}
END_TEST

static float bf16(double x)
{
    unsigned char code[2];
    numeric_from_double(DTYPE_BF16, code, 0, x);
    return (float)numeric_to_double(DTYPE_BF16, code, 0);
}

static void shuffle(float *terms, int count)
{
    for (int i = count - 1; i > 0; i--) {
        int k = (int)(uniform() * (i + 1));
        float swap = terms[i];
        terms[i] = terms[k];
        terms[k] = swap;
    }
}

/* `group` neighbours in turn, then these sums: 1 is one running sum, 2 and more a tree of its own. */
static float sum_of(const float *terms, int count, int group)
{
    float sum = 0;
    for (int i = 0; i < count; i += group) {
        float part = terms[i];
        for (int k = 1; k < group && i + k < count; k++)
            part += terms[i + k];
        sum += part;
    }
    return sum;
}

/* Sums of real products in random orders. The longest sums take the most time; of one term there is nothing
 * to judge. */
START_TEST(sums_in_any_order_are_no_alarm)
{
    static const int lengths[] = {2, 3, 8, 32, 100, 512, 2000};
    int length = lengths[_i], runs = suite_rounds(length < 500 ? 100 : 6);
    float *terms = ARENA_ARRAY(memory, float, (size_t)length), a[M], *b = ARENA_ARRAY(memory, float, (size_t)length *N);
    double worst = 0;
    for (int run = 0; run < runs; run++) {
        outputs *o = exact_outputs(JUDGE_FALSE_ALARM);
        for (int i = 0; i < length * N; i++)
            b[i] = bf16(2 * uniform() - 1);
        memset(a, 0, sizeof a);
        float *row = ARENA_ARRAY(memory, float, (size_t)length);
        for (int m = 0; m < M; m++) {
            for (int k = 0; k < length; k++)
                row[k] = bf16(2 * uniform() - 1);
            for (int n = 0; n < N; n++) {
                double magnitude = 0;
                for (int k = 0; k < length; k++) {
                    terms[k] = row[k] * b[n * length + k];
                    magnitude += fabs((double)terms[k]);
                }
                o->sums[m * N + n] = sum_of(terms, length, 1 << (int)(uniform() * 6));
                shuffle(terms, length);
                o->machine[m * N + n] = sum_of(terms, length, 1 << (int)(uniform() * 6));
                o->bounds[m * N + n] = 2 * (length - 1) * 0x1p-24 * magnitude;
            }
        }
        double w = judged(o, 2 * (length - 1)).worst;
        worst = w > worst ? w : worst;
    }
    ck_assert_msg(worst < 0.5, "%d terms: %g of what rounding explains", length, worst);
    ck_assert_msg(length == 2 || worst > 0, "%d terms: no errors", length);
}
END_TEST

/* ---- what each test sees ---- */

static const char *said(const outputs *o, const judge_verdict *v)
{
    judge_case c = {&o->type, (const unsigned char *)o->machine, o->sums, o->bounds, NULL, ROUNDINGS, o->false_alarm};
    return judge_text(&c, v, memory);
}

static void expect(const outputs *o, judge_test test, int axis, int64_t index)
{
    judge_verdict v = judged(o, ROUNDINGS);
    ck_assert_double_gt(v.worst, 1);
    ck_assert_msg((v.test == test && v.axis == axis && v.index == index), "%s", said(o, &v));
}

START_TEST(one_value)
{
    outputs *o = exact_outputs(JUDGE_FALSE_ALARM);
    o->machine[3 * N + 7] += (float)(20 * DEVIATION);
    expect(o, JUDGE_VALUE, -1, 3 * N + 7);
    judge_verdict v = judged(o, ROUNDINGS);
    ck_assert_int_eq(v.outside, 1);
    ck_assert_int_eq(v.values, OUTPUTS);
    ck_assert_ptr_nonnull(strstr(said(o, &v), "in one value at M=3, N=7"));
}
END_TEST

START_TEST(bias_of_all_and_of_a_row)
{
    outputs *o = exact_outputs(JUDGE_FALSE_ALARM);
    for (int i = 0; i < OUTPUTS; i++)
        o->machine[i] += (float)(0.7 * DEVIATION);
    expect(o, JUDGE_BIAS, -1, 0);
    o = exact_outputs(JUDGE_FALSE_ALARM);
    for (int m = 0; m < M; m++)
        o->machine[m * N + 5] += (float)(3 * DEVIATION);
    expect(o, JUDGE_BIAS, 1, 5);
}
END_TEST

START_TEST(scale)
{
    outputs *o = exact_outputs(JUDGE_FALSE_ALARM);
    for (int i = 0; i < OUTPUTS; i++)
        o->machine[i] *= (float)(1 + 0.7 * DEVIATION);
    expect(o, JUDGE_SCALE, -1, 0);
    judge_verdict v = judged(o, ROUNDINGS);
    /* Each value is rounded to f32, by at most 2^-24 of it, and so is their common slope: a hundredth of what is looked for is 1.7e-6. */
    ck_assert_double_eq_tol(v.slope, 0.7 * DEVIATION, 1e-6);
    ck_assert_ptr_nonnull(strstr(said(o, &v), "in scale over all values: 0.00017 of the value"));
}
END_TEST

START_TEST(spread)
{
    outputs *o = exact_outputs(JUDGE_FALSE_ALARM);
    for (int i = 0; i < OUTPUTS; i++)
        o->machine[i] += (float)(2 * DEVIATION * (i % 2 ? 1 : -1));
    judge_verdict v = judged(o, ROUNDINGS);
    ck_assert_double_gt(v.worst, 1);
    ck_assert_int_eq(v.test, JUDGE_SPREAD);
}
END_TEST

/* Elements without an error of their own are not judged: exact ones, infinite bounds, what is no number, what
 * the output does not hold. */
START_TEST(not_judged)
{
    outputs *o = exact_outputs(JUDGE_FALSE_ALARM);
    unsigned char covered[OUTPUTS];
    memset(covered, 1, sizeof covered);
    for (int i = 0; i < 4; i++)
        o->machine[i] += 1;
    o->bounds[0] = 0;
    o->bounds[1] = INFINITY;
    o->machine[2] = NAN;
    covered[3] = 0;
    judge_verdict v;
    judge_case c = {&o->type, (const unsigned char *)o->machine, o->sums, o->bounds, covered, ROUNDINGS, o->false_alarm};
    ck_assert(judge_output(&c, &v));
    ck_assert_int_eq(v.values, OUTPUTS - 4);
    ck_assert_double_eq(v.worst, 0);
    ck_assert_str_eq(judge_text(&c, &v, memory), "together 0 of what rounding explains");
    v = (judge_verdict){.test = JUDGE_BIAS, .axis = -1, .worst = 1.25};
    ck_assert_str_eq(judge_text(&c, &v, memory), "off by 1.25 times what rounding explains, in bias over all values");
}
END_TEST

/* Partial sums of random signs stay below t sqrt(M): long sums are judged by less than their bounds' share.
 */
START_TEST(long_sums_are_walks)
{
    outputs *o = exact_outputs(JUDGE_FALSE_ALARM);
    double terms = 1 << 20, magnitude = terms / 4, roundings = 2 * terms;
    for (int i = 0; i < OUTPUTS; i++)
        o->bounds[i] = roundings * 0x1p-24 * magnitude;
    double worst_case = o->bounds[0] / sqrt(roundings);
    o->machine[0] += (float)worst_case; /* one deviation of the worst case */
    judge_verdict v = judged(o, roundings);
    ck_assert_double_gt(v.worst, 3);
}
END_TEST

/* After a cast: the distance to the sums that have the output's value, found by looking at all of them
 * nearby. */
START_TEST(behind_a_cast)
{
    static const dtype types[] = {DTYPE_BF16, DTYPE_F8E4M3, DTYPE_F8E5M2};
    dtype t = types[_i];
    const int64_t one[] = {1};
    for (int i = 0; i < 3000; i++) {
        float sum = (float)(uniform() < 0.5 ? normal() : normal() * 1e-3), moved = sum * (float)(1 + (uniform() - 0.5) * 0.2), near = sum;
        unsigned char was[4] = {0}, is[4] = {0}, code[4] = {0};
        numeric_from_double(t, was, 0, sum);
        numeric_from_double(t, is, 0, moved);
        if (fabs((double)sum) < 1e-4) /* f8e5m2 has no such values */
            continue;
        double step = fabs((double)(moved - sum)) / 4096, bound = 1e-3;
        memcpy(code, was, sizeof code);
        for (int k = 1; k <= 4096 && memcmp(code, is, sizeof is) != 0; k++) {
            near = sum + (float)(k * step * (moved > sum ? 1 : -1));
            numeric_from_double(t, code, 0, near);
        }
        judge_verdict v;
        judge_case c = {&(tensor_type){t, 1, one, NULL}, is, &sum, &bound, NULL, 2, 0.5};
        ck_assert(judge_output(&c, &v));
        double limit = v.worst > 0 && v.test == JUDGE_VALUE ? v.worst : 0,
               distance = memcmp(was, is, sizeof is) == 0 ? 0 : fabs((double)near - sum);
        ck_assert(v.values == 1);
        ck_assert((distance == 0) == (v.worst == 0));
        /* a value's part of its limit is its distance, in the same units for all */
        static double unit[3];
        if (limit > 0 && distance > 16 * step && unit[_i] == 0)
            unit[_i] = limit / distance;
        if (limit > 0 && distance > 16 * step)
            ck_assert_double_eq_tol(limit / distance / unit[_i], 1, 0.2);
    }
}
END_TEST

int main(void)
{
    TCase *t = suite_case_with("judge", setup, teardown);
    tcase_add_loop_test(t, alarms_are_as_rare_as_computed, 0, 4);
    tcase_add_loop_test(t, sums_in_any_order_are_no_alarm, 0, 7);
    suite_tests(t, one_value, bias_of_all_and_of_a_row, scale, spread, not_judged, long_sums_are_walks);
    tcase_add_loop_test(t, behind_a_cast, 0, 3);
    return suite_status("judge", t);
}
