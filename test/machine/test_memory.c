/* Memories against plain arrays: random writes, copies and ranges that many of them share; what freed ones give back. */
#include <stdio.h>
#include <string.h>

#include "runtime/machine/memory.h"
#include "test/suite.h"

enum { MEMORIES = 5, BYTES = 512 * 1024, POISON = 0xa5 };

static unsigned char model[MEMORIES][BYTES];
static memory_budget budget;
static memory memories[MEMORIES];

static uint64_t state = 27;

static int64_t draw(int64_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)below);
}

static void begin(int64_t limit)
{
    budget = (memory_budget){.limit_bytes = limit};
    memset(model, POISON, sizeof model);
    for (int i = 0; i < MEMORIES; i++)
        memory_init(&memories[i], BYTES, BYTES, POISON, &budget);
}

static void end(void)
{
    for (int i = 0; i < MEMORIES; i++)
        memory_free(&memories[i]);
    ck_assert_ptr_null(budget.region);
}

static void write_some(int i)
{
    unsigned char bytes[300];
    int64_t size = draw(sizeof bytes) + 1, at = draw(BYTES - size);
    memset(bytes, (int)draw(256), sizeof bytes);
    ck_assert(memory_write(&memories[i], at, bytes, size));
    memcpy(model[i] + at, bytes, (size_t)size);
}

/* In all of them or some, at whole granules or not. */
static void share_some(void)
{
    int64_t unit = memory_granule(&memories[0]), size = (draw(6) + 1) * unit, keys = draw(3) + 1;
    memory_pool *pool = memory_pool_new(keys * size);
    ck_assert_ptr_nonnull(pool);
    for (int64_t i = 0; i < keys * size; i++)
        pool->bytes[i] = (unsigned char)draw(256);
    for (int i = 0; i < MEMORIES; i++) {
        int64_t at = draw(BYTES / unit - 6) * unit + (draw(4) == 0 ? draw(unit) : 0), from = draw(keys) * size;
        if (draw(4) == 0)
            continue;
        ck_assert(memory_share(&memories[i], at, pool, from, size));
        memcpy(model[i] + at, pool->bytes + from, (size_t)size);
    }
    memory_pool_leave(pool);
}

static void compare_all(void)
{
    for (int i = 0; i < MEMORIES; i++) {
        const unsigned char *bytes = memory_span(&memories[i], 0, BYTES);
        ck_assert_ptr_nonnull(bytes);
        ck_assert_mem_eq(bytes, model[i], BYTES);
    }
}

START_TEST(shared_until_written)
{
    for (int round = suite_rounds(20); round-- > 0;) {
        begin(0);
        for (int step = 0; step < 30; step++) {
            if (draw(4) == 0)
                share_some();
            int to = (int)draw(MEMORIES), from = (int)draw(MEMORIES);
            write_some(to);
            int64_t size = draw(BYTES / 4) + 1, at = draw(BYTES - size), source = draw(BYTES - size);
            if (to != from && draw(3) == 0) {
                ck_assert(memory_copy(&memories[to], at, &memories[from], source, size));
                memcpy(model[to] + at, model[from] + source, (size_t)size);
            }
        }
        compare_all();
        end();
    }
}
END_TEST

START_TEST(a_limit_counts_what_is_shared)
{
    begin(BYTES / 2);
    memory_pool *pool = memory_pool_new(BYTES);
    ck_assert_ptr_nonnull(pool);
    ck_assert(memory_share(&memories[0], 0, pool, 0, BYTES / 2));
    ck_assert(memory_share(&memories[0], 0, pool, 0, BYTES / 2)); /* the same granules again */
    ck_assert(!memory_share(&memories[1], 0, pool, 0, BYTES / 2));
    memory_pool_leave(pool);
    end();
}
END_TEST

/* What two memories were given is one place for both, until one of them is written to; who reads it may go on where it was. */
START_TEST(what_is_shared_has_one_place)
{
    begin(0);
    int64_t unit = memory_granule(&memories[0]);
    memory_pool *pool = memory_pool_new(4 * unit);
    ck_assert_ptr_nonnull(pool);
    memset(pool->bytes, 7, (size_t)(4 * unit));
    for (int i = 0; i < 2; i++) {
        ck_assert(memory_share(&memories[i], i * unit, pool, 0, 4 * unit));
        memset(model[i] + i * unit, 7, (size_t)(4 * unit));
    }
    memory_pool_leave(pool);
    const unsigned char *at = memory_look(&memories[0], 10, 3 * unit);
    ck_assert_ptr_eq(at, memory_look(&memories[1], unit + 10, 3 * unit));
    ck_assert_ptr_eq(at, memory_shared_at(&memories[0], 10, 3 * unit));
    ck_assert_ptr_null(memory_shared_at(&memories[0], 10, 4 * unit)); /* not all of it */
    ck_assert_int_eq(memory_look(&memories[0], 2 * unit, 3 * unit)[2 * unit], POISON);
    ck_assert(memory_write(&memories[0], 3 * unit + 5, (const unsigned char *)"x", 1));
    model[0][3 * unit + 5] = 'x';
    ck_assert_ptr_null(memory_shared_at(&memories[0], 2 * unit, 2 * unit));
    ck_assert_int_eq(memory_shared_at(&memories[1], 2 * unit, 2 * unit)[unit], 7);
    memory_free(&memories[1]);
    memset(model[1], POISON, BYTES);
    ck_assert_int_eq(at[2 * unit], 7);
    compare_all();
    end();
}
END_TEST

/* Units of whole granules, of parts of them and over their ends; those who share a memory know the same. */
START_TEST(written_units_are_known)
{
    static bool written[BYTES];
    for (int round = suite_rounds(10); round-- > 0;) {
        begin(0);
        memset(written, 0, sizeof written);
        int64_t unit = memory_granule(&memories[0]);
        for (int step = 0; step < 20; step++) {
            int64_t at = draw(BYTES / 8) * 8, size = draw(4) == 0 ? unit + draw(3) * unit / 2 : (draw(unit / 8) + 1) * 8;
            at = draw(2) ? at / unit * unit : at;
            size = at + size > BYTES ? BYTES - at : size;
            memory_mark_written(&memories[0], at, size);
            memset(written + at, true, (size_t)size);
        }
        ck_assert_ptr_nonnull(memory_span(&memories[0], 0, BYTES));
        ck_assert(memory_share_all(&memories[1], &memories[0]));
        ck_assert_ptr_nonnull(memory_span(&memories[1], 0, 1)); /* one of its own */
        for (int step = 0; step < 300; step++) {
            int64_t at = draw(BYTES - 1), size = draw(draw(2) ? 200 : 3 * unit) + 1;
            size = at + size > BYTES ? BYTES - at : size;
            ck_assert_int_eq(memory_is_written(&memories[step % 2], at, size), memchr(written + at, false, (size_t)size) == NULL);
        }
        memory_free(&memories[0]);
        memory_free(&memories[1]);
        end();
    }
}
END_TEST

/* All of a memory at once: the other one has it, with what is known of it, and no longer when one of the two is written to. */
START_TEST(whole_memories_are_shared)
{
    for (int writes = 0; writes < 2; writes++) {
        begin(0);
        ck_assert(memory_is_same(&memories[0], &memories[1]));
        ck_assert(!memory_share_all(&memories[1], &memories[0])); /* nothing is there yet */
        ck_assert(memory_write(&memories[0], 100, (const unsigned char *)"first", 5));
        ck_assert_ptr_nonnull(memory_span(&memories[0], 0, BYTES));
        memory_mark_written(&memories[0], 96, 8);
        ck_assert(!memory_is_same(&memories[0], &memories[1]));
        ck_assert(memory_share_all(&memories[1], &memories[0]));
        ck_assert(memory_is_same(&memories[0], &memories[1]) && memory_is_written(&memories[1], 96, 8));
        memcpy(model[0] + 100, "first", 5);
        memcpy(model[1], model[0], BYTES);
        ck_assert(memory_write(&memories[writes], 102, (const unsigned char *)"x", 1));
        memory_mark_written(&memories[writes], 200, 8);
        model[writes][102] = 'x';
        for (int i = 0; i < 2; i++)
            ck_assert(memory_is_written(&memories[i], 96, 8) && memory_is_written(&memories[i], 200, 8) == (i == writes));
        ck_assert(!memory_is_same(&memories[0], &memories[1]));
        memory_pool *pool = memory_pool_new(memory_granule(&memories[0]));
        ck_assert_ptr_nonnull(pool);
        memset(pool->bytes, 9, (size_t)pool->size);
        ck_assert(memory_share(&memories[writes], 0, pool, 0, pool->size));
        memset(model[writes], 9, (size_t)pool->size);
        ck_assert(!memory_share_all(&memories[2], &memories[writes])); /* a part of it is a pool's */
        memory_pool_leave(pool);
        compare_all();
        end();
    }
}
END_TEST

/* Of this process, in pages. */
static long address_space(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert(f && fscanf(f, "%ld", &pages) == 1);
    fclose(f);
    return pages;
}

/* More of them than one mapping holds: those that are freed take nothing from the others, and when all are, nothing is left. */
START_TEST(many_are_given_back)
{
    enum { MANY = 100, ROUNDS = 10, PAGE_BYTES = 4096 };
    static memory many[MANY];
    long before = 0;
    for (int round = 0; round < ROUNDS; round++) {
        budget = (memory_budget){0};
        for (int i = 0; i < MANY; i++) {
            memory_init(&many[i], BYTES, BYTES, POISON, &budget);
            memset(model[0], i + 1, BYTES);
            ck_assert(memory_write(&many[i], 0, model[0], BYTES));
        }
        for (int i = 0; i < MANY; i += 2)
            memory_free(&many[i]);
        for (int i = 1; i < MANY; i += 2) {
            memset(model[0], i + 1, BYTES);
            ck_assert_mem_eq(memory_span(&many[i], 0, BYTES), model[0], BYTES);
            memory_free(&many[i]);
        }
        ck_assert_ptr_null(budget.region);
        before = round == 0 ? address_space() : before;
    }
    ck_assert_int_lt(address_space() - before, MANY * (BYTES / PAGE_BYTES));
}
END_TEST

/* Register files of one machine after another: no byte of the last one is seen, and little is kept. */
START_TEST(register_files_begin_anew)
{
    enum { FILES = 2000, FILE_BYTES = 64 * 1024, ROUNDS = 4, PAGE_BYTES = 4096, MOST_KEPT_PAGES = (64 + 16) * 1024 * 1024 / PAGE_BYTES };
    static memory files[FILES];
    long before = address_space();
    for (int round = 0; round < ROUNDS; round++) {
        budget = (memory_budget){0};
        memset(model[0], round + 1, FILE_BYTES / 2);
        memset(model[0] + FILE_BYTES / 2, POISON, FILE_BYTES / 2);
        for (int i = 0; i < FILES; i++) {
            memory_init(&files[i], FILE_BYTES, FILE_BYTES, POISON, &budget);
            ck_assert(memory_write(&files[i], 0, model[0], FILE_BYTES / 2));
        }
        for (int i = 0; i < FILES; i++) {
            ck_assert_mem_eq(memory_span(&files[i], 0, FILE_BYTES), model[0], FILE_BYTES);
            memory_free(&files[i]);
        }
        ck_assert_ptr_null(budget.dense);
    }
    ck_assert_int_le(address_space() - before, MOST_KEPT_PAGES + 512); /* of the lists of blocks */
}
END_TEST

/* The pages of the memories before are used again, and hold the poison: of those that few bytes are written to and of those that many are,
 * with a limit that counts each byte once. */
START_TEST(pages_of_the_memories_before)
{
    for (int round = suite_rounds(20); round-- > 0;) {
        begin(MEMORIES * BYTES);
        for (int step = (int)draw(12); step-- > 0;)
            write_some((int)draw(MEMORIES));
        int64_t at = draw(BYTES);
        ck_assert_int_eq(*memory_span(&memories[0], at, 1), model[0][at]);
        compare_all();
        ck_assert_int_eq(budget.used_bytes, MEMORIES * BYTES);
        end();
    }
}
END_TEST

/* A few bytes here and there take a page each, more of them the pages that they lie in, and reads no less than writes. */
START_TEST(few_bytes_take_a_page)
{
    enum { PAGE_BYTES = 4096 };
    begin(0);
    int64_t unit = memory_granule(&memories[0]), at[] = {5, 3 * unit + 100, 3 * unit + 200, 9 * unit + 3 * PAGE_BYTES - 1};
    int64_t taken[] = {1, 2, 2, 4};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        const unsigned char *found = i % 2 ? memory_look(&memories[0], at[i], 2) : memory_span(&memories[0], at[i], 2);
        ck_assert_mem_eq(found, model[0] + at[i], 2);
        ck_assert_int_eq(budget.used_bytes, taken[i] * PAGE_BYTES);
    }
    ck_assert(memory_span(&memories[0], PAGE_BYTES - 1, unit + 2));
    ck_assert_int_eq(budget.used_bytes, (taken[3] + unit / PAGE_BYTES + 1) * PAGE_BYTES);
    compare_all();
    end();
}
END_TEST

int main(void)
{
    TCase *cases = suite_case("memory");
    suite_tests(cases, shared_until_written, a_limit_counts_what_is_shared, what_is_shared_has_one_place, written_units_are_known,
                whole_memories_are_shared, many_are_given_back, register_files_begin_anew, pages_of_the_memories_before,
                few_bytes_take_a_page);
    return suite_status("memory", cases);
}
