/* The machine, engine by engine: hand-made command streams, expected values worked out by hand or written
 * straight from the definitions in this file. */
#include <math.h>

#include "machine_bench.h"
#include "runtime/engine/tree.h"
#include "runtime/engine/trf.h"
#include "runtime/machine/machine_state.h"
#include "runtime/machine/memory.h"
#include "runtime/machine/walk.h"
#include "test/suite.h"

static uint16_t bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)(bits >> 16); /* the tests use values that fit */
}

/* --- memory and walks
 * --------------------------------------------------------------------------------------- */

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
    ck_assert_int_eq(atomic_load(&budget.used_bytes), 2 * 16384);
    budget.limit_bytes = 2 * 16384;
    ck_assert(!memory_write(&m, 2 << 20, zero, 1));
    ck_assert_int_eq(atomic_load(&budget.used_bytes), 2 * 16384);
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
    for (int round = 0; round < 3000; round++) {
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

/* --- TRF
 * ---------------------------------------------------------------------------------------------------- */

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

/* --- the listings of the seeds
 * ------------------------------------------------------------------------------- */

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
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_TRF_READ, TRF_FULL, 8, 3, 64, 0), 32, 0);
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
    command *read = ADD(&b, CONTEXT_MAIN, OP_TRF_READ, TRF_FIRST_HALF, 8, 3, 32, 0);
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
    command *read = ADD(&b, CONTEXT_MAIN, OP_TRF_READ, TRF_SECOND_HALF, 4, 3, 32, 0);
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

/* --- fetch, collect, cast, commit
 * ---------------------------------------------------------------------------- */

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

/* --- masks and absent values
 * --------------------------------------------------------------------------------- */

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
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_TRF_READ, TRF_FULL, 2, 3, 64, 0), 2, 64);
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
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_TRF_READ, TRF_FULL, 1, 3, 64, 0), 1, 0);
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
    ENTRY(ADD(b, CONTEXT_MAIN, OP_TRF_READ, TRF_FULL, 8, 2, 64, 8192 - 128), 4, 64);
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

/* --- DMA
 * ---------------------------------------------------------------------------------------------------- */

static int64_t dm_address(int64_t chip, int64_t cluster, int64_t slice, int64_t offset)
{
    return (((chip * 2 + cluster) * 256 + slice) << 22) + offset;
}

/* HBM of chip 1 into slices 3 and 4 of chip 2, transposed by packets of 16 bytes, and back to HBM of chip 0.
 */
START_TEST(dma_moves_strided_packets)
{
    bench b;
    bench_init(&b);
    uint32_t in = bench_hbm(&b, PORT_IN, 2, 4096, 256), out = bench_hbm(&b, PORT_OUT, 1, 1 << 21, 320);
    command *dma = ADD(&b, CONTEXT_DMA, OP_DMA, 0, 1, 0, 16, (INT64_C(1) << 36) + 4096, dm_address(2, 1, 3, 64));
    ENTRY(dma, 2, 128, INT64_C(1) << 22);
    ENTRY(dma, 2, 16, 64);
    ENTRY(dma, 4, 32, 16);
    dma = ADD(&b, CONTEXT_DMA, OP_DMA, 1, 0, 0, 20, dm_address(2, 1, 3, 64), 1 << 21);
    ENTRY(dma, 2, INT64_C(1) << 22, 160);
    ENTRY(dma, 8, 16, 20);
    bench_build(&b);
    unsigned char data[512], got[320];
    for (int i = 0; i < 512; i++)
        data[i] = (unsigned char)(i * 13 + i / 256);
    bench_write(&b, in, data, sizeof data);
    bench_run(&b);
    bench_read(&b, out, got, sizeof got);
    for (int i = 0; i < 320; i++) {
        int slice = i / 160, from = i / 20 % 8 * 16 + i % 20; /* offset in the slice's 128 bytes and 4 after them */
        unsigned char expected = BENCH_POISON;
        if (from < 128)
            expected = data[256 + slice * 128 + from / 64 * 16 + from / 16 % 4 * 32 + from % 16];
        ck_assert_msg(got[i] == expected, "byte %d is %d instead of %d", i, got[i], expected);
    }
    bench_free(&b);
}
END_TEST

/* Contiguous on both sides: one copy across HBM blocks; and lock step where the ranges overlap. */
START_TEST(dma_joins_and_overlaps)
{
    bench b;
    bench_init(&b);
    enum { BYTES = 3 << 20 };
    uint32_t in = bench_hbm(&b, PORT_IN, 1, 100, BYTES), out = bench_hbm(&b, PORT_OUT, 1, INT64_C(40) << 30, BYTES);
    uint32_t small = bench_hbm(&b, PORT_OUT, 1, INT64_C(40) << 30, 64);
    command *dma = ADD(&b, CONTEXT_DMA, OP_DMA, 0, 0, 0, 4096, 100, INT64_C(40) << 30);
    ENTRY(dma, 3, 1 << 20, 1 << 20);
    ENTRY(dma, 256, 4096, 4096);
    bench_build(&b);
    unsigned char *data = malloc(BYTES), *got = malloc(BYTES);
    for (int i = 0; i < BYTES; i++)
        data[i] = (unsigned char)(i ^ i >> 9);
    bench_write(&b, in, data, BYTES);
    bench_run(&b);
    bench_read(&b, out, got, BYTES);
    ck_assert_mem_eq(data, got, BYTES);
    machine_free(b.machine);
    /* every packet is copied 8 bytes further: the first 8 bytes spread over the whole range */
    b.counts[CONTEXT_DMA] = 0;
    ENTRY(ADD(&b, CONTEXT_DMA, OP_DMA, 0, 0, 0, 8, INT64_C(40) << 30, (INT64_C(40) << 30) + 8), 7, 8, 8);
    bench_build(&b);
    bench_write(&b, small, data, 64);
    bench_run(&b);
    bench_read(&b, small, got, 64);
    for (int i = 0; i < 64; i++)
        ck_assert_int_eq(got[i], data[i % 8]);
    free(data);
    free(got);
    bench_free(&b);
}
END_TEST

/* The granular form may write DM byte by byte: a 6 x 5 transpose of single bytes to an odd address. */
START_TEST(dma_granular_writes_anywhere)
{
    bench b;
    bench_init(&b);
    uint32_t in = bench_hbm(&b, PORT_IN, 1, 3, 30), out = bench_dm(&b, PORT_OUT, 1001, 31);
    command *dma = ADD(&b, CONTEXT_DMA, OP_DMA, 0, 1, 1, 1, 3, 1001);
    ENTRY(dma, 6, 5, 1);
    ENTRY(dma, 5, 1, 6);
    bench_build(&b);
    unsigned char data[30], got[31];
    for (int i = 0; i < 30; i++)
        data[i] = (unsigned char)(i + 1);
    bench_write(&b, in, data, sizeof data);
    bench_run(&b);
    bench_read(&b, out, got, sizeof got);
    for (int i = 0; i < 30; i++)
        ck_assert_int_eq(got[i], data[i % 6 * 5 + i / 6]);
    ck_assert_int_eq(got[30], BENCH_POISON);
    bench_free(&b);
}
END_TEST

static void dma_case(bench *b, int64_t source, int64_t destination, int64_t packet, int64_t source_base, int64_t destination_base,
                     int64_t size, int64_t source_stride, int64_t destination_stride)
{
    bench_init(b);
    ENTRY(ADD(b, CONTEXT_DMA, OP_DMA, source, destination, 0, packet, source_base, destination_base), size, source_stride,
          destination_stride);
}

START_TEST(dma_faults)
{
    bench b;
    dma_case(&b, 0, 1, 64, (INT64_C(48) << 30) - 128, 0, 4, 64, 64);
    bench_fails(&b, E_RUN_ACCESS,
                "kernel k, dma context, offset 0x0, line 100: dma: reads outside HBM: entry counters (2), "
                "address 51539607552 (0xc00000000), size 64 bytes");
    bench_free(&b);
    dma_case(&b, 0, 1, 64, 0, 524288 - 64, 3, 64, 64);
    bench_fails(&b, E_RUN_ACCESS, "writes outside DM: entry counters (1), address 524288");
    bench_free(&b);
    dma_case(&b, 1, 0, 64, 524288, 0, 2, 64, 64); /* the hole between two slices */
    bench_fails(&b, E_RUN_ACCESS, "reads outside DM: entry counters (0)");
    bench_free(&b);
    dma_case(&b, 1, 0, 8, 0, 0, 3, -8, 8);
    bench_fails(&b, E_RUN_ACCESS, "reads outside DM: entry counters (1), address -8");
    bench_free(&b);
    dma_case(&b, 1, 0, 8, dm_address(3, 1, 255, 0), 0, 2, INT64_C(1) << 22, 8);
    bench_fails(&b, E_RUN_ACCESS, "entry counters (1)");
    bench_free(&b);
    dma_case(&b, 0, 0, 8, 0, 0, 65536, (INT64_C(1) << 47) - 1, 8);
    bench_fails(&b, E_RUN_ACCESS, "reads outside HBM: entry counters (2)");
    bench_free(&b);
    dma_case(&b, 0, 1, 12, 0, 0, 1, 0, 0);
    bench_fails(&b, E_RUN_ACCESS, "multiples of 8 bytes");
    bench_free(&b);
    dma_case(&b, 0, 1, 8, 0, 0, 4, 0, 12);
    bench_fails(&b, E_RUN_ACCESS, "multiples of 8 bytes");
    bench_free(&b);
    dma_case(&b, 0, 0, 8, 0, 4096, 65536, 0, 0);
    for (int i = 0; i < 7; i++)
        ENTRY(&b.commands[CONTEXT_DMA][0], 65536, 0, 0);
    bench_fails(&b, E_RUN_CHAIN, "overflows");
    bench_free(&b);
}
END_TEST

/* --- contexts
 * ----------------------------------------------------------------------------------------------- */

/* sub copies A to B after main has copied C to A; the order must not depend on who is tried first. */
START_TEST(waits_order_contexts)
{
    for (int first = 0; first < 3; first++) {
        bench b;
        bench_init(&b);
        b.options.first_context = (context)first;
        uint32_t in = bench_hbm(&b, PORT_IN, 1, 0, 32), out = bench_dm(&b, PORT_OUT, 1024, 32);
        ENTRY(ADD(&b, CONTEXT_DMA, OP_DMA, 0, 1, 0, 32, 0, 0), 1, 0, 0);
        ADD(&b, CONTEXT_MAIN, OP_WAIT, CONTEXT_DMA, 1);
        ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
        ENTRY(ADD(&b, CONTEXT_MAIN, OP_FETCH, 0, DTYPE_I8, DTYPE_I8, 32, 32), 32, 1);
        ENTRY(ADD(&b, CONTEXT_MAIN, OP_COMMIT, 512, DTYPE_I8, 32, 32), 32, 1);
        ADD(&b, CONTEXT_SUB, OP_UNITS, UNIT_0);
        ADD(&b, CONTEXT_SUB, OP_WAIT, CONTEXT_MAIN, 4);
        ENTRY(ADD(&b, CONTEXT_SUB, OP_FETCH, 512, DTYPE_I8, DTYPE_I8, 8, 32), 32, 1);
        ENTRY(ADD(&b, CONTEXT_SUB, OP_COMMIT, 1024, DTYPE_I8, 32, 8), 32, 1);
        bench_build(&b);
        unsigned char data[32], got[32];
        for (int i = 0; i < 32; i++)
            data[i] = (unsigned char)(i * 3 + 1);
        bench_write(&b, in, data, 32);
        bench_run(&b);
        bench_read(&b, out, got, 32);
        ck_assert_mem_eq(data, got, 32);
        bench_free(&b);
    }
}
END_TEST

/* --- the proof that a second run is not needed ------------------------------------------------------------ */

/* DMA brings `bytes` of the input, main copies them on, sub copies `read` bytes from there to the output; what is left out makes the run
 * depend on something. */
typedef struct proof_case {
    int64_t main_waits, sub_waits; /* for so many commands */
    int64_t bytes, read_at, commit_at;
    bool proven;
    bool late; /* main waits with its second command */
} proof_case;

enum { PROOF_CASES = 11 };

START_TEST(runs_are_proven)
{
    static const proof_case cases[PROOF_CASES] = {
        {1, 4, 64, 512, 512, true, false},  {1, 3, 64, 512, 512, false, false}, /* the copy of main is not waited for */
        {1, 0, 64, 512, 512, false, false}, {0, 4, 64, 512, 512, false, false}, /* nor is that of the DMA */
        {1, 4, 56, 512, 512, false, false},                                     /* 8 bytes of it are not there */
        {1, 4, 64, 520, 512, false, false},                                     /* the last 8 bytes were never written */
        {1, 4, 64, 504, 512, false, false}, {1, 0, 64, 0, 512, false, false},   /* sub reads what DMA writes */
        {1, 4, 64, 0, 512, true, false},                                        /* main waits for DMA and sub for main */
        {1, 1, 64, 0, 512, true, false},    {1, 1, 64, 0, 512, false, true},    /* but not for that wait of main */
    };
    const proof_case *p = &cases[_i];
    for (int first = 0; first < 3; first++) {
        bench b;
        bench_init(&b);
        b.options.first_context = (context)first;
        b.options.prove = true;
        uint32_t in = bench_hbm(&b, PORT_IN, 1, 0, 64), out = bench_dm(&b, PORT_OUT, 1024, 64);
        ENTRY(ADD(&b, CONTEXT_DMA, OP_DMA, 0, 1, 0, 8, 0, 0), p->bytes / 8, 8, 8);
        if (p->late || p->main_waits == 0)
            ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
        if (p->main_waits)
            ADD(&b, CONTEXT_MAIN, OP_WAIT, CONTEXT_DMA, p->main_waits);
        if (!p->late)
            ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
        ENTRY(ADD(&b, CONTEXT_MAIN, OP_FETCH, 0, DTYPE_I8, DTYPE_I8, 32, 32), 64, 1);
        ENTRY(ADD(&b, CONTEXT_MAIN, OP_COMMIT, p->commit_at, DTYPE_I8, 32, 32), 64, 1);
        ADD(&b, CONTEXT_SUB, OP_UNITS, UNIT_0);
        if (p->sub_waits)
            ADD(&b, CONTEXT_SUB, OP_WAIT, CONTEXT_MAIN, p->sub_waits);
        ENTRY(ADD(&b, CONTEXT_SUB, OP_FETCH, p->read_at, DTYPE_I8, DTYPE_I8, 8, 32), 64, 1);
        ENTRY(ADD(&b, CONTEXT_SUB, OP_COMMIT, 1024, DTYPE_I8, 32, 8), 64, 1);
        bench_build(&b);
        unsigned char data[64], got[64];
        memset(data, 7, sizeof data);
        bench_write(&b, in, data, sizeof data);
        bench_run(&b);
        bench_read(&b, out, got, sizeof got);
        ck_assert_int_eq(machine_is_proven(b.machine), p->proven);
        bench_free(&b);
    }
}
END_TEST

/* Flits of which a cast fills 8 bytes: committed as 8 bytes they are computed, as 16 the rest is the filling. */
START_TEST(commits_of_filling_are_not_proven)
{
    for (int64_t bytes = 8; bytes <= 16; bytes += 8) {
        bench b;
        bench_init(&b);
        b.options.prove = true;
        uint32_t in = bench_dm(&b, PORT_IN, 0, 64), out = bench_dm(&b, PORT_OUT, 1024, 2 * bytes);
        ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
        ENTRY(ADD(&b, CONTEXT_MAIN, OP_FETCH, 0, DTYPE_I32, DTYPE_I32, 32, 8), 16, 1);
        ADD(&b, CONTEXT_MAIN, OP_COLLECT, DTYPE_I32, 1, 8);
        ADD(&b, CONTEXT_MAIN, OP_CAST, DTYPE_I32, DTYPE_I8);
        ENTRY(ADD(&b, CONTEXT_MAIN, OP_COMMIT, 1024, DTYPE_I8, bytes, 8), 2 * bytes, 1);
        bench_build(&b);
        unsigned char data[64] = {1}, got[32];
        bench_write(&b, in, data, sizeof data);
        bench_run(&b);
        bench_read(&b, out, got, (size_t)(2 * bytes));
        ck_assert_int_eq(machine_is_proven(b.machine), bytes == 8);
        bench_free(&b);
    }
}
END_TEST

/* Marks next to a byte for each byte. */
START_TEST(written_bytes_are_noted)
{
    enum { BYTES = 4096, BLOCK = 1024 };
    memory_budget budget = {0};
    uint64_t seed = 99;
    for (int round = 0; round < 200; round++) {
        memory m;
        unsigned char written[BYTES] = {0};
        memory_init(&m, BYTES, BLOCK, 0, &budget);
        for (int i = 0; i < 6; i++) {
            int64_t begin = bench_pick(&seed, 0, BYTES / 8 - 1) * 8, end = bench_pick(&seed, begin / 8, BYTES / 8) * 8;
            memory_mark_written(&m, begin, end - begin);
            memset(written + begin, 1, (size_t)(end - begin));
        }
        for (int i = 0; i < 100; i++) {
            int64_t begin = bench_pick(&seed, 0, BYTES - 1), end = bench_pick(&seed, begin + 1, begin + 200 < BYTES ? begin + 200 : BYTES);
            bool all = true;
            for (int64_t at = begin; at < end; at++)
                all = all && written[at];
            ck_assert_int_eq(memory_is_written(&m, begin, end - begin), all);
        }
        memory_mark_written(&m, 3, 12); /* the half units at its ends do not count */
        ck_assert_int_eq(memory_is_written(&m, 8, 4), written[8]);
        memory_free(&m);
    }
}
END_TEST

START_TEST(deadlock_names_both)
{
    bench b;
    bench_init(&b);
    ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
    ADD(&b, CONTEXT_MAIN, OP_WAIT, CONTEXT_SUB, 2);
    ADD(&b, CONTEXT_SUB, OP_UNITS, UNIT_0);
    ADD(&b, CONTEXT_SUB, OP_WAIT, CONTEXT_MAIN, 2);
    bench_fails(&b, E_RUN_DEADLOCK,
                "kernel k: the main context, offset 0x10, line 101, waits for 2 commands of the sub "
                "context, which has completed 1 of 2");
    ck_assert_uint_eq(b.diags.items[0]->note_count, 1);
    ck_assert_ptr_nonnull(strstr(b.diags.items[0]->notes[0].text, "the sub context, offset 0x10"));
    bench_free(&b);
    bench_init(&b);
    ADD(&b, CONTEXT_DMA, OP_WAIT, CONTEXT_SUB, 1); /* sub has no commands at all */
    bench_fails(&b, E_RUN_DEADLOCK, "completed 0 of 0");
    bench_free(&b);
}
END_TEST

/* --- units and ports
 * ----------------------------------------------------------------------------------------- */

/* Only active slices run; a port's dead and missing units take and give nothing. */
START_TEST(units_select_slices)
{
    bench b;
    bench_init(&b);
    port *in = bench_port(&b, PORT_STREAM, PORT_IN, DTYPE_I8);
    in->mapping[COMPONENT_CLUSTER] = bench_layout(&b, 2, 2);
    in->mapping[COMPONENT_SLICE] = bench_layout(&b, 3, 5); /* two dead slices */
    in->mapping[COMPONENT_TIME] = bench_layout(&b, 2, 2);
    in->mapping[COMPONENT_PACKET] = bench_layout(&b, 32, 32);
    port *out = bench_port(&b, PORT_DM, PORT_OUT, DTYPE_I8);
    out->mapping[COMPONENT_CHIP] = bench_layout(&b, 2, 2);
    out->mapping[COMPONENT_CLUSTER] = bench_layout(&b, 2, 2);
    out->mapping[COMPONENT_SLICE] = bench_layout(&b, 4, 256);
    out->mapping[COMPONENT_ELEMENT] = bench_layout(&b, 64, 64);
    ADD(&b, CONTEXT_MAIN, OP_UNITS, 3, 2, 0xe, 0, 0, 0); /* chips 0 and 1, cluster 1, slices 1, 2, 3 */
    ADD(&b, CONTEXT_MAIN, OP_STREAM_IN, 0, DTYPE_I8, 1, 32, 2);
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_COMMIT, 0, DTYPE_I8, 32, 32), 64, 1);
    bench_build(&b);
    unsigned char data[2 * 5 * 64], *got = malloc(2 * 2 * 256 * 64);
    for (int i = 0; i < 640; i++)
        data[i] = (unsigned char)(i / 64 * 16 + i % 13);
    bench_write(&b, 0, data, sizeof data);
    bench_run(&b);
    ck_assert_int_eq(machine_port_bytes(b.machine, 1), 2 * 2 * 256 * 64);
    bench_read(&b, 1, got, 2 * 2 * 256 * 64);
    for (int i = 0; i < 2 * 2 * 256 * 64; i++) {
        int chip = i / 32768, cluster = i / 16384 % 2, slice = i / 64 % 256;
        bool fed = chip == 0 && cluster == 1 && (slice == 1 || slice == 2);
        ck_assert_int_eq(got[i], fed ? data[(5 + slice) * 64 + i % 64] : BENCH_POISON);
    }
    free(got);
    bench_free(&b);
}
END_TEST

/* i4 with an odd number of elements per unit: pieces begin in the middle of a byte. */
START_TEST(ports_pack_odd_nibbles)
{
    bench b;
    bench_init(&b);
    port *dm = bench_port(&b, PORT_DM, PORT_IN, DTYPE_I4);
    dm->mapping[COMPONENT_SLICE] = bench_layout(&b, 3, 3);
    dm->mapping[COMPONENT_ELEMENT] = bench_layout(&b, 5, 5);
    dm->address = 10;
    port *bytes = bench_port(&b, PORT_DM, PORT_OUT, DTYPE_I8);
    bytes->mapping[COMPONENT_SLICE] = bench_layout(&b, 3, 3);
    bytes->mapping[COMPONENT_ELEMENT] = bench_layout(&b, 3, 3);
    bytes->address = 10;
    bench_build(&b);
    const unsigned char data[8] = {0x21, 0x43, 0x65, 0x87, 0xa9, 0xcb, 0xed, 0x0f};
    const unsigned char expected[9] = {0x21, 0x43, 0xa5, 0x76, 0x98, 0xaa, 0xcb, 0xed, 0xaf};
    unsigned char got[9], back[8];
    bench_write(&b, 0, data, 8);
    bench_read(&b, 1, got, 9);
    ck_assert_mem_eq(got, expected, 9);
    bench_read(&b, 0, back, 8);
    ck_assert_mem_eq(back, data, 7);
    ck_assert_int_eq(back[7] & 15, 15);
    bench_free(&b);
}
END_TEST

START_TEST(trf_ports_follow_the_store)
{
    for (int mode = TRF_FULL; mode <= TRF_SECOND_HALF; mode++)
        for (int64_t rows = 1; rows <= 8; rows *= 2) {
            bench b;
            bench_init(&b);
            int64_t per_row = (mode == TRF_FULL ? 65536 : 32768) / rows, flits = per_row / 32;
            size_t bytes = (size_t)(per_row * rows);
            uint32_t in = bench_stream(&b, PORT_IN, DTYPE_I8, 1, flits * rows, 32);
            uint32_t out = bench_trf(&b, PORT_OUT, DTYPE_I8, (trf_address)mode, rows, per_row);
            ADD(&b, CONTEXT_SUB, OP_UNITS, UNIT_0);
            ADD(&b, CONTEXT_SUB, OP_STREAM_IN, in, DTYPE_I8, 1, 32, flits * rows);
            ADD(&b, CONTEXT_SUB, OP_TRF_STORE, mode, rows, 2, 0, 0, flits);
            bench_build(&b);
            unsigned char *data = malloc(bytes), *got = malloc(bytes);
            for (size_t i = 0; i < bytes; i++)
                data[i] = (unsigned char)(i * 31 + i / 777);
            bench_write(&b, in, data, bytes);
            bench_run(&b);
            bench_read(&b, out, got, bytes);
            ck_assert_mem_eq(data, got, bytes);
            free(data);
            free(got);
            bench_free(&b);
        }
}
END_TEST

START_TEST(ports_refuse)
{
    bench b;
    bench_init(&b);
    bench_dm(&b, PORT_IN, 524288 - 16, 32);
    bench_hbm(&b, PORT_IN, 5, 0, 8);
    bench_trf(&b, PORT_IN, DTYPE_I8, TRF_FIRST_HALF, 8, 4097);
    bench_trf(&b, PORT_IN, DTYPE_I8, TRF_FULL, 3, 8);
    bench_stream(&b, PORT_IN, DTYPE_I4, 1, 4, 3);
    bench_dm(&b, PORT_IN, 0, 32);
    bench_hbm(&b, PORT_IN, 1, 0, INT64_C(1) << 55);
    bench_stream(&b, PORT_IN, DTYPE_I32, 8, INT64_C(1) << 50, INT64_C(1) << 50);
    bench_build(&b);
    unsigned char *bytes = calloc(1, 1 << 16);
    static const size_t sizes[BENCH_PORTS] = {32, 40, 8 * 4097, 24, 6, 31, 64, 64};
    for (uint32_t i = 0; i < BENCH_PORTS; i++) {
        ck_assert(!machine_port_write(b.machine, i, bytes, sizes[i], &b.diags));
        ck_assert_uint_eq(b.diags.count, i + 1);
        ck_assert_int_eq(b.diags.items[i]->id, i == 5 ? E_TENSOR_SHAPE : E_RUN_ACCESS);
        ck_assert(!machine_port_read(b.machine, i, bytes, sizes[i], &b.diags));
        b.diags.count = i + 1;
    }
    free(bytes);
    bench_free(&b);
}
END_TEST

/* The second chain goes on where the first one left the stream. */
START_TEST(stream_ports_are_queues)
{
    bench b;
    bench_init(&b);
    uint32_t in = bench_stream(&b, PORT_IN, DTYPE_I8, 1, 3, 32), out = bench_stream(&b, PORT_OUT, DTYPE_I8, 1, 3, 32);
    ADD(&b, CONTEXT_SUB, OP_UNITS, UNIT_0);
    for (int i = 1; i <= 2; i++) {
        ADD(&b, CONTEXT_SUB, OP_STREAM_IN, in, DTYPE_I8, 1, 32, i);
        ADD(&b, CONTEXT_SUB, OP_STREAM_OUT, out, DTYPE_I8, 1, 32, i);
    }
    bench_build(&b);
    unsigned char data[96], got[96];
    for (int i = 0; i < 96; i++)
        data[i] = (unsigned char)(i + 1);
    bench_write(&b, in, data, 96);
    bench_run(&b);
    bench_read(&b, out, got, 96);
    ck_assert_mem_eq(data, got, 96);
    bench_free(&b);
}
END_TEST

/* Two clusters of 256 slices on several threads: the same bytes as on one. Half of the stream goes to the
 * TRF, the other half is contracted with it. */
START_TEST(threads_do_not_matter)
{
    enum { SLICES = 512, STEPS = 64, BYTES = SLICES * STEPS * 32 };
    unsigned char *data = malloc(BYTES), *one = malloc(BYTES), *many = malloc(BYTES);
    uint64_t seed = 5;
    for (int i = 0; i < BYTES; i++)
        data[i] = (unsigned char)bench_random(&seed);
    for (unsigned threads = 1; threads <= 4; threads += 3) {
        bench b;
        bench_init(&b);
        b.options.threads = threads;
        for (int i = 0; i < 2; i++) {
            port *p = bench_port(&b, PORT_STREAM, i ? PORT_OUT : PORT_IN, i ? DTYPE_I32 : DTYPE_I8);
            p->mapping[COMPONENT_CLUSTER] = bench_layout(&b, 2, 2);
            p->mapping[COMPONENT_SLICE] = bench_layout(&b, 256, 256);
            p->mapping[COMPONENT_TIME] = bench_layout(&b, STEPS, STEPS);
            p->mapping[COMPONENT_PACKET] = bench_layout(&b, i ? 8 : 32, i ? 8 : 32);
        }
        ADD(&b, CONTEXT_MAIN, OP_UNITS, 1, 3, -1, -1, -1, -1);
        ADD(&b, CONTEXT_MAIN, OP_STREAM_IN, 0, DTYPE_I8, 1, 32, STEPS / 2);
        ADD(&b, CONTEXT_MAIN, OP_TRF_STORE, TRF_FULL, 8, 2, 0, 0, STEPS / 16);
        ADD(&b, CONTEXT_MAIN, OP_STREAM_IN, 0, DTYPE_I8, 1, 32, STEPS / 2);
        ADD(&b, CONTEXT_MAIN, OP_ALIGN, 1, 8, DTYPE_I8, 2, STEPS / 2);
        ENTRY(ADD(&b, CONTEXT_MAIN, OP_TRF_READ, TRF_FULL, 8, 2, 64, 0), STEPS, 0);
        ADD(&b, CONTEXT_MAIN, OP_CONTRACT, DTYPE_I8, 6, 1);
        ENTRY(ADD(&b, CONTEXT_MAIN, OP_ACCUMULATE, 0, 8, 1, 1), STEPS, 0, 0);
        ADD(&b, CONTEXT_MAIN, OP_STREAM_OUT, 1, DTYPE_I32, 1, 8, STEPS);
        bench_build(&b);
        bench_write(&b, 0, data, BYTES);
        bench_run(&b);
        bench_read(&b, 1, threads == 1 ? one : many, BYTES);
        bench_free(&b);
    }
    ck_assert_mem_eq(one, many, BYTES);
    /* slice 300, step 5, Row 2, by hand */
    const signed char *slice = (const signed char *)data + 300 * STEPS * 32;
    int32_t sum = 0, got;
    for (int lane = 0; lane < 32; lane++)
        sum += slice[(STEPS / 2 + 5 / 2) * 32 + lane] * slice[2 * 128 + lane];
    memcpy(&got, one + ((300 * STEPS + 5) * 8 + 2) * 4, sizeof got);
    ck_assert_int_eq(got, sum);
    free(data);
    free(one);
    free(many);
}
END_TEST

/* Two MiB from HBM into eight slices, on threads or not: every slice has what the loops say, twice written places the last. */
START_TEST(dma_threads_do_not_matter)
{
    enum { SLICES = 8, EACH = 1 << 18, PACKET = 4096, ROUNDS = 2 };
    unsigned char *data = malloc(SLICES * EACH * ROUNDS), *got = malloc(EACH);
    for (int i = 0; i < SLICES * EACH * ROUNDS; i++)
        data[i] = (unsigned char)(i * 7 + i / 251 + i / 65537);
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        bench b;
        bench_init(&b);
        b.options.threads = threads;
        b.options.prove = true;
        uint32_t in = bench_hbm(&b, PORT_IN, 1, 0, SLICES * EACH * ROUNDS);
        command *k = ADD(&b, CONTEXT_DMA, OP_DMA, 0, 1, 0, PACKET, 0, 0);
        ENTRY(k, ROUNDS, SLICES * EACH, 0); /* the second round over the first */
        ENTRY(k, EACH / PACKET, PACKET, PACKET);
        ENTRY(k, SLICES, EACH, dm_address(0, 0, 1, 0) - dm_address(0, 0, 0, 0));
        bench_build(&b);
        bench_write(&b, in, data, SLICES * EACH * ROUNDS);
        bench_run(&b);
        ck_assert(machine_is_proven(b.machine));
        for (int slice = 0; slice < SLICES; slice++) {
            memory *dm = &b.machine->units[slice].dm;
            ck_assert(memory_is_written(dm, 0, EACH) && !memory_is_written(dm, EACH, 8));
            ck_assert(memory_read(dm, 0, got, EACH));
            ck_assert_mem_eq(got, data + (SLICES + slice) * EACH, EACH);
        }
        bench_free(&b);
    }
    free(data);
    free(got);
}
END_TEST

START_TEST(limits_stop_a_run)
{
    bench b;
    dma_case(&b, 0, 0, 8, 0, 1 << 20, 1000, 8, 8);
    b.options.step_limit = 999;
    bench_fails(&b, E_RUN_LIMIT, "1000 packets pass the limit of 999");
    bench_free(&b);
    dma_case(&b, 0, 0, 4096, 0, 1 << 20, 1000, 4096, 4096);
    b.options.memory_limit_bytes = 100000;
    bench_fails(&b, E_RUN_LIMIT, "no memory left");
    bench_free(&b);
    for (int threads = 1; threads <= 3; threads += 2) {
        bench_init(&b);
        ADD(&b, CONTEXT_SUB, OP_UNITS, 1, 1, -1, 0, 0, 0);
        command *fetch = ADD(&b, CONTEXT_SUB, OP_FETCH, 0, DTYPE_I8, DTYPE_I8, 32, 32);
        ENTRY(fetch, 1000, 0);
        ENTRY(fetch, 32, 1);
        command *commit = ADD(&b, CONTEXT_SUB, OP_COMMIT, 0, DTYPE_I8, 32, 32);
        ENTRY(commit, 1000, 0);
        ENTRY(commit, 32, 1);
        b.options.threads = (unsigned)threads;
        b.options.memory_limit_bytes = 20 * 16384;
        bench_fails(&b, E_RUN_LIMIT, "no memory left for a slice's DM");
        machine_free(b.machine);
        b.machine = NULL;
        b.diags.count = 0;
        b.options.memory_limit_bytes = 0;
        b.options.step_limit = 63999;
        bench_fails(&b, E_RUN_LIMIT, "1000 steps in 64 slices pass the limit of 63999");
        bench_free(&b);
    }
}
END_TEST

/* --- illegal chains
 * ------------------------------------------------------------------------------------------ */

/* A legal matmul chain on stream ports; each fault changes one thing of it. */
enum { THE_UNITS, THE_IN, THE_COLLECT, THE_ALIGN, THE_READ, THE_CONTRACT, THE_MASK, THE_ACCUMULATE, THE_CAST, THE_OUT };

static void legal_chain(bench *b)
{
    bench_init(b);
    bench_stream(b, PORT_IN, DTYPE_BF16, 1, 8, 32);
    bench_stream(b, PORT_OUT, DTYPE_BF16, 1, 4, 16);
    ADD(b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
    ADD(b, CONTEXT_MAIN, OP_STREAM_IN, 0, DTYPE_BF16, 1, 32, 8);
    ADD(b, CONTEXT_MAIN, OP_COLLECT, DTYPE_BF16, 2, 32);
    ADD(b, CONTEXT_MAIN, OP_ALIGN, 2, 4, DTYPE_BF16, 1, 8);
    command *read = ADD(b, CONTEXT_MAIN, OP_TRF_READ, TRF_FULL, 4, 3, 64, 0);
    ENTRY(read, 4, 64);
    ENTRY(read, 2, 256);
    ADD(b, CONTEXT_MAIN, OP_CONTRACT, DTYPE_BF16, 5, 1);
    ENTRY(ADD(b, CONTEXT_MAIN, OP_MASK, 8), 0, 1, 8, 1);
    command *sums = ADD(b, CONTEXT_MAIN, OP_ACCUMULATE, 0, 4, 1, 4);
    ENTRY(sums, 2, 1, 0);
    ENTRY(sums, 4, 0, 1);
    ADD(b, CONTEXT_MAIN, OP_CAST, DTYPE_F32, DTYPE_BF16);
    ADD(b, CONTEXT_MAIN, OP_STREAM_OUT, 1, DTYPE_BF16, 1, 16, 4);
}

typedef struct chain_fault {
    int at, field; /* field: index in command.fields; 100 + entry * 10 + column: an entry; -1: replace `at` by
                      the op */
    int64_t value;
    diag_id id;
    const char *words;
} chain_fault;

static const chain_fault chain_faults[] = {
    {THE_IN, 0, 1, E_RUN_CHAIN, "port 1 is not a stream input"},
    {THE_IN, 0, 9, E_RUN_CHAIN, "port 9 is not a stream input"},
    {THE_IN, 1, DTYPE_I16, E_RUN_CHAIN, "the command has 32 i16 elements"},
    {THE_IN, 2, 2, E_RUN_CHAIN, "2 Rows"},
    {THE_IN, 3, 16, E_RUN_CHAIN, "the command has 16 bf16 elements"},
    {THE_IN, 4, 9, E_RUN_CHAIN, "9 packets, but port p has only 8"},
    {THE_COLLECT, 0, DTYPE_I16, E_RUN_CHAIN, "collect: takes i16"},
    {THE_COLLECT, 1, 1, E_RUN_CHAIN, "1 flits are too few for a packet of 64 bytes"},
    {THE_COLLECT, 1, 3, E_RUN_CHAIN, "align: 8 packets of 2 flits do not take the 24 flits"},
    {THE_COLLECT, 2, 31, E_RUN_CHAIN, "takes packets of 31 elements"},
    {THE_ALIGN, 0, 1, E_RUN_CHAIN, "8 packets of 1 flits"},
    {THE_ALIGN, 1, 8, E_RUN_CHAIN, "has 4 Rows, align has 8"},
    {THE_ALIGN, 2, DTYPE_I8, E_RUN_CHAIN, "cannot align i8"},
    {THE_ALIGN, 3, 2, E_RUN_CHAIN, "entries have 8 steps, align has 16"},
    {THE_ALIGN, 3, (INT64_C(1) << 48) - 1, E_RUN_CHAIN, "entries have 8 steps"},
    {THE_ALIGN, 4, 7, E_RUN_CHAIN, "7 packets of 2 flits"},
    {THE_ALIGN, -1, OP_COLLECT, E_RUN_CHAIN, "collect: cannot follow collect"},
    {THE_READ, 1, 8, E_RUN_CHAIN, "has 8 Rows, align has 4"},
    {THE_READ, 2, 2, E_RUN_CHAIN, "reg_type 2 is not that of bf16"},
    {THE_READ, 3, 1, E_RUN_CHAIN, "smaller than an element"},
    {THE_READ, 3, 48, E_RUN_CHAIN, "not a power of two"},
    {THE_READ, 3, 128, E_RUN_CHAIN, "not a power of two"},
    {THE_READ, 4, 32, E_RUN_ACCESS, "base 32 is not a multiple of reg_read_size 64"},
    {THE_READ, 101, 32, E_RUN_ACCESS, "entry 0: stride 32 is not a multiple"},
    {THE_READ, 111, -64, E_RUN_ACCESS, "address -64"},
    {THE_READ, 111, 1 << 20, E_RUN_ACCESS, "entry counters, outermost first, (1, 0), address 1048576"},
    {THE_READ, 100, 5, E_RUN_CHAIN, "entries have 10 steps, align has 8"},
    {THE_READ, -1, OP_CONTRACT, E_RUN_CHAIN, "contract: cannot follow align"},
    {THE_CONTRACT, 0, DTYPE_F8E4M3, E_RUN_CHAIN, "multiplies f8e4m3, align has bf16"},
    {THE_CONTRACT, 1, 6, E_RUN_CHAIN, "tree_depth 6"},
    {THE_CONTRACT, 2, 2, E_RUN_CHAIN, "2 columns of tree_depth 5"},
    {THE_CONTRACT, -1, OP_CAST, E_RUN_CHAIN, "cast: cannot follow align; contract and stream_out can"},
    {THE_MASK, 102, 1, E_RUN_CHAIN, NULL}, /* legal: see below */
    {THE_MASK, 103, (INT64_C(1) << 48) - 1, E_RUN_CHAIN, NULL},
    {THE_ACCUMULATE, 1, 8, E_RUN_CHAIN, "has 8 Rows, the stream has 4"},
    {THE_ACCUMULATE, 2, 2, E_RUN_CHAIN, "has 2 columns, the stream has 1"},
    {THE_ACCUMULATE, 3, 3, E_RUN_ACCESS, "reaches slot 3, the command has 3"},
    {THE_ACCUMULATE, 3, 1000, E_RUN_ACCESS, "1000 slots of 1 columns pass the accumulator's 128"},
    {THE_ACCUMULATE, 100, 3, E_RUN_CHAIN, "the loops do not make the 8 steps"},
    {THE_ACCUMULATE, 100, (INT64_C(1) << 48) - 1, E_RUN_CHAIN, "the loops do not make the 8 steps"},
    {THE_ACCUMULATE, 112, 900, E_RUN_ACCESS, "reaches slot 2700"},
    {THE_ACCUMULATE, 101, 0, E_RUN_CHAIN, "gives 4 packets"},
    {THE_ACCUMULATE, -1, OP_CAST, E_RUN_CHAIN, "cast: cannot follow contract; accumulate and stream_out can"},
    {THE_CAST, 0, DTYPE_I32, E_RUN_CHAIN, "no cast from i32 to bf16"},
    {THE_CAST, 1, DTYPE_I8, E_RUN_CHAIN, "no cast from f32 to i8"},
    {THE_CAST, -1, OP_ACCUMULATE, E_RUN_CHAIN, "accumulate: cannot follow accumulate; cast, commit and stream_out can"},
    {THE_OUT, 0, 0, E_RUN_CHAIN, "port 0 is not a stream output"},
    {THE_OUT, 0, 2, E_RUN_CHAIN, "port 2 is not a stream output"},
    {THE_OUT, 1, DTYPE_F32, E_RUN_CHAIN, "the stream has 4 of 1 x 16 bf16"},
    {THE_OUT, 2, 2, E_RUN_CHAIN, "gives 4 packets of 2 Rows"},
    {THE_OUT, 3, 8, E_RUN_CHAIN, "1 Rows x 8 bf16"},
    {THE_OUT, 4, 3, E_RUN_CHAIN, "gives 3 packets"},
    {THE_OUT, -1, OP_WAIT, E_RUN_CHAIN, "wait: stands inside the chain that begins at offset 0x10"},
    {THE_OUT, -1, OP_CAST, E_RUN_CHAIN, "stream_in: begins a chain that does not end"},
    {THE_OUT, -1, OP_TRF_STORE, E_RUN_CHAIN, "trf_store: cannot follow cast"},
    {THE_IN, -1, OP_COLLECT, E_RUN_CHAIN, "collect: does not begin a chain"},
    {THE_IN, -1, OP_DMA, E_RUN_CHAIN, "dma: may not stand in the main context"},
    {THE_UNITS, -1, OP_WAIT, E_RUN_CHAIN, "no units command"},
};

START_TEST(illegal_chains)
{
    const chain_fault *k = &chain_faults[_i];
    bench b;
    legal_chain(&b);
    command *c = &b.commands[CONTEXT_MAIN][k->at];
    if (k->field < 0) {
        c->op = (command_op)k->value;
        memset(c->fields, 0, sizeof c->fields); /* wait: for 0 commands of main */
    } else if (k->field >= 100) {
        c->entries[(k->field - 100) / 10][k->field % 10] = k->value;
    } else {
        c->fields[k->field] = k->value;
    }
    if (k->words) {
        bench_fails(&b, k->id, k->words);
    } else {
        bench_build(&b);
        bench_run(&b);
    }
    bench_free(&b);
}
END_TEST

START_TEST(the_legal_chain_is_legal)
{
    bench b;
    legal_chain(&b);
    bench_build(&b);
    bench_run(&b);
    bench_free(&b);
}
END_TEST

/* A cast that exists, of elements that the stream has not: either way round. */
START_TEST(casts_take_what_the_sums_are)
{
    bench b;
    legal_chain(&b);
    b.commands[CONTEXT_MAIN][THE_CAST].fields[0] = DTYPE_I32;
    b.commands[CONTEXT_MAIN][THE_CAST].fields[1] = DTYPE_I8;
    bench_fails(&b, E_RUN_CHAIN, "cast: takes i32 elements, the stream has f32");
    bench_free(&b);
    bench_init(&b);
    bench_stream(&b, PORT_IN, DTYPE_I8, 1, 8, 64);
    bench_stream(&b, PORT_OUT, DTYPE_BF16, 1, 8, 16);
    ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_IN, 0, DTYPE_I8, 1, 64, 8);
    ADD(&b, CONTEXT_MAIN, OP_COLLECT, DTYPE_I8, 2, 64);
    ADD(&b, CONTEXT_MAIN, OP_ALIGN, 2, 4, DTYPE_I8, 1, 8);
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_TRF_READ, TRF_FULL, 4, dtype_row_of(DTYPE_I8)->trf_reg_type, 64, 0), 8, 64);
    ADD(&b, CONTEXT_MAIN, OP_CONTRACT, DTYPE_I8, 6, 1);
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_ACCUMULATE, 0, 4, 1, 1), 8, 0, 0);
    ADD(&b, CONTEXT_MAIN, OP_CAST, DTYPE_F32, DTYPE_BF16);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_OUT, 1, DTYPE_BF16, 1, 16, 8);
    bench_fails(&b, E_RUN_CHAIN, "cast: takes f32 elements, the stream has i32");
    bench_free(&b);
}
END_TEST

/* fetch -> (collect) -> commit with one thing wrong. */
typedef struct move_fault {
    int64_t base, in, out, access, packet, size, stride; /* fetch */
    int64_t flits;                                       /* collect; 0: none */
    int64_t to, type, keep, write, to_size, to_stride;   /* commit, of entries [to_size : to_stride, 8 : 1] */
    diag_id id;
    const char *words;
} move_fault;

static const move_fault move_faults[] = {
    {524288 - 28, DTYPE_I32, DTYPE_I32, 4, 8, 4, 8, 1, 0, DTYPE_I32, 32, 32, 4, 8, E_RUN_ACCESS,
     "reads outside the slice's DM: entry counters (0, 7), address 524288 bytes, size 32 bits"},
    {0, DTYPE_I32, DTYPE_I32, 4, 8, 4, -1, 1, 0, DTYPE_I32, 32, 32, 4, 8, E_RUN_ACCESS, "entry counters (1, 0), address -4"},
    {0xfffff, DTYPE_I4, DTYPE_I4, 1, 8, 4, 8, 1, 0, DTYPE_I4, 8, 8, 4, 8, E_RUN_ACCESS, "entry counters (0, 0)"},
    {0, DTYPE_I8, DTYPE_F32, 1, 8, 4, 8, 1, 0, DTYPE_F32, 32, 32, 4, 8, E_RUN_CHAIN, "no fetch conversion from i8 to f32"},
    {0, DTYPE_I32, DTYPE_I32, 2, 8, 4, 8, 1, 0, DTYPE_I32, 32, 32, 4, 8, E_RUN_CHAIN, "smaller than an element"},
    {0, DTYPE_I32, DTYPE_I32, 32, 4, 4, 8, 1, 0, DTYPE_I32, 32, 32, 4, 8, E_RUN_CHAIN, "does not divide the packet"},
    {0, DTYPE_I8, DTYPE_I8, 16, 32, 4, 9, 1, 0, DTYPE_I8, 32, 32, 4, 8, E_RUN_CHAIN, "contiguous run of 8"},
    {0, DTYPE_I32, DTYPE_I32, 4, 5, 4, 8, 1, 0, DTYPE_I32, 32, 32, 4, 8, E_RUN_CHAIN, "whole packets of 5"},
    {0, DTYPE_I4, DTYPE_I4, 1, 1, 4, 8, 1, 0, DTYPE_I4, 8, 8, 4, 8, E_RUN_CHAIN, "does not fill whole bytes"},
    {0, DTYPE_I8, DTYPE_I8, 8, 8, 4, 8, 0, 0, DTYPE_I8, 32, 32, 4, 8, E_RUN_CHAIN, "commit: takes flits of 32 bytes"},
    {0, DTYPE_I32, DTYPE_I32, 4, 8, 4, 8, 1, 524288, DTYPE_I32, 32, 32, 4, 8, E_RUN_ACCESS,
     "writes outside the slice's DM: entry counters (0, 0), address 524288"},
    {0, DTYPE_I32, DTYPE_I32, 4, 8, 4, 8, 1, 524288 - 64, DTYPE_I32, 32, 32, 4, 8, E_RUN_ACCESS, "entry counters (2, 0)"},
    {0, DTYPE_I32, DTYPE_I32, 4, 8, 4, 8, 1, 4, DTYPE_I32, 32, 32, 4, 8, E_RUN_ACCESS, "multiples of 8 bytes"},
    {0, DTYPE_I32, DTYPE_I32, 4, 8, 4, 8, 1, 0, DTYPE_I32, 32, 32, 4, 9, E_RUN_ACCESS, "multiples of 8 bytes"},
    {0, DTYPE_I32, DTYPE_I32, 4, 8, 4, 8, 1, 1024, DTYPE_I32, 32, 32, 4, -9, E_RUN_ACCESS, "multiples of 8 bytes"},
    {0, DTYPE_I32, DTYPE_I32, 4, 8, 4, 8, 1, 0, DTYPE_I8, 32, 32, 4, 8, E_RUN_CHAIN, "takes i8 elements"},
    {0, DTYPE_I32, DTYPE_I32, 4, 8, 4, 8, 1, 0, DTYPE_I32, 12, 12, 4, 8, E_RUN_CHAIN, "commit_in_bytes 12"},
    {0, DTYPE_I32, DTYPE_I32, 4, 8, 4, 8, 1, 0, DTYPE_I32, 32, 24, 4, 8, E_RUN_CHAIN, "commit_bytes 24"},
    {0, DTYPE_I32, DTYPE_I32, 4, 8, 4, 8, 1, 0, DTYPE_I32, 16, 16, 4, 8, E_RUN_CHAIN,
     "the entries have 32 elements, 4 flits of 4 elements"},
    {0, DTYPE_I32, DTYPE_I32, 4, 8, 4, 8, 2, 0, DTYPE_I32, 32, 32, 4, 8, E_RUN_CHAIN, "8 flits of 8 elements"},
    {0, DTYPE_I8, DTYPE_I8, 8, 8, 4, 8, 1, 0, DTYPE_I8, 8, 8, 4, 8, E_RUN_CHAIN, NULL},
    {0, DTYPE_I8, DTYPE_I8, 8, 32, 4, 8, 1, 0, DTYPE_I8, 32, 32, 4, 16, E_RUN_CHAIN,
     "a write of 32 bytes does not divide the contiguous run of 8"},
};

START_TEST(illegal_moves)
{
    const move_fault *k = &move_faults[_i];
    bench b;
    bench_init(&b);
    ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
    command *fetch = ADD(&b, CONTEXT_MAIN, OP_FETCH, k->base, k->in, k->out, k->access, k->packet);
    ENTRY(fetch, k->size, k->stride);
    ENTRY(fetch, 8, 1);
    if (k->flits)
        ADD(&b, CONTEXT_MAIN, OP_COLLECT, k->out, k->flits, k->packet);
    command *commit = ADD(&b, CONTEXT_MAIN, OP_COMMIT, k->to, k->type, k->keep, k->write);
    ENTRY(commit, k->to_size, k->to_stride);
    ENTRY(commit, 8, 1);
    bench_build(&b);
    if (k->words)
        bench_fails(&b, k->id, k->words);
    else
        bench_run(&b);
    bench_free(&b);
}
END_TEST

static void store_case(bench *b, int64_t mode, int64_t rows, int64_t reg_type, int64_t base, int64_t per_row)
{
    bench_init(b);
    bench_stream(b, PORT_IN, DTYPE_I8, 1, 256, 32);
    ADD(b, CONTEXT_SUB, OP_UNITS, UNIT_0);
    ADD(b, CONTEXT_SUB, OP_STREAM_IN, 0, DTYPE_I8, 1, 32, 256);
    ADD(b, CONTEXT_SUB, OP_TRF_STORE, mode, rows, reg_type, 0, base, per_row);
}

START_TEST(store_faults)
{
    bench b;
    store_case(&b, TRF_FULL, 8, 3, 0, 32);
    bench_fails(&b, E_RUN_CHAIN, "reg_type 3 is not that of i8");
    bench_free(&b);
    store_case(&b, TRF_FULL, 4, 2, 0, 32);
    bench_fails(&b, E_RUN_CHAIN, "4 Rows of 32 flits do not take the 256 flits");
    bench_free(&b);
    store_case(&b, TRF_FULL, 8, 2, 8192 - 512, 32);
    bench_fails(&b, E_RUN_ACCESS, "address 7680, size 1024 bytes; Full with 8 Rows has 8192 bytes per Row");
    bench_free(&b);
    store_case(&b, TRF_SECOND_HALF, 8, 2, 16, 32);
    bench_fails(&b, E_RUN_ACCESS, "base 16 is not a multiple of the 32 bytes");
    bench_free(&b);
    legal_chain(&b); /* contract belongs to main */
    memcpy(b.commands[CONTEXT_SUB], b.commands[CONTEXT_MAIN], sizeof b.commands[0]);
    b.counts[CONTEXT_SUB] = b.counts[CONTEXT_MAIN];
    b.counts[CONTEXT_MAIN] = 0;
    bench_fails(&b, E_RUN_CHAIN, "align: may not stand in the sub context");
    bench_free(&b);
}
END_TEST

/* A mask whose terms overflow is refused before anything runs. */
START_TEST(mask_overflow)
{
    bench b;
    legal_chain(&b);
    command *mask = &b.commands[CONTEXT_MAIN][THE_MASK];
    for (int i = 0; i < 14; i++)
        ENTRY(mask, 1, 1, (INT64_C(1) << 48) - 1, (INT64_C(1) << 48) - 1);
    bench_build(&b);
    bench_run(&b); /* 14 * 31 * 2^48 fits */
    bench_free(&b);
    legal_chain(&b);
    b.commands[CONTEXT_MAIN][THE_MASK].entries[0][3] = INT64_C(1) << 61;
    bench_fails(&b, E_RUN_CHAIN, "mask: the sum of the terms overflows");
    bench_free(&b);
}
END_TEST

/* fetch must be collected before it meets the TRF or a cast. */
START_TEST(fetch_needs_collect)
{
    bench b;
    bench_init(&b);
    ADD(&b, CONTEXT_SUB, OP_UNITS, UNIT_0);
    ENTRY(ADD(&b, CONTEXT_SUB, OP_FETCH, 0, DTYPE_I8, DTYPE_I8, 32, 32), 256, 1);
    ADD(&b, CONTEXT_SUB, OP_TRF_STORE, TRF_FULL, 8, 2, 0, 0, 1);
    bench_fails(&b, E_RUN_CHAIN, "trf_store: cannot follow fetch");
    bench_free(&b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("machine");
    TCase *t = suite_case("engines");
    tcase_add_test(t, memory_is_poison_until_written);
    tcase_add_test(t, memory_copies_across_blocks);
    tcase_add_test(t, walks_agree_with_nested_loops);
    tcase_add_test(t, trf_addresses_are_the_published_ones);
    tcase_add_test(t, trf_partitions_tile_the_file);
    tcase_add_test(t, seed_basic_matmul);
    tcase_add_test(t, seed_small_read);
    tcase_add_test(t, seed_time_broadcast_pair);
    tcase_add_test(t, fetch_transposes_and_commit_truncates);
    tcase_add_test(t, collect_pads_with_zeros);
    tcase_add_test(t, fetch_of_i4_walks_nibbles);
    tcase_add_test(t, fetch_converts);
    tcase_add_test(t, fetch_converts_long_packets);
    tcase_add_test(t, casts_narrow);
    tcase_add_test(t, commit_scatters_single_flits);
    tcase_add_test(t, masked_lanes_contribute_nothing);
    tcase_add_test(t, absent_is_not_minus_zero);
    tcase_add_test(t, dead_steps_may_leave_the_partition);
    tcase_add_test(t, dma_moves_strided_packets);
    tcase_add_test(t, dma_joins_and_overlaps);
    tcase_add_test(t, dma_granular_writes_anywhere);
    tcase_add_test(t, waits_order_contexts);
    tcase_add_loop_test(t, runs_are_proven, 0, PROOF_CASES);
    tcase_add_test(t, commits_of_filling_are_not_proven);
    tcase_add_test(t, written_bytes_are_noted);
    tcase_add_test(t, units_select_slices);
    tcase_add_test(t, ports_pack_odd_nibbles);
    tcase_add_test(t, trf_ports_follow_the_store);
    tcase_add_test(t, stream_ports_are_queues);
    tcase_add_test(t, threads_do_not_matter);
    tcase_add_test(t, dma_threads_do_not_matter);
    suite_add_tcase(s, t);
    TCase *f = suite_case("faults");
    tcase_add_test(f, dma_faults);
    tcase_add_test(f, deadlock_names_both);
    tcase_add_test(f, ports_refuse);
    tcase_add_test(f, limits_stop_a_run);
    tcase_add_test(f, the_legal_chain_is_legal);
    tcase_add_test(f, casts_take_what_the_sums_are);
    tcase_add_loop_test(f, illegal_chains, 0, sizeof chain_faults / sizeof *chain_faults);
    tcase_add_loop_test(f, illegal_moves, 0, sizeof move_faults / sizeof *move_faults);
    tcase_add_test(f, store_faults);
    tcase_add_test(f, mask_overflow);
    tcase_add_test(f, fetch_needs_collect);
    suite_add_tcase(s, f);
    return suite_status(s);
}
