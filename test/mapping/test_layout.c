/* Mapping programs: the table of constructors, position by position, against the definition written once more
 * as a tree; and programs that no compiler would write. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/layout.h"
#include "test/fixture.h"

enum { A, B, C, R, AXIS_COUNT };
static const layout_axis axes[AXIS_COUNT] = {{"A", 4}, {"B", 6}, {"C", 8}, {"R", 14}};

#define W LAYOUT_WORD
#define AXIS(a) W(LAYOUT_AXIS, a)
#define PAIR W(LAYOUT_PAIR, 0)

static bool passes(layout l)
{
    diag_list_init(&diags, memory);
    bool ok = layout_check(l, axes, AXIS_COUNT, ".visa.ports.k", 0x40, &diags);
    ck_assert_uint_eq(diags.count, !ok);
    return ok;
}

/* Positions as text: "A1B2" for an index, "-" for the empty one, "x" for a dead position. */
static const char *walk(layout l)
{
    char *text = arena_alloc(memory, 4096);
    for (int64_t i = 0; i < layout_size(l, axes); i++) {
        int64_t coords[AXIS_COUNT] = {0};
        bool live = layout_map(l, axes, i, coords), empty = true;
        for (int a = 0; live && a < AXIS_COUNT; a++)
            if (coords[a]) {
                sprintf(text + strlen(text), "%s%d", axes[a].name, (int)coords[a]);
                empty = false;
            }
        strcat(text, !live ? "x " : empty ? "- " : " ");
    }
    return text;
}

typedef struct walk_case {
    uint64_t words[8];
    size_t count;
    int64_t size;
    const char *positions, *text;
} walk_case;

static const walk_case walk_cases[] = {
    {{W(LAYOUT_BROADCAST, 1)}, 1, 1, "- ", "1"},
    {{W(LAYOUT_BROADCAST, 3)}, 1, 3, "- - - ", "3"},
    {{AXIS(A)}, 1, 4, "- A1 A2 A3 ", "A"},
    {{AXIS(B), W(LAYOUT_STRIDE, 2)}, 2, 3, "- B2 B4 ", "B / 2"},
    {{AXIS(B), W(LAYOUT_MODULO, 2)}, 2, 2, "- B1 ", "B % 2"},
    {{AXIS(B), W(LAYOUT_RESIZE, 4)}, 2, 4, "- B1 B2 B3 ", "B = 4"},
    {{AXIS(A), W(LAYOUT_PAD, 6)}, 2, 6, "- A1 A2 A3 x x ", "A # 6"},
    {{W(LAYOUT_BROADCAST, 1), W(LAYOUT_PAD, 4)}, 2, 4, "- x x x ", "1 # 4"},
    {{AXIS(B), W(LAYOUT_MODULO, 2), AXIS(A), W(LAYOUT_STRIDE, 2), PAIR}, 5, 4, "- A2 B1 A2B1 ", "B % 2, A / 2"},
    /* R # 16 cut into digits: 14 and 15 are dead. */
    {{AXIS(R), W(LAYOUT_PAD, 16), W(LAYOUT_STRIDE, 4), AXIS(R), W(LAYOUT_PAD, 16), W(LAYOUT_MODULO, 4), PAIR},
     7,
     16,
     "- R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13 x x ",
     "R # 16 / 4, R # 16 % 4"},
    /* An inner digit that is dead kills the pair. */
    {{W(LAYOUT_BROADCAST, 2), AXIS(A), W(LAYOUT_MODULO, 1), W(LAYOUT_PAD, 2), PAIR}, 5, 4, "- x - x ", "2, A % 1 # 2"},
    /* Operators on a pair: [A, B] / 8 has digits 0, 8, 16 of 24. */
    {{AXIS(A), AXIS(B), PAIR, W(LAYOUT_STRIDE, 8)}, 4, 3, "- A1B2 A2B4 ", "[A, B] / 8"},
    {{AXIS(A), AXIS(B), PAIR, W(LAYOUT_MODULO, 8)}, 4, 8, "- B1 B2 B3 B4 B5 A1 A1B1 ", "[A, B] % 8"},
    {{AXIS(A), AXIS(A), PAIR, W(LAYOUT_RESIZE, 8)}, 4, 8, "- A1 A2 A3 A1 A2 A3 x ", "[A, A] = 8"},
};

START_TEST(test_constructors)
{
    for (size_t i = 0; i < sizeof walk_cases / sizeof *walk_cases; i++) {
        const walk_case *c = &walk_cases[i];
        layout l = {c->words, c->count};
        ck_assert(passes(l));
        ck_assert_int_eq(layout_size(l, axes), c->size);
        ck_assert_str_eq(layout_text(l, axes, memory), c->text);
        ck_assert_str_eq(walk(l), c->positions);
    }
}
END_TEST

START_TEST(test_positions_outside)
{
    for (size_t i = 0; i < sizeof walk_cases / sizeof *walk_cases; i++) {
        const walk_case *c = &walk_cases[i];
        const int64_t outside[] = {-1, INT64_MIN, c->size, c->size + 1, INT64_MAX};
        for (int n = 0; n < 5; n++) {
            int64_t coords[AXIS_COUNT] = {0};
            ck_assert_msg(!layout_map((layout){c->words, c->count}, axes, outside[n], coords), "%s at %lld", c->text,
                          (long long)outside[n]);
        }
    }
}
END_TEST

/* Coordinates add up over several mappings, and an axis that reaches its size is dead. */
START_TEST(test_coordinates_accumulate)
{
    const uint64_t words[] = {AXIS(A)};
    int64_t coords[AXIS_COUNT] = {0};
    ck_assert(layout_map((layout){words, 1}, axes, 1, coords));
    ck_assert(layout_map((layout){words, 1}, axes, 2, coords));
    ck_assert_int_eq(coords[A], 3);
    ck_assert(!layout_map((layout){words, 1}, axes, 1, coords));
}
END_TEST

/* The definition once more, on trees */

typedef struct tree {
    layout_op op;
    int64_t n;
    const struct tree *outer, *inner; /* inner: the only operand of a unary operator */
} tree;

static int64_t tree_size(const tree *t)
{
    if (t->op == LAYOUT_AXIS)
        return axes[t->n].size;
    if (t->op == LAYOUT_PAIR)
        return tree_size(t->outer) * tree_size(t->inner);
    return t->op == LAYOUT_STRIDE ? tree_size(t->inner) / t->n : t->n;
}

static bool tree_map(const tree *t, int64_t i, int64_t *sums)
{
    if (i >= tree_size(t))
        return false;
    switch (t->op) {
    case LAYOUT_AXIS: sums[t->n] += i; return true;
    case LAYOUT_BROADCAST: return true;
    case LAYOUT_STRIDE: return tree_map(t->inner, i * t->n, sums);
    case LAYOUT_MODULO:
    case LAYOUT_RESIZE: return tree_map(t->inner, i, sums);
    case LAYOUT_PAD: return i < tree_size(t->inner) && tree_map(t->inner, i, sums);
    case LAYOUT_PAIR: return tree_map(t->outer, i / tree_size(t->inner), sums) && tree_map(t->inner, i % tree_size(t->inner), sums);
    }
    return false;
}

static uint64_t random_state = 0x2545f4914f6cdd1d;

static int64_t random_below(int64_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (int64_t)(random_state % (uint64_t)n);
}

static int64_t random_divisor(int64_t n)
{
    int64_t d = 1 + random_below(n);
    while (n % d)
        d--;
    return d;
}

static const tree *random_tree(int depth)
{
    tree *t = ARENA_NEW(memory, tree);
    int64_t pick = depth == 0 ? random_below(4) : random_below(10);
    if (pick < 4) {
        t->op = pick == 0 ? LAYOUT_BROADCAST : LAYOUT_AXIS;
        t->n = pick == 0 ? 1 + random_below(4) : random_below(AXIS_COUNT);
        return t;
    }
    t->inner = random_tree(depth - 1);
    int64_t size = tree_size(t->inner);
    t->op = pick >= 8 ? LAYOUT_PAIR : (layout_op)(LAYOUT_STRIDE + pick - 4);
    if (t->op == LAYOUT_PAIR)
        t->outer = random_tree(depth - 1);
    else if (t->op == LAYOUT_STRIDE || t->op == LAYOUT_MODULO)
        t->n = random_divisor(size);
    else
        t->n = t->op == LAYOUT_RESIZE ? 1 + random_below(size) : size + random_below(5);
    return t;
}

static void compile(const tree *t, uint64_t *words, size_t *count)
{
    if (t->outer)
        compile(t->outer, words, count);
    if (t->inner)
        compile(t->inner, words, count);
    words[(*count)++] = W(t->op, t->n);
}

START_TEST(test_against_the_definition)
{
    int64_t dead = 0, live = 0;
    for (int round = 0; round < suite_rounds(3000); round++) {
        uint64_t words[256];
        size_t count = 0;
        if (round % 100 == 0) {
            teardown();
            setup();
        }
        const tree *t = random_tree(5);
        int64_t size = tree_size(t);
        compile(t, words, &count);
        layout l = {words, count};
        ck_assert(passes(l));
        ck_assert_int_eq(layout_size(l, axes), size);
        for (int64_t i = 0; i < size + 2 && i < 3000; i++) {
            int64_t sums[AXIS_COUNT] = {0}, coords[AXIS_COUNT] = {0};
            bool expected = tree_map(t, i, sums);
            for (int a = 0; a < AXIS_COUNT; a++)
                expected = expected && sums[a] < axes[a].size;
            bool got = layout_map(l, axes, i, coords);
            ck_assert_msg(got == expected, "%s at %d", layout_text(l, axes, memory), (int)i);
            if (got)
                ck_assert_mem_eq(sums, coords, sizeof sums);
            dead += !got;
            live += got;
        }
    }
    ck_assert(dead > 1000 && live > 1000);
}
END_TEST

/* Programs from a hostile file */

typedef struct bad_case {
    uint64_t words[8];
    size_t count;
    const char *part;
} bad_case;

#define HUGE (INT64_C(1) << 55)

START_TEST(test_refused)
{
    static const bad_case cases[] = {
        {{0}, 0, "word 0: 0 words"},
        {{0}, 1, "operator code 0"},
        {{W(8, 1)}, 1, "operator code 8"},
        {{W(255, 0)}, 1, "operator code 255"},
        {{PAIR}, 1, "lacks an operand"},
        {{AXIS(A), PAIR}, 2, "word 1: operator code 7 lacks"},
        {{W(LAYOUT_STRIDE, 2)}, 1, "lacks an operand"},
        {{AXIS(A), AXIS(B)}, 2, "2 expressions are left"},
        {{AXIS(AXIS_COUNT)}, 1, "axis number 4 of 4"},
        {{W(LAYOUT_AXIS, HUGE)}, 1, "axis number"},
        {{UINT64_MAX << 8 | LAYOUT_AXIS}, 1, "axis number 72057594037927935"},
        {{W(LAYOUT_BROADCAST, 0)}, 1, "a broadcast of zero"},
        {{AXIS(B), W(LAYOUT_STRIDE, 0)}, 2, "an operand is zero"},
        {{AXIS(B), W(LAYOUT_MODULO, 0)}, 2, "an operand is zero"},
        {{AXIS(B), W(LAYOUT_STRIDE, 4)}, 2, "stride 4 does not divide size 6"},
        {{AXIS(B), W(LAYOUT_MODULO, 4)}, 2, "modulo 4 does not divide size 6"},
        {{AXIS(B), W(LAYOUT_STRIDE, 12)}, 2, "stride 12 does not divide size 6"},
        {{AXIS(B), W(LAYOUT_RESIZE, 7)}, 2, "resize to 7 is above size 6"},
        {{AXIS(B), W(LAYOUT_RESIZE, 0)}, 2, "an operand is zero"},
        {{AXIS(B), W(LAYOUT_PAD, 5)}, 2, "padding to 5 is below size 6"},
        {{AXIS(A), AXIS(B), W(LAYOUT_PAIR, 1)}, 3, "a pair with an operand"},
        {{W(LAYOUT_BROADCAST, HUGE), W(LAYOUT_BROADCAST, 128), PAIR}, 3, "2^62"},
        {{W(LAYOUT_BROADCAST, HUGE), W(LAYOUT_BROADCAST, HUGE), PAIR}, 3, "2^62"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(!passes((layout){cases[i].words, cases[i].count}), "accepted: %s", cases[i].part);
        const char *message = diags.items[0]->message;
        ck_assert_int_eq(diags.items[0]->id, E_BIN_FORMAT);
        ck_assert_msg(strstr(message, cases[i].part) == NULL ? false : true, "%s (expected %s)", message, cases[i].part);
        ck_assert_ptr_eq(strstr(message, "section .visa.ports.k offset 0x40: mapping, word "), message);
    }
}
END_TEST

START_TEST(test_huge_positions)
{
    const uint64_t words[] = {W(LAYOUT_BROADCAST, HUGE), W(LAYOUT_PAD, 2 * HUGE - 1), W(LAYOUT_STRIDE, 2 * HUGE - 1), W(LAYOUT_PAD, HUGE)};
    int64_t coords[AXIS_COUNT] = {0};
    layout l = {words, 4};
    ck_assert(passes(l));
    ck_assert(layout_map(l, axes, 0, coords));
    ck_assert(!layout_map(l, axes, 1, coords));
    ck_assert(!layout_map(l, axes, HUGE - 1, coords)); /* its product with the stride is past 2^63 */
}
END_TEST

/* The longest and the deepest program; one more is refused. */
START_TEST(test_longest_and_deepest)
{
    uint64_t words[LAYOUT_MAX_WORDS + 1];
    words[0] = AXIS(A);
    for (int i = 1; i <= LAYOUT_MAX_WORDS; i++)
        words[i] = i % 2 ? W(LAYOUT_BROADCAST, 1) : PAIR;
    words[LAYOUT_MAX_WORDS - 1] = W(LAYOUT_PAD, 5);
    layout longest = {words, LAYOUT_MAX_WORDS};
    int64_t coords[AXIS_COUNT] = {0};
    ck_assert(passes(longest));
    ck_assert(layout_map(longest, axes, 3, coords));
    ck_assert_int_eq(coords[A], 3);
    ck_assert(!layout_map(longest, axes, 4, coords));
    ck_assert_uint_gt(strlen(layout_text(longest, axes, memory)), LAYOUT_MAX_WORDS);
    longest.count++;
    ck_assert(!passes(longest));
    for (int i = 0; i < LAYOUT_MAX_DEPTH; i++)
        words[i] = W(LAYOUT_BROADCAST, 1);
    for (int i = LAYOUT_MAX_DEPTH; i < 2 * LAYOUT_MAX_DEPTH - 1; i++)
        words[i] = PAIR;
    layout deepest = {words, 2 * LAYOUT_MAX_DEPTH - 1};
    ck_assert(passes(deepest));
    ck_assert(layout_map(deepest, axes, 0, coords));
    ck_assert(!layout_map(deepest, axes, 1, coords));
    words[LAYOUT_MAX_DEPTH] = W(LAYOUT_BROADCAST, 1);
    ck_assert(!passes(deepest));
    ck_assert_ptr_nonnull(strstr(diags.items[0]->message, "LAYOUT_MAX_DEPTH"));
}
END_TEST

/* Random words: what passes the check can be asked anything. */
START_TEST(test_random_programs)
{
    int accepted = 0;
    for (int round = 0; round < suite_rounds(200000); round++) {
        uint64_t words[6];
        size_t count = 1 + (size_t)random_below(6);
        if (round % 1000 == 0) {
            teardown();
            setup();
        }
        for (size_t i = 0; i < count; i++)
            words[i] = W(random_below(9), random_below(8) ? random_below(8) : random_below(INT64_MAX));
        layout l = {words, count};
        if (!passes(l))
            continue;
        accepted++;
        int64_t size = layout_size(l, axes), coords[AXIS_COUNT] = {0};
        ck_assert(size >= 1 && size < INT64_C(1) << 62);
        layout_map(l, axes, size - 1, coords);
        ck_assert(!layout_map(l, axes, size, coords));
        ck_assert_uint_gt(strlen(layout_text(l, axes, memory)), 0);
    }
    ck_assert_int_gt(accepted, suite_rounds(200000) / 200);
}
END_TEST

int main(void)
{
    return suite_of("layout", setup, teardown, test_constructors, test_positions_outside, test_coordinates_accumulate,
                    test_against_the_definition, test_refused, test_huge_positions, test_longest_and_deepest, test_random_programs);
}
