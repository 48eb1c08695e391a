/* The sequencer derivation against enumeration: walk the loops, and at every live stream position the buffer
 * must hold the same tensor index; a refusal without padding must be one that no loop nest could serve. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/sequence/derivation.h"
#include "ir/sequence/sequence.h"
#include "target/target.h"
#include "test/fixture.h"

enum { AXES = 3 };

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % n;
}

static mapping_context *maps; /* of a test's mappings */

static void set_up(void)
{
    setup();
    maps = mapping_context_new(memory);
}

static const mapping *pair(mapping_context *c, const mapping *l, const mapping *r)
{
    const mapping *m = l;
    ck_assert_int_eq(mapping_pair(c, l, r, &m), MAPPING_OK);
    return m;
}

/* A round of a law: a context, and in it A, B and C, each of one of `sizes` sizes from `least` on. Gives their arena. */
static arena *random_axes(uint64_t seed, int64_t least, uint32_t sizes, mapping_context **c, const axis **axes)
{
    arena *a = arena_new();
    random_state = seed;
    *c = mapping_context_new(a);
    for (int k = 0; k < AXES; k++)
        axes[k] = mapping_axis(*c, (char[]){(char)('A' + k), 0}, least + random_below(sizes));
    return a;
}

/* Digits of an axis at random radices, some padded or cut, shuffled with those of other axes. */
static const mapping *random_layout(mapping_context *c, const axis *const *axes, int padding)
{
    const mapping *digits[32];
    size_t count = 0;
    for (int k = 0; k < AXES; k++) {
        const mapping *m = mapping_symbol(c, axes[k]);
        if (padding && random_below(4) == 0)
            mapping_pad(c, m, m->size + random_below(8), PAD_TOP, &m);
        while (m->size > 1 && random_below(3)) {
            int64_t n = 1 + random_below((uint32_t)m->size);
            const mapping *outer, *inner;
            if (mapping_split(c, m, n, &outer, &inner) != MAPPING_OK)
                continue;
            if (padding && random_below(5) == 0)
                mapping_pad(c, inner, inner->size + random_below(5), PAD_TOP, &inner);
            if (padding && random_below(8) == 0)
                mapping_resize(c, inner, 1 + random_below((uint32_t)inner->size), &inner);
            digits[count++] = inner;
            m = outer;
        }
        digits[count++] = m;
    }
    const mapping *all = mapping_identity(c);
    while (count > 0) {
        size_t i = random_below((uint32_t)count);
        all = pair(c, all, digits[i]);
        digits[i] = digits[--count];
        if (padding && all->size < 300 && random_below(8) == 0)
            mapping_pad(c, all, all->size + random_below(6), PAD_TOP, &all);
    }
    return all;
}

/* Two axes as one group, cut at random places that need not be those of its axes, the pieces in any order. */
static const mapping *random_group(mapping_context *c, const axis *const *axes, bool small)
{
    const mapping *digits[32], *m = pair(c, mapping_symbol(c, axes[0]), mapping_symbol(c, axes[1])), *outer, *inner;
    size_t count = 0;
    if (small && random_below(2))
        ck_assert_int_eq(mapping_resize(c, m, 1 + random_below((uint32_t)m->size), &m), MAPPING_OK);
    while (m->size > 1 && random_below(3)) {
        if (mapping_split(c, m, 2 + random_below((uint32_t)m->size), &outer, &inner) != MAPPING_OK)
            continue;
        if (random_below(4)) /* else a gap in the group */
            digits[count++] = inner;
        m = outer;
        if (count == 30)
            break;
    }
    digits[count++] = m;
    digits[count++] = mapping_symbol(c, axes[2]);
    const mapping *all = mapping_identity(c);
    while (count > 0) {
        size_t i = random_below((uint32_t)count);
        all = pair(c, all, digits[i]);
        digits[i] = digits[--count];
    }
    return all;
}

static int64_t walk_address(const sequence *seq, int64_t step)
{
    int64_t address = 0;
    for (size_t i = seq->count; i-- > 0;) {
        address += step % seq->parts[i].size * seq->parts[i].stride;
        step /= seq->parts[i].size;
    }
    return address;
}

/* Are these offsets those of some loop nest? Greedy from the inside: the longest constant-stride prefix must repeat. */
static bool is_nest(const int64_t *offset, int64_t n, int64_t step)
{
    while (n > 1) {
        int64_t stride = offset[step] - offset[0], run = 2;
        while (run < n && offset[run * step] - offset[(run - 1) * step] == stride)
            run++;
        /* Any divisor of n up to run may be the loop; the longest that divides is enough when it nests. */
        bool nests = false;
        for (int64_t size = run; size > 1 && !nests; size--) {
            if (n % size)
                continue;
            nests = true;
            for (int64_t i = 0; i < n && nests; i++)
                nests = offset[i * step] == offset[i / size * size * step] + i % size * stride;
            if (nests) {
                step *= size;
                n /= size;
            }
        }
        if (!nests)
            return false;
    }
    return true;
}

typedef struct tally {
    int accepted, refused, padded_refusals;
} tally;

static void one_round(int round, int padding, tally *t)
{
    random_state = (uint64_t)round * 911 + (uint64_t)padding;
    arena *a = arena_new();
    mapping_context *c = mapping_context_new(a);
    static const char *const names[AXES] = {"A", "B", "C"};
    const axis *axes[AXES];
    for (int k = 0; k < AXES; k++)
        axes[k] = mapping_axis(c, names[k], 1 + random_below(k == 0 ? 24 : 8));
    bool groups = padding == 2;
    const mapping *buffer = groups ? random_group(c, axes, false) : random_layout(c, axes, padding);
    const mapping *stream = groups ? random_group(c, axes, true) : random_layout(c, axes, padding);
    if (buffer->size > 4096 || stream->size > 4096) {
        arena_free(a);
        return;
    }
    int64_t n = 1;
    for (int k = 0; k < 3; k++) {
        int64_t d = 1 + random_below(16);
        n = stream->size % d == 0 ? d : n;
    }
    const mapping *time, *packet;
    ck_assert_int_eq(mapping_split(c, stream, n, &time, &packet), MAPPING_OK);
    stream = pair(c, time, packet);
    const char *text = arena_printf(a, "round %d: buffer %s, time %s, packet %s", round, mapping_text(buffer, a), mapping_text(time, a),
                                    mapping_text(packet, a));
    sequence seq;
    bool ok = sequence_derive(c, buffer, time, packet, SEQUENCE_READ, &seq);
    int64_t *offset = ARENA_ARRAY(a, int64_t, stream->size);
    bool all_live = true, all_stored = true;
    for (int64_t s = 0; s < stream->size; s++) {
        int64_t want[AXES] = {0};
        offset[s] = -1;
        if (!mapping_map(stream, s, want)) {
            all_live = false;
            continue;
        }
        for (int k = 0; k < AXES; k++) /* a broadcast axis: any cell without it will do */
            if (!mapping_mentions(buffer, axes[k]))
                want[axes[k]->number] = 0;
        for (int64_t b = 0; b < buffer->size && offset[s] < 0; b++) {
            int64_t have[AXES] = {0};
            if (mapping_map(buffer, b, have) && memcmp(want, have, sizeof want) == 0)
                offset[s] = b;
        }
        all_stored = all_stored && offset[s] >= 0;
        if (ok) {
            int64_t have[AXES] = {0}, address = walk_address(&seq, s);
            ck_assert_msg(mapping_map(buffer, address, have) && memcmp(want, have, sizeof want) == 0, "%s: step %lld reads %lld", text,
                          (long long)s, (long long)address);
        }
    }
    if (ok) {
        int64_t steps = 1;
        size_t before = seq.count;
        for (size_t i = 0; i < seq.count; i++)
            steps *= seq.parts[i].size;
        ck_assert_msg(steps == stream->size, "%s: %lld steps", text, (long long)steps);
        sequence merged = seq;
        merged.parts = arena_grow(a, seq.parts, seq.count, seq.count + 1, sizeof *seq.parts);
        sequence_merge(c, &merged, true);
        for (int64_t s = 0; s < stream->size; s++)
            ck_assert_int_eq(walk_address(&merged, s), walk_address(&seq, s));
        ck_assert(merged.count <= before);
        t->accepted++;
    } else {
        ck_assert_int_ne(seq.failure, SEQUENCE_OK);
        t->refused++;
        t->padded_refusals += !all_live || !all_stored;
        if (all_live && all_stored && mapping_is_full(buffer))
            ck_assert_msg(!is_nest(offset, stream->size, 1), "%s: refused (%d), but a loop nest does it", text, seq.failure);
    }
    arena_free(a);
}

static int rounds(void)
{
    return suite_rounds(2400);
}

START_TEST(reads_are_exact)
{
    static const char *const kinds[] = {"without padding", "with padding", "of groups"};
    for (int padding = 0; padding < 3; padding++) {
        tally t = {0};
        for (int round = 0; round < rounds(); round++)
            one_round(round, padding, &t);
        printf("reads, %s: %d accepted, %d refused (%d of them not fully stored or live)\n", kinds[padding], t.accepted, t.refused,
               t.padded_refusals);
        ck_assert_int_gt(t.accepted, rounds() / (padding == 2 ? 10 : 4));
    }
}
END_TEST

/* Writes: every live buffer cell once, dead positions only on dead cells inside the buffer. */
START_TEST(writes_cover)
{
    int accepted = 0, refused = 0;
    for (int round = 0; round < rounds(); round++) {
        mapping_context *c;
        const axis *axes[AXES];
        arena *a = random_axes((uint64_t)round * 1299721 + 3, 1, 9, &c, axes);
        const mapping *buffer = random_layout(c, axes, round % 2), *stream = random_layout(c, axes, round % 3 == 0);
        sequence seq;
        if (buffer->size < 4096 && stream->size < 4096 && sequence_derive(c, buffer, stream, mapping_identity(c), SEQUENCE_WRITE, &seq)) {
            accepted++;
            const char *text = arena_printf(a, "round %d: buffer %s, stream %s", round, mapping_text(buffer, a), mapping_text(stream, a));
            char *hits = ARENA_ARRAY(a, char, buffer->size);
            for (int64_t s = 0; s < stream->size; s++) {
                int64_t want[AXES] = {0}, have[AXES] = {0}, address = walk_address(&seq, s);
                bool live = mapping_map(stream, s, want), cell = mapping_map(buffer, address, have);
                ck_assert_msg(address >= 0 && address < buffer->size, "%s: step %lld outside", text, (long long)s);
                ck_assert_msg(live == cell, "%s: step %lld live %d cell %d", text, (long long)s, live, cell);
                if (live)
                    ck_assert_msg(memcmp(want, have, sizeof want) == 0 && hits[address]++ == 0, "%s: step %lld", text, (long long)s);
            }
            for (int64_t b = 0; b < buffer->size; b++) {
                int64_t have[AXES] = {0};
                ck_assert_msg(!mapping_map(buffer, b, have) || hits[b], "%s: cell %lld unwritten", text, (long long)b);
            }
        } else {
            refused++;
        }
        arena_free(a);
    }
    printf("writes: %d accepted, %d refused or too large\n", accepted, refused);
    ck_assert_int_gt(accepted, rounds() / 10);
}
END_TEST

/* ---- sliding windows ---- */

static const mapping *window(mapping_context *c, const mapping *l, int64_t n, const mapping *r, int64_t k)
{
    const mapping *m = NULL;
    ck_assert_int_eq(mapping_window(c, (window_part[]){{l, n}, {r, k}}, 2, &m), MAPPING_OK);
    return m;
}

/* Where the buffer [window over A and B, C] (or [C, window]) holds the index. */
static int64_t window_address(const mapping *w, int64_t window_stride, const axis *c, int64_t c_stride, const int64_t *coords)
{
    return window_place(w->factors[0].axis, coords) * window_stride + coords[c->number] * c_stride;
}

/* Reading a window by its terms, in any order and cut in any way: every live step reads the place of its index. */
START_TEST(windows_are_read)
{
    int accepted = 0, refused = 0;
    for (int round = 0; round < rounds(); round++) {
        mapping_context *c;
        const axis *axes[AXES];
        const mapping *m[AXES];
        arena *a = random_axes((uint64_t)round * 31337 + 5, 2, 7, &c, axes);
        for (int k = 0; k < AXES; k++)
            m[k] = mapping_symbol(c, axes[k]);
        const mapping *w = window(c, m[0], 1 + random_below(4), m[1], 1 + random_below(4));
        bool inner = random_below(2);
        const mapping *buffer = inner ? pair(c, m[2], w) : pair(c, w, m[2]);
        const mapping *stream = random_layout(c, axes, round % 2);
        sequence seq;
        bool is_window = w->count == 1 && w->factors[0].axis->term_count > 0;
        if (is_window && stream->size <= 4096 && sequence_derive(c, buffer, stream, mapping_identity(c), SEQUENCE_READ, &seq)) {
            accepted++;
            for (int64_t s = 0; s < stream->size; s++) {
                int64_t coords[8] = {0};
                if (!mapping_map(stream, s, coords))
                    continue;
                int64_t want = window_address(w, inner ? 1 : axes[2]->size, axes[2], inner ? w->size : 1, coords);
                ck_assert_msg(walk_address(&seq, s) == want, "round %d: buffer %s, stream %s: step %lld reads %lld, not %lld", round,
                              mapping_text(buffer, a), mapping_text(stream, a), (long long)s, (long long)walk_address(&seq, s),
                              (long long)want);
            }
        } else {
            refused++;
            /* Whole digits of every term, without padding, are always loops. */
            ck_assert_msg(!is_window || round % 2 || stream->size > 4096, "round %d: %s from %s refused (%d)", round,
                          mapping_text(stream, a), mapping_text(buffer, a), seq.failure);
        }
        arena_free(a);
    }
    printf("windows: %d accepted, %d refused, pairs or too large\n", accepted, refused);
    ck_assert_int_gt(accepted, rounds() / 4);
}
END_TEST

/* A tile of a window with its halo, over an axis or a digit of it, with others below and above: every place of it is at the place of the
 * whole window that the digits next to it say. */
START_TEST(windows_in_windows)
{
    int derived[2] = {0}; /* others; over a digit with some below and above */
    for (int round = 0; round < rounds(); round++) {
        random_state = (uint64_t)round * 4099 + 3;
        arena *a = arena_new();
        mapping_context *c = mapping_context_new(a);
        int64_t tiles = 2 + random_below(3), each = 2 + random_below(4), taps = 2 + random_below(3), ratio = 1 + random_below(2),
                lower = 1 + random_below(3), upper = 1 + random_below(3);
        const axis *axes[] = {mapping_axis(c, "A", upper * lower * tiles * each), mapping_axis(c, "B", taps), mapping_axis(c, "C", 3)};
        const mapping *m[3], *outer, *inner, *rest;
        for (int k = 0; k < 3; k++)
            m[k] = mapping_symbol(c, axes[k]);
        ck_assert_int_eq(mapping_split(c, m[0], lower, &m[0], &rest), MAPPING_OK);
        ck_assert_int_eq(mapping_split(c, m[0], tiles * each, &rest, &m[0]), MAPPING_OK);
        int64_t stride = 1 + random_below(3), dilation = 1 + random_below(3);
        const mapping *w = window(c, m[0], stride * ratio, m[1], dilation * ratio);
        ck_assert_int_eq(mapping_split(c, m[0], each, &outer, &inner), MAPPING_OK);
        const mapping *tile = window(c, inner, stride, m[1], dilation), *buffer = pair(c, w, m[2]);
        const axis *of = tile->count == 1 ? tile->factors[0].axis : NULL;
        if (of && of->term_count > 0 && w->count == 1 && w->factors[0].axis->term_count > 0) {
            derived[lower > 1 && upper > 1]++;
            const mapping *stream = random_below(2) ? pair(c, outer, pair(c, m[2], tile)) : pair(c, pair(c, m[2], tile), outer);
            sequence seq;
            ck_assert(sequence_derive(c, buffer, stream, mapping_identity(c), random_below(2) ? SEQUENCE_READ : SEQUENCE_COPY, &seq));
            for (int64_t s = 0; s < stream->size; s++) {
                int64_t coords[8] = {0};
                ck_assert(mapping_map(stream, s, coords));
                int64_t place = coords[axes[0]->number] / lower * stride * ratio + coords[of->number] * ratio;
                ck_assert_msg(walk_address(&seq, s) == place * 3 + coords[axes[2]->number], "round %d: buffer %s, stream %s, step %lld",
                              round, mapping_text(buffer, a), mapping_text(stream, a), (long long)s);
            }
            /* Without the digits next to it there is no saying where the tile begins; and a tile is not written. */
            ck_assert(!sequence_derive(c, buffer, pair(c, outer, pair(c, outer, tile)), mapping_identity(c), SEQUENCE_READ, &seq));
            ck_assert(!sequence_derive(c, buffer, stream, mapping_identity(c), SEQUENCE_WRITE, &seq));
        }
        arena_free(a);
    }
    ck_assert_int_gt(derived[0], rounds() / 8);
    ck_assert_int_gt(derived[1], rounds() / 8);
}
END_TEST

static sequence_failure failure(mapping_context *c, const mapping *buffer, const mapping *stream, sequence_access access)
{
    sequence seq;
    bool ok = sequence_derive(c, buffer, stream, mapping_identity(c), access, &seq);
    ck_assert_int_eq(ok, seq.failure == SEQUENCE_OK);
    return seq.failure;
}

START_TEST(windows_refuse)
{
    const mapping *A = mapping_symbol(maps, mapping_axis(maps, "A", 8)), *B = mapping_symbol(maps, mapping_axis(maps, "B", 3));
    const mapping *C = mapping_symbol(maps, mapping_axis(maps, "C", 4)), *w = window(maps, A, 2, B, 1), *outer, *inner, *cut;
    ck_assert_int_eq(mapping_split(maps, A, 4, &outer, &inner), MAPPING_OK);
    const mapping *part = window(maps, inner, 2, B, 1);
    /* As it is, for reading and writing, with padding as well. */
    ck_assert_int_eq(failure(maps, pair(maps, w, C), pair(maps, C, w), SEQUENCE_READ), SEQUENCE_OK);
    ck_assert_int_eq(failure(maps, pair(maps, w, C), pair(maps, C, w), SEQUENCE_WRITE), SEQUENCE_OK);
    ck_assert_int_eq(failure(maps, pair(maps, w, C), pair(maps, C, w), SEQUENCE_COPY), SEQUENCE_OK);
    /* Through it: reading only. */
    ck_assert_int_eq(failure(maps, w, pair(maps, A, B), SEQUENCE_READ), SEQUENCE_OK);
    ck_assert_int_eq(failure(maps, w, pair(maps, A, B), SEQUENCE_WRITE), SEQUENCE_WINDOW_WRITE);
    ck_assert_int_eq(failure(maps, w, A, SEQUENCE_READ), SEQUENCE_WINDOW_TERMS);
    ck_assert_int_eq(failure(maps, w, pair(maps, w, B), SEQUENCE_READ), SEQUENCE_WINDOW_TERMS);
    ck_assert_int_eq(failure(maps, w, pair(maps, pair(maps, w, A), B), SEQUENCE_READ), SEQUENCE_WINDOW_TERMS);
    ck_assert_int_eq(failure(maps, pair(maps, w, A), pair(maps, A, B), SEQUENCE_READ), SEQUENCE_WINDOW_SHARED);
    ck_assert_int_eq(failure(maps, pair(maps, A, w), pair(maps, A, B), SEQUENCE_READ), SEQUENCE_WINDOW_SHARED);
    ck_assert_int_eq(failure(maps, pair(maps, w, window(maps, A, 1, C, 1)), pair(maps, A, pair(maps, B, C)), SEQUENCE_READ),
                     SEQUENCE_WINDOW_SHARED);
    ck_assert_int_eq(failure(maps, pair(maps, A, B), w, SEQUENCE_READ), SEQUENCE_WINDOW_MISSING);
    ck_assert_int_eq(failure(maps, pair(maps, A, B), w, SEQUENCE_WRITE), SEQUENCE_WINDOW_MISSING);
    ck_assert_int_eq(failure(maps, pair(maps, A, B), w, SEQUENCE_COPY), SEQUENCE_WINDOW_MISSING);
    ck_assert_int_eq(failure(maps, C, pair(maps, w, C), SEQUENCE_READ), SEQUENCE_OK); /* a broadcast */
    /* The window over one digit of an axis next to the other digit. */
    ck_assert_int_eq(failure(maps, pair(maps, outer, part), pair(maps, A, B), SEQUENCE_READ), SEQUENCE_OK);
    ck_assert_int_eq(failure(maps, part, pair(maps, A, B), SEQUENCE_READ), SEQUENCE_INSUFFICIENT);
    /* A digit of five is not held by one of four, by one place alone. */
    const mapping *D = mapping_symbol(maps, mapping_axis(maps, "D", 20)), *fourths, *four, *fifths, *five;
    ck_assert_int_eq(mapping_split(maps, D, 4, &fourths, &four), MAPPING_OK);
    ck_assert_int_eq(mapping_split(maps, D, 5, &fifths, &five), MAPPING_OK);
    ck_assert_int_eq(
        failure(maps, pair(maps, fourths, window(maps, four, 1, B, 1)), pair(maps, fifths, window(maps, five, 1, B, 1)), SEQUENCE_READ),
        SEQUENCE_WINDOW_MISSING);
    /* A cut window has no terms. */
    ck_assert_int_eq(mapping_resize(maps, w, 8, &cut), MAPPING_OK);
    ck_assert_int_eq(failure(maps, cut, cut, SEQUENCE_READ), SEQUENCE_OK);
    ck_assert_int_ne(failure(maps, pair(maps, cut, C), pair(maps, w, C), SEQUENCE_READ), SEQUENCE_OK);
    ck_assert_int_eq(failure(maps, pair(maps, cut, C), pair(maps, pair(maps, A, B), C), SEQUENCE_READ), SEQUENCE_INSUFFICIENT);
    ck_assert_int_eq(failure(maps, cut, B, SEQUENCE_WRITE), SEQUENCE_INSUFFICIENT);
}
END_TEST

/* ---- rules, one by one ---- */

static const mapping *digit_of(mapping_context *c, const mapping *m, int64_t stride, int64_t modulo)
{
    const mapping *out = m;
    ck_assert_int_eq(mapping_stride(c, m, stride, &out), MAPPING_OK);
    if (modulo > 0)
        ck_assert_int_eq(mapping_modulo(c, out, modulo, &out), MAPPING_OK);
    return out;
}

static const mapping *list(mapping_context *c, const mapping *const *parts, size_t count)
{
    const mapping *m = NULL;
    ck_assert_int_eq(mapping_concat(c, parts, count, &m), MAPPING_OK);
    return m;
}

/* The loops, outermost first, as "size:stride"; or the number of the failure. */
static const char *loops_of(mapping_context *c, const mapping *buffer, const mapping *stream, sequence_access access)
{
    static const sequence_limits limits = {.entries = 8, .entry_size = 65536, .stride_min = INT32_MIN, .stride_max = INT32_MAX, .scale = 1};
    sequence seq;
    strbuf s;
    strbuf_init(&s, mapping_context_arena(c));
    bool ok = sequence_derive(c, buffer, stream, mapping_identity(c), access, &seq) && sequence_fit(c, &seq, limits);
    if (!ok)
        strbuf_printf(&s, "failure %d", seq.failure);
    for (size_t i = 0; ok && i < seq.count; i++)
        strbuf_printf(&s, "%s%lld:%lld", i ? " " : "", (long long)seq.parts[i].size, (long long)seq.parts[i].stride);
    return s.text;
}

/* Digits that do not nest: a step is the sum of its steps in each buffer digit, until one overflows. */
START_TEST(digits_need_not_nest)
{
    const mapping *B = mapping_symbol(maps, mapping_axis(maps, "B", 6)), *A = mapping_symbol(maps, mapping_axis(maps, "A", 20));
    const mapping *X = mapping_symbol(maps, mapping_axis(maps, "X", 5));
    const mapping *halves = list(maps, (const mapping *[]){digit_of(maps, B, 1, 2), X, digit_of(maps, B, 2, 0)}, 3); /* B % 2, X, B / 2 */
    ck_assert_str_eq(loops_of(maps, halves, digit_of(maps, B, 3, 0), SEQUENCE_READ), "2:16");
    ck_assert_str_eq(loops_of(maps, halves, pair(maps, digit_of(maps, B, 3, 0), X), SEQUENCE_READ), "2:16 5:3");
    /* 0, 1, 2 would have to be a line. */
    char refused[32];
    snprintf(refused, sizeof refused, "failure %d", SEQUENCE_INCOMPATIBLE);
    ck_assert_str_eq(loops_of(maps, halves, digit_of(maps, B, 1, 3), SEQUENCE_READ), refused);
    /* Each alone is a line, but 3 + 2 is not what 3 and 2 are. */
    ck_assert_str_eq(
        loops_of(maps, halves, list(maps, (const mapping *[]){digit_of(maps, B, 3, 0), X, digit_of(maps, B, 1, 3)}, 3), SEQUENCE_READ),
        refused);
    const mapping *fifths = list(maps, (const mapping *[]){digit_of(maps, A, 1, 4), X, digit_of(maps, A, 4, 0)}, 3); /* A % 4, X, A / 4 */
    ck_assert_str_eq(loops_of(maps, fifths, digit_of(maps, A, 10, 0), SEQUENCE_READ), "2:52");
    /* One loop in the lower digit, then one in both. */
    ck_assert_str_eq(loops_of(maps, fifths, digit_of(maps, A, 2, 2), SEQUENCE_READ), "2:50");
    snprintf(refused, sizeof refused, "failure %d", SEQUENCE_UNWRITTEN);
    ck_assert_str_eq(loops_of(maps, halves, pair(maps, digit_of(maps, B, 3, 0), X), SEQUENCE_WRITE), refused);
    /* 0 and 3 are all values of both halves, but not all of their pairs. */
    const mapping *D = mapping_symbol(maps, mapping_axis(maps, "D", 4)), *D6;
    ck_assert_int_eq(mapping_pad(maps, D, 6, PAD_TOP, &D6), MAPPING_OK);
    const mapping *apart = list(maps, (const mapping *[]){digit_of(maps, D, 1, 2), X, digit_of(maps, D, 2, 0)}, 3);
    ck_assert_str_eq(loops_of(maps, apart, pair(maps, digit_of(maps, D6, 3, 0), X), SEQUENCE_WRITE), refused);
}
END_TEST

START_TEST(groups_step_several_axes)
{
    const mapping *A = mapping_symbol(maps, mapping_axis(maps, "A", 8)), *B = mapping_symbol(maps, mapping_axis(maps, "B", 9)),
                  *AB = pair(maps, A, B);
    const mapping *X = mapping_symbol(maps, mapping_axis(maps, "X", 5)), *twelfths = digit_of(maps, AB, 12, 0);
    /* 0, 12, 24 are (0,0), (1,3), (2,6); 36 is (4,0). */
    ck_assert_str_eq(loops_of(maps, pair(maps, B, A), twelfths, SEQUENCE_READ), "2:4 3:25");
    ck_assert_str_eq(loops_of(maps, AB, twelfths, SEQUENCE_READ), "6:12");
    ck_assert_str_eq(loops_of(maps, pair(maps, twelfths, X), pair(maps, X, twelfths), SEQUENCE_READ), "5:1 6:5");
    ck_assert_str_eq(loops_of(maps, pair(maps, twelfths, X), pair(maps, X, twelfths), SEQUENCE_WRITE), "5:1 6:5");
    /* The same cut twice: the outer cut and the inner one, against the whole. */
    const mapping *cut = list(maps, (const mapping *[]){digit_of(maps, AB, 12, 3), X, digit_of(maps, AB, 36, 0)}, 3);
    ck_assert_str_eq(loops_of(maps, cut, twelfths, SEQUENCE_READ), "2:1 3:10");
    /* A straight line through addresses, whatever it carries into. */
    ck_assert_str_eq(loops_of(maps, pair(maps, X, AB), digit_of(maps, AB, 8, 0), SEQUENCE_READ), "9:8");
    const mapping *padded = NULL;
    ck_assert_int_eq(mapping_pad(maps, AB, 80, PAD_TOP, &padded), MAPPING_OK);
    ck_assert_str_eq(loops_of(maps, padded, padded, SEQUENCE_WRITE), "80:1");
    /* Every other cell of a run is not all of it. */
    char refused[32];
    snprintf(refused, sizeof refused, "failure %d", SEQUENCE_UNWRITTEN);
    ck_assert_str_eq(loops_of(maps, AB, digit_of(maps, AB, 2, 0), SEQUENCE_WRITE), refused);
}
END_TEST

/* "Whether an axis occurs in Buf is decided on the normal form": `A, D = 1` does not mention D, which is a broadcast then. */
START_TEST(normal_form_decides_what_occurs)
{
    const mapping *A = mapping_symbol(maps, mapping_axis(maps, "A", 8)), *D = mapping_symbol(maps, mapping_axis(maps, "D", 5)), *first;
    ck_assert_int_eq(mapping_resize(maps, D, 1, &first), MAPPING_OK);
    ck_assert_ptr_eq(pair(maps, A, first), A);
    ck_assert_str_eq(loops_of(maps, pair(maps, A, first), pair(maps, A, D), SEQUENCE_READ), "8:1 5:0");
    ck_assert_int_eq(mapping_resize(maps, D, 2, &first), MAPPING_OK);
    ck_assert_int_eq(failure(maps, pair(maps, A, first), pair(maps, A, D), SEQUENCE_READ), SEQUENCE_INSUFFICIENT);
}
END_TEST

/* What can be done before a limit is a reason to refuse. */
START_TEST(limits_are_met_where_they_can_be)
{
    const mapping *X = mapping_symbol(maps, mapping_axis(maps, "X", 4));
    const struct {
        int64_t size;
        const char *loops;
    } cases[] = {
        {65536, "4:1 65536:4"},
        {65537, "failure"},
        {65538, "4:1 2:131076 32769:4"},
        {131072, "4:1 2:262144 65536:4"},
        {(int64_t)1 << 29, "4:1 8192:262144 65536:4"},
        {(int64_t)1 << 34, "4:1 65536:1048576 4:262144 65536:4"},
        {(int64_t)1 << 48, "failure"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const mapping *L = mapping_symbol(maps, mapping_axis(maps, "L", cases[i].size));
        const char *loops = loops_of(maps, pair(maps, L, X), pair(maps, X, L), SEQUENCE_READ);
        ck_assert_msg(strncmp(loops, cases[i].loops, strlen(cases[i].loops)) == 0, "%lld: %s", (long long)cases[i].size, loops);
    }
    /* Two entries of 65536 would step by 2^32: the inner one is shorter. */
    const mapping *N = mapping_symbol(maps, mapping_axis(maps, "N", 131072)), *Y = mapping_symbol(maps, mapping_axis(maps, "Y", 65536));
    ck_assert_str_eq(loops_of(maps, pair(maps, N, Y), pair(maps, Y, N), SEQUENCE_READ), "65536:1 65536:131072 2:65536");
    /* A broadcast of any size splits while there is room: 2^40 in three. */
    const mapping *W = mapping_symbol(maps, mapping_axis(maps, "W", (int64_t)1 << 40));
    ck_assert_str_eq(loops_of(maps, X, pair(maps, W, X), SEQUENCE_READ), "256:0 65536:0 65536:0 4:1");
}
END_TEST

/* One loop with this stride, at the limits of the machine's rows. */
static bool stride_fits_alone(mapping_context *c, int64_t stride, int64_t scale)
{
    const target *t = target_by_name("rngd");
    sequence_part part = {.term = mapping_identity(c), .size = 2, .live = 2, .stride = stride};
    sequence seq = {.parts = &part, .count = 1, .capacity = 1};
    bool fits = sequence_fit(c, &seq,
                             (sequence_limits){.entries = t->sequencer_entries,
                                               .entry_size = t->sequencer_entry_size,
                                               .stride_min = t->sequencer_stride_min,
                                               .stride_max = t->sequencer_stride_max,
                                               .scale = scale});
    ck_assert(fits || seq.failure == SEQUENCE_STRIDE);
    ck_assert(fits || seq.limit == (stride < 0 ? t->sequencer_stride_min : t->sequencer_stride_max));
    ck_assert(fits || seq.measure == stride);
    return fits;
}

/* test/limits.py says that these two rows are judged here: no source text has a stride like them. */
START_TEST(strides_fit_to_their_last_value)
{
    const target *t = target_by_name("rngd");
    for (int64_t scale = 1; scale <= 8; scale *= 8) {
        int64_t most = t->sequencer_stride_max / scale, least = t->sequencer_stride_min / scale;
        ck_assert(stride_fits_alone(maps, most, scale));
        ck_assert(!stride_fits_alone(maps, most + 1, scale));
        ck_assert(stride_fits_alone(maps, least, scale));
        ck_assert(!stride_fits_alone(maps, least - 1, scale));
        ck_assert(!stride_fits_alone(maps, INT64_MAX / 2 + 1, scale * 2)); /* past 63 bits */
    }
}
END_TEST

/* ---- how far live positions reach ---- */

/* Up to three stream digits of up to three loops each on one counter. */
static size_t random_loops(counted_loop *loops)
{
    size_t count = 0;
    int64_t step = 1 + random_below(2);
    for (unsigned digit = 0, digits = 1 + random_below(3); digit < digits; digit++) {
        size_t first = count;
        int64_t unit = step;
        for (unsigned n = 1 + random_below(3); n > 0; n--) {
            int64_t size = 1 + random_below(4);
            loops[count++] = (counted_loop){
                .step = step, .most = size - 1 - (random_below(4) == 0 && size > 1), .gain = random_below(6), .digit = digit};
            step *= size * (1 + (random_below(4) == 0)); /* now and then a loop between that adds nothing */
        }
        loops[count - 1].opens = true;
        for (size_t i = first; i < count; i++)
            loops[i].last = (int64_t)random_below((uint32_t)(step / unit)) * unit;
        loops[count - 1].last = loops[first].last;
    }
    for (size_t i = 0; i < count / 2; i++) {
        counted_loop swap = loops[i];
        loops[i] = loops[count - 1 - i];
        loops[count - 1 - i] = swap;
    }
    return count;
}

/* Every number, one by one: its loops' iterations are its digits where they exist. */
static int64_t reach_by_enumeration(const counted_loop *loops, size_t count, int64_t last)
{
    int64_t best = 0, at[16] = {0};
    for (;;) {
        int64_t number = 0, sum = 0, own = 0, limit = 0;
        bool live = true;
        for (size_t i = 0; i < count; i++) {
            if (loops[i].opens) {
                live = live && own <= limit;
                own = 0;
                limit = loops[i].last;
            }
            number += at[i] * loops[i].step;
            own += at[i] * loops[i].step;
            sum += at[i] * loops[i].gain;
        }
        if (live && own <= limit && number <= last && sum > best)
            best = sum;
        size_t i = 0;
        while (i < count && at[i] == loops[i].most)
            at[i++] = 0;
        if (i == count)
            return best;
        at[i]++;
    }
}

START_TEST(reach_is_the_largest_sum)
{
    int bound = 0;
    for (int round = 0; round < suite_rounds(4000); round++) {
        random_state = (uint64_t)round * 17 + 3;
        counted_loop loops[16];
        size_t count = random_loops(loops);
        int64_t end = 0;
        for (size_t i = 0; i < count; i++)
            end += loops[i].most * loops[i].step;
        int64_t last = random_below(3) ? end : (int64_t)random_below((uint32_t)end + 1), want = reach_by_enumeration(loops, count, last),
                all = 0;
        ck_assert_msg(loops_reach(loops, count, last) == want, "round %d: %lld instead of %lld", round,
                      (long long)loops_reach(loops, count, last), (long long)want);
        for (size_t i = 0; i < count; i++)
            all += loops[i].most * loops[i].gain;
        bound += want < all;
    }
    ck_assert_int_gt(bound, suite_rounds(4000) / 4);
}
END_TEST

/* A front of a group: what counts is the last live position, not the largest digits. */
START_TEST(fronts_are_read_to_their_last_position)
{
    const mapping *C = mapping_symbol(maps, mapping_axis(maps, "C", 32)), *D = mapping_symbol(maps, mapping_axis(maps, "D", 4)),
                  *CD = pair(maps, C, D), *buffer, *front;
    ck_assert_int_eq(mapping_pad(maps, CD, 130, PAD_TOP, &CD), MAPPING_OK);
    const mapping *inner = digit_of(maps, CD, 1, 26), *steps = digit_of(maps, CD, 26, 0);
    ck_assert_int_eq(mapping_pad(maps, pair(maps, inner, steps), 136, PAD_TOP, &buffer), MAPPING_OK);
    ck_assert_str_eq(loops_of(maps, buffer, inner, SEQUENCE_READ), "26:5");
    /* Of a cut that is no digit the front may be one: 0, 2, 4 of C are the first of `[B, C] / 2`. */
    const mapping *C5 = mapping_symbol(maps, mapping_axis(maps, "C5", 5)),
                  *BC = pair(maps, mapping_symbol(maps, mapping_axis(maps, "B2", 2)), C5);
    ck_assert_int_eq(mapping_resize(maps, C5, 4, &front), MAPPING_OK);
    const mapping *cut = pair(maps, digit_of(maps, BC, 2, 0), digit_of(maps, BC, 1, 2));
    ck_assert_str_eq(loops_of(maps, cut, front, SEQUENCE_READ), "4:1");
    ck_assert_int_eq(failure(maps, cut, BC, SEQUENCE_READ), SEQUENCE_INSUFFICIENT);
    ck_assert_int_ne(failure(maps, cut, front, SEQUENCE_WRITE), SEQUENCE_OK);
    /* The halves of an axis reach its end, not the sum of their largest: 5 of A are 0, 1 | 2, 3 | 4. */
    const mapping *A = mapping_symbol(maps, mapping_axis(maps, "A", 5)), *B = mapping_symbol(maps, mapping_axis(maps, "B", 4));
    ck_assert_int_eq(mapping_resize(maps, pair(maps, A, B), 18, &buffer), MAPPING_OK);
    ck_assert_int_eq(mapping_resize(maps, B, 2, &front), MAPPING_OK);
    ck_assert_int_eq(mapping_pad(maps, A, 6, PAD_TOP, &A), MAPPING_OK);
    const mapping *halves = list(maps, (const mapping *[]){digit_of(maps, A, 1, 2), digit_of(maps, A, 2, 0), front}, 3);
    ck_assert_str_eq(loops_of(maps, buffer, halves, SEQUENCE_READ), "2:4 3:8 2:1");
    ck_assert_int_eq(mapping_resize(maps, pair(maps, mapping_strip_padding(maps, A), B), 17, &buffer), MAPPING_OK);
    ck_assert_int_eq(failure(maps, buffer, halves, SEQUENCE_READ), SEQUENCE_INSUFFICIENT);
}
END_TEST

/* After a front of a group the next part goes on, as far as nothing carries: 6 of `[B, C] / 4, [B, C] % 4` with 3 of C, 16 of tenths
 * with 8. */
START_TEST(fronts_go_on_in_the_next_part)
{
    const mapping *X = mapping_symbol(maps, mapping_axis(maps, "X", 2)), *C = mapping_symbol(maps, mapping_axis(maps, "C", 3)), *front;
    const mapping *BC = pair(maps, mapping_symbol(maps, mapping_axis(maps, "B", 4)), C), *low = digit_of(maps, BC, 1, 4),
                  *high = digit_of(maps, BC, 4, 0);
    ck_assert_int_eq(mapping_resize(maps, BC, 6, &front), MAPPING_OK);
    ck_assert_str_eq(loops_of(maps, pair(maps, high, low), front, SEQUENCE_READ), "6:1");
    ck_assert_str_eq(loops_of(maps, list(maps, (const mapping *[]){high, low, X}, 3), front, SEQUENCE_READ), "6:2");
    ck_assert_int_eq(failure(maps, list(maps, (const mapping *[]){high, X, low}, 3), front, SEQUENCE_READ), SEQUENCE_INSUFFICIENT);
    ck_assert_int_eq(failure(maps, pair(maps, low, high), front, SEQUENCE_READ), SEQUENCE_INSUFFICIENT);
    ck_assert_int_eq(failure(maps, low, front, SEQUENCE_READ), SEQUENCE_INSUFFICIENT);
    const mapping *half = NULL; /* the next part, of D:1 only its first position */
    ck_assert_int_eq(mapping_resize(maps, pair(maps, X, high), 4, &half), MAPPING_OK);
    ck_assert_int_eq(failure(maps, pair(maps, half, low), pair(maps, front, X), SEQUENCE_READ), SEQUENCE_INSUFFICIENT);
    ck_assert_int_eq(mapping_resize(maps, BC, 9, &front), MAPPING_OK);
    ck_assert_int_eq(failure(maps, pair(maps, high, low), front, SEQUENCE_READ), SEQUENCE_INSUFFICIENT);
    const mapping *BE = pair(maps, mapping_symbol(maps, mapping_axis(maps, "B", 5)), mapping_symbol(maps, mapping_axis(maps, "E", 8)));
    const mapping *tenths = pair(maps, digit_of(maps, BE, 10, 0), digit_of(maps, BE, 1, 10));
    ck_assert_int_eq(mapping_resize(maps, BE, 16, &front), MAPPING_OK);
    ck_assert_str_eq(loops_of(maps, tenths, pair(maps, X, front), SEQUENCE_READ), "2:0 16:1");
    ck_assert_int_eq(mapping_resize(maps, BE, 24, &front), MAPPING_OK);
    ck_assert_int_eq(failure(maps, tenths, front, SEQUENCE_READ), SEQUENCE_INSUFFICIENT);
}
END_TEST

/* A group that is taken whole counts for the group around it: cell 48 is the last of A:1. */
START_TEST(fronts_end_inside_a_whole_group)
{
    const mapping *A = mapping_symbol(maps, mapping_axis(maps, "A", 2)),
                  *inner = pair(maps, mapping_symbol(maps, mapping_axis(maps, "B", 2)), mapping_symbol(maps, mapping_axis(maps, "C", 8)));
    ck_assert_int_eq(mapping_pad(maps, inner, 33, PAD_TOP, &inner), MAPPING_OK);
    const mapping *stream = pair(maps, A, inner), *buffer;
    ck_assert_int_eq(mapping_resize(maps, stream, 49, &buffer), MAPPING_OK);
    ck_assert_str_eq(loops_of(maps, buffer, stream, SEQUENCE_READ), "66:1");
    ck_assert_int_eq(mapping_resize(maps, stream, 48, &buffer), MAPPING_OK);
    ck_assert_int_eq(failure(maps, buffer, stream, SEQUENCE_READ), SEQUENCE_INSUFFICIENT);
    /* Where one term has the inner group, none has the outer one. */
    const mapping *fourths = digit_of(maps, buffer, 12, 0), *front;
    ck_assert_str_eq(loops_of(maps, buffer, fourths, SEQUENCE_READ), "4:12");
    ck_assert_int_eq(mapping_resize(maps, inner, 12, &front), MAPPING_OK);
    ck_assert_int_ne(failure(maps, buffer, pair(maps, front, fourths), SEQUENCE_READ), SEQUENCE_OK);
}
END_TEST

/* `[A, B] = 10` with 4 of B is `[A, B / 2] = 5` next to `B % 2`: the same in either form, and turned. */
START_TEST(groups_are_cut_inside_a_digit)
{
    const mapping *B = mapping_symbol(maps, mapping_axis(maps, "B", 4)), *X = mapping_symbol(maps, mapping_axis(maps, "X", 3)), *ten;
    ck_assert_int_eq(mapping_resize(maps, pair(maps, mapping_symbol(maps, mapping_axis(maps, "A", 3)), B), 10, &ten), MAPPING_OK);
    const mapping *five = digit_of(maps, ten, 2, 0), *low = digit_of(maps, B, 1, 2),
                  *turned = list(maps, (const mapping *[]){low, X, five}, 3);
    ck_assert_str_eq(loops_of(maps, pair(maps, five, low), ten, SEQUENCE_WRITE), "10:1");
    ck_assert_str_eq(loops_of(maps, ten, pair(maps, low, five), SEQUENCE_WRITE), "2:1 5:2");
    ck_assert_str_eq(loops_of(maps, turned, pair(maps, X, ten), SEQUENCE_READ), "15:1 2:15");
    ck_assert_str_eq(loops_of(maps, turned, pair(maps, X, ten), SEQUENCE_WRITE), "15:1 2:15");
    ck_assert_str_eq(loops_of(maps, pair(maps, X, ten), turned, SEQUENCE_WRITE), "2:1 15:2");
    ck_assert_str_eq(loops_of(maps, pair(maps, X, ten), turned, SEQUENCE_COPY), "2:1 15:2");
    ck_assert_int_ne(failure(maps, turned, pair(maps, X, five), SEQUENCE_WRITE), SEQUENCE_OK);
}
END_TEST

/* The fourth step of `A % 3 # 4` is dead, and A:3 has a cell. */
START_TEST(dead_steps_are_not_written_to_live_cells)
{
    const mapping *A = mapping_symbol(maps, mapping_axis(maps, "A", 6)), *B = mapping_symbol(maps, mapping_axis(maps, "B", 2)), *three,
                  *four;
    ck_assert_int_eq(mapping_resize(maps, A, 3, &three), MAPPING_OK);
    ck_assert_int_eq(mapping_pad(maps, three, 4, PAD_TOP, &three), MAPPING_OK);
    ck_assert_int_eq(mapping_resize(maps, A, 4, &four), MAPPING_OK);
    const mapping *turned = list(maps, (const mapping *[]){digit_of(maps, four, 1, 2), B, digit_of(maps, four, 2, 0)}, 3);
    ck_assert_int_eq(failure(maps, turned, pair(maps, three, B), SEQUENCE_WRITE), SEQUENCE_OUTSIDE);
    ck_assert_str_eq(loops_of(maps, turned, pair(maps, three, B), SEQUENCE_READ), "2:1 4:2");
    ck_assert_str_eq(loops_of(maps, turned, pair(maps, four, B), SEQUENCE_WRITE), "2:1 4:2");
}
END_TEST

int main(void)
{
    TCase *t = suite_case_with("oracle", set_up, teardown);
    suite_tests(t, reads_are_exact, writes_cover, windows_are_read, windows_in_windows, windows_refuse, digits_need_not_nest,
                groups_step_several_axes, normal_form_decides_what_occurs, limits_are_met_where_they_can_be,
                strides_fit_to_their_last_value, reach_is_the_largest_sum, fronts_are_read_to_their_last_position,
                fronts_go_on_in_the_next_part, fronts_end_inside_a_whole_group, groups_are_cut_inside_a_digit,
                dead_steps_are_not_written_to_live_cells);
    return suite_status("sequencer", t);
}
