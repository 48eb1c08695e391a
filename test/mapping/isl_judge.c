/* isl as a judge of the derivation: on random pairs of digits (axes, / and %, = and #, in any order, no group that does not cut
 * into digits), at any size, the derived entries walk the addresses that isl's access relation has.
 *
 *     isl_judge [PAIRS [SEED]]     default: 100 pairs, with VISA_LONG=1 800 */
#include <isl/options.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/visa.h"
#include "test/mapping/isl_pair.h"

enum { AXES = 4, MAX_DIGITS = 10 };

/* ---- random pairs ---- */

typedef struct random_state {
    uint64_t state;
} random_state;

static uint64_t next_random(random_state *r)
{
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = r->state ^ r->state >> 33;
    return x * 0xff51afd7ed558ccdu >> 20;
}

static int64_t below(random_state *r, int64_t n)
{
    return (int64_t)(next_random(r) % (uint64_t)n);
}

static bool one_in(random_state *r, int64_t n)
{
    return below(r, n) == 0;
}

typedef struct texts {
    char buffer[512], time[512], packet[512];
    bool write;
} texts;

/* A digit of an axis as an expression. */
typedef struct digit {
    char text[64];
} digit;

static void shuffle(random_state *r, digit *d, int count)
{
    for (int i = count - 1; i > 0; i--) {
        int j = (int)below(r, i + 1);
        digit t = d[i];
        d[i] = d[j];
        d[j] = t;
    }
}

/* Cuts "base" of `size` positions at random divisors; the digits cover it. */
static int cut(random_state *r, const char *base, int64_t size, digit *out)
{
    static const int64_t steps[] = {2, 2, 4, 8, 3, 5};
    int64_t weight = 1;
    int count = 0;
    while (count < 2 && one_in(r, 2)) {
        int64_t step = steps[below(r, 6)];
        if (size / weight % step || size / weight == step)
            continue;
        if (weight == 1)
            snprintf(out[count++].text, sizeof out->text, "%s %% %lld", base, (long long)step);
        else
            snprintf(out[count++].text, sizeof out->text, "%s / %lld %% %lld", base, (long long)weight, (long long)step);
        weight *= step;
    }
    if (weight == 1)
        snprintf(out[count++].text, sizeof out->text, "%s", base);
    else
        snprintf(out[count++].text, sizeof out->text, "%s / %lld", base, (long long)weight);
    return count;
}

static void join(char *out, const digit *d, int count)
{
    strcpy(out, count ? "" : "1");
    for (int i = 0; i < count; i++)
        strcat(strcat(out, i ? ", " : ""), d[i].text);
}

/* The digits of some axes, cut, shuffled or not, some of them padded or resized at their outermost end. */
static int digits_of(random_state *r, const isl_axes *axes, unsigned chosen, bool ordered, bool cuts, digit *out)
{
    int count = 0;
    for (int k = 0; k < axes->count; k++) {
        char base[32];
        int64_t size = axes->size[k];
        if (!(chosen >> k & 1))
            continue;
        snprintf(base, sizeof base, "%s", axes->name[k]);
        if (one_in(r, 5)) {
            size += below(r, 3) ? (16 - size % 16) % 16 : 1 + below(r, 9);
            snprintf(base, sizeof base, "%s # %lld", axes->name[k], (long long)size);
        } else if (one_in(r, 8) && size > 2) {
            size = 1 + below(r, size);
            snprintf(base, sizeof base, "%s = %lld", axes->name[k], (long long)size);
        }
        if (cuts)
            count += cut(r, base, size, out + count);
        else
            snprintf(out[count++].text, sizeof out->text, "%s", base);
    }
    if (!ordered)
        shuffle(r, out, count);
    if (one_in(r, 12) && count < MAX_DIGITS)
        snprintf(out[count++].text, sizeof out->text, "1 # %lld", (long long)(2 + below(r, 6)));
    return count;
}

static void random_pair(random_state *r, isl_axes *axes, texts *t)
{
    static const char *const names[AXES] = {"A", "B", "C", "D"};
    static const int64_t sizes[] = {2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 30, 32, 60, 64, 96, 100, 128, 256, 1000, 1024, 4096, 65536};
    axes->count = 0;
    for (int k = 0; k < AXES; k++)
        isl_axes_add(axes, names[k], sizes[below(r, one_in(r, 3) ? 22 : 12)]);
    digit d[MAX_DIGITS * 2];
    unsigned stored = 1 + (unsigned)below(r, 15), walked = one_in(r, 3) ? 1 + (unsigned)below(r, 15) : stored;
    t->write = one_in(r, 3);
    join(t->buffer, d, digits_of(r, axes, stored, one_in(r, 2), one_in(r, 2), d));
    int count = digits_of(r, axes, t->write ? stored : walked, one_in(r, 3), !one_in(r, 3), d);
    int inner = (int)below(r, count + 1);
    join(t->time, d, count - inner);
    join(t->packet, d + count - inner, inner);
}

/* ---- judging ---- */

typedef struct tally {
    int accepted, refused, wrong, sampled, undecided;
} tally;

static void report(const char *fault, const isl_axes *axes, const texts *t, const visa_entry *entries, size_t count)
{
    printf("%s: %s buffer m![%s], time m![%s], packet m![%s]; axes", fault, t->write ? "write" : "read", t->buffer, t->time, t->packet);
    for (int k = 0; k < axes->count; k++)
        printf(" %s = %lld", axes->name[k], (long long)axes->size[k]);
    printf("; entries");
    for (size_t i = 0; i < count; i++)
        printf(" %lld : %lld", (long long)entries[i].size, (long long)entries[i].stride);
    printf("\n");
}

static void judge(visa_deriver *d, const isl_axes *axes, const texts *t, tally *sum)
{
    visa_entry entries[VISA_MAX_ENTRIES];
    size_t count;
    if (!visa_derive(d, t->buffer, t->time, t->packet, t->write ? VISA_WRITE : VISA_READ, entries, &count)) {
        sum->refused++;
        return;
    }
    const isl_pair pair = {t->buffer, t->time, t->packet, t->write};
    const char *fault;
    isl_pair_verdict v = isl_pair_judge(axes, &pair, entries, count, &fault);
    sum->accepted++;
    sum->sampled += v == ISL_PAIR_RIGHT_AT_SAMPLES;
    sum->undecided += v == ISL_PAIR_UNDECIDED;
    if (fault) {
        sum->wrong++;
        report(fault, axes, t, entries, count);
    }
}

static void print_tally(const char *what, const tally *t)
{
    printf("%s: %d accepted (%d judged at all positions, %d at %d positions, %d not at all), %d refused, %d wrong\n", what, t->accepted,
           t->accepted - t->sampled - t->undecided, t->sampled, ISL_PAIR_SAMPLES, t->undecided, t->refused, t->wrong);
}

int main(int argc, char **argv)
{
    const char *l = getenv("VISA_LONG");
    int pairs = argc > 1 ? atoi(argv[1]) : l && *l ? 800 : 100;
    random_state r = {argc > 2 ? strtoull(argv[2], NULL, 0) : 1};
    isl_axes axes = {.ctx = isl_ctx_alloc()};
    isl_options_set_on_error(axes.ctx, ISL_ON_ERROR_CONTINUE);
    visa_deriver *d = visa_deriver_new(NULL);
    tally reads = {0}, writes = {0};
    for (int i = 0; i < pairs; i++) {
        texts t;
        random_pair(&r, &axes, &t);
        visa_deriver_clear(d);
        for (int k = 0; k < axes.count; k++)
            visa_deriver_axis(d, axes.name[k], axes.size[k]);
        judge(d, &axes, &t, t.write ? &writes : &reads);
    }
    visa_deriver_free(d);
    isl_ctx_free(axes.ctx);
    print_tally("reads", &reads);
    print_tally("writes", &writes);
    int whole = reads.accepted + writes.accepted - reads.sampled - writes.sampled - reads.undecided - writes.undecided;
    if (reads.accepted < pairs / 8 || writes.accepted < pairs / 40 || whole < pairs / 10) {
        puts("too few pairs were judged: this run says nothing");
        return 1;
    }
    return reads.wrong + writes.wrong > 0;
}
