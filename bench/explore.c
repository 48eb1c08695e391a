/* How many points of a design space --explore judges per second, from text to picture: one line of JSON for each run. The spaces have
 * many divisors; some have limits, which leave less to count at once. With an argument only the first space. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/visa.h"

typedef struct space {
    const char *what, *inputs, *weights;
    int64_t multipliers, cycles; /* limits; 0: none */
} space;

#define ROW "Input { name: \"x\", tensor: [512, 4096], block: [1, 4096], dtype: i8 }"
#define IMAGE "Input { name: \"x\", tensor: [720, 720, 720], block: [720, 720, 720], dtype: i8 }"
#define TILE \
    "Input { name: \"x\", tensor: [720720, 5040], block: [5040, 5040], dtype: i8 }, Input { name: \"z\", tensor: [5040, 720], block: " \
    "[5040, 720], dtype: i8 }"
#define MATRIX "Weight { name: \"w\", tensor: [5040, 720], block: [1, 720], dtype: u2 }"

static const space spaces[] = {
    {"one row, one matrix", ROW, MATRIX, 0, 0},
    {"an image", IMAGE, MATRIX, 0, 0},
    {"an image, two weights", IMAGE, MATRIX ", Weight { name: \"v\", tensor: [2520], block: [1], dtype: i8 }", 0, 0},
    {"two streams of tiles", TILE, MATRIX, 0, 0},
    {"two streams of tiles, at most 3000 multipliers", TILE, MATRIX, 3000, 0},
    {"two streams of tiles, at most 5e7 cycles", TILE, MATRIX, 0, 50000000},
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds; `points` is what the listing says. */
static double explore_once(const char *text, const space *s, int64_t *points)
{
    const unsigned char *data;
    size_t size;
    double begin = now_s();
    visa_compilation *c = visa_compile("space.vm", text, strlen(text), NULL);
    visa_explore_options o = {.form = VISA_EXPLORE_SVG, .multipliers = s->multipliers, .target_cycles = s->cycles};
    if (!c || !visa_explore(c, &o, &data, &size)) {
        fputs(c ? visa_diagnostics(c, VISA_DIAGNOSTICS_TEXT) : "out of memory\n", stderr);
        exit(1);
    }
    double seconds = now_s() - begin;
    o.form = VISA_EXPLORE_TEXT;
    if (*points == 0 && visa_explore(c, &o, &data, &size))
        *points = strtoll(strstr((const char *)data, ": ") + 2, NULL, 10);
    visa_free(c);
    return seconds;
}

int main(int argc, char **argv)
{
    (void)argv;
    for (size_t i = 0; i < (argc > 1 ? 1 : sizeof spaces / sizeof *spaces); i++) {
        char text[1024];
        int64_t points = 0;
        snprintf(text, sizeof text,
                 "const SPACE: Dataflow = Dataflow { inputs: [%s], weights: [%s], outputs: [Output { name: \"y\", block: [1] }] };\n",
                 spaces[i].inputs, spaces[i].weights);
        double seconds = explore_once(text, &spaces[i], &points);
        printf("{\"space\": \"%s\", \"points\": %lld, \"seconds\": %.6f}\n", spaces[i].what, (long long)points, seconds);
        fflush(stdout);
    }
    return 0;
}
