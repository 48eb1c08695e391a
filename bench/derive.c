/* How long one mapping pair takes through the library, from text to sequencer entries: a table of pairs, the cost against the
 * axis size, the cost against the number of terms; beside isl where it was there at build time.
 *
 * isl is given the two relations (buffer position to index, stream position to index) as its own text and asked for what the
 * entries say: the relation from stream position to address. To make that an explicit function is not in its time: on tiled
 * pairs it takes isl minutes. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/visa.h"
#ifdef HAVE_ISL
#include "test/isl_mapping.h"
#endif

typedef struct pair {
    const char *what, *buffer, *time, *packet;
    visa_access access;
} pair;

typedef struct axis_size {
    const char *name;
    int64_t size; /* elements */
} axis_size;

static const axis_size axes[] = {{"A", 8}, {"B", 512}, {"C", 32}, {"H", 56}, {"W", 56}, {"M", 4096}, {"N", 64}, {"K", 1024}, {"P", 3}, {"Q", 5}, {NULL, 0}};

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

/* The fastest of `rounds` rounds of `repeats` derivations, in ns for one: what the work costs when nothing disturbs it. */
static double measure(visa_deriver *d, const pair *p, int rounds, int repeats)
{
    visa_entry entries[VISA_MAX_ENTRIES];
    size_t count;
    double best = 1e300;
    must(d, visa_derive(d, p->buffer, p->time, p->packet, p->access, entries, &count), p->what);
    for (int r = 0; r < rounds; r++) {
        double start = now_ns();
        for (int i = 0; i < repeats; i++)
            visa_derive(d, p->buffer, p->time, p->packet, p->access, entries, &count);
        double each = (now_ns() - start) / repeats;
        best = each < best ? each : best;
    }
    return best;
}

static visa_deriver *deriver_with(const axis_size *list)
{
    visa_deriver *d = visa_deriver_new(NULL);
    if (!d)
        exit(1);
    for (; list->name; list++)
        must(d, visa_deriver_axis(d, list->name, list->size), list->name);
    return d;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#ifdef HAVE_ISL
/* ns of one pair through isl: read both relations and compose them. */
static double measure_isl(const pair *p)
{
    isl_ctx *ctx = isl_ctx_alloc();
    isl_axes list = {.ctx = ctx};
    for (const axis_size *a = axes; a->name; a++)
        isl_axes_add(&list, a->name, a->size);
    char *stream_text = NULL;
    if (asprintf(&stream_text, "[%s], [%s]", p->time, p->packet) < 0)
        exit(1);
    isl_mapping buffer = isl_mapping_read(&list, p->buffer), stream = isl_mapping_read(&list, stream_text);
    char *buffer_relation = isl_map_to_str(buffer.map);
    isl_map *reaches = isl_mapping_seen_by(isl_map_copy(stream.map), buffer.map);
    char *stream_relation = isl_map_to_str(reaches);
    isl_map_free(reaches);
    double best = 1e300;
    for (int r = 0; r < 10; r++) {
        double start = now_ns();
        isl_map *b = isl_map_read_from_str(ctx, buffer_relation), *s = isl_map_read_from_str(ctx, stream_relation);
        isl_map *access = isl_map_apply_range(s, isl_map_reverse(b));
        isl_map_free(access);
        double each = now_ns() - start;
        best = each < best ? each : best;
    }
    free(buffer_relation);
    free(stream_relation);
    free(stream_text);
    isl_map_free(buffer.map);
    isl_map_free(stream.map);
    isl_ctx_free(ctx);
    return best;
}
#endif

static void print_pairs(visa_deriver *d)
{
    double times[PAIRS];
#ifdef HAVE_ISL
    double ratios[PAIRS];
    printf("%-26s %10s %12s %12s\n", "pair", "us", "isl us", "isl / visac");
#else
    printf("%-26s %10s   (isl: not there at build time: apt-get install libisl-dev)\n", "pair", "us");
#endif
    for (int i = 0; i < PAIRS; i++) {
        times[i] = measure(d, &pairs[i], 20, 2000) / 1e3;
#ifdef HAVE_ISL
        double isl = measure_isl(&pairs[i]) / 1e3;
        ratios[i] = isl / times[i];
        printf("%-26s %10.3f %12.1f %12.0f\n", pairs[i].what, times[i], isl, ratios[i]);
#else
        printf("%-26s %10.3f\n", pairs[i].what, times[i]);
#endif
    }
    qsort(times, PAIRS, sizeof *times, by_value);
    printf("median %.3f us, slowest %.3f us\n", times[PAIRS / 2], times[PAIRS - 1]);
#ifdef HAVE_ISL
    qsort(ratios, PAIRS, sizeof *ratios, by_value);
    printf("isl / visac: median %.0f, smallest %.0f, largest %.0f\n", ratios[PAIRS / 2], ratios[0], ratios[PAIRS - 1]);
#endif
}

/* One expression over axes of 2^3 .. 2^40 elements. The innermost digit of X stays a loop, the outer one merges or is stepped
 * over, so that no entry is longer than the table allows. */
static void print_sizes(void)
{
    static const pair p = {"sizes", "X / 4, Y, X % 4", "Y, X / 4 = 2", "X % 4", VISA_READ};
    printf("\naxis size against time\n");
    for (int bits = 3; bits <= 40; bits += bits == 3 ? 5 : 8) {
        const axis_size list[] = {{"X", INT64_C(1) << bits}, {"Y", 16}, {NULL, 0}};
        visa_deriver *d = deriver_with(list);
        printf("2^%-8d %10.3f us\n", bits, measure(d, &p, 20, 2000) / 1e3);
        visa_deriver_free(d);
    }
}

/* The same n terms in the buffer and in the stream. Strides have 32 bits, so
 * that at most 30 axes can have two elements; the others have one. */
static void print_terms(void)
{
    static const int counts[] = {1, 2, 5, 10, 20, 30, 50, 100, 150, 200};
    printf("\nterms against time (buffer and stream have each term once)\n");
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
        double ns = measure(d, &p, 20, 500);
        printf("%-10d %10.3f us   %7.1f ns per term\n", n, ns / 1e3, ns / n);
        visa_deriver_free(d);
    }
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    visa_deriver *d = deriver_with(axes);
    print_pairs(d);
    visa_deriver_free(d);
    print_sizes();
    print_terms();
    return 0;
}
