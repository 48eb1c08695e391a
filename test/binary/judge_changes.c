/* Good kernels of which single words are changed, judged in one process: what visa-run --check would say, many times as fast.
 *
 *     judge_changes GOOD.bin < questions
 *
 * A question is a line `KERNEL SEED OFFSET MASK`: of the bytes with the 64-bit word at that offset changed by the mask (hexadecimal; 0: as
 * they are), does the check with this seed agree? The answer is a line of visa-run's exit status (0: it does, 1: refused, 3: noticed), of
 * 1 where it agrees and the outputs are those of the good bytes, else 0, and of 1 where the algebra proves all values of all outputs for
 * whatever a launch gives, else 0. Asked by test/binary/mutations.py and single_bytes.py. */
#include <inttypes.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/visa_run.h"

enum { AGREES = 0, REFUSED = 1, DIFFERS = 3, NAME_BYTES = 256, FILE_BYTES = 1 << 24, RUNS = 64, KEPT_BYTES = 1 << 28 };

/* Does every line of a report say that all is proven, with no lists or numbers that other launches would give? */
static bool proves_all(const char *report)
{
    static const char *const less[] = {"lists drawn", "sampled", "not decided", "did not hold"};
    for (size_t i = 0; i < sizeof less / sizeof *less; i++)
        if (strstr(report, less[i]))
            return false;
    size_t lines = 0, whole = 0;
    for (const char *line = report; *line; line = strchr(line, '\n') + 1) {
        char first[NAME_BYTES] = "";
        snprintf(first, sizeof first, "%.*s", (int)strcspn(line, "\n"), line);
        lines++;
        whole += strstr(first, " proven,") && (strstr(first, "algebra: all ") || strstr(first, "algebra: 1 value "));
        if (!strchr(line, '\n'))
            break;
    }
    return lines > 0 && whole == lines;
}

/* Algebra first: it needs no reference kernel, and notices most. */
static int check(visa_kernel *k, const visa_run_options *options, bool *proven)
{
    *proven = false;
    const int kinds[] = {VISA_CHECK_ALGEBRA, VISA_CHECK_NUMBERS};
    for (int i = 0; i < 2; i++) {
        bool agrees;
        const char *report;
        if (!visa_kernel_check(k, options, kinds[i], &agrees, &report))
            return strcmp(visa_kernel_verdict(k), "differs") == 0 ? DIFFERS : REFUSED;
        *proven |= kinds[i] == VISA_CHECK_ALGEBRA && proves_all(report);
    }
    return AGREES;
}

/* The outputs of the last run, one after the other; NULL: no memory. */
static unsigned char *outputs_of(visa_kernel *k, size_t *total)
{
    unsigned char *all = malloc(1);
    visa_port port;
    *total = 0;
    for (size_t i = 0; all && visa_port_at(k, i, &port); i++) {
        size_t bytes;
        const unsigned char *data = port.is_output ? visa_port_data(k, i, &bytes) : NULL;
        if (!data)
            continue;
        unsigned char *grown = realloc(all, *total + bytes + 1);
        if (!grown)
            free(all);
        else
            memcpy(grown + *total, data, bytes);
        all = grown;
        *total += bytes;
    }
    return all;
}

static int judge(const unsigned char *bytes, size_t size, const char *kernel, uint64_t seed, bool *proven, unsigned char **outputs,
                 size_t *total)
{
    *proven = false;
    visa_kernel *k = visa_kernel_open(bytes, size, kernel);
    const visa_run_options options = {.threads = 1, .seed = seed};
    int status = k ? check(k, &options, proven) : REFUSED;
    *outputs = status == AGREES ? outputs_of(k, total) : NULL;
    visa_kernel_close(k);
    return status;
}

/* The good binary's outputs, by kernel and seed, as far as they were asked for. */
typedef struct good_run {
    char kernel[NAME_BYTES];
    uint64_t seed;
    unsigned char *outputs; /* NULL: it does not agree */
    size_t bytes;
} good_run;

typedef struct good_runs {
    good_run runs[RUNS];
    size_t count;
} good_runs;

static const good_run *good_run_of(good_runs *known, const unsigned char *bytes, size_t size, const char *kernel, uint64_t seed)
{
    for (size_t i = 0; i < known->count; i++)
        if (known->runs[i].seed == seed && strcmp(known->runs[i].kernel, kernel) == 0)
            return &known->runs[i];
    if (known->count == RUNS)
        free(known->runs[--known->count].outputs);
    good_run *r = &known->runs[known->count++];
    *r = (good_run){.seed = seed};
    strcpy(r->kernel, kernel);
    bool proven;
    judge(bytes, size, kernel, seed, &proven, &r->outputs, &r->bytes);
    return r;
}

static void answer(good_runs *known, unsigned char *bytes, size_t size, const char *kernel, uint64_t seed, uint64_t offset, uint64_t mask)
{
    unsigned char *changed = NULL;
    size_t changed_bytes;
    bool proven;
    for (int i = 0; i < 8; i++)
        bytes[offset + (size_t)i] ^= (unsigned char)(mask >> 8 * i);
    int status = judge(bytes, size, kernel, seed, &proven, &changed, &changed_bytes);
    for (int i = 0; i < 8; i++)
        bytes[offset + (size_t)i] ^= (unsigned char)(mask >> 8 * i);
    const good_run *good = changed ? good_run_of(known, bytes, size, kernel, seed) : NULL;
    bool same = good && good->outputs && good->bytes == changed_bytes && memcmp(good->outputs, changed, changed_bytes) == 0;
    printf("%d %d %d\n", status, same, proven && status == AGREES);
    fflush(stdout);
    free(changed);
}

int main(int argc, char **argv)
{
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    unsigned char *bytes = file ? malloc(FILE_BYTES) : NULL;
    size_t size = bytes ? fread(bytes, 1, FILE_BYTES, file) : 0;
    if (file)
        fclose(file);
    if (size < 8) {
        fprintf(stderr, "usage: judge_changes GOOD.bin < questions\n");
        free(bytes);
        return 2;
    }
    /* Memories of units come and go with each run: nothing goes back to the system in between. */
    mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    static good_runs known;
    char kernel[NAME_BYTES];
    uint64_t seed, offset, mask;
    int status = 0;
    while (status == 0 && scanf("%255s %" SCNu64 " %" SCNu64 " %" SCNx64, kernel, &seed, &offset, &mask) == 4) {
        if (offset > size - 8)
            status = 2;
        else
            answer(&known, bytes, size, kernel, seed, offset, mask);
    }
    for (size_t i = 0; i < known.count; i++)
        free(known.runs[i].outputs);
    free(bytes);
    return status;
}
