/* vector_functions [STEP [NAME]]: the machine's functions of floats against MPFR, over all bf16 inputs and every STEP-th f32; STEP 1 is all
 * 2^32.
 *
 * The one idea: a value in double, a few units in its last place wrong, says which float is nearest unless it lies that near to the middle
 * of two floats; only then MPFR is asked. So all inputs of a function take minutes. A row's bound is in units of the last place of the f32
 * result; what is printed is the table of docs/engine/vector.md. */
#include <float.h>
#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/engine/vector_math.h"
#include "runtime/engine/vector_ops.h"
#include "runtime/tensor/numeric.h"

enum { BLOCK = 4096, BITS = 256, UNSURE = 8 /* units of the last place of a double */ };

static double neg_exp(double x)
{
    return exp(-x);
}

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static int mpfr_neg_exp(mpfr_t out, mpfr_t x, mpfr_rnd_t round)
{
    mpfr_neg(x, x, round);
    return mpfr_exp(out, x, round);
}

static int mpfr_sigmoid(mpfr_t out, mpfr_t x, mpfr_rnd_t round)
{
    mpfr_neg_exp(out, x, round);
    mpfr_add_ui(out, out, 1, round);
    return mpfr_ui_div(out, 1, out, round);
}

#define PRECISE(name) \
    static int precise_##name(mpfr_t out, mpfr_t x, mpfr_rnd_t round) \
    { \
        return mpfr_##name(out, x, round); \
    }
PRECISE(exp)
PRECISE(sqrt)
PRECISE(tanh)
PRECISE(log)
PRECISE(sin)
PRECISE(cos)
PRECISE(erf)

typedef struct function {
    const char *name;
    vector_op op;
    double (*near)(double);
    int (*exact)(mpfr_t, mpfr_t, mpfr_rnd_t);
    double bound;      /* units of the last place */
    double zero_below; /* a smaller result may be 0 */
    bool nearest;      /* all results are the nearest float */
    float (*wide)(
        float); /* what is computed where f64 does not say which one is; by itself it is judged for operands of which f64 may not say it */
    float low, high; /* these, and what is between, infinities not */
} function;

static const function functions[] = {
    {"Exp", VECTOR_EXP, exp, precise_exp, 0.500001, 0, true, NULL, 0, 0},
    {"NegExp", VECTOR_NEG_EXP, neg_exp, mpfr_neg_exp, 0.500001, 0, true, NULL, 0, 0},
    {"Tanh", VECTOR_TANH, tanh, precise_tanh, 0.500001, 0, true, NULL, 0, 0},
    {"Sigmoid", VECTOR_SIGMOID, sigmoid, mpfr_sigmoid, 2.5, 0x1p-128, false, NULL, 0, 0},
    {"Log", VECTOR_LOG, log, precise_log, 0.500001, 0, true, vector_wide_log, 0x1p-149f, FLT_MAX},
    {"Sin", VECTOR_SIN, sin, precise_sin, 0.500001, 0, true, vector_wide_sin, -FLT_MAX, FLT_MAX},
    {"Cos", VECTOR_COS, cos, precise_cos, 0.500001, 0, true, vector_wide_cos, -FLT_MAX, FLT_MAX},
    {"Sqrt", VECTOR_SQRT, sqrt, precise_sqrt, 0.5, 0, true, NULL, 0, 0},
    {"Erf", VECTOR_ERF, erf, precise_erf, 0.500001, 0, true, vector_wide_erf, -4, 4},
};

/* Of all 2^32 inputs of a function those whose result in f64 alone is not the nearest float: of Log, of Sin, of Cos. Sin and Cos also with
 * the other sign. */
static const uint32_t hard[] = {0x3c413d3a, 0x41178feb, 0x4c5d65a5, 0x65d890d3, 0x6f31a8ec, 0x46199998,
                                0xc6199998, 0x5f18b878, 0xdf18b878, 0x6115cb11, 0xe115cb11};

typedef struct tally {
    long inputs, asked, wrongly; /* all; of MPFR; not the nearest float */
    double most;                 /* error, in units of the last place */
    uint32_t at, wrong;          /* the input that has it; the last one of which the result is not the nearest */
    long strange;                /* a NaN, infinity or zero where another belongs */
} tally;

/* The nearest float to the function's value. */
static float nearest(const function *f, float x, double d, tally *t)
{
    double unsure = fabs(d) * UNSURE * 0x1p-52;
    float low = (float)(d - unsure), high = (float)(d + unsure);
    if (isinf(d)) /* past the largest f32 long before */
        return (float)d;
    if (low == high || d != d)
        return low;
    static mpfr_t in, out;
    static bool made;
    if (!made) {
        mpfr_init2(in, BITS);
        mpfr_init2(out, BITS);
        made = true;
    }
    mpfr_set_flt(in, x, MPFR_RNDN);
    f->exact(out, in, MPFR_RNDN);
    t->asked++;
    return mpfr_get_flt(out, MPFR_RNDN);
}

/* How many units of the last place of an f32 near d there are in 1: a power of two, from d's exponent. */
static double last_places(double d)
{
    enum { MANTISSA = 52, BIAS = 1023, LEAST = -126 };
    uint64_t bits = f64_bits(d);
    int64_t e = (int64_t)(bits >> MANTISSA & 0x7FF) - BIAS;
    bits = (uint64_t)(23 - (e < LEAST ? LEAST : e) + BIAS) << MANTISSA;
    return f64_of_bits(bits);
}

static void judge(const function *f, uint32_t word, uint32_t result, tally *t)
{
    float x = f32_of_bits(word), got = f32_of_bits(result);
    double d = f->near((double)x);
    float best = nearest(f, x, d, t);
    t->inputs++;
    if (f32_bits(best) == result || (best != best && result == NUMERIC_F32_NAN)) {
        double error = isfinite(d) && isfinite(best) ? fabs((double)got - d) * last_places(d) : 0;
        if (error > t->most)
            t->most = error, t->at = word;
        return;
    }
    t->wrongly++;
    t->wrong = word;
    if (got == 0 && fabs(d) <= f->zero_below)
        return;
    if (!isfinite(best) || !isfinite(got) || (best == 0) != (got == 0)) {
        t->strange += !isfinite(best) || !isfinite(got) || fabsf(best - got) > 0x1p-149f;
        return;
    }
    double error = fabs((double)got - d) * last_places(d);
    if (error > t->most)
        t->most = error, t->at = word;
}

static void run(const function *f, const stream_word *words, int64_t count, tally *t)
{
    static stream_word out[BLOCK];
    vector_operand operand = {words, 1};
    vector_function_of(vector_set_of(CPU_BEST), f->op)(out, &operand, count);
    for (int64_t i = 0; i < count; i++)
        judge(f, words[i], out[i], t);
}

static void run_wide(const function *f, uint32_t word, tally *t)
{
    float x = f32_of_bits(word);
    if (x >= f->low && x <= f->high)
        judge(f, word, f32_bits(f->wide(x)), t);
}

int main(int argc, char **argv)
{
    uint64_t step = argc > 1 ? strtoull(argv[1], NULL, 0) : 4093;
    const char *only = argc > 2 ? argv[2] : NULL;
    if (!step) {
        fprintf(stderr, "usage: vector_functions [STEP [NAME]]\n");
        return 2;
    }
    int broken = 0;
    printf("| function | inputs | not the nearest f32 | largest error, units of the last place | at |\n|---|---|---|---|---|\n");
    for (size_t n = 0; n < sizeof functions / sizeof *functions; n++) {
        const function *f = &functions[n];
        static stream_word words[BLOCK];
        int64_t count = 0;
        tally t = {.inputs = 0};
        if (only && strcmp(only, f->name) != 0)
            continue;
        for (uint64_t w = 0; w < UINT64_C(1) << 32; w += step) {
            words[count++] = (stream_word)w;
            if (count == BLOCK)
                run(f, words, count, &t), count = 0;
        }
        for (uint64_t w = 0; step > 1 && w < 1 << 16; w++) {
            words[count++] = (stream_word)(w << 16);
            if (count == BLOCK)
                run(f, words, count, &t), count = 0;
        }
        run(f, words, count, &t);
        run(f, hard, step > 1 ? sizeof hard / sizeof *hard : 0, &t);
        tally alone = {.inputs = 0};
        for (uint64_t w = 0; f->wide && w < 1 << 16; w++)
            run_wide(f, (uint32_t)(w << 16), &alone);
        printf("| %s | %ld | %ld | %.8f | 0x%08x |\n", f->name, t.inputs, t.wrongly, t.most, (unsigned)t.at);
        fflush(stdout);
        if (t.most > f->bound || t.strange || (f->nearest && t.wrongly > 0)) {
            broken++;
            printf("%s: the bound is %.8f, %ld results are not nearest, the last one of 0x%08x, %ld are another kind of number\n", f->name,
                   f->bound, t.wrongly, (unsigned)t.wrong, t.strange);
        }
        if (alone.wrongly || (f->wide && !alone.inputs)) {
            broken++;
            printf("%s: with twice the bits %ld of %ld are not nearest, the last one of 0x%08x\n", f->name, alone.wrongly, alone.inputs,
                   (unsigned)alone.wrong);
        }
    }
    mpfr_free_cache();
    return broken != 0;
}
