/* Units of the machine: copies, contexts, ports, threads, and the proof that a second run is not needed. */
#include <math.h>
#include <time.h>

#include "runtime/engine/tree.h"
#include "runtime/engine/trf.h"
#include "runtime/machine/machine_state.h"
#include "runtime/machine/memory.h"
#include "runtime/machine/parallel.h"
#include "runtime/machine/walk.h"
#include "test/machine/bench_fixture.h"

/* HBM of chip 1 into slices 3 and 4 of chip 2, transposed by packets of 16 bytes, and back to HBM of chip 0.
 */
START_TEST(dma_moves_strided_packets)
{
    uint32_t in = bench_hbm(&b, PORT_IN, 2, 4096, 256), out = bench_hbm(&b, PORT_OUT, 1, 1 << 21, 320);
    command *dma = ADD(&b, CONTEXT_DMA, OP_DMA, 0, 1, 0, 16, (INT64_C(1) << 36) + 4096, dm_address(2, 1, 3, 64));
    ENTRY(dma, 2, 128, INT64_C(1) << 22);
    ENTRY(dma, 2, 16, 64);
    ENTRY(dma, 4, 32, 16);
    dma = ADD(&b, CONTEXT_DMA, OP_DMA, 1, 0, 0, 20, dm_address(2, 1, 3, 64), 1 << 21);
    ENTRY(dma, 2, INT64_C(1) << 22, 160);
    ENTRY(dma, 8, 16, 20);
    unsigned char data[512], got[320];
    for (int i = 0; i < 512; i++)
        data[i] = (unsigned char)(i * 13 + i / 256);
    COMPUTE(&b, out, got, BYTES_OF(in, data));
    for (int i = 0; i < 320; i++) {
        int slice = i / 160, from = i / 20 % 8 * 16 + i % 20; /* offset in the slice's 128 bytes and 4 after them */
        unsigned char expected = BENCH_POISON;
        if (from < 128)
            expected = data[256 + slice * 128 + from / 64 * 16 + from / 16 % 4 * 32 + from % 16];
        ck_assert_msg(got[i] == expected, "byte %d is %d instead of %d", i, got[i], expected);
    }
}
END_TEST

/* Contiguous on both sides: one copy across HBM blocks; and lock step where the ranges overlap. */
START_TEST(dma_joins_and_overlaps)
{
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
}
END_TEST

/* The granular form may write DM byte by byte: a 6 x 5 transpose of single bytes to an odd address. */
START_TEST(dma_granular_writes_anywhere)
{
    uint32_t in = bench_hbm(&b, PORT_IN, 1, 3, 30), out = bench_dm(&b, PORT_OUT, 1001, 31);
    command *dma = ADD(&b, CONTEXT_DMA, OP_DMA, 0, 1, 1, 1, 3, 1001);
    ENTRY(dma, 6, 5, 1);
    ENTRY(dma, 5, 1, 6);
    unsigned char data[30], got[31];
    for (int i = 0; i < 30; i++)
        data[i] = (unsigned char)(i + 1);
    COMPUTE(&b, out, got, BYTES_OF(in, data));
    for (int i = 0; i < 30; i++)
        ck_assert_int_eq(got[i], data[i % 6 * 5 + i / 6]);
    ck_assert_int_eq(got[30], BENCH_POISON);
}
END_TEST

/* --- contexts --- */

/* sub copies A to B after main has copied C to A; the order must not depend on who is tried first. */
START_TEST(waits_order_contexts)
{
    for (int first = 0; first < 3; first++) {
        bench_reset();
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
    }
}
END_TEST

/* --- the proof that a second run is not needed --- */

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
        bench_reset();
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
        unsigned char data[64], got[64];
        memset(data, 7, sizeof data);
        COMPUTE(&b, out, got, BYTES_OF(in, data));
        ck_assert_int_eq(machine_is_proven(b.machine), p->proven);
    }
}
END_TEST

/* Flits of which a cast fills 8 bytes: committed as 8 bytes they are computed, as 16 the rest is the filling. */
START_TEST(commits_of_filling_are_not_proven)
{
    for (int64_t bytes = 8; bytes <= 16; bytes += 8) {
        bench_reset();
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
    }
}
END_TEST

/* Marks next to a byte for each byte. */
START_TEST(written_bytes_are_noted)
{
    enum { BYTES = 4096, BLOCK = 1024 };
    memory_budget budget = {0};
    uint64_t seed = 99;
    for (int round = 0; round < suite_rounds(200); round++) {
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

/* --- units and ports --- */

/* Only active slices run; a port's dead and missing units take and give nothing. */
START_TEST(units_select_slices)
{
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
}
END_TEST

/* i4 with an odd number of elements per unit: pieces begin in the middle of a byte. */
START_TEST(ports_pack_odd_nibbles)
{
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
}
END_TEST

START_TEST(trf_ports_follow_the_store)
{
    for (int mode = TRF_FULL; mode <= TRF_SECOND_HALF; mode++)
        for (int64_t rows = 1; rows <= 8; rows *= 2) {
            bench_reset();
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
        }
}
END_TEST

/* The second chain goes on where the first one left the stream. */
START_TEST(stream_ports_are_queues)
{
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
        bench_reset();
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
        ENTRY(ADD(&b, CONTEXT_MAIN, OP_TRF_READ, TRF_FULL, 8, 2, 64, 0, DTYPE_I8), STEPS, 0);
        ADD(&b, CONTEXT_MAIN, OP_CONTRACT, DTYPE_I8, 6, 1);
        ENTRY(ADD(&b, CONTEXT_MAIN, OP_ACCUMULATE, 0, 8, 1, 1), STEPS, 0, 0);
        ADD(&b, CONTEXT_MAIN, OP_STREAM_OUT, 1, DTYPE_I32, 1, 8, STEPS);
        bench_build(&b);
        bench_write(&b, 0, data, BYTES);
        bench_run(&b);
        bench_read(&b, 1, threads == 1 ? one : many, BYTES);
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

/* Six slices get one of two tables each, and fill their register files with it; then one of them fills the other half of its own, and with
 * one that has not the first half again. Those that did the same have one file, and each holds what it would have by itself. */
START_TEST(files_that_are_filled_alike)
{
    enum { SLICES = 6, TABLES = 2, ROWS = 8, EACH = 1 << 15, PER_ROW = EACH / ROWS, FLIT = 32, ALONE = 4, AGAIN = 2 };
    unsigned char *data = malloc(EACH * TABLES), *got = malloc(EACH * 2);
    for (int i = 0; i < EACH * TABLES; i++)
        data[i] = (unsigned char)(i * 7 + i / 251 + i / EACH);
    bench_reset();
    b.options.prove = true;
    uint32_t in = bench_hbm(&b, PORT_IN, 1, 0, EACH * TABLES);
    command *k = ADD(&b, CONTEXT_DMA, OP_DMA, 0, 1, 0, 4096, 0, 0);
    ENTRY(k, TABLES, EACH, dm_address(0, 0, 1, 0) - dm_address(0, 0, 0, 0));
    ENTRY(k, SLICES / TABLES, 0, dm_address(0, 0, TABLES, 0) - dm_address(0, 0, 0, 0));
    ENTRY(k, EACH / 4096, 4096, 4096);
    ADD(&b, CONTEXT_SUB, OP_WAIT, CONTEXT_DMA, 1);
    ADD(&b, CONTEXT_SUB, OP_UNITS, 1, 1, (1 << SLICES) - 1, 0, 0, 0);
    for (int again = 0; again < 3; again++) {
        if (again)
            ADD(&b, CONTEXT_SUB, OP_UNITS, 1, 1, again == 1 ? 1 << ALONE : 1 << ALONE | 1 << AGAIN, 0, 0, 0);
        ENTRY(ADD(&b, CONTEXT_SUB, OP_FETCH, 0, DTYPE_I8, DTYPE_I8, 8, FLIT), EACH, 1);
        ADD(&b, CONTEXT_SUB, OP_COLLECT, DTYPE_I8, 1, FLIT);
        ADD(&b, CONTEXT_SUB, OP_TRF_STORE, TRF_FULL, ROWS, 2, 0, again % 2 * PER_ROW, PER_ROW / FLIT);
    }
    bench_build(&b);
    bench_write(&b, in, data, EACH * TABLES);
    bench_run(&b);
    ck_assert(machine_is_proven(b.machine));
    const target *t = b.machine->target;
    for (int slice = 0; slice < SLICES; slice++) {
        memory *trf = &b.machine->units[slice].trf;
        ck_assert_int_eq(memory_is_same(trf, &b.machine->units[slice % TABLES].trf), slice != ALONE && slice != AGAIN);
        ck_assert(!memory_is_same(trf, &b.machine->units[(slice + 1) % TABLES].trf));
        for (int64_t row = 0; row < ROWS; row++)
            for (int64_t byte = 0; byte < (slice == ALONE ? 2 : 1) * PER_ROW; byte += FLIT) {
                int64_t at = trf_address_of(t, row, ROWS, TRF_FULL, byte);
                ck_assert(memory_read(trf, at, got, FLIT) && memory_is_written(trf, at, FLIT));
                ck_assert_mem_eq(got, data + slice % TABLES * EACH + row * PER_ROW + byte % PER_ROW, FLIT);
            }
    }
    free(data);
    free(got);
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
        bench_reset();
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
    }
    free(data);
    free(got);
}
END_TEST

static void set_later(void *done)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    atomic_store((atomic_int *)done, 1);
}

START_TEST(jobs_run_beside)
{
    enum { JOBS = 4 };
    atomic_int done[JOBS] = {0};
    parallel_job *jobs[JOBS];
    for (int i = 0; i < JOBS; i++)
        ck_assert_ptr_nonnull(jobs[i] = parallel_begin(set_later, &done[i]));
    parallel_end(jobs[0]);
    ck_assert_int_eq(atomic_load(&done[0]), 1);
    parallel_settle();
    for (int i = 1; i < JOBS; i++) {
        ck_assert_int_eq(atomic_load(&done[i]), 1);
        parallel_end(jobs[i]);
    }
    parallel_settle(); /* nothing is left to wait for */
}
END_TEST

int main(void)
{
    TCase *t = suite_case_with("units", setup, teardown);
    suite_tests(t, dma_moves_strided_packets, dma_joins_and_overlaps, dma_granular_writes_anywhere, waits_order_contexts);
    tcase_add_loop_test(t, runs_are_proven, 0, PROOF_CASES);
    suite_tests(t, commits_of_filling_are_not_proven, written_bytes_are_noted, units_select_slices, ports_pack_odd_nibbles,
                trf_ports_follow_the_store, stream_ports_are_queues, threads_do_not_matter, files_that_are_filled_alike,
                dma_threads_do_not_matter, jobs_run_beside);
    return suite_status("machine units", t);
}
