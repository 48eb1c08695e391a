/* isl as a judge of the derivation: on random pairs of digits (axes, / and %, = and #, in any order, no group that does not cut
 * into digits), at any size, the derived entries walk the addresses that isl's access relation has.
 *
 * The access relation is "stream position to index to buffer position", built from the definition of each constructor
 * (test/isl_mapping.h); the walk is the mixed-radix relation of the entries. A pair is right when
 *   - every live stream position has an address in the access relation (else it had to be refused),
 *   - the walk's address of every live position is one of those of the access relation,
 *   - a write's dead positions reach no live cell, no position leaves the buffer, and every live cell is written.
 * isl decides this for all positions at once; where that takes it too long, it is asked for a few positions.
 *
 *     isl_judge [PAIRS [SEED]]     default: 100 pairs, with VISA_LONG=1 4,000 */
#include <isl/options.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/visa.h"
#include "test/isl_mapping.h"

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

enum { OPERATIONS_MAX = 20000, SAMPLES = 12 };

typedef struct tally {
    int accepted, refused, wrong, sampled, undecided;
} tally;

/* { [p] -> [a] }: p in mixed radix, a = sum of digit * stride. */
static isl_map *walk_relation(isl_ctx *ctx, const visa_entry *entries, size_t count)
{
    char digits[256] = "", address[512] = "0", position[512] = "0", bounds[512] = "true";
    int64_t radix = 1;
    for (size_t i = count; i-- > 0;) {
        snprintf(digits + strlen(digits), sizeof digits - strlen(digits), "%sd%zu", *digits ? ", " : "", i);
        snprintf(address + strlen(address), sizeof address - strlen(address), " + %lldd%zu", (long long)entries[i].stride, i);
        snprintf(position + strlen(position), sizeof position - strlen(position), " + %lldd%zu", (long long)radix, i);
        snprintf(bounds + strlen(bounds), sizeof bounds - strlen(bounds), " and 0 <= d%zu < %lld", i, (long long)entries[i].size);
        radix *= entries[i].size;
    }
    return isl_map_format(ctx, "{ [p] -> [a] : exists (%s : p = %s and a = %s and %s) }", digits, position, address, bounds);
}

/* What a pair is judged by. */
typedef struct question {
    const isl_axes *axes;
    isl_map *access;  /* stream position to address */
    isl_map *walk;    /* the same, of the entries */
    isl_set *live;    /* stream positions */
    isl_set *cells;   /* live positions of the buffer */
    int64_t buffer_size, stream_size;
    bool write;
} question;

typedef enum verdict { RIGHT, WRONG, UNDECIDED } verdict;

/* Frees the set; a NULL set is no answer. */
static verdict must_be_empty(isl_set *s)
{
    isl_bool empty = s ? isl_set_is_empty(s) : isl_bool_error;
    isl_set_free(s);
    return empty == isl_bool_true ? RIGHT : empty == isl_bool_false ? WRONG : UNDECIDED;
}

static verdict is_subset(isl_set *a, isl_set *b)
{
    isl_bool inside = a && b ? isl_set_is_subset(a, b) : isl_bool_error;
    isl_set_free(a);
    isl_set_free(b);
    return inside == isl_bool_true ? RIGHT : inside == isl_bool_false ? WRONG : UNDECIDED;
}

static isl_set *range_between(const question *q, int64_t first, int64_t end)
{
    return isl_map_domain(isl_map_format(q->axes->ctx, "{ [i] -> [] : %lld <= i < %lld }", (long long)first, (long long)end));
}

/* The parts of "a pair is right", each with its name. */
static verdict live_positions_are_placed(const question *q)
{
    return is_subset(isl_set_copy(q->live), isl_map_domain(isl_map_copy(q->access)));
}

static verdict live_addresses_agree(const question *q)
{
    isl_map *walked = isl_map_intersect_domain(isl_map_copy(q->walk), isl_set_copy(q->live));
    isl_bool inside = walked ? isl_map_is_subset(walked, q->access) : isl_bool_error;
    isl_map_free(walked);
    return inside == isl_bool_true ? RIGHT : inside == isl_bool_false ? WRONG : UNDECIDED;
}

static verdict dead_positions_hit_nothing(const question *q)
{
    isl_map *dead = isl_map_subtract_domain(isl_map_copy(q->walk), isl_set_copy(q->live));
    return must_be_empty(isl_set_intersect(isl_map_range(dead), isl_set_copy(q->cells)));
}

static verdict all_cells_are_written(const question *q)
{
    isl_map *walked = isl_map_intersect_domain(isl_map_copy(q->walk), isl_set_copy(q->live));
    return is_subset(isl_set_copy(q->cells), isl_map_range(walked));
}

static verdict walk_stays_inside(const question *q)
{
    return is_subset(isl_map_range(isl_map_copy(q->walk)), range_between(q, 0, q->buffer_size));
}

static const struct part {
    verdict (*ask)(const question *q);
    const char *fault;
    bool of_writes;
} parts[] = {
    {live_positions_are_placed, "accepted, but a live position has no address", false},
    {live_addresses_agree, "a live position is walked at another address", false},
    {dead_positions_hit_nothing, "a dead position overwrites a live cell", true},
    {all_cells_are_written, "a live cell is not written", true},
    {walk_stays_inside, "the walk leaves the buffer", true},
};

/* All parts for all positions; NULL: right, or not decided with *undecided set. */
static const char *fault_of(const question *q, bool *undecided)
{
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].of_writes && !q->write)
            continue;
        isl_ctx_reset_operations(q->axes->ctx);
        verdict v = parts[i].ask(q);
        if (v == WRONG)
            return parts[i].fault;
        *undecided = *undecided || v == UNDECIDED;
    }
    return NULL;
}

/* The same at a few positions. */
static const char *fault_at_samples(question q, random_state *r, bool *undecided)
{
    isl_set *live = q.live;
    isl_map *walk = q.walk, *access = q.access;
    const char *fault = NULL;
    for (int i = 0; i < SAMPLES && !fault; i++) {
        isl_ctx_reset_operations(q.axes->ctx);
        int64_t at = i == 0 ? 0 : i == 1 ? q.stream_size - 1 : below(r, q.stream_size);
        isl_set *point = range_between(&q, at, at + 1);
        q.live = isl_set_intersect(isl_set_copy(live), isl_set_copy(point));
        q.walk = isl_map_intersect_domain(isl_map_copy(walk), isl_set_copy(point));
        q.access = isl_map_intersect_domain(isl_map_copy(access), point);
        bool skipped = false;
        question here = q;
        here.write = false;
        fault = fault_of(&here, &skipped);
        if (!fault && q.write && dead_positions_hit_nothing(&q) == WRONG)
            fault = parts[2].fault;
        *undecided = *undecided || skipped;
        isl_set_free(q.live);
        isl_map_free(q.walk);
        isl_map_free(q.access);
    }
    return fault;
}

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

static void judge(visa_deriver *d, const isl_axes *axes, const texts *t, random_state *r, tally *sum)
{
    visa_entry entries[VISA_MAX_ENTRIES];
    size_t count;
    if (!visa_derive(d, t->buffer, t->time, t->packet, t->write ? VISA_WRITE : VISA_READ, entries, &count)) {
        sum->refused++;
        return;
    }
    isl_ctx_set_max_operations(axes->ctx, 0);
    char stream_text[1100];
    snprintf(stream_text, sizeof stream_text, "[%s], [%s]", t->time, t->packet);
    isl_mapping buffer = isl_mapping_read(axes, t->buffer), stream = isl_mapping_read(axes, stream_text);
    question q = {.axes = axes, .buffer_size = buffer.size, .stream_size = stream.size, .write = t->write};
    q.live = isl_map_domain(isl_map_copy(stream.map));
    q.cells = isl_map_domain(isl_map_copy(buffer.map));
    isl_map *seen = t->write ? stream.map : isl_mapping_seen_by(stream.map, buffer.map);
    q.access = isl_map_apply_range(seen, isl_map_reverse(buffer.map));
    q.walk = walk_relation(axes->ctx, entries, count);
    isl_ctx_set_max_operations(axes->ctx, OPERATIONS_MAX);
    isl_ctx_reset_operations(axes->ctx);
    bool undecided = false, unsampled = false;
    const char *fault = fault_of(&q, &undecided);
    if (!fault && undecided) {
        fault = fault_at_samples(q, r, &unsampled);
        sum->sampled += !unsampled;
        sum->undecided += unsampled;
    }
    sum->accepted++;
    if (fault) {
        sum->wrong++;
        report(fault, axes, t, entries, count);
    }
    isl_ctx_reset_error(axes->ctx);
    isl_set_free(q.live);
    isl_set_free(q.cells);
    isl_map_free(q.access);
    isl_map_free(q.walk);
}

static void print_tally(const char *what, const tally *t)
{
    printf("%s: %d accepted (%d judged at all positions, %d at %d positions, %d not at all), %d refused, %d wrong\n", what, t->accepted,
           t->accepted - t->sampled - t->undecided, t->sampled, SAMPLES, t->undecided, t->refused, t->wrong);
}

int main(int argc, char **argv)
{
    const char *l = getenv("VISA_LONG");
    int pairs = argc > 1 ? atoi(argv[1]) : l && strcmp(l, "1") == 0 ? 4000 : 100;
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
        judge(d, &axes, &t, &r, t.write ? &writes : &reads);
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
