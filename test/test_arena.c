/* support/arena.h: what is handed out is zero and nobody else's, wherever the memory was before. */
#include <check.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/arena.h"
#include "support/budget.h"
#include "test/suite.h"
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

enum { KINDS = 7 };
static const size_t sizes[KINDS] = {1, 24, 700, 5000, 70000, 900000, 5000000}; /* bytes: of small blocks, of large ones, of their own */

/* Storage that is zero, and is not zero afterwards. */
static unsigned char *taken(arena *a, size_t bytes, int mark)
{
    unsigned char *p = arena_alloc(a, bytes);
    ck_assert_uint_eq((size_t)p % ARENA_ALIGNMENT, 0);
    for (size_t i = 0; i < bytes; i++)
        if (p[i])
            ck_abort_msg("byte %zu of %zu is %d", i, bytes, p[i]);
    memset(p, mark, bytes);
    return p;
}

static bool holds(const unsigned char *p, size_t bytes, int mark)
{
    for (size_t i = 0; i < bytes; i++)
        if (p[i] != mark)
            return false;
    return true;
}

START_TEST(memory_is_zero_and_apart)
{
    arena *a = arena_new();
    unsigned char *kept[KINDS];
    for (int i = 0; i < KINDS; i++)
        kept[i] = taken(a, sizes[i], i + 1);
    arena_mark mark = arena_mark_here(a);
    for (int round = 0; round < 4; round++) {
        size_t bytes = 0;
        for (int i = 0; i < KINDS; i++) {
            taken(a, sizes[(i * 3 + round) % KINDS], 0xee);
            bytes += sizes[(i * 3 + round) % KINDS];
        }
        ck_assert_uint_ge(arena_used_since(a, mark), bytes);
        arena_rewind(a, mark);
        ck_assert_uint_eq(arena_used_since(a, mark), 0);
    }
    for (int i = 0; i < KINDS; i++)
        ck_assert(holds(kept[i], sizes[i], i + 1));
    arena_free(a);
}
END_TEST

/* Arenas inside, nested and side by side; their memory is used again, and what is left of them goes with the outer one. */
START_TEST(arenas_inside_give_back)
{
    arena *a = arena_new();
    unsigned char *kept = taken(a, 3000, 1);
    for (int round = 0; round < 20; round++) {
        arena *first = arena_new_inside(a), *second = arena_new_inside(a), *deep = arena_new_inside(second);
        unsigned char *x = taken(first, sizes[round % KINDS], 2), *y = taken(second, sizes[(round + 3) % KINDS], 3),
                      *z = taken(deep, 4000, 4);
        taken(a, 100, 5);
        ck_assert(holds(x, sizes[round % KINDS], 2) && holds(y, sizes[(round + 3) % KINDS], 3) && holds(z, 4000, 4));
        arena_mark nothing = arena_mark_here(deep);
        taken(deep, 200000, 6);
        arena_rewind(deep, nothing);
        arena_free(first);
        if (round % 2)
            arena_free(second); /* and deep with it */
    }
    ck_assert(holds(kept, 3000, 1));
    arena_free(a);
}
END_TEST

/* What another arena has made goes on in this one, whatever this one does next. */
START_TEST(joined_arenas_are_one)
{
    arena *a = arena_new();
    unsigned char *first = taken(a, 3000, 1);
    unsigned char *kept[KINDS];
    for (int i = 0; i < KINDS; i++) {
        arena *b = arena_new();
        kept[i] = taken(b, sizes[i], 2 + i);
        arena_mark mark = arena_mark_here(b);
        taken(b, 200000, 9);
        arena_rewind(b, mark); /* a block that waits comes along */
        uint64_t spent = arena_budget(a)->bytes + arena_budget(b)->bytes;
        arena_join(a, b);
        ck_assert_uint_eq(arena_budget(a)->bytes, spent);
        taken(a, 70000, 8);
    }
    ck_assert(holds(first, 3000, 1));
    for (int i = 0; i < KINDS; i++)
        ck_assert(holds(kept[i], sizes[i], 2 + i));
    arena_free(a);
}
END_TEST

/* Out of memory inside is out of memory outside, and the outer arena goes on. */
enum { AT_ONCE = 40, ROUNDS = 60 }; /* more arenas than a program has memory of its own for */

static void *arenas_come_and_go(void *user)
{
    const int *mark = user;
    arena *all[AT_ONCE] = {0};
    unsigned char *kept[AT_ONCE] = {0};
    for (int round = 0; round < ROUNDS; round++)
        for (int i = round % 3; i < AT_ONCE; i += 1 + round % 5) {
            if (all[i] && !holds(kept[i], sizes[3], *mark + i))
                return user;
            arena_free(all[i]);
            all[i] = arena_new();
            kept[i] = taken(all[i], sizes[3], *mark + i);
        }
    for (int i = 0; i < AT_ONCE; i++)
        arena_free(all[i]);
    return NULL;
}

START_TEST(threads_have_arenas_of_their_own)
{
    pthread_t threads[4];
    int marks[4] = {1, 50, 100, 150};
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, arenas_come_and_go, &marks[i]), 0);
    for (int i = 0; i < 4; i++) {
        void *fault;
        pthread_join(threads[i], &fault);
        ck_assert_ptr_null(fault);
    }
}
END_TEST

START_TEST(exhaustion_reaches_the_guard)
{
    arena *a = arena_new();
    volatile bool caught = false;
    if (setjmp(*arena_guard(a))) {
        caught = true;
    } else {
        arena *inside = arena_new_inside(a);
        taken(inside, 1000, 1);
        arena_array(inside, SIZE_MAX / 2, 4);
    }
    ck_assert(caught);
    taken(a, 100000, 2);
    arena_free(a);
}
END_TEST

START_TEST(grown_arrays_are_copies)
{
    arena *a = arena_new();
    uint32_t *small = ARENA_ARRAY(a, uint32_t, 3);
    for (uint32_t i = 0; i < 3; i++)
        small[i] = i + 1;
    uint32_t *large = arena_grow(a, small, 3, 100, sizeof *small);
    small[0] = 9;
    ck_assert_uint_eq(large[0], 1);
    ck_assert_uint_eq(large[2], 3);
    arena_free(a);
}
END_TEST

/* What is not zeroed takes nobody's bytes, and what is handed out after it is zero, whatever its length and the bytes that were there. */
START_TEST(unset_memory_is_nobodys)
{
    arena *a = arena_new();
    arena_mark mark = arena_mark_here(a);
    for (int round = 0; round < 40; round++) {
        unsigned char *kept[200];
        for (int i = 0; i < 200; i++) {
            size_t bytes = (size_t)(1 + (i * 37 + round * 11) % 300);
            kept[i] = i % 2 ? arena_alloc(a, bytes) : arena_alloc_unset(a, bytes);
            ck_assert(i % 2 == 0 || holds(kept[i], bytes, 0));
            memset(kept[i], 1 + i, bytes);
        }
        for (int i = 0; i < 200; i++)
            ck_assert(holds(kept[i], (size_t)(1 + (i * 37 + round * 11) % 300), 1 + i));
        arena_rewind(a, mark);
    }
    arena_free(a);
}
END_TEST

/* Texts of all lengths, over the ends of blocks: each is right, and what is after it is zero still. */
START_TEST(texts_are_printed_in_place)
{
    arena *a = arena_new();
    arena_mark mark = arena_mark_here(a);
    for (int round = 0; round < 3; round++) { /* each hands out what another one only began to write */
        for (int i = 0; i < 3000; i++) {
            char wanted[512];
            int length = 1 + (i * 7 + round * 131) % 400;
            snprintf(wanted, sizeof wanted, "%0*d", length, i);
            ck_assert_str_eq(arena_printf(a, "%0*d", length, i), wanted);
            taken(a, 24, 0xee);
        }
        arena_rewind(a, mark);
    }
    arena_free(a);
}
END_TEST

/* A text that was printed when the steps ended is nobody's: what is handed out where it stands is zero. */
START_TEST(a_text_without_steps_leaves_zeros)
{
    arena *a = arena_new();
    taken(a, 24, 1);
    budget_limit(a, 0, UINT64_MAX, UINT64_MAX);
    volatile bool caught = false;
    if (setjmp(*arena_guard(a)))
        caught = true;
    else
        for (;;)
            arena_printf(a, "%0200d", 1);
    ck_assert(caught);
    budget_lift(a);
    ck_assert(holds(arena_alloc(a, 150), 150, 0));
    arena_free(a);
}
END_TEST

/* No limit is 0, all of it is what was asked for, and what is spent is 1. */
START_TEST(milliseconds_are_counted_down)
{
    enum { MINUTE = 60000, FEW = 3 };
    arena *a = arena_new();
    ck_assert_uint_eq(budget_milliseconds_left(a), 0);
    budget_limit(a, UINT64_MAX, UINT64_MAX, MINUTE);
    uint64_t left = budget_milliseconds_left(a);
    ck_assert_uint_le(left, MINUTE);
    ck_assert_uint_gt(left, MINUTE / 2);
    budget_limit(a, UINT64_MAX, UINT64_MAX, FEW);
    budget_clock(a);
    uint64_t before = FEW;
    while ((left = budget_milliseconds_left(a)) > 1) {
        ck_assert_uint_le(left, before);
        before = left;
    }
    ck_assert_uint_eq(left, 1);
    arena_free(a);
}
END_TEST

#ifdef __SANITIZE_ADDRESS__
/* Only what was handed out, to the byte, may be touched; nothing of it after a rewind. */
START_TEST(all_else_is_shut)
{
    arena *a = arena_new();
    for (size_t bytes = 1; bytes < 40; bytes++) {
        arena_mark mark = arena_mark_here(a);
        char *p = arena_alloc(a, bytes), *text = arena_printf(a, "%0*d", (int)bytes, 7);
        ck_assert(!__asan_region_is_poisoned(p, bytes) && !__asan_region_is_poisoned(text, bytes + 1));
        for (size_t i = 0; i < 8; i++)
            ck_assert(__asan_address_is_poisoned(p + bytes + i) && __asan_address_is_poisoned(text + bytes + 1 + i));
        arena_rewind(a, mark);
        ck_assert(__asan_address_is_poisoned(p) && __asan_address_is_poisoned(text));
    }
    arena *inside = arena_new_inside(a);
    char *p = arena_alloc(inside, 300000);
    arena_free(inside);
    ck_assert(__asan_address_is_poisoned(p) && __asan_address_is_poisoned(p + 299999));
    arena_free(a);
}
END_TEST
#endif

int main(void)
{
    TCase *cases = suite_case("arena");
    suite_tests(cases, a_text_without_steps_leaves_zeros, texts_are_printed_in_place, memory_is_zero_and_apart, arenas_inside_give_back,
                joined_arenas_are_one, exhaustion_reaches_the_guard, unset_memory_is_nobodys, grown_arrays_are_copies,
                milliseconds_are_counted_down, threads_have_arenas_of_their_own);
#ifdef __SANITIZE_ADDRESS__
    suite_tests(cases, all_else_is_shut);
#endif
    return suite_status("arena", cases);
}
