/* The TRF's cycles against a cycle-by-cycle model that is written from the rules alone (trf_model.h). */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/suite.h"
#include "trf_model.h"

static const target *machine_target(void)
{
    return target_by_name("rngd");
}

static uint64_t random_state;

static uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* 0 .. n - 1 */
static int64_t below(int64_t n)
{
    return (int64_t)(random_bits() % (uint64_t)n);
}

static trf_timing new_timing(void)
{
    trf_timing s;
    trf_timing_init(&s, machine_target());
    return s;
}

static void same(const trf_model *m, const trf_timing *s)
{
    ck_assert_int_eq(m->has_reads, s->reading);
    ck_assert_int_eq(m->has_writes, s->writing);
    ck_assert_int_eq(m->reads_done, s->read_counts.reads);
    ck_assert_int_eq(m->hits, s->read_counts.column_hits);
    ck_assert_int_eq(m->misses, s->read_counts.column_misses);
    ck_assert_int_eq(m->flits, s->write_counts.flits);
    ck_assert_int_eq(m->stall_cycles, s->write_counts.stall_cycles);
    ck_assert_int_eq(m->stalled_flits, s->write_counts.stalled_flits);
    if (!m->has_writes)
        ck_assert_int_eq(m->late_cycles, s->write_counts.late_cycles);
}

/* ---- the figures of the reference ---- */

/* One read each cycle from one half, a store without an end into the other half. Entries innermost first. */
static trf_timing *against_store(trf_timing *s, const int64_t (*entries)[2], unsigned count, int64_t read_bytes, int64_t first_column)
{
    trf_reads r = {.view = {TRF_FIRST_HALF, 8}, .read_bytes = read_bytes, .tiling = 1, .period = 1};
    r.table.count = count;
    int64_t cycles = 1;
    for (unsigned i = 0; i < count; i++) {
        r.table.size[count - 1 - i] = entries[i][0];
        r.table.stride[count - 1 - i] = entries[i][1];
        cycles *= entries[i][0];
    }
    trf_writes w = {.view = {TRF_SECOND_HALF, 8},
                    .base = first_column * 32,
                    .flits_per_row = INT64_C(1) << 40,
                    .flits = INT64_MAX,
                    .cycles_per_flit = 1};
    *s = new_timing();
    trf_timing_begin_reads(s, &r);
    trf_timing_begin_writes(s, &w);
    ck_assert_int_eq(trf_timing_run(s, cycles, INT64_MAX), cycles);
    ck_assert(!s->reading);
    return s;
}

START_TEST(reference_table)
{
    static const struct {
        int64_t entries[2][2];
        unsigned count;
        int64_t read_bytes, cycles, misses, flits, stalls;
    } rows[] = {
        {{{32, 0}}, 1, 64, 32, 2, 31, 1},
        {{{32, 0}, {2, 32}}, 2, 32, 64, 2, 62, 2},
        {{{2, 1024}, {32, 32}}, 2, 32, 64, 64, 31, 33},
        {{{64, 64}}, 1, 64, 64, 128, 0, 64},
        {{{2, 32}, {32, 64}}, 2, 32, 64, 64, 63, 1},
        {{{4, 64}, {32, 0}}, 2, 64, 128, 8, 124, 4},
        {{{5, 64}, {32, 0}}, 2, 64, 160, 134, 93, 67},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        trf_timing s;
        against_store(&s, rows[i].entries, rows[i].count, rows[i].read_bytes, 0);
        ck_assert_int_eq(s.read_counts.reads, rows[i].cycles);
        ck_assert_int_eq(s.read_counts.column_misses, rows[i].misses);
        ck_assert_int_eq(s.read_counts.column_hits, rows[i].cycles * (rows[i].read_bytes == 64 ? 2 : 1) - rows[i].misses);
        ck_assert_int_eq(s.write_counts.flits, rows[i].flits);
        ck_assert_int_eq(s.write_counts.stall_cycles, rows[i].stalls);
    }
}
END_TEST

static int64_t number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static void conformance_case(const json_t *c)
{
    int64_t entries[8][2];
    const json_t *table = json_object_get(c, "entries"), *expect = json_object_get(c, "expect");
    unsigned count = (unsigned)json_array_size(table);
    ck_assert(count >= 1 && count <= 8);
    for (unsigned i = 0; i < count; i++)
        for (size_t k = 0; k < 2; k++)
            entries[i][k] = json_integer_value(json_array_get(json_array_get(table, i), k));
    trf_timing s;
    against_store(&s, entries, count, number(c, "reg_read_size"), number(c, "write_start_col"));
    const char *id = json_string_value(json_object_get(c, "id"));
    ck_assert_msg(s.cycle == number(expect, "cycles"), "%s: %lld cycles", id, (long long)s.cycle);
    ck_assert_msg(s.read_counts.column_misses == number(expect, "column_misses"), "%s: %lld column misses", id,
                  (long long)s.read_counts.column_misses);
    ck_assert_msg(s.write_counts.flits == number(expect, "writes_done"), "%s: %lld writes", id, (long long)s.write_counts.flits);
    ck_assert_msg(s.write_counts.stall_cycles == number(expect, "write_stalls"), "%s: %lld stalls", id,
                  (long long)s.write_counts.stall_cycles);
}

START_TEST(conformance_file)
{
    const char *shared = getenv("VISA_SHARED"), *source = getenv("VISA_SOURCE");
    char path[4096];
    if (shared)
        snprintf(path, sizeof path, "%s/conformance/contraction.json", shared);
    else
        snprintf(path, sizeof path, "%s/../shared/conformance/contraction.json", source ? source : ".");
    FILE *file = fopen(path, "rb");
    if (!file) {
        fputs("conformance_file: skipped, the reference material (../shared) is not here\n", stderr);
        return;
    }
    json_t *cases = json_loadf(file, 0, NULL);
    fclose(file);
    ck_assert_ptr_nonnull(cases);
    size_t seen = 0, index;
    json_t *c;
    json_array_foreach(cases, index, c)
    {
        const char *op = json_string_value(json_object_get(c, "op"));
        if (op && strcmp(op, "trf_cache") == 0) {
            conformance_case(c);
            seen++;
        }
    }
    json_decref(cases);
    ck_assert_uint_ge(seen, 5);
}
END_TEST

/* ---- random tables ---- */

static trf_view random_view(void)
{
    return (trf_view){(trf_address)below(3), INT64_C(1) << below(4)};
}

/* Mostly tables whose reads all stay in the partition, sometimes any. */
static trf_reads random_reads(int64_t most)
{
    trf_reads r = {.view = random_view(), .read_bytes = INT64_C(1) << below(7), .tiling = 1 + below(5), .delay = below(4)};
    r.period = r.tiling + (below(2) ? below(4) : 0);
    int64_t room = (r.view.mode == TRF_FULL ? 65536 : 32768) / r.view.rows - r.read_bytes, total = 1;
    bool anywhere = below(8) == 0, narrow = below(2);
    r.table.count = 1 + (unsigned)below(narrow ? 3 : 8);
    r.table.base = below(room / r.read_bytes + 1) * r.read_bytes;
    int64_t low = r.table.base, high = r.table.base;
    for (unsigned i = r.table.count; i-- > 0;) {
        int64_t size = 1 + below(narrow ? 200 : 9), unit = r.read_bytes << below(4);
        size = total * size > most ? 1 : size;
        int64_t stride = below(4) == 0 ? 0 : (below(21) - 4) * unit;
        if (below(4) == 0)
            stride = (below(5) - 1) * 256; /* the sets repeat */
        if (size > 1 && stride % r.read_bytes)
            stride = 0;
        if (!anywhere && (low + stride * (size - 1) < 0 || high + stride * (size - 1) > room))
            stride = 0;
        *(stride < 0 ? &low : &high) += stride * (size - 1);
        r.table.size[i] = size;
        r.table.stride[i] = stride;
        total *= size;
    }
    return r;
}

static trf_writes random_writes(void)
{
    trf_writes w = {.view = random_view(), .delay = below(3) ? 0 : below(5), .cycles_per_flit = below(2) ? 1 : 1 + below(6)};
    int64_t partition = (w.view.mode == TRF_FULL ? 65536 : 32768) / w.view.rows / 32;
    w.flits_per_row = 1 + below(below(2) ? 9 : partition);
    w.base = below(partition - w.flits_per_row + 1) * 32;
    w.flits = w.flits_per_row * w.view.rows;
    return w;
}

/* The timing and its model, which are told the same. */
typedef struct meeting {
    trf_timing timing;
    trf_model model;
} meeting;

static void meeting_init(meeting *b)
{
    b->timing = new_timing();
    b->model = (trf_model){.has_reads = false};
    memset(b->model.tag, -1, sizeof b->model.tag);
}

static void meeting_reads(meeting *b, const trf_reads *r)
{
    trf_timing_begin_reads(&b->timing, r);
    trf_model_reads(&b->model, r);
}

static void meeting_writes(meeting *b, const trf_writes *w)
{
    trf_timing_begin_writes(&b->timing, w);
    trf_model_writes(&b->model, w);
}

/* Begins with reads. */
static void meeting_of_reads(meeting *b, const trf_reads *r)
{
    meeting_init(b);
    meeting_reads(b, r);
}

static void meeting_goes_on(meeting *b, int64_t cycles)
{
    ck_assert_int_eq(trf_timing_run(&b->timing, cycles, INT64_MAX), trf_model_run(&b->model, cycles));
    same(&b->model, &b->timing);
}

/* Both go on in pieces of random length; commands begin at random moments. */
static void random_scene(void)
{
    meeting both;
    meeting_init(&both);
    for (int event = 0; event < 6; event++) {
        if (!both.model.has_reads && below(3)) {
            trf_reads r = random_reads(below(4) ? 3000 : 60);
            meeting_reads(&both, &r);
        }
        if (!both.model.has_writes && below(3)) {
            trf_writes w = random_writes();
            meeting_writes(&both, &w);
        }
        meeting_goes_on(&both, below(2) ? below(100) : below(5000));
    }
}

START_TEST(random_tables)
{
    random_state = 0x9e3779b97f4a7c15u + (uint64_t)_i;
    int scenes = suite_rounds(500);
    for (int i = 0; i < scenes; i++)
        random_scene();
}
END_TEST

/* Rows of an odd number of flits: the writer's turns among the columns break off in the middle of what repeats. */
START_TEST(odd_rows)
{
    random_state = 4711;
    for (int i = 0; i < 3000; i++) {
        trf_reads r = random_reads(3000);
        r.view = (trf_view){TRF_FIRST_HALF, 8};
        trf_writes w = {.view = {TRF_SECOND_HALF, 8}, .flits_per_row = 3 + 2 * below(20), .cycles_per_flit = 1 + below(3)};
        w.flits = 8 * w.flits_per_row;
        meeting both;
        meeting_of_reads(&both, &r);
        meeting_writes(&both, &w);
        meeting_goes_on(&both, 3000);
    }
}
END_TEST

/* The same halves on both sides, as no compiled kernel has it: writes drop what the reads have cached. */
START_TEST(writes_into_what_is_read)
{
    random_state = 12345;
    for (int i = 0; i < 600; i++) {
        trf_reads r = random_reads(2000);
        trf_writes w = random_writes();
        r.view = w.view = (trf_view){TRF_FULL, 8};
        r.table.base &= 0x3c0;
        w.base %= 1024;
        w.flits_per_row = 1 + w.flits_per_row % 200;
        w.flits = w.flits_per_row * 8;
        meeting both;
        meeting_of_reads(&both, &r);
        meeting_goes_on(&both, below(200)); /* the Rows' tags become different in the middle */
        meeting_writes(&both, &w);
        meeting_goes_on(&both, 4000);
    }
}
END_TEST

START_TEST(a_dropped_entry_misses_again)
{
    trf_timing s = new_timing();
    trf_reads r = {.view = {TRF_FULL, 8}, .read_bytes = 32, .tiling = 1, .period = 1};
    r.table = (walk){.count = 1, .size = {20}, .stride = {0}};
    trf_timing_begin_reads(&s, &r);
    trf_timing_run(&s, 5, INT64_MAX);
    ck_assert_int_eq(s.read_counts.column_misses, 1);
    trf_writes w = {.view = {TRF_FULL, 8}, .flits_per_row = 1, .flits = 8, .cycles_per_flit = 1};
    trf_timing_begin_writes(&s, &w);
    trf_timing_run(&s, 15, INT64_MAX);
    /* Each write drops the entry of one Row; the read after it misses in that Row, and the next write, of the same
     * column, waits for that one cycle. The flits are done before the reads are. */
    ck_assert_int_eq(s.write_counts.flits, 8);
    ck_assert_int_eq(s.write_counts.stall_cycles, 7);
    ck_assert_int_eq(s.write_counts.stalled_flits, 7);
    trf_timing_run(&s, 15, INT64_MAX);
    ck_assert_int_eq(s.read_counts.column_misses, 1 + 7);
}
END_TEST

START_TEST(other_slices_never_meet)
{
    trf_timing s = new_timing();
    s.apart = true;
    trf_reads r = {.view = {TRF_FULL, 8}, .read_bytes = 64, .tiling = 1, .period = 1};
    r.table = (walk){.count = 1, .size = {64}, .stride = {64}};
    trf_writes w = {.view = {TRF_FULL, 8}, .flits_per_row = 4, .flits = 32, .cycles_per_flit = 1};
    trf_timing_begin_reads(&s, &r);
    trf_timing_begin_writes(&s, &w);
    ck_assert_int_eq(trf_timing_run(&s, 1000, INT64_MAX), 32);
    ck_assert_int_eq(s.write_counts.stall_cycles, 0);
}
END_TEST

/* "Impact of reg_read_size": reads of 32 bytes that change columns every cycle let the store through between them, though each misses. */
START_TEST(alternating_columns_cost_a_store_nothing)
{
    for (int64_t every = 1; every <= 6; every++)
        for (int64_t column = 0; column < 2; column++) {
            trf_timing s = new_timing();
            trf_reads r = {.view = {TRF_FIRST_HALF, 8}, .read_bytes = 32, .tiling = 1, .period = 1};
            r.table = (walk){.count = 2, .size = {64, 2}, .stride = {64, 32}};
            trf_writes w = {.view = {TRF_SECOND_HALF, 8}, .base = 32 * column, .flits_per_row = 16, .flits = 16, .cycles_per_flit = every};
            trf_timing_begin_reads(&s, &r);
            trf_timing_begin_writes(&s, &w);
            int64_t cycles = trf_timing_run(&s, INT64_MAX / 2, INT64_MAX);
            ck_assert_int_eq(s.read_counts.column_hits, 0);
            ck_assert_int_le(s.write_counts.late_cycles, 1); /* it may begin a cycle later, and then keeps its rate */
            ck_assert_int_eq(cycles, 16 * every + s.write_counts.late_cycles);
        }
}
END_TEST

/* ---- large tables are counted ---- */

START_TEST(billions_of_reads)
{
    trf_timing s = new_timing();
    trf_reads r = {.view = {TRF_FIRST_HALF, 8}, .read_bytes = 64, .tiling = 1, .period = 2};
    r.table = (walk){.count = 4, .size = {65536, 65536, 5, 7}, .stride = {0, 0, 0, 64}};
    trf_writes w = {.view = {TRF_SECOND_HALF, 8}, .flits_per_row = 128, .flits = 1024, .cycles_per_flit = 4};
    trf_timing_begin_reads(&s, &r);
    int64_t reads = INT64_C(65536) * 65536 * 35;
    ck_assert_int_eq(trf_timing_run(&s, 10, INT64_MAX), 10);
    trf_timing_begin_writes(&s, &w);
    ck_assert_int_eq(trf_timing_run(&s, INT64_MAX / 2, INT64_MAX), s.cycle - 10);
    ck_assert(s.reading && !s.writing);
    ck_assert_int_eq(s.write_counts.flits, 1024);
    ck_assert_int_eq(s.cycle, 10 + 4 * 1024 + s.write_counts.late_cycles);
    trf_timing_run(&s, 2 * reads, INT64_MAX);
    ck_assert(!s.reading);
    ck_assert_int_eq(s.read_counts.reads, reads);
    /* 7 rows pass through 4 sets: row 3 alone has its set for itself, the others (0 4, 1 5, 2 6) take turns. */
    ck_assert_int_eq(s.read_counts.column_misses, 2 * (reads / 7 * 6 + 1));
    ck_assert_int_le(s.stepped_cycles, 20000);
}
END_TEST

START_TEST(counting_equals_stepping)
{
    random_state = 777;
    int64_t stepped = 0, cycles = 0;
    for (int i = 0; i < 60; i++) {
        trf_reads r = random_reads(400000);
        trf_writes w = random_writes();
        trf_timing a, b;
        trf_timing_init(&a, machine_target());
        trf_timing_init(&b, machine_target());
        b.stepwise = true;
        trf_timing_begin_reads(&a, &r);
        trf_timing_begin_reads(&b, &r);
        trf_timing_begin_writes(&a, &w);
        trf_timing_begin_writes(&b, &w);
        for (int piece = 0; piece < 5; piece++) {
            int64_t n = below(300000);
            ck_assert_int_eq(trf_timing_run(&a, n, INT64_MAX), trf_timing_run(&b, n, INT64_MAX));
            ck_assert_mem_eq(&a.read_counts, &b.read_counts, sizeof a.read_counts);
            ck_assert_mem_eq(&a.write_counts, &b.write_counts, sizeof a.write_counts);
            ck_assert_int_eq(a.cycle, b.cycle);
        }
        stepped += a.stepped_cycles;
        cycles += b.cycle;
    }
    ck_assert_int_lt(stepped, cycles);
}
END_TEST

START_TEST(work_is_bounded)
{
    trf_timing s = new_timing();
    trf_reads r = {.view = {TRF_FULL, 1}, .read_bytes = 1, .tiling = 1, .period = 1};
    r.table = (walk){.count = 4, .size = {4000, 4000, 4000, 4000}, .stride = {1, 2, 3, 1}};
    trf_timing_begin_reads(&s, &r);
    ck_assert_int_eq(trf_timing_run(&s, INT64_C(1) << 50, 1000), s.cycle);
    ck_assert_int_le(s.stepped_cycles, 1000);
    ck_assert(s.reading);
    /* and addresses far outside read nothing */
    r.table = (walk){.count = 8,
                     .base = 65535,
                     .size = {65536, 65536, 65536, 2, 2, 2, 2, 2},
                     .stride = {INT32_MIN, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MAX, INT32_MIN, INT32_MIN, 1}};
    trf_timing_begin_reads(&s, &r);
    trf_timing_run(&s, 100000, 100000);
    ck_assert(s.reading);
    ck_assert_int_ge(s.read_counts.reads, 1000);
}
END_TEST

/* ---- tags ---- */

START_TEST(entries_follow_the_bit_fields)
{
    const target *t = machine_target();
    for (int mode = 0; mode < 3; mode++)
        for (int64_t rows = 1; rows <= 8; rows *= 2)
            for (int64_t row = 0; row < rows; row++)
                for (int64_t byte = 0; byte < (mode ? 32768 : 65536) / rows; byte += 19) {
                    trf_view v = {(trf_address)mode, rows};
                    int64_t bank_row, line, column;
                    int32_t tag;
                    trf_model_locate(&v, row, byte, &bank_row, &line, &column);
                    ck_assert_uint_eq(trf_cache_entry(t, &v, row, byte, &tag), (unsigned)((bank_row * 2 + column) * 4 + line % 4));
                    ck_assert_int_eq(tag, line / 4);
                }
    ck_assert(trf_cache_fits(t));
    target large = *t;
    large.rows = 64;
    ck_assert(!trf_cache_fits(&large));
}
END_TEST

int main(void)
{
    TCase *figures = suite_case("figures"), *random = suite_case("random"), *large = suite_case("large");
    suite_tests(figures, reference_table, conformance_file, entries_follow_the_bit_fields, a_dropped_entry_misses_again,
                other_slices_never_meet, alternating_columns_cost_a_store_nothing);
    tcase_add_loop_test(random, random_tables, 0, 8);
    suite_tests(random, odd_rows, writes_into_what_is_read);
    suite_tests(large, billions_of_reads, counting_equals_stepping, work_is_bounded);
    return suite_status("trf_timing", figures, random, large);
}
