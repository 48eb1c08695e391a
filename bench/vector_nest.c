/* The mathematics of examples/ as one would write it in C, and how long it and the reference that visac generates take, in turns, of
 * processor time: the least of all turns.
 *
 * The one idea: the same tensors through both, compiled by the same clang for this processor; bench/sections/vector.py links the
 * references. bf16 is its bits, widened by a shift and rounded to nearest even. Prints {"name": .., "reference": ns, "clang": ns,
 * "elements": ..} a line. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bf16.h"
#include "gelu.h"
#include "layer.h"
#include "rmsnorm.h"
#include "rope.h"
#include "softmax.h"

enum {
    ROWS = 2048,
    COLUMNS = 256,
    LAYER_M = 64,
    LAYER_N = 512,
    LAYER_K = 256,
    POSITIONS = 512,
    HEADS = 16,
    HALF = 32,
    MOST = ROWS * COLUMNS
};

static void nest_softmax(const uint16_t *restrict x, uint16_t *restrict out)
{
    for (int m = 0; m < ROWS; m++, x += COLUMNS, out += COLUMNS) {
        float most = -INFINITY, sum = 0, e[COLUMNS];
        for (int n = 0; n < COLUMNS; n++)
            most = fmaxf(most, widened(x[n]));
        for (int n = 0; n < COLUMNS; n++)
            e[n] = expf(widened(x[n]) - most);
        for (int n = 0; n < COLUMNS; n++)
            sum += e[n];
        for (int n = 0; n < COLUMNS; n++)
            out[n] = narrowed(e[n] / sum);
    }
}

static void nest_rmsnorm(const uint16_t *restrict x, const uint16_t *restrict weight, uint16_t *restrict out)
{
    for (int m = 0; m < ROWS; m++, x += COLUMNS, out += COLUMNS) {
        float sum = 0;
        for (int n = 0; n < COLUMNS; n++)
            sum += widened(x[n]) * widened(x[n]);
        float root = sqrtf(sum / COLUMNS + 1e-6f);
        for (int n = 0; n < COLUMNS; n++)
            out[n] = narrowed(widened(x[n]) * widened(weight[n]) / root);
    }
}

static void nest_gelu(const float *restrict x, float *restrict out)
{
    for (int i = 0; i < MOST; i++) {
        float inner = (x[i] * x[i] * 0.0713548064f + 1.59576905f) * x[i];
        out[i] = x[i] / (1.0f + expf(-inner));
    }
}

static void nest_layer(const uint16_t *restrict x, const uint16_t *restrict w, const float *restrict bias, uint16_t *restrict out)
{
    for (int m = 0; m < LAYER_M; m++)
        for (int n = 0; n < LAYER_N; n++) {
            float sum = 0;
            for (int k = 0; k < LAYER_K; k++)
                sum += widened(x[m * LAYER_K + k]) * widened(w[n * LAYER_K + k]);
            out[m * LAYER_N + n] = narrowed(fmaxf(sum + bias[n], 0));
        }
}

/* As the machine has bf16: a subnormal is a zero, a NaN the one NaN. */
static inline float widened_as_here(uint16_t code)
{
    uint32_t magnitude = code & 0x7fff;
    return widened(magnitude < 0x80 ? code & 0x8000 : magnitude > 0x7f80 ? 0x7fc0 : code);
}

static inline uint16_t narrowed_as_here(float f)
{
    return f != f ? 0x7fc0 : fabsf(f) < 0x1p-126f ? narrowed(copysignf(0, f)) : narrowed(f);
}

#define NEST_ROPE(name, widen, narrow) \
    static void name(const uint16_t *restrict x, const uint16_t *restrict cosines, const uint16_t *restrict sines, uint16_t *restrict out) \
    { \
        for (int s = 0; s < POSITIONS; s++, cosines += HALF, sines += HALF) \
            for (int h = 0; h < HEADS; h++, x += 2 * HALF, out += 2 * HALF) \
                for (int p = 0; p < HALF; p++) { \
                    float a = widen(x[p]), b = widen(x[HALF + p]), c = widen(cosines[p]), d = widen(sines[p]); \
                    out[p] = narrow(a * c - b * d); \
                    out[HALF + p] = narrow(a * d + b * c); \
                } \
    }
NEST_ROPE(nest_rope, widened, narrowed)
NEST_ROPE(nest_rope_as_here, widened_as_here, narrowed_as_here)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void say(const char *name, double reference, double clang, int64_t elements)
{
    printf("{\"name\": \"%s\", \"reference\": %.0f, \"clang\": %.0f, \"elements\": %lld}\n", name, reference, clang, (long long)elements);
}

#define TURNS(name, elements, reference, nest) \
    do { \
        double best[2] = {1e300, 1e300}; \
        for (int i = 0; i < rounds; i++) { \
            double begin = now(); \
            reference; \
            double middle = now(); \
            nest; \
            double end = now(); \
            best[0] = fmin(best[0], middle - begin); \
            best[1] = fmin(best[1], end - middle); \
        } \
        say(name, best[0], best[1], elements); \
    } while (0)

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 20;
    float *wide = malloc(2 * MOST * sizeof *wide);
    uint16_t *narrow = malloc(3 * MOST * sizeof *narrow);
    if (!wide || !narrow)
        return 1;
    for (int i = 0; i < MOST; i++) {
        wide[i] = (float)(i * 7919 % 2001 - 1000) / 250.0f;
        narrow[i] = narrowed(wide[i]);
    }
    TURNS("softmax", ROWS * COLUMNS, softmax_ref(narrow, narrow + MOST), nest_softmax(narrow, narrow + 2 * MOST));
    TURNS("rmsnorm", ROWS * COLUMNS, rmsnorm_ref(narrow, narrow, narrow + MOST), nest_rmsnorm(narrow, narrow, narrow + 2 * MOST));
    TURNS("gelu", MOST, gelu_ref(wide, wide + MOST), nest_gelu(wide, wide + MOST));
    const uint16_t *sines = narrow + POSITIONS * HALF;
    TURNS("rope", MOST, rope_ref(narrow, narrow, sines, narrow + MOST), nest_rope(narrow, narrow, sines, narrow + 2 * MOST));
    TURNS("rope, the same bf16", MOST, rope_ref(narrow, narrow, sines, narrow + MOST),
          nest_rope_as_here(narrow, narrow, sines, narrow + 2 * MOST));
    TURNS("layer: a product, bias and relu", LAYER_M * LAYER_N, layer_ref(narrow, narrow, wide, narrow + MOST),
          nest_layer(narrow, narrow, wide, narrow + 2 * MOST));
    return 0;
}
