/* Schedules and reports: the examples' figures, formulas by hand, and random command streams against a clock that
 * ticks cycle by cycle. */
#include <jansson.h>

#include "codegen/copy_command.h"
#include "include/visa.h"
#include "runtime/timing/analysis.h"
#include "runtime/timing/dm_bank.h"
#include "runtime/timing/hbm_address.h"
#include "runtime/timing/known_costs.h"
#include "runtime/timing/report.h"
#include "runtime/timing/schedule.h"
#include "support/integer.h"
#include "test/machine/machine_bench.h"
#include "test/suite.h"
#include "trf_model.h"

/* ---- hand-made chains ---- */

static command *add_fetch(bench *b, context c, int64_t packets, int64_t packet_elements, int64_t access_bytes)
{
    command *k = ADD(b, c, OP_FETCH, 0, DTYPE_BF16, DTYPE_BF16, access_bytes, packet_elements);
    ENTRY(k, packets, packet_elements);
    ENTRY(k, packet_elements, 1);
    return k;
}

typedef struct store_shape {
    trf_address mode;
    int64_t rows, flits_per_row, base, access_bytes;
    bool is_short;
} store_shape;

enum { STORE_STAGES = 2 }; /* before the TRF in these chains: fetch and collect, of which a short command has none */

static void add_store(bench *b, context c, const store_shape *s)
{
    add_fetch(b, c, s->rows * s->flits_per_row, 16, s->access_bytes);
    ADD(b, c, OP_COLLECT, DTYPE_BF16, 1, 16);
    ADD(b, c, OP_TRF_STORE, s->mode, s->rows, 3, s->is_short, s->base, s->flits_per_row);
}

typedef enum sum_form { SUM_NOTHING, SUM_TILING, SUM_PACKETS } sum_form;

typedef struct contraction_shape {
    trf_address mode;
    int64_t rows, read_bytes, packets, tiling, tiling_stride, packet_stride;
    int64_t access_bytes, write_bytes;
    sum_form sum;
} contraction_shape;

static int64_t beats_of(const contraction_shape *s)
{
    return s->sum == SUM_NOTHING ? s->packets * s->tiling : s->sum == SUM_TILING ? s->packets : s->tiling;
}

static void add_contraction(bench *b, const contraction_shape *s)
{
    context c = CONTEXT_MAIN;
    add_fetch(b, c, s->packets, 32, s->access_bytes);
    ADD(b, c, OP_COLLECT, DTYPE_BF16, 2, 32);
    ADD(b, c, OP_ALIGN, 2, s->rows, DTYPE_BF16, s->tiling, s->packets);
    command *k = ADD(b, c, OP_TRF_READ, s->mode, s->rows, 3, s->read_bytes, 0, DTYPE_BF16);
    ENTRY(k, s->tiling, s->tiling_stride);
    ENTRY(k, s->packets, s->packet_stride);
    ADD(b, c, OP_CONTRACT, DTYPE_BF16, 5, 1);
    k = ADD(b, c, OP_ACCUMULATE, 0, s->rows, 1, s->sum == SUM_PACKETS ? s->tiling : 1);
    ENTRY(k, s->packets, s->sum == SUM_PACKETS, 0);
    ENTRY(k, s->tiling, s->sum == SUM_TILING, s->sum == SUM_PACKETS);
    k = ADD(b, c, OP_COMMIT, 1 << 17, DTYPE_F32, 32, s->write_bytes);
    ENTRY(k, beats_of(s), 8);
    ENTRY(k, 8, 1);
}

static command *add_dma(bench *b, int64_t packet_bytes, int64_t packets, bool same_memory)
{
    command *k = ADD(b, CONTEXT_DMA, OP_DMA, 0, !same_memory, 0, packet_bytes, 0, same_memory ? 1 << 20 : 1 << 18);
    ENTRY(k, packets, packet_bytes, packet_bytes);
    return k;
}

static bool make(bench *b, schedule *s)
{
    b->kernel = (binary_kernel){.name = "k", .ports = b->ports, .port_count = b->port_count};
    for (int c = 0; c < 3; c++) {
        b->kernel.streams[c].commands = b->commands[c];
        b->kernel.streams[c].count = b->counts[c];
    }
    return schedule_make(target_by_name("rngd"), &b->kernel, TIMING_DOCUMENTED, b->arena, &b->diags, s);
}

static void made(bench *b, schedule *s)
{
    if (!make(b, s)) {
        bench_explain(b);
        ck_abort_msg("no schedule");
    }
}

/* ---- formulas ---- */

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* docs/timing.md, by the shapes of this file. */
static int64_t contraction_alone(const contraction_shape *s)
{
    int64_t in = s->packets * most(most(2, 64 / s->access_bytes), s->tiling), out = beats_of(s) * (32 / s->write_bytes);
    bool at_end = s->sum == SUM_PACKETS && s->packets > 1;
    if (s->sum == SUM_TILING && s->packets == 1 && s->tiling > 1)
        at_end = true;
    return 1 + 5 + 1 + 1 + (at_end ? in + out : most(in, out));
}

START_TEST(formulas_of_chains)
{
    static const contraction_shape shapes[] = {
        {TRF_FULL, 8, 64, 32, 1, 0, 0, 32, 32, SUM_NOTHING},    {TRF_FULL, 8, 64, 32, 4, 64, 0, 32, 32, SUM_NOTHING},
        {TRF_FULL, 8, 64, 32, 4, 64, 0, 32, 8, SUM_NOTHING},    {TRF_FULL, 8, 64, 32, 4, 64, 0, 8, 32, SUM_TILING},
        {TRF_FULL, 8, 64, 32, 4, 64, 256, 32, 32, SUM_PACKETS}, {TRF_FULL, 8, 64, 1, 4, 64, 0, 32, 32, SUM_TILING},
        {TRF_FULL, 8, 64, 1, 1, 0, 0, 32, 32, SUM_NOTHING},
    };
    static const int64_t cycles[] = {8 + 64, 8 + 128, 8 + 512, 8 + 256, 8 + 128 + 4, 8 + 4 + 1, 8 + 2};
    static const char *const text[] = {"8 + max(32 x 2, 32 x 1)", "8 + max(32 x 4, 128 x 1)", "8 + max(32 x 4, 128 x 4)",
                                       "8 + max(32 x 8, 32 x 1)", "8 + 32 x 4 + 4 x 1",       "8 + 1 x 4 + 1 x 1",
                                       "8 + max(1 x 2, 1 x 1)"};
    static const duration_bound bounds[] = {BOUND_COLLECT,  BOUND_MULTIPLY, BOUND_COMMIT, BOUND_FETCH,
                                            BOUND_MULTIPLY, BOUND_MULTIPLY, BOUND_COLLECT};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        bench b;
        schedule s;
        bench_init(&b);
        ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
        add_contraction(&b, &shapes[i]);
        made(&b, &s);
        ck_assert_uint_eq(s.count, 1);
        ck_assert_int_eq(s.cycles, cycles[i]);
        ck_assert_int_eq(s.cycles, contraction_alone(&shapes[i]));
        ck_assert_str_eq(duration_formula(&s.items[0].alone, b.arena), text[i]);
        ck_assert_int_eq(s.items[0].alone.bound, bounds[i]);
        ck_assert_int_eq(s.items[0].reads.reads, shapes[i].packets * shapes[i].tiling);
        bench_free(&b);
    }
}
END_TEST

START_TEST(formulas_of_dma)
{
    static const struct {
        int64_t packet_bytes, packets, cycles;
        bool same_memory;
    } copies[] = {
        {64, 32, 532, false},   /* a request each; the DMN of slice 0 takes 128 bytes per cycle */
        {256, 32, 564, false},  /* 2 cycles of the DMN each */
        {264, 32, 596, false},  /* 3 */
        {4096, 10, 820, false}, /* 32 */
        {256, 64, 628, true},   /* reads and writes of one memory take turns */
    };
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        bench b;
        schedule s;
        bench_init(&b);
        add_dma(&b, copies[i].packet_bytes, copies[i].packets, copies[i].same_memory);
        made(&b, &s);
        ck_assert_int_eq(s.cycles, copies[i].cycles);
        bench_free(&b);
    }
}
END_TEST

/* The DMA cost model's worked examples 2, 3 and 4 (A = B = C = 256 bytes; A = 64, B = 2048, C = 1024), one engine carrying what is theirs.
 */
START_TEST(worked_copies)
{
    static const int64_t slice = 4 << 20, dmn = 32 * slice;
    bench b;
    dma_cost d;
    bench_init(&b);
    command *k = ADD(&b, CONTEXT_DMA, OP_DMA, 0, 1, 0, 256, 0, 0);
    ENTRY(k, 256, 65536, 256);
    ENTRY(k, 4, 256, 65536);
    ENTRY(k, 32, 1024, slice);
    ENTRY(k, 2, 32768, dmn);
    ck_assert(dma_cost_of(target_by_name("rngd"), k, &d));
    ck_assert_int_eq(d.requests, 65536);
    ck_assert_int_eq(d.dmn_cycles, 65536);
    ck_assert_int_lt(d.hbm_cycles, 65536);
    k = ADD(&b, CONTEXT_DMA, OP_DMA, 1, 1, 0, 256, 0, 0);
    ENTRY(k, 256, 256, 1024);
    ENTRY(k, 4, 65536, 256);
    ENTRY(k, 32, slice, slice);
    ENTRY(k, 2, dmn, dmn);
    ck_assert(dma_cost_of(target_by_name("rngd"), k, &d));
    ck_assert_int_eq(d.requests, 2 * 65536);
    ck_assert_int_eq(d.dmn_cycles, 2 * 65536);
    /* Every request opens another row of its bank: an eighth of the 16,384 x 40 cycles, less the first opening of each bank. */
    k = ADD(&b, CONTEXT_DMA, OP_DMA, 0, 1, 0, 256, 0, 0);
    ENTRY(k, 256, 1024, 1024);
    ENTRY(k, 4, 256, 256);
    ENTRY(k, 32, 1 << 21, slice);
    ENTRY(k, 2, 1 << 26, dmn);
    ck_assert(dma_cost_of(target_by_name("rngd"), k, &d));
    ck_assert_int_le(d.hbm_cycles, 2048 * 40);
    ck_assert_int_ge(d.hbm_cycles, 2048 * 40 * 95 / 100);
    bench_free(&b);
}
END_TEST

/* Two blocks read in turn, so far apart: in other channels, in two banks of one, in one row of a bank, or in two rows, of which each read
 * closes the other. Bits 9 to 28 are five groups of four that are added without carry to the channel, 8 is the stack, 13 and 17 to 20 and
 * 34 the bank; the row is all from 21 on. */
START_TEST(rows_of_a_bank)
{
    enum { OTHER_CHANNEL, NO_SWITCH, SWITCHES, TURNS = 100 };
    static const struct {
        int64_t apart;
        int what;
    } pairs[] = {
        {1 << 8, OTHER_CHANNEL},        {1 << 9, OTHER_CHANNEL},        {1 << 12, OTHER_CHANNEL},       {1 << 13, OTHER_CHANNEL},
        {1 << 21, OTHER_CHANNEL},       {1 << 25, OTHER_CHANNEL},       {1 << 28, OTHER_CHANNEL},       {1 << 14 | 1 << 10, NO_SWITCH},
        {1 << 20 | 1 << 12, NO_SWITCH}, {1 << 21 | 1 << 9, SWITCHES},   {1 << 24 | 1 << 12, SWITCHES},  {1 << 25 | 1 << 9, SWITCHES},
        {1 << 28 | 1 << 16, SWITCHES},  {1 << 21 | 1 << 13, NO_SWITCH}, {1 << 21 | 1 << 17, NO_SWITCH}, {1 << 22 | 1 << 18, NO_SWITCH},
        {1 << 23 | 1 << 19, NO_SWITCH}, {1 << 24 | 1 << 20, NO_SWITCH}, {INT64_C(1) << 29, SWITCHES},   {INT64_C(1) << 33, SWITCHES},
        {INT64_C(1) << 34, NO_SWITCH},  {INT64_C(1) << 35, SWITCHES},   {INT64_C(3) << 34, NO_SWITCH},  {INT64_C(1) << 36, OTHER_CHANNEL},
    };
    const target *t = target_by_name("rngd");
    int64_t block = t->hbm_block_bytes / t->hbm_burst_bytes * t->hbm_burst_millicycles;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        bench b;
        dma_cost d;
        bench_init(&b);
        command *k = ADD(&b, CONTEXT_DMA, OP_DMA, 0, 1, 0, t->hbm_block_bytes, 0, 0);
        ENTRY(k, TURNS, 0, 512);
        ENTRY(k, 2, pairs[i].apart, 256);
        ck_assert(dma_cost_of(t, k, &d));
        int64_t expected = pairs[i].what == OTHER_CHANNEL ? TURNS * block
                           : pairs[i].what == NO_SWITCH   ? 2 * TURNS * block
                                                          : block + (2 * TURNS - 1) * t->hbm_row_switch_cycles * 1000;
        ck_assert_msg(d.hbm_cycles == (expected + 999) / 1000, "%zu: %lld cycles, not %lld / 1000", i, (long long)d.hbm_cycles,
                      (long long)expected);
        bench_free(&b);
    }
}
END_TEST

/* Its example 5 (A = 8, B = 64, C = 8, D = 512 bytes) by all eight engines at once; two such copies on two chips take no longer than one.
 * Bytes from another chip go over PCIe. */
START_TEST(engines_of_a_copy)
{
    static const int64_t slice = 4 << 20, dmn = 32 * slice, cluster = 256 * slice, chip = 2 * cluster, hbm = INT64_C(1) << 36;
    for (int chips = 1; chips <= 2; chips++)
        for (int crosses = 0; crosses < chips; crosses++) {
            bench b;
            schedule s;
            bench_init(&b);
            command *k = ADD(&b, CONTEXT_DMA, OP_DMA, 0, 1, 0, 256, crosses ? hbm : 0, 0);
            if (chips == 2)
                ENTRY(k, 2, crosses ? -hbm : hbm, chip);
            ENTRY(k, 2, 1 << 20, cluster);
            ENTRY(k, 4, 1 << 18, 2 * dmn);
            ENTRY(k, 8, 512, 256);
            ENTRY(k, 32, 4096, slice);
            ENTRY(k, 2, 1 << 17, dmn);
            made(&b, &s);
            const dma_cost *d = &s.items[0].alone.dma;
            ck_assert_int_eq(d->engines, 8 * chips);
            ck_assert_int_eq(d->engine_steps, 512);
            ck_assert_int_eq(d->link_cycles, crosses ? (1 << 20) / 30 + 1 : 0);
            ck_assert_int_eq(s.cycles, 500 + (crosses ? d->link_cycles : d->hbm_cycles));
            ck_assert_int_eq(d->hbm_cycles, 1357);
            bench_free(&b);
        }
}
END_TEST

/* A part of a block that is written costs 50 whole blocks of its channel: 265 cycles. */
START_TEST(partial_writes)
{
    bench b;
    dma_cost d;
    bench_init(&b);
    command *k = ADD(&b, CONTEXT_DMA, OP_DMA, 1, 0, 0, 64, 0, 0);
    ENTRY(k, 8, 64, 64);
    ck_assert(dma_cost_of(target_by_name("rngd"), k, &d));
    ck_assert_int_eq(d.partial_writes, 8);
    ck_assert_int_eq(d.hbm_cycles, 4 * 265);
    ck_assert_int_eq(d.pieces, 1);
    ck_assert_int_eq(d.piece_bytes, 512);
    bench_free(&b);
}
END_TEST

/* An address in one of two slices, or one from which the walk runs over into the next slice. */
static int64_t dm_base(uint64_t *r)
{
    static const int64_t slice = 4 << 20;
    return bench_pick(r, 0, 1) * 31 * slice + (bench_pick(r, 0, 3) ? bench_pick(r, 0, 1 << 10) * 64 : slice - bench_pick(r, 1, 8) * 64);
}

static void same_cost(const dma_cost *a, const dma_cost *b)
{
    int64_t x[] = {a->steps,         a->requests,    a->engines, a->engine_steps,     a->link_cycles,    a->hbm_cycles,
                   a->dmn_cycles,    a->piece_bytes, a->pieces,  a->unaligned_pieces, a->partial_writes, a->copies,
                   a->copies_inside, a->spreads,     a->to_dm,   a->clusters,         a->walked};
    int64_t y[] = {b->steps,         b->requests,    b->engines, b->engine_steps,     b->link_cycles,    b->hbm_cycles,
                   b->dmn_cycles,    b->piece_bytes, b->pieces,  b->unaligned_pieces, b->partial_writes, b->copies,
                   b->copies_inside, b->spreads,     b->to_dm,   b->clusters,         b->walked};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        ck_assert_int_eq(x[i], y[i]);
}

/* Few shapes and many addresses, so that most answers are remembered from a copy or an access that began elsewhere. */
START_TEST(remembered_costs)
{
    static const int64_t slice = 4 << 20, strides[] = {0, 64, 256, 4096, -64, slice, 32 * slice, 256 * slice};
    const target *t = target_by_name("rngd");
    bench b;
    bench_init(&b);
    known_costs *known = known_costs_new(t, b.arena);
    uint64_t r = 27;
    for (int i = 0; i < 4000; i++) {
        int64_t from = bench_pick(&r, 0, 2), to = bench_pick(&r, 0, 1);
        int64_t hbm = bench_pick(&r, 0, 3) << 20 | bench_pick(&r, 0, 2) * 128;
        b.counts[CONTEXT_DMA] = b.counts[CONTEXT_MAIN] = 0;
        command *k = ADD(&b, CONTEXT_DMA, OP_DMA, from, to, 0, bench_pick(&r, 0, 1) ? 64 : 512, from == 1 ? dm_base(&r) : hbm,
                         to == 1 ? dm_base(&r) : hbm);
        for (int64_t loops = bench_pick(&r, 1, 3); loops > 0; loops--)
            ENTRY(k, bench_pick(&r, 1, 3), bench_pick(&r, 0, 2) * 4096, strides[bench_pick(&r, 0, 7)]);
        dma_cost direct, again;
        ck_assert_int_eq(dma_cost_of(t, k, &direct), known_copy_cost(known, k, &again));
        same_cost(&direct, &again);
        bool fetches = bench_pick(&r, 0, 1);
        int64_t base = bench_pick(&r, 0, 40) * 8;
        k = fetches ? ADD(&b, CONTEXT_MAIN, OP_FETCH, base, DTYPE_I8, DTYPE_I8, 32, 32, 0, 0)
                    : ADD(&b, CONTEXT_MAIN, OP_COMMIT, base, DTYPE_I8, 32, 32, 0);
        ENTRY(k, bench_pick(&r, 1, 6) * 14, bench_pick(&r, -2, 2) * 64);
        ENTRY(k, 32, 1);
        ck_assert_int_eq(dm_bank_streak(t, k, t->dm_starving_accesses), known_bank_streak(known, k));
    }
    bench_free(&b);
}
END_TEST

/* Steps that were looked at one after the other, and what they add up to. */
typedef struct by_hand {
    const target *t;
    int64_t channels[128], dmns[64], engines[64], links[4], partial_writes, pieces, unaligned;
    int rows[128][HBM_BANKS]; /* plus 1; 0: none */
    uint64_t clusters;
} by_hand;

static void block_by_hand(by_hand *x, int64_t address, int64_t bytes, bool write)
{
    int64_t chip = address >> 36 & 3, inside = address & ((INT64_C(1) << 36) - 1), channel = chip * 32 + hbm_channel_of(inside);
    int *open = &x->rows[channel][hbm_bank_of(inside)], row = (int)(inside >> 21 & 0xffff) + 1;
    if (write && bytes < 256) {
        x->channels[channel] += 50 * 4 * 1325;
        x->partial_writes++;
    } else {
        x->channels[channel] += *open && *open != row ? 40 * 1000 : (bytes + 63) / 64 * 1325;
    }
    *open = row;
}

static void side_by_hand(by_hand *x, bool hbm, int64_t address, int64_t bytes, bool write)
{
    for (int64_t at = address; hbm && at < address + bytes;) {
        int64_t end = at / 256 * 256 + 256 < address + bytes ? at / 256 * 256 + 256 : address + bytes;
        block_by_hand(x, at, end - at, write);
        at = end;
    }
    if (!hbm) {
        x->dmns[(address >> 22) / 32 % 64] += (bytes + 127) / 128;
        x->clusters |= UINT64_C(1) << (address >> 22) / 256 % 64;
    }
}

static int64_t most_by_hand(const int64_t *values, size_t count)
{
    int64_t most = 0;
    for (size_t i = 0; i < count; i++)
        most = values[i] > most ? values[i] : most;
    return most;
}

static void cost_by_hand(const target *t, const command *c, dma_cost *out)
{
    const int64_t steps = out->walked, slice = 4 << 20;
    by_hand x = {.t = t};
    copy_command k = copy_command_read(c);
    bool hbm[] = {k.source.memory == COPY_HBM, k.destination.memory == COPY_HBM}, fills = k.source.memory == COPY_NONE;
    int64_t before[2] = {0};
    for (int64_t step = 0; step < steps; step++) {
        int64_t at[] = {k.source.base, k.destination.base}, rest = step;
        for (unsigned i = k.count; i-- > 0; rest /= k.size[i]) {
            at[0] += rest % k.size[i] * k.source.stride[i];
            at[1] += rest % k.size[i] * k.destination.stride[i];
        }
        bool begins = step == 0 || (!fills && at[0] != before[0] + k.packet_bytes) || at[1] != before[1] + k.packet_bytes;
        x.pieces += begins;
        x.unaligned += begins && (hbm[0] || hbm[1]) && at[hbm[0] ? 0 : 1] % 256 != 0;
        for (int i = fills; i < 2; i++)
            side_by_hand(&x, hbm[i], at[i], k.packet_bytes, i == 1);
        int64_t chip[] = {hbm[0] ? at[0] >> 36 & 3 : at[0] / (512 * slice) & 3, hbm[1] ? at[1] >> 36 & 3 : at[1] / (512 * slice) & 3};
        int end = !fills && !hbm[0] ? 0 : !hbm[1] ? 1 : -1;
        x.engines[end < 0 ? chip[fills] * 8 : at[end] / (64 * slice) % 32]++;
        x.links[chip[1]] += !fills && chip[0] != chip[1] ? k.packet_bytes : 0;
        memcpy(before, at, sizeof at);
    }
    out->pieces = x.pieces;
    out->unaligned_pieces = x.unaligned;
    out->partial_writes = x.partial_writes;
    out->piece_bytes = hbm[0] || hbm[1] ? k.packet_bytes * (steps / x.pieces) : 0;
    out->clusters = __builtin_popcountll(x.clusters);
    out->engine_steps = most_by_hand(x.engines, 64);
    out->dmn_cycles = most_by_hand(x.dmns, 64);
    out->hbm_cycles = (most_by_hand(x.channels, 128) + 999) / 1000;
    out->link_cycles = ceil_div(most_by_hand(x.links, 4), t->pcie_bytes_per_cycle);
    out->engines = 0;
    for (int i = 0; i < 64; i++)
        out->engines += x.engines[i] > 0;
}

/* What is counted by loops is what every step adds up to: loops that stay, that overlap, that go to other rows, slices, clusters and chips,
 * or run over the end of a slice. */
START_TEST(costs_by_hand)
{
    static const int64_t slice = 4 << 20, hbm_chip = INT64_C(1) << 36,
                         near[] = {0, 0, 8, 32, 64, 64, 256, 256, 512, 1024, 4096, 9216, 8192 + 32, 1 << 17},
                         rows[] = {1 << 20, 15 << 17, 1 << 21, 3 << 21, 1 << 25 | 1 << 9, 1 << 29, INT64_C(1) << 34},
                         packets[] = {8, 32, 64, 256, 512, 768, 96};
    const target *t = target_by_name("rngd");
    bench b;
    bench_init(&b);
    uint64_t r = 5;
    for (int n = 0; n < 4000; n++) {
        int64_t from = bench_pick(&r, 0, 2), to = bench_pick(&r, 0, 1), packet = packets[bench_pick(&r, 0, 6)], far = bench_pick(&r, 0, 2);
        int64_t hbm = (far ? bench_pick(&r, 0, 3) * (INT64_C(5) << 20) : 0) + bench_pick(&r, 0, 7) * (bench_pick(&r, 0, 1) ? 32 : 256);
        b.counts[CONTEXT_DMA] = 0;
        command *k = ADD(&b, CONTEXT_DMA, OP_DMA, from, to, 0, packet, from == 1 ? dm_base(&r) : hbm, to == 1 ? dm_base(&r) : hbm + 4096);
        for (int64_t loops = bench_pick(&r, 1, 6); loops > 0; loops--) {
            int64_t in_hbm = far && bench_pick(&r, 0, 3) == 0 ? rows[bench_pick(&r, 0, 6)] : near[bench_pick(&r, 0, 13)],
                    in_dm = bench_pick(&r, 0, 1) ? near[bench_pick(&r, 0, 13)] : slice << 3 * bench_pick(&r, 0, 2);
            bool chips = bench_pick(&r, 0, 9) == 0;
            in_hbm = loops == 1 && bench_pick(&r, 0, 1) ? packet : chips ? hbm_chip : in_hbm;
            in_dm = loops == 1 && bench_pick(&r, 0, 1) ? packet : chips ? 512 * slice : in_dm;
            ENTRY(k, bench_pick(&r, 1, chips ? 3 : 5), from == 1 ? in_dm : in_hbm, to == 1 ? in_dm : in_hbm);
        }
        dma_cost counted, hand;
        ck_assert(dma_cost_of(t, k, &counted));
        hand = counted;
        cost_by_hand(t, k, &hand);
        same_cost(&counted, &hand);
    }
    bench_free(&b);
}
END_TEST

/* A copy of more than 2^20 steps is looked at up to there, which is no end of a loop. */
START_TEST(cost_in_proportion)
{
    const target *t = target_by_name("rngd");
    bench b;
    dma_cost d, hand;
    bench_init(&b);
    command *k = ADD(&b, CONTEXT_DMA, OP_DMA, 0, 1, 0, 64, 32, 0);
    ENTRY(k, 7, 1 << 23, INT64_C(256) * (4 << 20));
    ENTRY(k, 100, 0, 4 << 20);
    ENTRY(k, 6, 9216 + 16, 4096);
    ENTRY(k, 1000, 64, 64);
    ck_assert(dma_cost_of(t, k, &d));
    ck_assert_int_eq(d.steps, 4200000);
    ck_assert_int_lt(d.looks, 30000);
    hand = d;
    cost_by_hand(t, k, &hand);
    ck_assert_int_eq(d.unaligned_pieces, hand.unaligned_pieces);
    ck_assert_int_eq(d.hbm_cycles, hand.hbm_cycles * d.steps / d.walked);
    ck_assert_int_eq(d.engine_steps, hand.engine_steps * d.steps / d.walked);
    ck_assert_int_eq(d.dmn_cycles, hand.dmn_cycles * d.steps / d.walked);
    ck_assert_int_eq(d.pieces, hand.pieces * d.steps / d.walked);
    bench_free(&b);
}
END_TEST

/* The longest run of accesses to one of the 16 banks of 8 bytes, each access looked at. */
static int64_t streak_by_hand(const command *k, int64_t bits, int64_t bytes, int64_t base)
{
    int64_t run[16] = {0}, longest = 0, positions = 1;
    for (unsigned i = 0; i < k->entry_count; i++)
        positions *= k->entries[i][0];
    for (int64_t p = 0; p < positions; p += bytes * 8 / bits) {
        int64_t address = base, rest = p, banks = 0;
        for (unsigned i = k->entry_count; i-- > 0; rest /= k->entries[i][0])
            address += rest % k->entries[i][0] * k->entries[i][1] * bits / 8;
        for (int64_t at = address / 8; at <= (address + bytes - 1) / 8 && address >= 0; at++)
            banks |= 1 << at % 16;
        for (int bank = 0; bank < 16; bank++) {
            run[bank] = banks >> bank & 1 ? run[bank] + 1 : 0;
            longest = run[bank] > longest ? run[bank] : longest;
        }
    }
    return longest < 64 ? longest : 64;
}

START_TEST(streaks_by_hand)
{
    static const int64_t strides[] = {0, 32, 64, 96, 128, -64, -128, 256, 384, 4096, 40, 1024}, sizes[] = {1, 2, 3, 4, 5, 8, 16, 37};
    const target *t = target_by_name("rngd");
    bench b;
    bench_init(&b);
    uint64_t r = 5;
    int long_ones = 0;
    for (int i = 0; i < 20000; i++) {
        b.counts[CONTEXT_MAIN] = 0;
        bool wide = bench_pick(&r, 0, 1);
        int64_t bytes = bench_pick(&r, 0, 2) ? 32 : 8, base = bench_pick(&r, 0, 3) * 8 + bench_pick(&r, 0, 1) * 8192, bits = wide ? 16 : 8;
        command *k = ADD(&b, CONTEXT_MAIN, OP_COMMIT, base, wide ? DTYPE_BF16 : DTYPE_I8, bytes, bytes, 0);
        for (int64_t loops = bench_pick(&r, 0, 3); loops > 0; loops--)
            ENTRY(k, sizes[bench_pick(&r, 0, 7)], strides[bench_pick(&r, 0, 11)] * 8 / bits);
        ENTRY(k, bytes * 8 / bits * sizes[bench_pick(&r, 0, 7)], 1);
        int64_t found = dm_bank_streak(t, k, 64);
        ck_assert_int_eq(found, streak_by_hand(k, bits, bytes, base));
        long_ones += found > 2 && found < 64;
    }
    ck_assert_int_gt(long_ones, 500);
    bench_free(&b);
}
END_TEST

START_TEST(stores_take_their_fetch)
{
    for (int main_context = 0; main_context < 2; main_context++) {
        bench b;
        schedule s;
        bench_init(&b);
        context c = main_context ? CONTEXT_MAIN : CONTEXT_SUB;
        ADD(&b, c, OP_UNITS, UNIT_0);
        add_store(&b, c, &(store_shape){TRF_FULL, 4, 6, 0, 8, true});
        add_store(&b, c, &(store_shape){TRF_FULL, 8, 2, 0, 32, false});
        made(&b, &s);
        ck_assert_int_eq(s.items[0].end, 24 * 4);
        ck_assert_int_eq(s.cycles, 24 * 4 + STORE_STAGES + 16);
        ck_assert_int_eq(s.items[0].writes.flits, 24);
        ck_assert_int_eq(s.items[1].writes.flits, 16);
        bench_free(&b);
    }
}
END_TEST

/* ---- refusals ---- */

static void refused(bench *b, diag_id id, const char *words)
{
    schedule s;
    ck_assert(!make(b, &s));
    ck_assert_uint_eq(b->diags.count, 1);
    ck_assert_int_eq(b->diags.items[0]->id, id);
    ck_assert_ptr_nonnull(strstr(b->diags.items[0]->message, words));
    bench_free(b);
}

START_TEST(faults_are_reported)
{
    bench b;
    bench_init(&b);
    ADD(&b, CONTEXT_MAIN, OP_WAIT, CONTEXT_SUB, 1);
    ADD(&b, CONTEXT_SUB, OP_WAIT, CONTEXT_MAIN, 1);
    refused(&b, E_RUN_DEADLOCK, "cycle 0");
    bench_init(&b);
    add_dma(&b, 64, 32, false);
    ADD(&b, CONTEXT_DMA, OP_WAIT, CONTEXT_DMA, 2);
    refused(&b, E_RUN_DEADLOCK, "cycle 532");
    bench_init(&b);
    add_store(&b, CONTEXT_SUB, &(store_shape){TRF_FULL, 8, 2, 0, 8, false});
    refused(&b, E_RUN_CHAIN, "no units command");
    bench_init(&b);
    ADD(&b, CONTEXT_SUB, OP_UNITS, UNIT_0);
    ADD(&b, CONTEXT_SUB, OP_COLLECT, DTYPE_BF16, 1, 16);
    refused(&b, E_RUN_CHAIN, "does not begin a chain");
    bench_init(&b);
    command *k = add_dma(&b, 4096, 65536, false);
    for (int i = 0; i < 2; i++)
        ENTRY(k, 65536, 0, 0);
    refused(&b, E_RUN_LIMIT, "2^40");
}
END_TEST

/* 64 reads in a row of one place starve a copy that runs at the same time: they do not overlap. */
START_TEST(one_bank_holds_the_dma)
{
    for (int64_t stride = 0; stride <= 16; stride += 16) {
        bench b;
        schedule s;
        bench_init(&b);
        ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
        command *k = ADD(&b, CONTEXT_MAIN, OP_FETCH, 0, DTYPE_BF16, DTYPE_BF16, 32, 16);
        ENTRY(k, 128, stride);
        ENTRY(k, 16, 1);
        ADD(&b, CONTEXT_MAIN, OP_COLLECT, DTYPE_BF16, 1, 16);
        k = ADD(&b, CONTEXT_MAIN, OP_COMMIT, 1 << 17, DTYPE_BF16, 32, 32);
        ENTRY(k, 128, 16);
        ENTRY(k, 16, 1);
        add_dma(&b, 64, 32, false);
        made(&b, &s);
        ck_assert_int_eq(s.items[0].bank_streak, stride ? 2 : 64);
        ck_assert_int_eq(s.items[1].start, stride ? 0 : 128);
        ck_assert_int_eq(s.cycles, stride ? 532 : 128 + 532);
        analysis x;
        analysis_make(&s, b.arena, &x);
        ck_assert_int_eq(x.places[1].predecessor, stride ? NO_PREDECESSOR : 0);
        ck_assert(x.places[0].critical == !stride);
        bench_free(&b);
    }
}
END_TEST

/* The row's number of accesses is the first that starves, and only where the documented machine is timed: a schedule of published durations
 * knows of no banks. */
START_TEST(starving_begins_at_the_row)
{
    const target *t = target_by_name("rngd");
    for (int64_t less = 0; less < 2; less++)
        for (timing_preset preset = TIMING_DOCUMENTED; preset <= TIMING_SCHEDULE; preset++) {
            bench b;
            schedule s;
            bench_init(&b);
            ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
            command *k = ADD(&b, CONTEXT_MAIN, OP_FETCH, 0, DTYPE_BF16, DTYPE_BF16, 32, 16);
            int64_t reads = t->dm_starving_accesses - 1 - less; /* and one write */
            ENTRY(k, reads, 0);
            ENTRY(k, 16, 1);
            ADD(&b, CONTEXT_MAIN, OP_COLLECT, DTYPE_BF16, 1, 16);
            k = ADD(&b, CONTEXT_MAIN, OP_COMMIT, 1 << 17, DTYPE_BF16, 32, 32);
            ENTRY(k, reads, 16);
            ENTRY(k, 16, 1);
            add_dma(&b, 64, 32, false);
            ck_assert(!make(&b, &s) || s.count > 0); /* fills in the kernel */
            ck_assert(schedule_make(t, &b.kernel, preset, b.arena, &b.diags, &s));
            bool holds = !less && preset == TIMING_DOCUMENTED;
            ck_assert_uint_eq(s.count, 2);
            const schedule_item *starving = &s.items[s.items[0].commands->op == OP_DMA],
                                *copy = &s.items[s.items[0].commands->op != OP_DMA];
            ck_assert_int_eq(starving->bank_streak, t->dm_starving_accesses - less);
            ck_assert_int_eq(starving->holds_dma, holds);
            ck_assert_int_eq(s.starves, holds);
            ck_assert(!copy->holds_dma);
            ck_assert(preset != TIMING_DOCUMENTED || holds == (copy->start >= starving->end || starving->start >= copy->end));
            bench_free(&b);
        }
}
END_TEST

/* Either walk may leave every memory: nobody follows the other one then, and the run says what is wrong. */
START_TEST(walks_that_leave_memory_are_not_followed)
{
    enum { SOURCE = 1, DESTINATION = 2 };
    for (int outside = 0; outside <= (SOURCE | DESTINATION); outside++) {
        bench b;
        schedule s;
        bench_init(&b);
        command *k = ADD(&b, CONTEXT_DMA, OP_DMA, 0, 1, 0, 64, 0, 1 << 18);
        ENTRY(k, 32, outside & SOURCE ? -64 : 64, outside & DESTINATION ? -(1 << 20) : 64);
        made(&b, &s);
        ck_assert_uint_eq(s.count, 1);
        const dma_cost *cost = &s.items[0].alone.dma;
        ck_assert_int_eq(cost->steps, 32);
        ck_assert_int_eq(cost->walked, outside ? 0 : 32);
        ck_assert_int_eq(cost->pieces, outside ? 0 : 1);
        ck_assert_int_eq(cost->requests, 32);
        bench_free(&b);
    }
}
END_TEST

/* The rows' own transfers take what they say, those between two rows what lies between in proportion: half way here. */
START_TEST(published_transfers_and_those_between)
{
    static const struct {
        bool loads;
        int64_t piece_bytes, cycles;
    } cases[] = {
        {true, 16, 792},
        {true, 64, 707},
        {true, 2000, 1905},
        {true, 40, (792 + 707 + 1) / 2},
        {true, 1032, (707 + 1905) / 2},
        {true, 2024, (1905 + 1673) / 2},
        {false, 2, 93634},
        {false, 16, 9132},
        {false, 9, (93634 + 9132) / 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench b;
        schedule s;
        bench_init(&b);
        bool loads = cases[i].loads;
        int64_t piece = cases[i].piece_bytes, pitch = (piece + 7) / 8 * 8, apart = 8192; /* no two pieces touch in HBM */
        command *k = ADD(&b, CONTEXT_DMA, OP_DMA, !loads, loads, 0, piece, 0, 0);
        ENTRY(k, 256, loads ? apart : pitch, loads ? pitch : apart);
        made(&b, &s); /* fills in the kernel */
        ck_assert(schedule_make(target_by_name("rngd"), &b.kernel, TIMING_SCHEDULE, b.arena, &b.diags, &s));
        ck_assert_uint_eq(s.count, 1);
        ck_assert_msg(s.items[0].alone.total == cases[i].cycles, "%s of 256 x %lld bytes: %lld cycles, wanted %lld",
                      loads ? "load" : "store", (long long)piece, (long long)s.items[0].alone.total, (long long)cases[i].cycles);
        bench_free(&b);
    }
}
END_TEST

/* The first block of a store costs nothing but the start, each further one as much as the last. */
START_TEST(published_stores_of_blocks)
{
    int64_t total[4];
    for (int blocks = 1; blocks <= 3; blocks++) {
        bench b;
        schedule s;
        bench_init(&b);
        command *k = ADD(&b, CONTEXT_DMA, OP_DMA, 1, 0, 0, 256, 0, 0);
        ENTRY(k, blocks, 256, 8192);
        made(&b, &s);
        ck_assert(schedule_make(target_by_name("rngd"), &b.kernel, TIMING_SCHEDULE, b.arena, &b.diags, &s));
        total[blocks] = s.items[0].alone.total;
        ck_assert_int_ge(total[blocks], s.items[0].alone.fill);
        ck_assert(blocks > 1 || total[1] == s.items[0].alone.fill);
        bench_free(&b);
    }
    ck_assert_int_gt(total[2], total[1]);
    ck_assert_int_le(labs(total[3] - 2 * total[2] + total[1]), 1);
}
END_TEST

/* Nothing to do takes no time. */
START_TEST(an_empty_kernel)
{
    bench b;
    schedule s;
    bench_init(&b);
    made(&b, &s);
    ck_assert_int_eq(s.cycles, 0);
    ck_assert_uint_eq(s.count, 0);
    const char *text = report_make(target_by_name("rngd"), &b.kernel, &(report_options){.format = REPORT_TEXT}, b.arena, &b.diags);
    ck_assert_ptr_nonnull(strstr(text, "kernel k: 0 cycles"));
    bench_free(&b);
}
END_TEST

/* ---- a clock that ticks ---- */

enum { CLOCK_ITEMS = 32 };

/* What the clock knows of an item: the shapes it was made from. */
typedef struct clock_item {
    size_t first, count; /* commands of its context */
    int64_t left;        /* cycles; -1: a store of the sub context */
    bool is_reader, is_apart;
    trf_reads reads;
    trf_writes writes;
    int64_t start, end;
} clock_item;

typedef struct clock_lane {
    clock_item items[CLOCK_ITEMS];
    size_t count, next, done;
    bool runs;
} clock_lane;

typedef struct ticking {
    bench *b;
    clock_lane lanes[3];
    trf_model trf;
    uint64_t state;
} ticking;

static clock_item *tick_item(ticking *t, context c, int64_t left)
{
    clock_lane *l = &t->lanes[c];
    clock_item *item = &l->items[l->count++];
    *item = (clock_item){.first = t->b->counts[c], .left = left};
    return item;
}

static void random_contraction(ticking *t)
{
    uint64_t *r = &t->state;
    contraction_shape s = {(trf_address)bench_pick(r, 0, 2),
                           INT64_C(1) << bench_pick(r, 0, 3),
                           INT64_C(1) << bench_pick(r, 3, 6),
                           bench_pick(r, 1, 40),
                           bench_pick(r, 1, 6),
                           0,
                           0,
                           INT64_C(8) << bench_pick(r, 0, 2),
                           INT64_C(8) << bench_pick(r, 0, 2),
                           (sum_form)bench_pick(r, 0, 2)};
    int64_t unit = most(s.read_bytes, 16 << bench_pick(r, 0, 3)); /* 40 x 128 twice stays in the smallest half */
    s.tiling_stride = unit * bench_pick(r, 0, 1);
    s.packet_stride = s.packets * unit <= 3000 ? unit * bench_pick(r, 0, 1) : 0;
    clock_item *item = tick_item(t, CONTEXT_MAIN, contraction_alone(&s));
    add_contraction(t->b, &s);
    item->count = t->b->counts[CONTEXT_MAIN] - item->first;
    item->is_reader = true;
    item->reads = (trf_reads){.view = {s.mode, s.rows}, .read_bytes = s.read_bytes, .tiling = s.tiling, .delay = 1};
    item->reads.period = most(most(2, 64 / s.access_bytes), s.tiling);
    item->reads.table = (walk){.count = 2, .size = {s.packets, s.tiling}, .stride = {s.packet_stride, s.tiling_stride}};
}

static void random_store(ticking *t, bool apart)
{
    uint64_t *r = &t->state;
    store_shape s = {(trf_address)bench_pick(r, 0, 2),
                     INT64_C(1) << bench_pick(r, 0, 3),
                     bench_pick(r, 1, 30),
                     0,
                     bench_pick(r, 0, 1) ? 8 : 32,
                     bench_pick(r, 0, 1)};
    s.base = 32 * bench_pick(r, 0, 9);
    clock_item *item = tick_item(t, CONTEXT_SUB, -1);
    add_store(t->b, CONTEXT_SUB, &s);
    item->count = t->b->counts[CONTEXT_SUB] - item->first;
    item->is_apart = apart;
    item->writes = (trf_writes){.view = {s.mode, s.rows},
                                .base = s.base,
                                .flits_per_row = s.flits_per_row,
                                .flits = s.rows * s.flits_per_row,
                                .delay = s.is_short ? 0 : STORE_STAGES,
                                .cycles_per_flit = 32 / s.access_bytes};
}

/* 64 bytes at a time from address 0 on: 4 in a block of 256, 32 channels in turn, 1.325 cycles each. */
static int64_t channel_cycles(int64_t packets)
{
    int64_t busiest = packets / 128 * 4 + (packets % 128 < 4 ? packets % 128 : 4);
    return (busiest * 1325 + 999) / 1000;
}

static void random_copy(ticking *t)
{
    int64_t packets = bench_pick(&t->state, 1, 500);
    clock_item *item = tick_item(t, CONTEXT_DMA, 500 + most(packets, channel_cycles(packets)));
    add_dma(t->b, 64, packets, false);
    item->count = 1;
}

static void random_wait(ticking *t, context c)
{
    context other = (context)bench_pick(&t->state, 0, 2);
    if (other != c && bench_pick(&t->state, 0, 1))
        ADD(t->b, c, OP_WAIT, other, bench_pick(&t->state, 1, 9));
}

static void random_kernel(ticking *t)
{
    bool apart = bench_pick(&t->state, 0, 4) == 0;
    ADD(t->b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
    ADD(t->b, CONTEXT_SUB, OP_UNITS, 1, 1, apart ? 6 : 3, 0, 0, 0);
    for (int i = 0; i < 3; i++) {
        random_wait(t, CONTEXT_MAIN);
        random_contraction(t);
        for (int k = 0; k < 2; k++) {
            random_wait(t, CONTEXT_SUB);
            random_store(t, apart);
            random_wait(t, CONTEXT_DMA);
            random_copy(t);
        }
    }
}

static void tick_begin(ticking *t, int c, int64_t now)
{
    clock_item *item = &t->lanes[c].items[t->lanes[c].next];
    t->lanes[c].runs = true;
    item->start = now;
    if (item->is_reader)
        trf_model_reads(&t->trf, &item->reads);
    if (item->left < 0) {
        trf_model_writes(&t->trf, &item->writes);
        t->trf.apart = item->is_apart;
    }
}

static void tick_begin_all(ticking *t, int64_t now)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int c = 0; c < 3; c++) {
            clock_lane *l = &t->lanes[c];
            if (l->runs || l->done == t->b->counts[c])
                continue;
            const command *k = &t->b->commands[c][l->done];
            if (k->op == OP_WAIT && t->lanes[command_get(k, WAIT_CONTEXT)].done < (size_t)command_get(k, WAIT_COUNT))
                continue;
            moved = true;
            if (k->op == OP_WAIT || k->op == OP_UNITS)
                l->done++;
            else
                tick_begin(t, c, now);
        }
    }
}

/* One cycle; false: nothing runs. */
static bool tick(ticking *t, int64_t now)
{
    bool any = false;
    trf_model_cycle(&t->trf);
    for (int c = 0; c < 3; c++) {
        clock_lane *l = &t->lanes[c];
        clock_item *item = &l->items[l->next];
        if (!l->runs)
            continue;
        any = true;
        if (item->left < 0 ? t->trf.has_writes : --item->left > 0)
            continue;
        item->end = now + 1;
        l->done += item->count;
        l->next++;
        l->runs = false;
    }
    return any;
}

static const schedule_item *item_at(const schedule *s, int c, const command *first)
{
    for (size_t i = 0; i < s->count; i++)
        if ((int)s->items[i].context == c && s->items[i].commands == first)
            return &s->items[i];
    return NULL;
}

static void compare(const ticking *t, const schedule *s, int64_t end)
{
    size_t items = 0;
    int64_t stalls = 0, held = 0;
    for (int c = 0; c < 3; c++)
        for (size_t i = 0; i < t->lanes[c].count; i++) {
            const clock_item *want = &t->lanes[c].items[i];
            const schedule_item *got = item_at(s, c, &t->b->commands[c][want->first]);
            ck_assert_ptr_nonnull(got);
            ck_assert_int_eq(want->start, got->start);
            ck_assert_int_eq(want->end, got->end);
            stalls += got->writes.stall_cycles;
            held += got->held_stall_cycles;
            if (want->left < 0)
                ck_assert_int_eq(got->end - got->start, got->alone.total + got->writes.late_cycles);
            items++;
        }
    ck_assert_uint_eq(items, s->count);
    ck_assert_int_eq(stalls, held);
    ck_assert_int_eq(end, s->cycles);
}

START_TEST(random_command_streams)
{
    unsigned complete = 0, deadlocks = 0, stalled = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        bench b;
        schedule s;
        bench_init(&b);
        ticking *t = calloc(1, sizeof *t);
        ck_assert_ptr_nonnull(t);
        t->b = &b;
        t->state = seed * UINT64_C(0x9e3779b97f4a7c15);
        random_kernel(t);
        int64_t now = 0;
        for (tick_begin_all(t, now); tick(t, now); tick_begin_all(t, ++now))
            ;
        bool done = true;
        for (int c = 0; c < 3; c++)
            done &= t->lanes[c].done == b.counts[c];
        if (!done) {
            ck_assert(!make(&b, &s));
            ck_assert_int_eq(b.diags.items[0]->id, E_RUN_DEADLOCK);
            deadlocks++;
        } else {
            made(&b, &s);
            compare(t, &s, now);
            complete++;
            for (size_t i = 0; i < s.count; i++)
                stalled += s.items[i].writes.late_cycles > 0;
        }
        free(t);
        bench_free(&b);
    }
    ck_assert_uint_gt(complete, 100);
    ck_assert_uint_gt(deadlocks, 20);
    ck_assert_uint_gt(stalled, 100);
}
END_TEST

/* ---- the example ---- */

static json_t *report_json_of(const char *kernel)
{
    char path[4096];
    const char *root_folder = getenv("VISA_SOURCE");
    snprintf(path, sizeof path, "%s/examples/double_buffer.vm", root_folder ? root_folder : ".");
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    static char text[1 << 16];
    size_t bytes = fread(text, 1, sizeof text, file), size;
    fclose(file);
    visa_compilation *c = visa_compile(path, text, bytes, NULL);
    const unsigned char *data;
    ck_assert(visa_emit(c, VISA_EMIT_BINARY, &data, &size));
    arena *a = arena_new();
    diag_list diags;
    diag_list_init(&diags, a);
    binary b;
    ck_assert(binary_read(data, size, a, &diags, &b));
    const char *report = report_make(b.target, binary_kernel_by_name(&b, kernel), &(report_options){.format = REPORT_JSON}, a, &diags);
    ck_assert_ptr_nonnull(report);
    json_t *root = json_loads(report, 0, NULL);
    ck_assert_ptr_nonnull(root);
    arena_free(a);
    visa_free(c);
    return root;
}

static int64_t get(const json_t *o, const char *key)
{
    const json_t *value = json_object_get(o, key);
    ck_assert_msg(json_is_integer(value), "no number %s", key);
    return json_integer_value(value);
}

/* The number `number`th item of a context. */
static const json_t *nth(const json_t *report, const char *name, int number)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(report, "items"), i,
                       item) if (strcmp(json_string_value(json_object_get(item, "context")), name) == 0 && number-- == 0) return item;
    ck_abort_msg("no such item");
}

START_TEST(double_buffering)
{
    json_t *serial = report_json_of("serial"), *halves = report_json_of("halves"), *resident = report_json_of("resident");
    /* Pinned: the second store waits for the reads. */
    ck_assert_int_eq(get(nth(serial, "sub", 1), "start"), get(nth(serial, "main", 0), "end"));
    /* Two halves: neither waits for the other. */
    ck_assert_int_eq(get(nth(halves, "sub", 1), "start"), get(nth(halves, "main", 0), "start"));
    ck_assert_int_eq(get(nth(resident, "sub", 1), "start"), get(nth(resident, "main", 0), "start"));
    ck_assert_int_lt(get(nth(resident, "sub", 1), "end"), get(nth(resident, "main", 0), "end"));
    /* 8 blocks of K, each 4 lines of both columns, once. */
    const json_t *reads = json_object_get(nth(resident, "main", 0), "trf_read");
    ck_assert_int_eq(get(reads, "reads"), 8 * 32 * 4);
    ck_assert_int_eq(get(reads, "column_misses"), 8 * 4 * 2);
    ck_assert_int_eq(get(reads, "column_hits"), 2 * 1024 - 64);
    const json_t *store = json_object_get(nth(resident, "sub", 1), "trf_store");
    ck_assert_int_eq(get(store, "flits"), 256);
    ck_assert_int_eq(get(store, "stall_cycles"), get(reads, "held_stall_cycles"));
    /* From the first layer to the end of the second: what double buffering saves. */
    int64_t before = get(nth(serial, "main", 1), "end") - get(nth(serial, "main", 0), "start");
    int64_t after = get(nth(resident, "main", 1), "end") - get(nth(resident, "main", 0), "start");
    ck_assert_int_eq(before, 2576);
    ck_assert_int_eq(after, 1680);
    ck_assert_int_eq(get(halves, "cycles"), get(serial, "cycles") - 13);
    /* The flits that wait in `resident` are those for which the next one is still on its way: none is late. */
    ck_assert_int_gt(get(store, "stall_cycles"), 0);
    ck_assert_int_eq(get(store, "late_cycles"), 0);
    json_decref(serial);
    json_decref(halves);
    json_decref(resident);
}
END_TEST

int main(void)
{
    TCase *cases = suite_case("schedule");
    suite_tests(cases, formulas_of_chains, formulas_of_dma, worked_copies, rows_of_a_bank, engines_of_a_copy, partial_writes,
                stores_take_their_fetch, faults_are_reported, one_bank_holds_the_dma, starving_begins_at_the_row,
                walks_that_leave_memory_are_not_followed, published_transfers_and_those_between, published_stores_of_blocks,
                an_empty_kernel, random_command_streams, costs_by_hand, cost_in_proportion, remembered_costs, streaks_by_hand,
                double_buffering);
    return suite_status("schedule", cases);
}
