/* What the machine refuses: chains, moves, ports and limits. */
#include <math.h>

#include "runtime/engine/tree.h"
#include "runtime/engine/trf.h"
#include "runtime/machine/machine_state.h"
#include "runtime/machine/memory.h"
#include "runtime/machine/walk.h"
#include "test/machine/machine_bench.h"
#include "test/suite.h"

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
        b.options.memory_limit_bytes = INT64_C(20) * 4096; /* a page of each slice */
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

/* --- illegal chains --- */

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
    command *read = ADD(b, CONTEXT_MAIN, OP_TRF_READ, TRF_FULL, 4, 3, 64, 0, DTYPE_BF16);
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
    {THE_COLLECT, 1, 1, E_RUN_CHAIN, "1 flit is too few for a packet of 64 bytes"},
    {THE_COLLECT, 1, 3, E_RUN_CHAIN, "align: 8 packets of 2 flits do not take the 24 flits"},
    {THE_COLLECT, 2, 31, E_RUN_CHAIN, "takes packets of 31 elements"},
    {THE_ALIGN, 0, 1, E_RUN_CHAIN, "8 packets of 1 flit"},
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
    {THE_ACCUMULATE, 3, 1000, E_RUN_ACCESS, "1000 slots of 1 column pass the accumulator's 128"},
    {THE_ACCUMULATE, 100, 3, E_RUN_CHAIN, "the loops do not make the 8 steps"},
    {THE_ACCUMULATE, 100, (INT64_C(1) << 48) - 1, E_RUN_CHAIN, "the loops do not make the 8 steps"},
    {THE_ACCUMULATE, 112, 900, E_RUN_ACCESS, "reaches slot 2700"},
    {THE_ACCUMULATE, 101, 0, E_RUN_CHAIN, "gives 4 packets"},
    {THE_ACCUMULATE, -1, OP_CAST, E_RUN_CHAIN, "cast: cannot follow contract; accumulate and stream_out can"},
    {THE_CAST, 0, DTYPE_I32, E_RUN_CHAIN, "no cast from i32 to bf16"},
    {THE_CAST, 1, DTYPE_I8, E_RUN_CHAIN, "no cast from f32 to i8"},
    {THE_CAST, -1, OP_ACCUMULATE, E_RUN_CHAIN,
     "accumulate: cannot follow accumulate; cast, commit, stream_out, transpose, vector, vector_slices and vrf_store can"},
    {THE_OUT, 0, 0, E_RUN_CHAIN, "port 0 is not a stream output"},
    {THE_OUT, 0, 2, E_RUN_CHAIN, "port 2 is not a stream output"},
    {THE_OUT, 1, DTYPE_F32, E_RUN_CHAIN, "the stream has 4 of 1 x 16 bf16"},
    {THE_OUT, 2, 2, E_RUN_CHAIN, "gives 4 packets of 2 Rows"},
    {THE_OUT, 3, 8, E_RUN_CHAIN, "1 Row x 8 bf16"},
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
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_TRF_READ, TRF_FULL, 4, dtype_row_of(DTYPE_I8)->trf_reg_type, 64, 0, DTYPE_I8), 8, 64);
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
    TCase *t = suite_case("faults");
    suite_tests(t, dma_faults, deadlock_names_both, ports_refuse, limits_stop_a_run, the_legal_chain_is_legal,
                casts_take_what_the_sums_are);
    tcase_add_loop_test(t, illegal_chains, 0, sizeof chain_faults / sizeof *chain_faults);
    tcase_add_loop_test(t, illegal_moves, 0, sizeof move_faults / sizeof *move_faults);
    suite_tests(t, store_faults, mask_overflow, fetch_needs_collect);
    return suite_status("machine faults", t);
}
