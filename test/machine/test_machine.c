/* The machine, engine by engine: hand-made command streams, expected values worked out by hand or written
 * straight from the definitions in this file. */
#include <math.h>

#include "runtime/engine/tree.h"
#include "runtime/engine/trf.h"
#include "runtime/machine/machine_state.h"
#include "runtime/machine/memory.h"
#include "runtime/machine/walk.h"
#include "test/machine/machine_bench.h"
#include "test/suite.h"

/* --- memory and walks --- */

START_TEST(memory_is_poison_until_written)
{
    memory_budget budget = {0};
    memory m;
    memory_init(&m, 3 << 20, 1 << 20, 0x5a, &budget);
    unsigned char bytes[64], zero[40] = {0};
    ck_assert(memory_read(&m, (1 << 20) - 32, bytes, 64));
    for (int i = 0; i < 64; i++)
        ck_assert_int_eq(bytes[i], 0x5a);
    ck_assert(memory_write(&m, (1 << 20) - 20, zero, 40));
    ck_assert(memory_read(&m, (1 << 20) - 32, bytes, 64));
    for (int i = 0; i < 64; i++)
        ck_assert_int_eq(bytes[i], i >= 12 && i < 52 ? 0 : 0x5a);
    ck_assert_int_eq(atomic_load(&budget.used_bytes), 2 * 4096);
    budget.limit_bytes = 2 * 4096;
    ck_assert(!memory_write(&m, 2 << 20, zero, 1));
    ck_assert_int_eq(atomic_load(&budget.used_bytes), 2 * 4096);
    memory_free(&m);
}
END_TEST

START_TEST(memory_copies_across_blocks)
{
    memory_budget budget = {0};
    memory m, n;
    memory_init(&m, 1 << 18, 1 << 16, 1, &budget);
    memory_init(&n, 1 << 18, 1 << 15, 2, &budget);
    unsigned char *bytes = malloc(200000), *copy = malloc(200000);
    for (int i = 0; i < 200000; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 251);
    ck_assert(memory_write(&m, 1000, bytes, 200000));
    ck_assert(memory_copy(&n, 77, &m, 1000, 200000));
    ck_assert(memory_read(&n, 77, copy, 200000));
    ck_assert_mem_eq(bytes, copy, 200000);
    free(bytes);
    free(copy);
    memory_free(&m);
    memory_free(&n);
}
END_TEST

/* Every address of a walk by plain nested counters. */
static int64_t naive_address(const walk *w, int64_t position, int64_t *counters)
{
    int64_t address = w->base;
    for (unsigned i = w->count; i-- > 0;) {
        counters[i] = position % w->size[i];
        address += counters[i] * w->stride[i];
        position /= w->size[i];
    }
    return address;
}

START_TEST(walks_agree_with_nested_loops)
{
    uint64_t seed = 11;
    for (int round = 0; round < suite_rounds(3000); round++) {
        walk w = {.count = (unsigned)bench_pick(&seed, 1, 4), .base = bench_pick(&seed, -20, 20)};
        for (unsigned i = 0; i < w.count; i++) {
            w.size[i] = bench_pick(&seed, 1, 4);
            w.stride[i] = bench_pick(&seed, -3, 6);
        }
        int64_t positions, counters[WALK_MAX_LOOPS], found[WALK_MAX_LOOPS], low = INT64_MAX, high = INT64_MIN;
        ck_assert(walk_positions(&w, &positions));
        walk merged = w;
        walk_merge(&merged);
        walk_cursor c;
        walk_start(&merged, &c);
        int64_t limit_low = bench_pick(&seed, -30, 0), limit_high = bench_pick(&seed, 0, 30), outside = -1;
        for (int64_t p = 0; p < positions; p++) {
            int64_t a = naive_address(&w, p, counters);
            ck_assert_int_eq(walk_step(&merged, &c), a);
            low = a < low ? a : low;
            high = a > high ? a : high;
            if (outside < 0 && (a < limit_low || a > limit_high))
                outside = p;
        }
        walk_address first, wide_low, wide_high;
        walk_bounds(&w, &wide_low, &wide_high);
        ck_assert_int_eq((int64_t)wide_low, low);
        ck_assert_int_eq((int64_t)wide_high, high);
        ck_assert_int_eq(walk_first_outside(&w, limit_low, limit_high, found, &first), outside >= 0);
        if (outside >= 0) {
            ck_assert_int_eq((int64_t)first, naive_address(&w, outside, counters));
            ck_assert_mem_eq(found, counters, w.count * sizeof *found);
        }
    }
    walk huge = {.count = 4, .size = {65536, 65536, 65536, 65536}};
    int64_t positions;
    ck_assert(!walk_positions(&huge, &positions));
}
END_TEST

/* --- TRF --- */

START_TEST(trf_addresses_are_the_published_ones)
{
    /* rows, Row, mode, byte, word: the word counts 5-bit slots, half a logical byte each. */
    static const int64_t rows[][5] = {
        {8, 5, TRF_FULL, 200, 82320},      {8, 5, TRF_FULL, 100, 82120},   {8, 5, TRF_FULL, 50, 82020},
        {8, 5, TRF_SECOND_HALF, 2000, -1}, {4, 3, TRF_FULL, 8392, 115088},
    };
    const target *t = target_by_name("rngd");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i][4] >= 0)
            ck_assert_int_eq(trf_address_of(t, rows[i][1], rows[i][0], (trf_address)rows[i][2], rows[i][3]), rows[i][4] / 2);
    /* SecondHalf, Row 5, byte 2000: bank row 5, row 31 of the half = 95 of the bank, column 0, byte 16. */
    ck_assert_int_eq(trf_address_of(t, 5, 8, TRF_SECOND_HALF, 2000), (5 * 128 + 95) * 64 + 16);
}
END_TEST

START_TEST(trf_partitions_tile_the_file)
{
    const target *t = target_by_name("rngd");
    for (int64_t rows = 1; rows <= 8; rows *= 2) {
        unsigned char *owner = calloc(65536, 1);
        for (int mode = TRF_FIRST_HALF; mode <= TRF_SECOND_HALF; mode++)
            for (int64_t row = 0; row < rows; row++)
                for (int64_t byte = 0; byte < trf_partition_bytes(t, rows, (trf_address)mode); byte++)
                    owner[trf_address_of(t, row, rows, (trf_address)mode, byte)] += 1;
        for (int i = 0; i < 65536; i++)
            ck_assert_int_eq(owner[i], 1);
        free(owner);
        for (int64_t byte = 0; byte < 65536 / rows; byte++) /* Full: one run per Row */
            ck_assert_int_eq(trf_address_of(t, rows - 1, rows, TRF_FULL, byte), (rows - 1) * 65536 / rows + byte);
    }
    ck_assert(!trf_rows_legal(t, 3));
    ck_assert(!trf_rows_legal(t, 16));
}
END_TEST

/* --- the listings of the seeds --- */

/* Weights N, K = 32 into Full, data M, K; both small integers, so that every order of summation agrees. */
START_TEST(seed_basic_matmul)
{
    bench b;
    bench_init(&b);
    uint32_t w = bench_stream(&b, PORT_IN, DTYPE_BF16, 1, 16, 16);
    uint32_t a = bench_stream(&b, PORT_IN, DTYPE_BF16, 1, 64, 16);
    uint32_t c = bench_stream(&b, PORT_OUT, DTYPE_F32, 1, 32, 8);
    ADD(&b, CONTEXT_SUB, OP_UNITS, UNIT_0);
    ADD(&b, CONTEXT_SUB, OP_STREAM_IN, w, DTYPE_BF16, 1, 16, 16);
    ADD(&b, CONTEXT_SUB, OP_TRF_STORE, TRF_FULL, 8, 3, 1, 0, 2);
    ADD(&b, CONTEXT_MAIN, OP_WAIT, CONTEXT_SUB, 3);
    ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_IN, a, DTYPE_BF16, 1, 16, 64);
    ADD(&b, CONTEXT_MAIN, OP_ALIGN, 2, 8, DTYPE_BF16, 1, 32);
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_TRF_READ, TRF_FULL, 8, 3, 64, 0, DTYPE_BF16), 32, 0);
    ADD(&b, CONTEXT_MAIN, OP_CONTRACT, DTYPE_BF16, 5, 1);
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_ACCUMULATE, 0, 8, 1, 1), 32, 0, 0);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_OUT, c, DTYPE_F32, 1, 8, 32);
    bench_build(&b);
    uint16_t weights[8][32], data[32][32];
    float out[32][8];
    for (int n = 0; n < 8; n++)
        for (int k = 0; k < 32; k++)
            weights[n][k] = bf16((float)((n * 5 + k * 3) % 11 - 5));
    for (int m = 0; m < 32; m++)
        for (int k = 0; k < 32; k++)
            data[m][k] = bf16((float)((m * 7 + k) % 13 - 6));
    bench_write(&b, w, weights, sizeof weights);
    bench_write(&b, a, data, sizeof data);
    bench_run(&b);
    bench_read(&b, c, out, sizeof out);
    for (int m = 0; m < 32; m++)
        for (int n = 0; n < 8; n++) {
            int sum = 0;
            for (int k = 0; k < 32; k++)
                sum += ((n * 5 + k * 3) % 11 - 5) * ((m * 7 + k) % 13 - 6);
            ck_assert_float_eq(out[m][n], (float)sum);
        }
    bench_free(&b);
}
END_TEST

/* Element O, K = 16 read 32 bytes at a time and repeated for L: entries (32, 0) (2, 32), entry 0 innermost.
 */
START_TEST(seed_small_read)
{
    bench b;
    bench_init(&b);
    uint32_t w = bench_trf(&b, PORT_IN, DTYPE_BF16, TRF_FIRST_HALF, 8, 32);
    uint32_t a = bench_stream(&b, PORT_IN, DTYPE_BF16, 1, 128, 16);
    uint32_t c = bench_stream(&b, PORT_OUT, DTYPE_F32, 1, 128, 8);
    ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_IN, a, DTYPE_BF16, 1, 16, 128);
    ADD(&b, CONTEXT_MAIN, OP_ALIGN, 2, 8, DTYPE_BF16, 1, 64);
    command *read = ADD(&b, CONTEXT_MAIN, OP_TRF_READ, TRF_FIRST_HALF, 8, 3, 32, 0, DTYPE_BF16);
    ENTRY(read, 32, 0);
    ENTRY(read, 2, 32);
    ADD(&b, CONTEXT_MAIN, OP_CONTRACT, DTYPE_BF16, 4, 2);
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_ACCUMULATE, 0, 8, 2, 1), 64, 0, 0);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_OUT, c, DTYPE_F32, 1, 8, 128);
    bench_build(&b);
    uint16_t weights[8][2][16], data[2][32][2][16];
    float out[2][32][2][8];
    for (int i = 0; i < 8 * 32; i++)
        weights[i / 32][i / 16 % 2][i % 16] = bf16((float)(i * 37 % 15 - 7));
    for (int i = 0; i < 2048; i++)
        data[i / 1024][i / 32 % 32][i / 16 % 2][i % 16] = bf16((float)(i * 29 % 17 - 8));
    bench_write(&b, w, weights, sizeof weights);
    bench_write(&b, a, data, sizeof data);
    bench_run(&b);
    bench_read(&b, c, out, sizeof out);
    for (int o = 0; o < 2; o++)
        for (int m = 0; m < 32; m++)
            for (int l = 0; l < 2; l++)
                for (int n = 0; n < 8; n++) {
                    int sum = 0;
                    for (int k = 0; k < 16; k++)
                        sum += ((n * 32 + o * 16 + k) * 37 % 15 - 7) * ((((o * 32 + m) * 2 + l) * 16 + k) * 29 % 17 - 8);
                    ck_assert_float_eq(out[o][m][l][n], (float)sum);
                }
    bench_free(&b);
}
END_TEST

/* Element T, K against OutTime M, T: every packet is repeated for five steps and half of the lanes are zero.
 * The pair leaves as it is. */
START_TEST(seed_time_broadcast_pair)
{
    bench b;
    bench_init(&b);
    uint32_t w = bench_trf(&b, PORT_IN, DTYPE_BF16, TRF_SECOND_HALF, 4, 80);
    uint32_t a = bench_stream(&b, PORT_IN, DTYPE_BF16, 1, 3, 16);
    uint32_t data_out = bench_stream(&b, PORT_OUT, DTYPE_BF16, 4, 15, 32);
    uint32_t weight_out = bench_stream(&b, PORT_OUT, DTYPE_BF16, 4, 15, 32);
    ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_IN, a, DTYPE_BF16, 1, 16, 3);
    ADD(&b, CONTEXT_MAIN, OP_ALIGN, 1, 4, DTYPE_BF16, 5, 3);
    command *read = ADD(&b, CONTEXT_MAIN, OP_TRF_READ, TRF_SECOND_HALF, 4, 3, 32, 0, DTYPE_BF16);
    ENTRY(read, 5, 32);
    ENTRY(read, 3, 0);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_OUT, data_out, DTYPE_BF16, 4, 32, 15);
    bench_build(&b);
    uint16_t weights[4][5][16], data[3][16], got_data[4][3][5][32], got_weights[4][3][5][32];
    for (int i = 0; i < 320; i++)
        weights[i / 80][i / 16 % 5][i % 16] = (uint16_t)(i * 77 + 1);
    for (int i = 0; i < 48; i++)
        data[i / 16][i % 16] = (uint16_t)(i * 991 + 5);
    bench_write(&b, w, weights, sizeof weights);
    bench_write(&b, a, data, sizeof data);
    bench_run(&b);
    bench_read(&b, data_out, got_data, sizeof got_data);
    bench_read(&b, weight_out, got_weights, sizeof got_weights);
    for (int i = 0; i < 4 * 15 * 32; i++) {
        int row = i / 480, m = i / 160 % 3, t = i / 32 % 5, lane = i % 32;
        ck_assert_uint_eq(got_data[row][m][t][lane], lane < 16 ? data[m][lane] : 0);
        ck_assert_uint_eq(got_weights[row][m][t][lane], weights[row][t][lane % 16]);
    }
    bench_free(&b);
}
END_TEST

/* --- fetch, collect, cast, commit --- */

START_TEST(fetch_transposes_and_commit_truncates)
{
    bench b;
    bench_init(&b);
    /* DM holds A = 4, B = 8 (i32); the stream is B, A # 8; 4 elements of each flit come back densely. */
    uint32_t in = bench_dm(&b, PORT_IN, 64, 128), out = bench_dm(&b, PORT_OUT, 4096, 136);
    ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
    command *fetch = ADD(&b, CONTEXT_MAIN, OP_FETCH, 64, DTYPE_I32, DTYPE_I32, 4, 4);
    ENTRY(fetch, 8, 1);
    ENTRY(fetch, 4, 8);
    ADD(&b, CONTEXT_MAIN, OP_COLLECT, DTYPE_I32, 1, 4);
    command *commit = ADD(&b, CONTEXT_MAIN, OP_COMMIT, 4096, DTYPE_I32, 16, 16);
    ENTRY(commit, 8, 4);
    ENTRY(commit, 4, 1);
    bench_build(&b);
    int32_t data[4][8], got[34];
    for (int i = 0; i < 32; i++)
        data[i / 8][i % 8] = i * 1000 - 7;
    bench_write(&b, in, data, sizeof data);
    bench_run(&b);
    bench_read(&b, out, got, sizeof got);
    for (int i = 0; i < 32; i++)
        ck_assert_int_eq(got[i], data[i % 4][i / 4]);
    ck_assert_int_eq(got[32], (int32_t)0xa5a5a5a5);
    bench_free(&b);
}
END_TEST

START_TEST(collect_pads_with_zeros)
{
    bench b;
    bench_init(&b);
    uint32_t in = bench_dm(&b, PORT_IN, 0, 120), out = bench_stream(&b, PORT_OUT, DTYPE_I8, 1, 9, 32);
    ADD(&b, CONTEXT_SUB, OP_UNITS, UNIT_0);
    ENTRY(ADD(&b, CONTEXT_SUB, OP_FETCH, 0, DTYPE_I8, DTYPE_I8, 8, 40), 120, 1);
    ADD(&b, CONTEXT_SUB, OP_COLLECT, DTYPE_I8, 3, 40); /* 40 bytes: a flit, a quarter, an empty one */
    ADD(&b, CONTEXT_SUB, OP_STREAM_OUT, out, DTYPE_I8, 1, 32, 9);
    bench_build(&b);
    unsigned char data[120], got[9][32];
    for (int i = 0; i < 120; i++)
        data[i] = (unsigned char)(i + 1);
    bench_write(&b, in, data, sizeof data);
    bench_run(&b);
    bench_read(&b, out, got, sizeof got);
    for (int i = 0; i < 9 * 32; i++) {
        int packet = i / 96, byte = i % 96;
        ck_assert_int_eq(got[i / 32][i % 32], byte < 40 ? data[packet * 40 + byte] : 0);
    }
    bench_free(&b);
}
END_TEST

START_TEST(fetch_of_i4_walks_nibbles)
{
    bench b;
    bench_init(&b);
    /* From element 60 on: [2:1, 8:-3, 2:1], so that most pairs begin in the middle of a byte. */
    uint32_t in = bench_dm(&b, PORT_IN, 0, 64), out = bench_stream(&b, PORT_OUT, DTYPE_I4, 1, 2, 16);
    ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
    command *fetch = ADD(&b, CONTEXT_MAIN, OP_FETCH, 30, DTYPE_I4, DTYPE_I4, 1, 16);
    ENTRY(fetch, 2, 1);
    ENTRY(fetch, 8, -3);
    ENTRY(fetch, 2, 1);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_OUT, out, DTYPE_I4, 1, 16, 2);
    bench_build(&b);
    unsigned char data[64], got[16];
    for (int i = 0; i < 64; i++)
        data[i] = (unsigned char)((2 * i * 5 % 16) | ((2 * i + 1) * 5 % 16) << 4);
    bench_write(&b, in, data, sizeof data);
    bench_run(&b);
    bench_read(&b, out, got, sizeof got);
    for (int i = 0; i < 32; i++) {
        int element = 60 + i / 16 - 3 * (i / 2 % 8) + i % 2;
        ck_assert_int_eq(got[i / 2] >> i % 2 * 4 & 15, element * 5 % 16);
    }
    bench_free(&b);
}
END_TEST

/* One fetch conversion: `count` elements in DM, the expected stream as bytes. */
static void check_fetch(dtype from, dtype to, const void *data, size_t data_bytes, const void *expected, size_t expected_bytes,
                        int64_t count)
{
    bench b;
    bench_init(&b);
    uint32_t in = bench_dm(&b, PORT_IN, 8, (int64_t)data_bytes), out = bench_stream(&b, PORT_OUT, to, 1, 1, count);
    ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_FETCH, 8, from, to, 4, count), count, 1);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_OUT, out, to, 1, count, 1);
    bench_build(&b);
    bench_write(&b, in, data, data_bytes);
    bench_run(&b);
    unsigned char got[4096];
    ck_assert_uint_le(expected_bytes, sizeof got);
    bench_read(&b, out, got, expected_bytes);
    ck_assert_mem_eq(got, expected, expected_bytes);
    bench_free(&b);
}

START_TEST(fetch_converts)
{
    unsigned char nibbles[4] = {0x10, 0x7f, 0x88, 0xa9};
    int32_t from_nibbles[8] = {0, 1, -1, 7, -8, -8, -7, -6};
    check_fetch(DTYPE_I4, DTYPE_I32, nibbles, 4, from_nibbles, 32, 8);
    int8_t bytes[4] = {-128, -1, 0, 127};
    int32_t from_bytes[4] = {-128, -1, 0, 127};
    check_fetch(DTYPE_I8, DTYPE_I32, bytes, 4, from_bytes, 16, 4);
    int16_t shorts[4] = {-32768, -1, 5, 32767};
    int32_t from_shorts[4] = {-32768, -1, 5, 32767};
    check_fetch(DTYPE_I16, DTYPE_I32, shorts, 8, from_shorts, 16, 4);
    uint16_t halves[4] = {0x3f80, 0xc000, 0x7f80, 0x8000};
    float from_halves[4] = {1, -2, INFINITY, -0.0f};
    check_fetch(DTYPE_BF16, DTYPE_F32, halves, 8, from_halves, 16, 4);
    unsigned char e4m3[4] = {0x38, 0x7e, 0x01, 0xb8};
    float from_e4m3[4] = {1, 448, 0x1p-9f, -1};
    check_fetch(DTYPE_F8E4M3, DTYPE_F32, e4m3, 4, from_e4m3, 16, 4);
    unsigned char e5m2[4] = {0x3c, 0x7c, 0x01, 0xc0};
    float from_e5m2[4] = {1, INFINITY, 0x1p-16f, -2};
    check_fetch(DTYPE_F8E5M2, DTYPE_F32, e5m2, 4, from_e5m2, 16, 4);
    float floats[4] = {1, -1.00390625f, 1.01171875f, -INFINITY}; /* ties go to the even neighbour */
    uint16_t from_floats[4] = {0x3f80, 0xbf80, 0x3f82, 0xff80};
    check_fetch(DTYPE_F32, DTYPE_BF16, floats, 16, from_floats, 8, 4);
}
END_TEST

/* More elements than one conversion block, from a strided walk. */
START_TEST(fetch_converts_long_packets)
{
    bench b;
    bench_init(&b);
    enum { COUNT = 5000 };
    uint32_t in = bench_dm(&b, PORT_IN, 0, COUNT * 4), out = bench_stream(&b, PORT_OUT, DTYPE_I32, 1, 2, COUNT / 2);
    ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
    command *fetch = ADD(&b, CONTEXT_MAIN, OP_FETCH, 0, DTYPE_I8, DTYPE_I32, 1, COUNT / 2);
    ENTRY(fetch, COUNT, 3);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_OUT, out, DTYPE_I32, 1, COUNT / 2, 2);
    bench_build(&b);
    signed char *data = malloc(COUNT * 4);
    int32_t *got = malloc(COUNT * 4);
    for (int i = 0; i < COUNT * 4; i++)
        data[i] = (signed char)(i * 11 % 256 - 128);
    bench_write(&b, in, data, COUNT * 4);
    bench_run(&b);
    bench_read(&b, out, got, COUNT * 4);
    for (int i = 0; i < COUNT; i++)
        ck_assert_int_eq(got[i], data[i * 3]);
    free(data);
    free(got);
    bench_free(&b);
}
END_TEST

/* Eight 32-bit values as one flit; the narrow elements come first and the rest is undefined. */
static void check_cast(dtype from, dtype to, const void *values, const void *expected, size_t expected_bytes)
{
    bench b;
    bench_init(&b);
    int64_t packet = 256 / dtype_row_of(to)->bits;
    uint32_t in = bench_stream(&b, PORT_IN, from, 1, 1, 8), out = bench_stream(&b, PORT_OUT, to, 1, 1, packet);
    ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_IN, in, from, 1, 8, 1);
    ADD(&b, CONTEXT_MAIN, OP_CAST, from, to);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_OUT, out, to, 1, packet, 1);
    bench_build(&b);
    bench_write(&b, in, values, 32);
    bench_run(&b);
    unsigned char got[32];
    bench_read(&b, out, got, 32);
    ck_assert_mem_eq(got, expected, expected_bytes);
    for (size_t i = expected_bytes; i < 32; i++)
        ck_assert_int_eq(got[i], BENCH_POISON);
    bench_free(&b);
}

START_TEST(casts_narrow)
{
    int32_t integers[8] = {2560000, 1000000, 8, -9, 127, -129, 32768, -1};
    unsigned char to_i4[4] = {0x00, 0x78, 0xff, 0xf0};
    unsigned char to_i8[8] = {0, 64, 8, 0xf7, 127, 127, 0, 0xff};
    uint16_t to_i16[8] = {2560000 & 0xffff, 1000000 & 0xffff, 8, 0xfff7, 127, 0xff7f, 0x8000, 0xffff};
    check_cast(DTYPE_I32, DTYPE_I4, integers, to_i4, 4);
    check_cast(DTYPE_I32, DTYPE_I8, integers, to_i8, 8);
    check_cast(DTYPE_I32, DTYPE_I16, integers, to_i16, 16);
    float floats[8] = {1, 1.0625f, 1.1875f, 448, INFINITY, -INFINITY, 0x1p-10f, 0x1.8p-10f};
    unsigned char to_e4m3[8] = {0x38, 0x38, 0x3a, 0x7e, 0x7e, 0xfe, 0x00, 0x01};
    check_cast(DTYPE_F32, DTYPE_F8E4M3, floats, to_e4m3, 8);
    float more[8] = {1, 1.125f, -2, INFINITY, 100000, 0x1p-16f, 3.5f * 0x1p-16f, 0};
    unsigned char to_e5m2[8] = {0x3c, 0x3d, 0xc0, 0x7c, 0x7c, 0x01, 0x03, 0x00};
    check_cast(DTYPE_F32, DTYPE_F8E5M2, more, to_e5m2, 8);
    float halves[8] = {1, 1.00390625f, 1.01171875f, 3.4e38f, -0.0f, INFINITY, 256, -3};
    uint16_t to_bf16[8] = {0x3f80, 0x3f80, 0x3f82, 0x7f80, 0x8000, 0x7f80, 0x4380, 0xc040};
    check_cast(DTYPE_F32, DTYPE_BF16, halves, to_bf16, 16);
}
END_TEST

/* A packet of exactly one flit needs no collect; four 8-byte writes of each flit land 16 bytes apart. */
START_TEST(commit_scatters_single_flits)
{
    bench b;
    bench_init(&b);
    uint32_t in = bench_dm(&b, PORT_IN, 0, 64), out = bench_dm(&b, PORT_OUT, 1024, 128);
    ADD(&b, CONTEXT_SUB, OP_UNITS, UNIT_0);
    ENTRY(ADD(&b, CONTEXT_SUB, OP_FETCH, 0, DTYPE_I8, DTYPE_I8, 8, 32), 64, 1);
    command *commit = ADD(&b, CONTEXT_SUB, OP_COMMIT, 1024, DTYPE_I8, 32, 8);
    ENTRY(commit, 2, 64);
    ENTRY(commit, 4, 16);
    ENTRY(commit, 8, 1);
    bench_build(&b);
    unsigned char data[64], got[128];
    for (int i = 0; i < 64; i++)
        data[i] = (unsigned char)(200 - i);
    bench_write(&b, in, data, sizeof data);
    bench_run(&b);
    bench_read(&b, out, got, sizeof got);
    for (int i = 0; i < 128; i++)
        ck_assert_int_eq(got[i], i % 16 < 8 ? data[i / 16 * 8 + i % 8] : BENCH_POISON);
    bench_free(&b);
}
END_TEST

/* --- masks and absent values --- */

/* K = 20 of 32 lanes live in the first step, 3 in the second; the others hold NaN on one side and NaN or
 * infinity on the other. */
START_TEST(masked_lanes_contribute_nothing)
{
    bench b;
    bench_init(&b);
    uint32_t w = bench_trf(&b, PORT_IN, DTYPE_BF16, TRF_FULL, 2, 64);
    uint32_t a = bench_stream(&b, PORT_IN, DTYPE_BF16, 1, 4, 16);
    uint32_t out = bench_stream(&b, PORT_OUT, DTYPE_F32, 1, 4, 8);
    ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_IN, a, DTYPE_BF16, 1, 16, 4);
    ADD(&b, CONTEXT_MAIN, OP_ALIGN, 2, 2, DTYPE_BF16, 1, 2);
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_TRF_READ, TRF_FULL, 2, 3, 64, 0, DTYPE_BF16), 2, 64);
    ADD(&b, CONTEXT_MAIN, OP_CONTRACT, DTYPE_BF16, 3, 4); /* columns of 8 lanes */
    command *mask = ADD(&b, CONTEXT_MAIN, OP_MASK, 35);   /* step * 32 + lane < 35 */
    ENTRY(mask, 0, 1, 2, 32);
    ENTRY(mask, 1, 1, 32, 1);
    mask = ADD(&b, CONTEXT_MAIN, OP_MASK, 20); /* and lane < 20 */
    ENTRY(mask, 1, 1, 32, 1);
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_ACCUMULATE, 0, 2, 4, 1), 2, 1, 0);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_OUT, out, DTYPE_F32, 1, 8, 4);
    bench_build(&b);
    uint16_t weights[2][64], data[64];
    for (int i = 0; i < 64; i++) {
        bool live = i < 20 || (i >= 32 && i < 35);
        data[i] = live ? bf16((float)(i + 1)) : 0x7fc0;
        weights[0][i] = live ? bf16(2) : 0x7f80;
        weights[1][i] = live ? bf16(-1) : 0x7fc0;
    }
    bench_write(&b, w, weights, sizeof weights);
    bench_write(&b, a, data, sizeof data);
    bench_run(&b);
    float got[4][8];
    bench_read(&b, out, got, sizeof got);
    /* columns: lanes 0..7 = 36 plus 33 + 34 + 35, 8..15 = 100, 16..19 = 74, none */
    const float sums[4] = {36 + 33 + 34 + 35, 100, 17 + 18 + 19 + 20, 0};
    for (int g = 0; g < 4; g++) {
        ck_assert_float_eq(got[g][0], 2 * sums[g]);
        ck_assert_float_eq(got[g][1], -sums[g]);
        ck_assert(!signbit(got[g][0]) || got[g][0] < 0);
        uint32_t undefined;
        memcpy(&undefined, &got[g][2], sizeof undefined);
        ck_assert_uint_eq(undefined, 0xa5a5a5a5);
    }
    bench_free(&b);
}
END_TEST

/* A tree of -0.0 products is -0.0; an absent slot is +0.0; one -0.0 next to an absent value stays -0.0. */
START_TEST(absent_is_not_minus_zero)
{
    bench b;
    bench_init(&b);
    uint32_t w = bench_trf(&b, PORT_IN, DTYPE_BF16, TRF_FULL, 1, 32);
    uint32_t a = bench_stream(&b, PORT_IN, DTYPE_BF16, 1, 2, 16);
    uint32_t out = bench_stream(&b, PORT_OUT, DTYPE_F32, 1, 1, 8);
    ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_IN, a, DTYPE_BF16, 1, 16, 2);
    ADD(&b, CONTEXT_MAIN, OP_ALIGN, 2, 1, DTYPE_BF16, 1, 1);
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_TRF_READ, TRF_FULL, 1, 3, 64, 0, DTYPE_BF16), 1, 0);
    ADD(&b, CONTEXT_MAIN, OP_CONTRACT, DTYPE_BF16, 3, 4);
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_MASK, 9), 1, 1, 32, 1); /* lane < 9 */
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_ACCUMULATE, 1, 1, 4, 1), 1, 0, 0);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_OUT, out, DTYPE_F32, 1, 8, 1);
    bench_build(&b);
    uint16_t weights[32], data[32];
    for (int i = 0; i < 32; i++) {
        data[i] = 0x8000;
        weights[i] = bf16(1);
    }
    bench_write(&b, w, weights, sizeof weights);
    bench_write(&b, a, data, sizeof data);
    bench_run(&b);
    uint32_t got[8];
    bench_read(&b, out, got, sizeof got);
    const uint32_t expected[8] = {0x80000000, 0x80000000, 0, 0, 0, 0, 0, 0};
    ck_assert_mem_eq(got, expected, sizeof got);
    bench_free(&b);
}
END_TEST

/* Padded steps may read past the partition as long as no lane of theirs is live. */
static void dead_steps(bench *b, int64_t live_steps)
{
    bench_init(b);
    bench_trf(b, PORT_IN, DTYPE_I8, TRF_FULL, 8, 8192);
    bench_stream(b, PORT_IN, DTYPE_I8, 1, 8, 32);
    bench_stream(b, PORT_OUT, DTYPE_I32, 1, 1, 8);
    ADD(b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
    ADD(b, CONTEXT_MAIN, OP_STREAM_IN, 1, DTYPE_I8, 1, 32, 8);
    ADD(b, CONTEXT_MAIN, OP_ALIGN, 2, 8, DTYPE_I8, 1, 4);
    ENTRY(ADD(b, CONTEXT_MAIN, OP_TRF_READ, TRF_FULL, 8, 2, 64, 8192 - 128, DTYPE_I8), 4, 64);
    ADD(b, CONTEXT_MAIN, OP_CONTRACT, DTYPE_I8, 6, 1);
    ENTRY(ADD(b, CONTEXT_MAIN, OP_MASK, live_steps), 0, 1, 4, 1);
    ENTRY(ADD(b, CONTEXT_MAIN, OP_ACCUMULATE, 0, 8, 1, 1), 4, 1, 0);
    ADD(b, CONTEXT_MAIN, OP_STREAM_OUT, 2, DTYPE_I32, 1, 8, 1);
}

START_TEST(dead_steps_may_leave_the_partition)
{
    bench b;
    dead_steps(&b, 2);
    bench_build(&b);
    unsigned char *weights = malloc(8 * 8192), data[256];
    for (int i = 0; i < 8 * 8192; i++)
        weights[i] = (unsigned char)(i / 8192 + 1);
    memset(data, 2, sizeof data);
    bench_write(&b, 0, weights, 8 * 8192);
    bench_write(&b, 1, data, sizeof data);
    bench_run(&b);
    int32_t got[8];
    bench_read(&b, 2, got, sizeof got);
    for (int row = 0; row < 8; row++)
        ck_assert_int_eq(got[row], 2 * 64 * 2 * (row + 1));
    free(weights);
    bench_free(&b);
    dead_steps(&b, 3);
    bench_fails(&b, E_RUN_ACCESS,
                "offset 0x30, line 103: trf_read: reads outside the Row's partition: entry counters, "
                "outermost first, (2), address 8192");
    bench_free(&b);
}
END_TEST

int main(void)
{
    TCase *t = suite_case("engines");
    suite_tests(t, memory_is_poison_until_written, memory_copies_across_blocks, walks_agree_with_nested_loops,
                trf_addresses_are_the_published_ones, trf_partitions_tile_the_file, seed_basic_matmul, seed_small_read,
                seed_time_broadcast_pair, fetch_transposes_and_commit_truncates, collect_pads_with_zeros, fetch_of_i4_walks_nibbles,
                fetch_converts, fetch_converts_long_packets, casts_narrow, commit_scatters_single_flits, masked_lanes_contribute_nothing,
                absent_is_not_minus_zero, dead_steps_may_leave_the_partition);
    return suite_status("machine", t);
}
