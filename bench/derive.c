/* How long one mapping pair takes through the library, from text to sequencer entries: a table of pairs, the cost against the
 * axis size, the cost against the number of terms; next to isl where it was there at build time.
 *
 * isl is given the two relations (buffer position to index, stream position to index) as its own text and asked for what the
 * entries say: the relation from stream position to address. To make that an explicit function is not in its time: on tiled
 * pairs it takes isl minutes. Outside the time isl judges the entries (test/mapping/isl_pair.h).
 *
 * Prints one JSON object a line; a round of a pair is one line, ours and isl's. bench/sections/derive.py makes tables of them.
 *
 *     bench_derive ROUNDS REPEATS     REPEATS derivations are timed together */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/visa.h"
#ifdef HAVE_ISL
#include <isl/options.h>

#include "test/mapping/isl_pair.h"
#endif

typedef struct pair {
    const char *what, *buffer, *time, *packet;
    visa_access access;
} pair;

typedef struct axis_size {
    const char *name;
    int64_t size; /* elements */
} axis_size;

static const axis_size axes[] = {{"A", 8},  {"B", 512},  {"C", 32}, {"H", 56}, {"W", 56}, {"M", 4096},
                                 {"N", 64}, {"K", 1024}, {"P", 3},  {"Q", 5},  {NULL, 0}};

static const pair pairs[] = {
    {"same order", "M, K", "M", "K", VISA_READ},
    {"transpose", "M, K", "K", "M", VISA_READ},
    {"three axes reordered", "A, B, C", "C, A", "B", VISA_READ},
    {"broadcast in time", "M, K", "M, N", "K", VISA_READ},
    {"flits of a packet", "M, K", "M, K / 16", "K % 16", VISA_READ},
    {"tile of 8 by 16", "M, K", "M / 8, K / 16", "M % 8, K % 16", VISA_READ},
    {"tile in the buffer", "M / 8, K / 16, M % 8, K % 16", "M", "K", VISA_READ},
    {"2 x 2 tiles of an image", "H, W", "H / 2, W / 2", "H % 2, W % 2", VISA_READ},
    {"bits of an axis turned", "B", "B / 64, B % 32", "B / 32 % 2", VISA_READ},
    {"padded rows", "P # 4, C", "P", "C # 64", VISA_READ},
    {"padded and cut", "H # 64, W # 64", "H # 64 / 8, W # 64 / 8", "H # 64 % 8, W # 64 % 8", VISA_READ},
    {"window", "M, K = 512", "M / 2 = 100", "K = 512 / 16", VISA_READ},
    {"group padded and cut", "[P, Q] # 16, C", "P, Q", "C", VISA_READ},
    {"eight terms", "A / 2, B / 32, C / 4, A % 2, B % 32, C % 4, P, Q", "Q, P, A, B / 32", "C, B % 32", VISA_READ},
    {"write, same order", "M, N", "M", "N", VISA_WRITE},
    {"write, transpose", "M, N # 72", "N / 8, M", "N % 8", VISA_WRITE},
};
enum { PAIRS = sizeof pairs / sizeof *pairs };

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void must(visa_deriver *d, bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "derive: %s: %s\n", what, visa_deriver_error(d));
    exit(1);
}

static void declare(visa_deriver *d, const axis_size *list)
{
    visa_deriver_clear(d);
    for (; list->name; list++)
        must(d, visa_deriver_axis(d, list->name, list->size), list->name);
}

static visa_deriver *deriver_with(const axis_size *list)
{
    visa_deriver *d = visa_deriver_new(NULL);
    if (!d)
        exit(1);
    declare(d, list);
    return d;
}

/* ns of one derivation from texts that the deriver has not seen: VARIANTS of them, with other blanks around. `d` forgets its axes. */
static double measure_new(visa_deriver *d, const pair *p)
{
    enum { VARIANTS = 64, BLANKS = 8, TEXT = 128 };
    static char texts[VARIANTS][3][TEXT];
    const char *const parts[] = {p->buffer, p->time, p->packet};
    for (int i = 0; i < VARIANTS; i++)
        for (int k = 0; k < 3; k++)
            snprintf(texts[i][k], TEXT, "%*s%s%*s", i / BLANKS, "", parts[k], i % BLANKS, "");
    declare(d, axes);
    visa_entry entries[VISA_MAX_ENTRIES];
    size_t count;
    double start = now_ns();
    for (int i = 0; i < VARIANTS; i++)
        visa_derive(d, texts[i][0], texts[i][1], texts[i][2], p->access, entries, &count);
    return (now_ns() - start) / VARIANTS;
}

/* ns of one derivation; the first one, which reads the texts, is not timed. */
static double measure(visa_deriver *d, const pair *p, int repeats)
{
    visa_entry entries[VISA_MAX_ENTRIES];
    size_t count;
    must(d, visa_derive(d, p->buffer, p->time, p->packet, p->access, entries, &count), p->what);
    double start = now_ns();
    for (int i = 0; i < repeats; i++)
        visa_derive(d, p->buffer, p->time, p->packet, p->access, entries, &count);
    return (now_ns() - start) / repeats;
}

#ifdef HAVE_ISL
/* Both relations of a pair, as isl's own text. */
typedef struct isl_texts {
    isl_axes axes;
    char *buffer, *stream;
} isl_texts;

static isl_texts isl_texts_of(const pair *p)
{
    isl_texts t = {.axes.ctx = isl_ctx_alloc()};
    isl_options_set_on_error(t.axes.ctx, ISL_ON_ERROR_CONTINUE);
    for (const axis_size *a = axes; a->name; a++)
        isl_axes_add(&t.axes, a->name, a->size);
    char *stream_text = NULL;
    if (asprintf(&stream_text, "[%s], [%s]", p->time, p->packet) < 0)
        exit(1);
    isl_mapping buffer = isl_mapping_read(&t.axes, p->buffer), stream = isl_mapping_read(&t.axes, stream_text);
    isl_map *reaches = isl_mapping_seen_by(stream.map, buffer.map);
    t.buffer = isl_map_to_str(buffer.map);
    t.stream = isl_map_to_str(reaches);
    isl_map_free(reaches);
    isl_map_free(buffer.map);
    free(stream_text);
    return t;
}

static void isl_texts_free(isl_texts *t)
{
    free(t->buffer);
    free(t->stream);
    isl_ctx_free(t->axes.ctx);
}

/* ns of one pair through isl: read both relations and compose them. */
static double measure_isl(const isl_texts *t)
{
    double start = now_ns();
    isl_map *b = isl_map_read_from_str(t->axes.ctx, t->buffer), *s = isl_map_read_from_str(t->axes.ctx, t->stream);
    isl_map *access = isl_map_apply_range(s, isl_map_reverse(b));
    isl_map_free(access);
    return now_ns() - start;
}

/* What isl says of the derived entries. */
static const char *agreement(visa_deriver *d, const isl_texts *t, const pair *p)
{
    static const char *const words[] = {"at every position", "at 12 positions", "isl cannot decide", "WRONG"};
    visa_entry entries[VISA_MAX_ENTRIES];
    size_t count;
    const char *fault;
    must(d, visa_derive(d, p->buffer, p->time, p->packet, p->access, entries, &count), p->what);
    const isl_pair judged = {p->buffer, p->time, p->packet, p->access == VISA_WRITE};
    return words[isl_pair_judge(&t->axes, &judged, entries, count, &fault)];
}
#endif

static void measure_pair(visa_deriver *d, const pair *p, int rounds, int repeats)
{
#ifdef HAVE_ISL
    isl_texts t = isl_texts_of(p);
    printf("{\"table\": \"agrees\", \"pair\": \"%s\", \"isl\": \"%s\"}\n", p->what, agreement(d, &t, p));
#endif
    for (int r = 0; r < rounds; r++) {
        double first = measure_new(d, p);
        printf("{\"table\": \"pairs\", \"pair\": \"%s\", \"new_ns\": %.1f, \"ns\": %.1f", p->what, first, measure(d, p, repeats));
#ifdef HAVE_ISL
        printf(", \"isl_ns\": %.1f", measure_isl(&t));
#endif
        puts("}");
    }
#ifdef HAVE_ISL
    isl_texts_free(&t);
#endif
}

/* One expression over axes of 2^3 .. 2^40 elements. The innermost digit of X stays a loop, the outer one merges or is stepped
 * over, so that no entry is longer than the table allows. */
static void measure_sizes(int rounds, int repeats)
{
    static const pair p = {"sizes", "X / 4, Y, X % 4", "Y, X / 4 = 2", "X % 4", VISA_READ};
    for (int bits = 3; bits <= 40; bits += bits == 3 ? 5 : 8) {
        const axis_size list[] = {{"X", INT64_C(1) << bits}, {"Y", 16}, {NULL, 0}};
        visa_deriver *d = deriver_with(list);
        for (int r = 0; r < rounds; r++)
            printf("{\"table\": \"sizes\", \"bits\": %d, \"ns\": %.1f}\n", bits, measure(d, &p, repeats));
        visa_deriver_free(d);
    }
}

/* The same n terms in the buffer and in the stream. Strides have 32 bits, so
 * that at most 30 axes can have two elements; the others have one. */
static void measure_terms(int rounds, int repeats)
{
    static const int counts[] = {1, 2, 5, 10, 20, 50, 100, 200};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        axis_size list[201] = {0};
        char names[200][16], text[200 * 18] = "";
        int n = counts[c], doubled = n < 30 ? n : 30;
        for (int i = 0; i < n; i++) {
            snprintf(names[i], sizeof names[i], "X%d", i);
            strcat(strcat(text, i ? ", " : ""), names[i]);
            list[i] = (axis_size){names[i], (i + 1) * doubled / n > i * doubled / n ? 2 : 1};
        }
        visa_deriver *d = deriver_with(list);
        pair p = {"terms", text, text, "1", VISA_READ};
        for (int r = 0; r < rounds; r++)
            printf("{\"table\": \"terms\", \"terms\": %d, \"ns\": %.1f}\n", n, measure(d, &p, repeats));
        visa_deriver_free(d);
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 20, repeats = argc > 2 ? atoi(argv[2]) : 1000;
    if (rounds < 1 || repeats < 1)
        return fputs("usage: bench_derive [ROUNDS [REPEATS]]\n", stderr), 2;
    visa_deriver *d = deriver_with(axes);
    for (int i = 0; i < PAIRS; i++)
        measure_pair(d, &pairs[i], rounds, repeats);
    visa_deriver_free(d);
    measure_sizes(rounds, repeats);
    measure_terms(rounds, repeats);
    return 0;
}
