/* The Stream Adapter's advanced modes (runtime/engine/shift.c): random commands against the formulas of docs/isa.md, element by element,
 * and commands that must be refused. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/engine/shift.h"
#include "test/suite.h"

enum { NONE = 8, FLIT = 32, PACKET = 64 };

static uint64_t state;

static int64_t below(int64_t n)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int64_t)((state >> 33) % (uint64_t)n);
}

static int64_t element_at(const unsigned char *bytes, int64_t bits, int64_t i)
{
    if (bits == 4)
        return bytes[i / 2] >> i % 2 * 4 & 15;
    return bits == 8 ? bytes[i] : bytes[2 * i] | bytes[2 * i + 1] << 8;
}

static bool planned(shift *k, const command *c, dtype type, int64_t flits, int64_t steps, int64_t packets, fault *f)
{
    arena *a = arena_new();
    diag_list diags;
    diag_list_init(&diags, a);
    *f = (fault){0};
    bool ok = shift_plan(k, target_by_name("rngd"), c, type, flits, steps, packets, f);
    ck_assert_int_eq(ok, !f->set);
    arena_free(a);
    return ok;
}

/* A command of four loops: repeat, shift, repeat, pop. */
static command random_command(dtype type, int64_t *steps, int64_t *packets)
{
    int64_t elements = FLIT * 8 / dtype_row_of(type)->bits;
    command c = {.op = OP_SHIFT, .entry_count = 5};
    *steps = *packets = 1;
    command_set(&c, SHIFT_TRANSPOSE_ROWS, 1);
    if (below(2))
        command_set(&c, SHIFT_TRANSPOSE_ROWS, type == DTYPE_I4 ? 4 : type == DTYPE_BF16 || below(2) ? 2 : 4);
    command_set(&c, SHIFT_DIM, 1);
    command_set(&c, SHIFT_STRIDE, 1 + below(elements / 2 - 1));
    command_set(&c, SHIFT_POP_DIM, 3);
    for (unsigned i = 0; i < 5; i++) {
        command_set_entry(&c, i, SHIFT_LIMIT, 1 + below(3));
        *(i < 3 ? steps : packets) *= command_entry(&c, i, SHIFT_LIMIT);
    }
    int64_t dim = 3 + below(2), used = 1;
    command_set(&c, SHIFT_INITIAL_DIM, NONE);
    if (below(2)) {
        command_set(&c, SHIFT_INITIAL_DIM, dim);
        used = command_entry(&c, (unsigned)dim, SHIFT_LIMIT);
    }
    for (unsigned i = 0; i < used; i++)
        command_set_entry(&c, i, SHIFT_INITIAL, below(elements / 2) - elements / 4 + 1);
    return c;
}

static void check_run(const command *c, const shift *k, dtype type, int64_t flits, int64_t steps, int64_t packets)
{
    int64_t bits = dtype_row_of(type)->bits, each = FLIT * 8 / bits, rows = command_get(c, SHIFT_TRANSPOSE_ROWS);
    int64_t step = 0;
    for (int64_t pop = 0; pop < packets; pop++) {
        unsigned char data[SHIFT_MAX_BYTES], collected[SHIFT_MAX_BYTES], packet[PACKET];
        for (int i = 0; i < SHIFT_MAX_BYTES; i++)
            data[i] = (unsigned char)below(256);
        shift_pop(k, data, collected);
        for (int64_t window = 0; window < k->windows; window++) {
            shift_window(k, collected, pop, window, packet);
            for (int64_t r = 0; r < k->repeat; r++, step++) {
                int64_t index[5], rest = step;
                for (int i = 0; i < 5; i++) {
                    int64_t limit = (unsigned)i < c->entry_count ? command_entry(c, (unsigned)i, SHIFT_LIMIT) : 1;
                    index[i] = rest % limit;
                    rest /= limit;
                }
                int64_t dim = command_get(c, SHIFT_INITIAL_DIM);
                int64_t offset =
                    command_entry(c, dim == NONE ? 0 : (unsigned)index[dim], SHIFT_INITIAL) + command_get(c, SHIFT_STRIDE) * index[1];
                for (int64_t lane = 0; lane < PACKET * 8 / bits; lane++) {
                    int64_t at = lane + offset, want = 0;
                    if (at >= 0 && at < flits * each) {
                        int64_t i = at % each; /* of the turned flit: column i / rows, row i % rows */
                        want = element_at(data + at / each * FLIT, bits, i % rows * (each / rows) + i / rows);
                    }
                    ck_assert_int_eq(element_at(packet, bits, lane), want);
                }
            }
        }
    }
    ck_assert_int_eq(step, steps * packets);
}

START_TEST(packets_are_offsets)
{
    static const dtype types[] = {DTYPE_I4, DTYPE_I8, DTYPE_F8E4M3, DTYPE_F8E5M2, DTYPE_BF16};
    for (int round = 0; round < 100; round++) {
        state = (uint64_t)round * 977 + 1;
        dtype type = types[round % 5];
        int64_t flits = 1 + below(3), steps, packets;
        command c = random_command(type, &steps, &packets);
        shift k;
        fault f;
        ck_assert_msg(planned(&k, &c, type, flits, steps, packets, &f), "round %d", round);
        check_run(&c, &k, type, flits, steps, packets);
    }
}
END_TEST

/* limits [2, 3, 3], shift_dim 1, stride 3, pop_dim 2, initial -1: offsets -1 -1 2 2 5 5, three times. */
START_TEST(worked_example)
{
    command c = {.op = OP_SHIFT, .entry_count = 3};
    command_set(&c, SHIFT_TRANSPOSE_ROWS, 1);
    command_set(&c, SHIFT_INITIAL_DIM, NONE);
    command_set(&c, SHIFT_DIM, 1);
    command_set(&c, SHIFT_STRIDE, 3);
    command_set(&c, SHIFT_POP_DIM, 2);
    for (unsigned i = 0; i < 3; i++)
        command_set_entry(&c, i, SHIFT_LIMIT, i ? 3 : 2);
    command_set_entry(&c, 0, SHIFT_INITIAL, -1);
    shift k;
    fault f;
    ck_assert(planned(&k, &c, DTYPE_I8, 3, 6, 3, &f));
    ck_assert_int_eq(k.windows, 3);
    ck_assert_int_eq(k.repeat, 2);
    check_run(&c, &k, DTYPE_I8, 3, 6, 3);
}
END_TEST

START_TEST(limits_hold)
{
    static const struct {
        dtype type;
        int64_t low, high, stride, rows;
    } rows[] = {{DTYPE_I4, -15, 16, 31, 4},
                {DTYPE_I8, -7, 8, 15, 6},
                {DTYPE_F8E4M3, -7, 8, 15, 6},
                {DTYPE_F8E5M2, -7, 8, 15, 6},
                {DTYPE_BF16, -3, 4, 7, 2}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int64_t v = -20; v < 40; v++) {
            command c = {.op = OP_SHIFT, .entry_count = 2};
            shift k;
            fault f;
            command_set(&c, SHIFT_INITIAL_DIM, NONE);
            command_set(&c, SHIFT_DIM, NONE);
            command_set(&c, SHIFT_POP_DIM, 1);
            command_set(&c, SHIFT_TRANSPOSE_ROWS, 1);
            command_set_entry(&c, 0, SHIFT_LIMIT, 2);
            command_set_entry(&c, 1, SHIFT_LIMIT, 2);
            command_set_entry(&c, 0, SHIFT_INITIAL, v);
            ck_assert_int_eq(planned(&k, &c, rows[r].type, 2, 2, 2, &f), v >= rows[r].low && v <= rows[r].high);
            command_set_entry(&c, 0, SHIFT_INITIAL, 0);
            command_set(&c, SHIFT_DIM, 0);
            command_set(&c, SHIFT_STRIDE, v);
            if (v >= 0)
                ck_assert_int_eq(planned(&k, &c, rows[r].type, 2, 2, 2, &f), v > 0 && v <= rows[r].stride);
            command_set(&c, SHIFT_STRIDE, 1);
            command_set(&c, SHIFT_TRANSPOSE_ROWS, v);
            if (v == 1 || v == 2 || v == 4)
                ck_assert_int_eq(planned(&k, &c, rows[r].type, 2, 2, 2, &f), v == 1 || (rows[r].rows & v));
        }
}
END_TEST

START_TEST(loops_must_fit)
{
    static const struct {
        int64_t initial, dim, stride, pop, flits, steps, packets, last; /* last: initial_shift of the last entry */
        const char *part;
    } cases[] = {
        {NONE, 1, 1, 2, 2, 6, 3, 0, NULL},
        {2, 1, 1, 2, 2, 6, 3, 1, NULL},
        {NONE, 1, 1, 3, 2, 6, 3, 0, "do not fit 3 loops"},
        {NONE, 2, 1, 2, 2, 6, 3, 0, "do not fit 3 loops"},
        {1, 1, 1, 2, 2, 6, 3, 0, "do not fit 3 loops"},
        {3, 1, 1, 2, 2, 6, 3, 0, "do not fit 3 loops"},
        {NONE, NONE, 1, 2, 2, 6, 3, 0, "shift_dim 8 with shift_stride 1"},
        {NONE, 1, 0, 2, 2, 6, 3, 0, "shift_dim 1 with shift_stride 0"},
        {NONE, 1, 1, 2, 2, 6, 3, 1, "used by no index"},
        {NONE, 1, 1, 2, 2, 5, 3, 0, "do not make 5 steps"},
        {NONE, 1, 1, 2, 2, 6, 4, 0, "do not make 6 steps for each of 4 packets"},
        {NONE, 1, 1, 2, 4, 6, 3, 0, "flit buffer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        command c = {.op = OP_SHIFT, .entry_count = 3};
        shift k;
        fault f;
        command_set(&c, SHIFT_TRANSPOSE_ROWS, 1);
        command_set(&c, SHIFT_INITIAL_DIM, cases[i].initial);
        command_set(&c, SHIFT_DIM, cases[i].dim);
        command_set(&c, SHIFT_STRIDE, cases[i].stride);
        command_set(&c, SHIFT_POP_DIM, cases[i].pop);
        for (unsigned e = 0; e < 3; e++)
            command_set_entry(&c, e, SHIFT_LIMIT, e ? 3 : 2);
        command_set_entry(&c, 2, SHIFT_INITIAL, cases[i].last);
        bool ok = planned(&k, &c, DTYPE_I8, cases[i].flits, cases[i].steps, cases[i].packets, &f);
        ck_assert_msg(ok == !cases[i].part && (ok || strstr(f.text, cases[i].part)), "case %zu: %s", i, ok ? "accepted" : f.text);
    }
    /* More indices than the table has entries; limits whose product overflows. */
    command c = {.op = OP_SHIFT, .entry_count = 2};
    shift k;
    fault f;
    command_set(&c, SHIFT_TRANSPOSE_ROWS, 1);
    command_set(&c, SHIFT_INITIAL_DIM, 0);
    command_set(&c, SHIFT_DIM, NONE);
    command_set_entry(&c, 0, SHIFT_LIMIT, 3);
    command_set_entry(&c, 1, SHIFT_LIMIT, 1);
    ck_assert(!planned(&k, &c, DTYPE_I8, 1, 1, 3, &f));
    ck_assert_ptr_nonnull(strstr(f.text, "has 3 initial shifts, the table holds 2"));
    command_set(&c, SHIFT_INITIAL_DIM, NONE);
    command_set_entry(&c, 0, SHIFT_LIMIT, INT64_C(1) << 40);
    command_set_entry(&c, 1, SHIFT_LIMIT, INT64_C(1) << 40);
    ck_assert(!planned(&k, &c, DTYPE_I8, 1, 1, 1, &f));
}
END_TEST

int main(void)
{
    TCase *t = suite_case("shift");
    suite_tests(t, packets_are_offsets, worked_example, limits_hold, loops_must_fit);
    return suite_status("shift", t);
}
