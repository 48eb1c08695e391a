/* Good kernels of which single words are changed, judged in one process: what visa-run --check would say, many times as fast.
 *
 *     judge_changes < questions
 *
 * Questions are lines:
 *
 *     open FILE                                 from now on its bytes are the good ones
 *     ask KERNEL SEED OFFSET MASK [PORT BITS]   of the bytes with the 64-bit word at that offset changed by the mask (hexadecimal; 0: as
 * they are), does the check with this seed agree? BITS: of that input, instead of drawn ones dump OFFSET MASK                          how
 * visa-objdump --json shows them
 *
 * The answer to `ask` is a line of visa-run's exit status (0: it agrees, 1: refused, 3: noticed), of 1 where it agrees and the outputs are
 * those of the good bytes, else 0, and of 1 where the algebra proves all values of all outputs for whatever a launch gives, else 0. To
 * `open` and `dump` it is a line with a number of bytes, and these bytes; -1: there are none. Asked by test/binary/mutations.py and
 * single_bytes.py, with references that are kept (kept_reference.c). */
#include <inttypes.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/dump.h"
#include "include/visa_run.h"

enum { AGREES = 0, REFUSED = 1, DIFFERS = 3, NAME_BYTES = 256, FILE_BYTES = 1 << 24, RUNS = 64, LINE_BYTES = 4096, KEPT_BYTES = 1 << 28 };

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
    visa_port at;
    *total = 0;
    for (size_t i = 0; all && visa_port_at(k, i, &at); i++) {
        size_t bytes;
        const unsigned char *data = at.is_output ? visa_port_data(k, i, &bytes) : NULL;
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

/* What is asked of changed bytes. */
typedef struct question {
    char kernel[NAME_BYTES], port[NAME_BYTES]; /* port "": all inputs are drawn */
    uint64_t seed, offset, mask, bits;
} question;

/* False: there is no such port. */
static bool give_number(visa_kernel *k, const question *q)
{
    visa_port at;
    for (size_t i = 0; visa_port_at(k, i, &at); i++) {
        size_t bytes;
        unsigned char *data = !at.is_output && strcmp(at.name, q->port) == 0 ? visa_port_data(k, i, &bytes) : NULL;
        for (size_t byte = 0; data && byte < bytes; byte++)
            data[byte] = byte < sizeof q->bits ? (unsigned char)(q->bits >> 8 * byte) : 0;
        if (data)
            return true;
    }
    return false;
}

static int judge(const unsigned char *bytes, size_t size, const question *q, bool *proven, unsigned char **outputs, size_t *total)
{
    *proven = false;
    visa_kernel *k = visa_kernel_open(bytes, size, q->kernel);
    const visa_run_options options = {.threads = 1, .seed = q->seed};
    int status = k && (!*q->port || give_number(k, q)) ? check(k, &options, proven) : REFUSED;
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

/* The good bytes, and what they give. */
typedef struct good {
    unsigned char bytes[FILE_BYTES];
    size_t size;
    good_run runs[RUNS];
    size_t count;
} good;

static void forget_runs(good *g)
{
    for (size_t i = 0; i < g->count; i++)
        free(g->runs[i].outputs);
    g->count = 0;
}

static const good_run *good_run_of(good *g, const question *q)
{
    for (size_t i = 0; i < g->count; i++)
        if (g->runs[i].seed == q->seed && strcmp(g->runs[i].kernel, q->kernel) == 0)
            return &g->runs[i];
    if (g->count == RUNS)
        free(g->runs[--g->count].outputs);
    good_run *r = &g->runs[g->count++];
    *r = (good_run){.seed = q->seed};
    strcpy(r->kernel, q->kernel);
    bool proven;
    judge(g->bytes, g->size, q, &proven, &r->outputs, &r->bytes);
    return r;
}

static void change(good *g, const question *q)
{
    for (size_t i = 0; i < 8; i++)
        g->bytes[q->offset + i] ^= (unsigned char)(q->mask >> 8 * i);
}

static void answer(good *g, const question *q)
{
    unsigned char *changed = NULL;
    size_t changed_bytes;
    bool proven;
    change(g, q);
    int status = judge(g->bytes, g->size, q, &proven, &changed, &changed_bytes);
    change(g, q);
    const good_run *r = changed && !*q->port ? good_run_of(g, q) : NULL;
    bool same = r && r->outputs && r->bytes == changed_bytes && memcmp(r->outputs, changed, changed_bytes) == 0;
    printf("%d %d %d\n", status, same, proven && status == AGREES);
    free(changed);
}

static void dump(good *g, const question *q)
{
    arena *a = arena_new();
    const char *volatile text = NULL;
    binary b;
    diag_list unsaid;
    change(g, q);
    if (a && !setjmp(*arena_guard(a))) {
        diag_list_init(&unsaid, a);
        text = binary_read(g->bytes, g->size, a, &unsaid, &b) ? binary_to_json(&b, a) : NULL;
    }
    change(g, q);
    if (text)
        printf("%zu\n%s", strlen(text), text);
    else
        printf("-1\n");
    arena_free(a);
}

static void open_file(good *g, const char *name)
{
    FILE *file = fopen(name, "rb");
    forget_runs(g);
    g->size = file ? fread(g->bytes, 1, sizeof g->bytes, file) : 0;
    if (file)
        fclose(file);
    puts(g->size < 8 ? "-1" : "0");
}

/* False: it is no question. */
static bool answer_line(good *g, char *line)
{
    question q = {0};
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "open ", 5) == 0) {
        open_file(g, line + 5);
        return true;
    }
    int asked = sscanf(line, "ask %255s %" SCNu64 " %" SCNu64 " %" SCNx64 " %255s %" SCNx64, q.kernel, &q.seed, &q.offset, &q.mask, q.port,
                       &q.bits);
    bool dumps = asked < 1 && sscanf(line, "dump %" SCNu64 " %" SCNx64, &q.offset, &q.mask) == 2;
    if ((asked != 4 && asked != 6 && !dumps) || g->size < 8 || q.offset > g->size - 8)
        return false;
    if (dumps)
        dump(g, &q);
    else
        answer(g, &q);
    return true;
}

int main(void)
{
    /* Memories of units come and go with each run: nothing goes back to the system in between. */
    mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    static good g;
    static char line[LINE_BYTES];
    while (fgets(line, sizeof line, stdin)) {
        if (!answer_line(&g, line)) {
            fprintf(stderr, "no question: %s\n", line);
            return 2;
        }
        fflush(stdout);
    }
    forget_runs(&g);
    return 0;
}
