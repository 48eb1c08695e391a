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
    ck_assert_int_eq(budget.shared_granules, 0);
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
    memory_pool pool;
    ck_assert(memory_pool_open(&pool, keys * size));
    for (int64_t i = 0; i < keys * size; i++)
        pool.bytes[i] = (unsigned char)draw(256);
    for (int i = 0; i < MEMORIES; i++) {
        int64_t at = draw(BYTES / unit - 6) * unit + (draw(4) == 0 ? draw(unit) : 0), from = draw(keys) * size;
        if (draw(4) == 0)
            continue;
        ck_assert(memory_share(&memories[i], at, &pool, from, size));
        memcpy(model[i] + at, pool.bytes + from, (size_t)size);
    }
    memory_pool_close(&pool);
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
    memory_pool pool;
    ck_assert(memory_pool_open(&pool, BYTES));
    ck_assert(memory_share(&memories[0], 0, &pool, 0, BYTES / 2));
    ck_assert(memory_share(&memories[0], 0, &pool, 0, BYTES / 2)); /* the same granules again */
    ck_assert(!memory_share(&memories[1], 0, &pool, 0, BYTES / 2));
    memory_pool_close(&pool);
    end();
}
END_TEST

START_TEST(more_than_may_be_mapped_is_copied)
{
    begin(0);
    budget.shared_granules = INT32_MAX;
    memory_pool pool;
    ck_assert(memory_pool_open(&pool, BYTES));
    memset(pool.bytes, 7, BYTES);
    ck_assert(memory_share(&memories[0], 0, &pool, 0, BYTES));
    memset(pool.bytes, 8, BYTES); /* a mapping would show it */
    memset(model[0], 7, BYTES);
    memory_pool_close(&pool);
    compare_all();
    budget.shared_granules -= INT32_MAX;
    end();
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

int main(void)
{
    TCase *cases = suite_case("memory");
    suite_tests(cases, shared_until_written, a_limit_counts_what_is_shared, more_than_may_be_mapped_is_copied, many_are_given_back,
                pages_of_the_memories_before);
    return suite_status("memory", cases);
}
