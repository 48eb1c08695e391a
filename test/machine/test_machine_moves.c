/* The stages that only move elements, on the machine: what the Transpose Engine and the Switch Engine refuse of a command, and what they
 * give at the edge of it. */
#include "test/machine/bench_fixture.h"

/* ---- transfers inside one memory: packet after packet, each read before it is written ---- */

START_TEST(transfers_onto_themselves)
{
    enum { BYTES = 2048, AT = 512, COUNT = 16 };
    for (int64_t packet = 8; packet <= 64; packet += 8)
        for (int64_t shift = -72; shift <= 72; shift += 8) {
            unsigned char wanted[BYTES], found[BYTES], packet_bytes[64];
            for (int i = 0; i < BYTES; i++)
                wanted[i] = (unsigned char)(i / 8 ^ i << 5);
            bench_reset();
            uint32_t in = bench_hbm(&b, PORT_IN, 1, 0, BYTES), out = bench_hbm(&b, PORT_OUT, 1, 0, BYTES);
            ENTRY(ADD(&b, CONTEXT_DMA, OP_DMA, 0, 0, 0, packet, AT, AT + shift), COUNT, packet, packet);
            bench_build(&b);
            bench_write(&b, in, wanted, BYTES);
            bench_run(&b);
            bench_read(&b, out, found, BYTES);
            for (int64_t i = 0; i < COUNT; i++) {
                memcpy(packet_bytes, wanted + AT + i * packet, (size_t)packet);
                memcpy(wanted + AT + shift + i * packet, packet_bytes, (size_t)packet);
            }
            ck_assert_mem_eq(found, wanted, BYTES);
        }
}
END_TEST

/* ---- transpose: packets of one flit on stream ports ---- */

enum { FLIT_BYTES = 32, MOST_FLITS = 64 };

typedef struct transpose_case {
    dtype type;
    int64_t valid, rows, flits, columns, packets; /* the command's numbers, and flits that come */
    const char *words;                            /* of the refusal; NULL: legal */
} transpose_case;

static const transpose_case transpose_cases[] = {
    {DTYPE_I8, 8, 4, 2, 16, 8, NULL},
    {DTYPE_I8, 8, 4, 2, 17, 8, "a block has 4 rows of 8-bit elements and gives 17 of its 16 columns"},
    {DTYPE_I8, 8, 4, 2, 3, 16, NULL}, /* two blocks, of which 3 columns leave */
    {DTYPE_I8, 8, 8, 1, 8, 8, NULL},
    {DTYPE_I8, 8, 9, 1, 8, 9, "a block has 9 rows of 8-bit elements"},
    {DTYPE_I4, 16, 16, 2, 32, 32, NULL},
    {DTYPE_I4, 8, 4, 2, 16, 8, "no block of 4-bit elements has rows of 2 flits, 8 elements each"},
    {DTYPE_BF16, 16, 4, 2, 32, 8, NULL},
    {DTYPE_BF16, 16, 5, 1, 16, 5, "a block has 5 rows of 16-bit elements"},
    {DTYPE_I16, 16, 4, 4, 32, 16, "no block of 16-bit elements has rows of 4 flits, 16 elements each"},
    {DTYPE_I32, 8, 2, 4, 32, 8, NULL},
    {DTYPE_I32, 16, 2, 1, 8, 2, "no block of 32-bit elements has rows of 1 flit, 16 elements each"},
    {DTYPE_I32, 8, 3, 1, 8, 3, "a block has 3 rows of 32-bit elements"},
    {DTYPE_I8, 8, 4, 2, 16, 12, "12 flits arrive, which are no blocks of 8"},
};

static unsigned code_at(const unsigned char *bytes, int64_t index, unsigned bits)
{
    unsigned code = 0;
    if (bits == 4)
        return bytes[index / 2] >> index % 2 * 4 & 15u;
    memcpy(&code, bytes + index * (bits / 8), bits / 8);
    return code;
}

START_TEST(transposes)
{
    const transpose_case *k = &transpose_cases[_i];
    unsigned bits = dtype_row_of(k->type)->bits;
    int64_t elements = FLIT_BYTES * 8 / bits, block = k->rows * k->flits, blocks = k->packets / block;
    bench_stream(&b, PORT_IN, k->type, 1, k->packets, elements);
    bench_stream(&b, PORT_OUT, k->type, 1, blocks * k->columns, elements);
    ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_IN, 0, (int64_t)k->type, 1, elements, k->packets);
    ADD(&b, CONTEXT_MAIN, OP_COLLECT, (int64_t)k->type, 1, elements);
    ADD(&b, CONTEXT_MAIN, OP_TRANSPOSE, (int64_t)k->type, k->valid, k->rows, k->flits, k->columns);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_OUT, 1, (int64_t)k->type, 1, elements, blocks * k->columns);
    if (k->words) {
        bench_fails(&b, E_RUN_CHAIN, k->words);
        return;
    }
    unsigned char in[MOST_FLITS * FLIT_BYTES], out[MOST_FLITS * FLIT_BYTES];
    uint64_t random = 7;
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (unsigned char)bench_random(&random);
    bench_build(&b);
    bench_write(&b, 0, in, (size_t)k->packets * FLIT_BYTES);
    bench_run(&b);
    bench_read(&b, 1, out, (size_t)(blocks * k->columns) * FLIT_BYTES);
    for (int64_t at = 0; at < blocks * k->columns; at++)
        for (int64_t row = 0; row < k->rows; row++) {
            int64_t column = at % k->columns, flit = at / k->columns * block + row * k->flits + column / k->valid;
            ck_assert_uint_eq(code_at(out + at * FLIT_BYTES, row, bits), code_at(in + flit * FLIT_BYTES, column % k->valid, bits));
        }
}
END_TEST

START_TEST(transpose_takes_the_streams_type)
{
    bench_stream(&b, PORT_IN, DTYPE_I8, 1, 8, 32);
    bench_stream(&b, PORT_OUT, DTYPE_F8E4M3, 1, 8, 32);
    ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_IN, 0, DTYPE_I8, 1, 32, 8);
    ADD(&b, CONTEXT_MAIN, OP_COLLECT, DTYPE_I8, 1, 32);
    ADD(&b, CONTEXT_MAIN, OP_TRANSPOSE, DTYPE_F8E4M3, 8, 8, 1, 8);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_OUT, 1, DTYPE_F8E4M3, 1, 32, 8);
    bench_fails(&b, E_RUN_CHAIN, "transpose: takes f8e4m3 elements, the stream has i8");
}
END_TEST

/* Of a flit that was cast from i32 to i8 the first 8 bytes are computed, of one that is turned those of its rows, where the columns that
 * leave were: only what commits these alone is proven not to depend on what memory is filled with. */
typedef struct filling_case {
    bool cast;
    int64_t valid, rows, flits, columns, bytes; /* bytes that are committed */
    bool proven;
} filling_case;

static const filling_case filling_cases[] = {
    {false, 8, 8, 1, 8, 8, true}, {false, 8, 8, 1, 8, 16, false}, {false, 8, 4, 1, 8, 8, false}, {false, 16, 8, 2, 32, 8, true},
    {true, 8, 8, 1, 8, 8, true},  {true, 16, 8, 1, 8, 8, true},   {true, 16, 8, 1, 9, 8, false}, {true, 16, 8, 1, 16, 8, false},
    {true, 16, 8, 2, 8, 8, true}, {true, 16, 8, 2, 17, 8, false},
};

START_TEST(transposed_filling_is_not_proven)
{
    enum { BLOCKS = 2, OUT = 8192 };
    const filling_case *k = &filling_cases[_i];
    dtype type = k->cast ? DTYPE_I32 : DTYPE_I8;
    int64_t elements = FLIT_BYTES * 8 / dtype_row_of(type)->bits, flits = BLOCKS * k->rows * k->flits,
            out_bytes = BLOCKS * k->columns * k->bytes;
    b.options.prove = true;
    uint32_t in = bench_dm(&b, PORT_IN, 0, flits * FLIT_BYTES), out = bench_dm(&b, PORT_OUT, OUT, out_bytes);
    ADD(&b, CONTEXT_MAIN, OP_UNITS, UNIT_0);
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_FETCH, 0, (int64_t)type, (int64_t)type, FLIT_BYTES, elements), flits * elements, 1);
    ADD(&b, CONTEXT_MAIN, OP_COLLECT, (int64_t)type, 1, elements);
    if (k->cast)
        ADD(&b, CONTEXT_MAIN, OP_CAST, DTYPE_I32, DTYPE_I8);
    ADD(&b, CONTEXT_MAIN, OP_TRANSPOSE, DTYPE_I8, k->valid, k->rows, k->flits, k->columns);
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_COMMIT, OUT, DTYPE_I8, k->bytes, 8), out_bytes, 1);
    bench_build(&b);
    unsigned char data[MOST_FLITS * FLIT_BYTES] = {1}, got[MOST_FLITS * FLIT_BYTES];
    bench_write(&b, in, data, (size_t)(flits * FLIT_BYTES));
    bench_run(&b);
    bench_read(&b, out, got, (size_t)out_bytes);
    ck_assert_int_eq(machine_is_proven(b.machine), k->proven);
}
END_TEST

/* ---- switch: packets of 8 bytes out of the DM of all slices of both clusters ---- */

enum { CLUSTERS = 2, SLICES = 256, DM_IN = 0, DM_OUT = 1 << 18, PACKET = 8, SNOOPS = 3, ALL = -1 };

typedef struct switch_case {
    topology topology;
    int64_t ring, slice1, slice0, time0, packets; /* of each slice */
    int64_t grows;                                /* packets that leave for one that comes */
    int64_t digits[SNOOPS][4];                    /* snoop: div, size, weight, moved; size 0: none */
    const char *words;
    int64_t senders, receivers; /* the first so many slices, below 64; 0: all */
} switch_case;

static const switch_case switch_cases[] = {
    {TOPOLOGY_FORWARDING, 1, 1, 1, 1, 4, 1, {{0}}, NULL, 0, 0},
    {TOPOLOGY_FORWARDING, 1, 1, 1, 1, 8193, 1, {{0}}, NULL, 3, 3}, /* more than a source is asked for at once */
    {TOPOLOGY_FORWARDING, 2, 2, 1, 1, 4, 1, {{0}}, "Forwarding of slice1 2, slice0 1 and time0 1 has no ring of 2 slices", 0, 0},
    {TOPOLOGY_BROADCAST1, 8, 2, 4, 1, 3, 2, {{0}}, NULL, 0, 0},
    {TOPOLOGY_BROADCAST1, 16, 2, 4, 1, 3, 2, {{0}}, "has no ring of 16 slices", 0, 0},
    {TOPOLOGY_BROADCAST1, 4, 2, 4, 1, 3, 2, {{0}}, "has no ring of 4 slices", 0, 0},
    {TOPOLOGY_BROADCAST1, 256, 256, 1, 1, 3, 256, {{0}}, NULL, 0, 0},
    {TOPOLOGY_BROADCAST1, 512, 256, 2, 1, 3, 256, {{0}}, "has no ring of 512 slices", 0, 0},
    {TOPOLOGY_BROADCAST1, 8, 2, 4, 2, 4, 2, {{0}}, "slice0 4 and time0 2 has no ring", 0, 0},
    {TOPOLOGY_TRANSPOSE, 8, 2, 4, 2, 4, 1, {{0}}, "slice0 4 and time0 2 has no ring", 0, 0},
    {TOPOLOGY_TRANSPOSE, 8, 2, 4, 1, 4, 1, {{0}}, NULL, 0, 0},
    {TOPOLOGY_TRANSPOSED_BROADCAST1, 8, 2, 4, 1, 3, 4, {{0}}, NULL, 0, 0},
    {TOPOLOGY_TRANSPOSED_BROADCAST1, 8, 2, 4, 3, 3, 4, {{0}}, "slice0 4 and time0 3 has no ring", 0, 0},
    {TOPOLOGY_BROADCAST01, 8, 2, 4, 3, 6, 8, {{0}}, NULL, 0, 0},
    {TOPOLOGY_BROADCAST01, 8, 2, 4, 3, 4, 8, {{0}}, "4 packets in each slice are no blocks of 3", 0, 0},
    {TOPOLOGY_INTER_TRANSPOSE, 8, 2, 4, 3, 12, 1, {{0}}, NULL, 0, 0},
    {TOPOLOGY_INTER_TRANSPOSE, 8, 2, 4, 3, 9, 1, {{0}}, "9 packets in each slice are no blocks of 6", 0, 0},
    /* Every slice copies those of its pair, of 2 slices that are 16 apart, of all in its row of 16, of 4 slices by two digits. */
    {TOPOLOGY_CUSTOM, 2, 1, 1, 1, 3, 2, {{2, 128, 2, 0}, {1, 2, 1, 1}}, NULL, 0, 0},
    {TOPOLOGY_CUSTOM, 32, 1, 1, 1, 3, 2, {{32, 8, 32, 0}, {1, 2, 16, 1}, {1, 16, 1, 0}}, NULL, 0, 0},
    {TOPOLOGY_CUSTOM, 16, 1, 1, 1, 2, 16, {{16, 16, 16, 0}, {1, 16, 1, 1}}, NULL, 0, 0},
    {TOPOLOGY_CUSTOM, 256, 1, 1, 1, 2, 8, {{1, 2, 128, 1}, {4, 32, 4, 0}, {1, 4, 1, 1}}, NULL, 0, 0},
    {TOPOLOGY_CUSTOM, 256, 1, 1, 1, 1, 256, {{1, 256, 1, 1}}, NULL, 0, 0},
    /* Rings are for slices that send, numbers for those that receive. */
    {TOPOLOGY_CUSTOM, 16, 1, 1, 1, 3, 2, {{32, 8, 32, 0}, {1, 2, 16, 1}, {1, 16, 1, 0}}, NULL, 16, 16},
    {TOPOLOGY_CUSTOM,
     16,
     1,
     1,
     1,
     3,
     2,
     {{32, 8, 32, 0}, {1, 2, 16, 1}, {1, 16, 1, 0}},
     "slice 0 copies packets of slice 16, which is in another ring of 16 slices",
     17,
     16},
    {TOPOLOGY_CUSTOM, 64, 1, 1, 1, 1, 2, {{1, 256, 1, 0}, {1, 2, 1, 1}}, NULL, 0, 63},
    {TOPOLOGY_CUSTOM, 256, 1, 1, 1, 1, 2, {{1, 256, 1, 0}, {1, 2, 1, 1}}, "slice 255 does not copy the packets of 2 slices", 0, 0},
    {TOPOLOGY_CUSTOM, 256, 1, 1, 1, 1, 2, {{1, 2, 0, 1}}, "slice 0 does not copy the packets of 2 slices", 0, 0},
    {TOPOLOGY_CUSTOM, 256, 1, 1, 1, 1, 2, {{1, 2, 256, 1}}, "slice 0 does not copy the packets of 2 slices", 0, 0},
    {TOPOLOGY_CUSTOM, 256, 1, 1, 1, 1, 2, {{2, 2, 1, 1}}, "or a moved digit has a div", 0, 0},
    {TOPOLOGY_CUSTOM, 256, 1, 1, 1, 1, 1, {{1, 256, 1, 1}, {1, 2, 1, 1}}, "a slice copies the packets of more slices than there are", 0, 0},
    {TOPOLOGY_CUSTOM, 2, 2, 1, 1, 3, 2, {{2, 128, 2, 0}, {1, 2, 1, 1}}, "a CustomBroadcast has no slice1, slice0 and time0", 0, 0},
    {TOPOLOGY_CUSTOM, 2, 1, 2, 1, 3, 2, {{2, 128, 2, 0}, {1, 2, 1, 1}}, "a CustomBroadcast has no slice1, slice0 and time0", 0, 0},
    {TOPOLOGY_CUSTOM, 2, 1, 1, 3, 3, 2, {{2, 128, 2, 0}, {1, 2, 1, 1}}, "a CustomBroadcast has no slice1, slice0 and time0", 0, 0},
    {TOPOLOGY_CUSTOM, 2, 1, 1, 1, 3, 1, {{0}}, "lacks its snoop", 0, 0},
    {TOPOLOGY_BROADCAST1, 8, 2, 4, 1, 3, 2, {{2, 128, 2, 0}}, "is followed by snoop, which only a CustomBroadcast is", 0, 0},
};

/* Slice and step at which the packet went in that leaves in slice d at step u: the table of docs/engine/switch.md, digit by digit. */
static void origin(const switch_case *k, int64_t d, int64_t u, int64_t *slice, int64_t *step)
{
    int64_t s1 = k->slice1, s0 = k->slice0, t0 = k->time0, ring = d / (s1 * s0) * (s1 * s0), d1 = d / s0 % s1, d0 = d % s0;
    *slice = d, *step = u;
    if (k->topology == TOPOLOGY_BROADCAST1) { /* time, slice1 */
        *slice = ring + u % s1 * s0 + d0, *step = u / s1;
    } else if (k->topology == TOPOLOGY_TRANSPOSE) { /* slices: slice0, slice1 */
        *slice = ring + d % s1 * s0 + d % (s1 * s0) / s1;
    } else if (k->topology == TOPOLOGY_TRANSPOSED_BROADCAST1) { /* slices: new, slice1; time, slice0 */
        *slice = ring + d % s1 * s0 + u % s0, *step = u / s0;
    } else if (k->topology == TOPOLOGY_BROADCAST01) { /* time1, slice1, time0, slice0 */
        int64_t of_slice0 = u % s0, of_time0 = u / s0 % t0, of_slice1 = u / s0 / t0 % s1, of_time1 = u / s0 / t0 / s1;
        *slice = ring + of_slice1 * s0 + of_slice0, *step = of_time1 * t0 + of_time0;
    } else if (k->topology == TOPOLOGY_INTER_TRANSPOSE) { /* slices: time1, slice0; time2, time0, slice1 */
        int64_t of_slice1 = u % s1, of_time0 = u / s1 % t0, of_time2 = u / s1 / t0;
        *slice = ring + of_slice1 * s0 + d0, *step = (of_time2 * s1 + d1) * t0 + of_time0;
    }
}

/* The slices that a slice copies, in the order of their numbers: all digits are tried. */
static void copied_by(const switch_case *k, int64_t d, int64_t *slices)
{
    bool copied[SLICES] = {false};
    int64_t size[SNOOPS], count = 0;
    for (int i = 0; i < SNOOPS; i++)
        size[i] = k->digits[i][1] ? k->digits[i][1] : 1;
    for (int64_t i0 = 0; i0 < size[0]; i0++)
        for (int64_t i1 = 0; i1 < size[1]; i1++)
            for (int64_t i2 = 0; i2 < size[2]; i2++) {
                int64_t value[SNOOPS] = {i0, i1, i2}, s = 0;
                bool is = true;
                for (int i = 0; i < SNOOPS && k->digits[i][1]; i++) {
                    is = is && (k->digits[i][3] || value[i] == d / k->digits[i][0] % size[i]);
                    s += value[i] * k->digits[i][2];
                }
                if (is && s < SLICES)
                    copied[s] = true;
            }
    for (int64_t s = 0; s < SLICES; s++)
        if (copied[s])
            slices[count++] = s;
    ck_assert_int_eq(count, k->grows);
}

static void add_units(int64_t slices)
{
    if (slices)
        ADD(&b, CONTEXT_MAIN, OP_UNITS, 1, 3, (INT64_C(1) << slices) - 1, 0, 0, 0);
    else
        ADD(&b, CONTEXT_MAIN, OP_UNITS, 1, 3, ALL, ALL, ALL, ALL);
}

static void add_switch(const switch_case *k)
{
    int64_t first = k->receivers ? (int64_t)((UINT64_C(1) << k->receivers) - 1) : ALL, rest = k->receivers ? 0 : ALL;
    ADD(&b, CONTEXT_MAIN, OP_SWITCH, (int64_t)k->topology, k->ring, k->slice1, k->slice0, k->time0, first, rest, rest, rest);
    command *snoop = k->digits[0][1] ? bench_add(&b, CONTEXT_MAIN, OP_SNOOP, NULL, 0) : NULL;
    for (int i = 0; i < SNOOPS && k->digits[i][1]; i++)
        bench_entry(snoop, k->digits[i], 4);
}

START_TEST(switches)
{
    const switch_case *k = &switch_cases[_i];
    int64_t out = k->packets * k->grows, receivers = k->receivers ? k->receivers : SLICES, senders = k->senders ? k->senders : SLICES,
            held = k->senders ? k->senders + 1 : SLICES; /* one more has what it could send */
    for (int direction = 0; direction < 2; direction++) {
        port *p = bench_port(&b, PORT_DM, direction ? PORT_OUT : PORT_IN, DTYPE_I8);
        int64_t bytes = (direction ? out : k->packets) * PACKET;
        p->address = direction ? DM_OUT : DM_IN;
        p->mapping[COMPONENT_CLUSTER] = bench_layout(&b, CLUSTERS, CLUSTERS);
        p->mapping[COMPONENT_SLICE] = bench_layout(&b, direction ? receivers : held, direction ? receivers : held);
        p->mapping[COMPONENT_ELEMENT] = bench_layout(&b, bytes, bytes);
    }
    add_units(k->senders);
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_FETCH, DM_IN, DTYPE_I8, DTYPE_I8, PACKET, PACKET), k->packets * PACKET, 1);
    add_switch(k);
    ADD(&b, CONTEXT_MAIN, OP_COLLECT, DTYPE_I8, 1, PACKET);
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_COMMIT, DM_OUT, DTYPE_I8, PACKET, PACKET), out * PACKET, 1);
    if (k->words) {
        bench_fails(&b, E_RUN_CHAIN, k->words);
        return;
    }
    size_t in_bytes = (size_t)(CLUSTERS * held * k->packets * PACKET), out_bytes = (size_t)(CLUSTERS * receivers * out * PACKET);
    unsigned char *in = malloc(in_bytes), *found = malloc(out_bytes);
    uint64_t random = 11;
    for (size_t i = 0; i < in_bytes; i++)
        in[i] = (unsigned char)bench_random(&random);
    bench_build(&b);
    bench_write(&b, 0, in, in_bytes);
    bench_run(&b);
    bench_read(&b, 1, found, out_bytes);
    for (int64_t cluster = 0; cluster < CLUSTERS; cluster++)
        for (int64_t d = 0; d < receivers; d++) {
            int64_t copied[SLICES];
            if (k->topology == TOPOLOGY_CUSTOM)
                copied_by(k, d, copied);
            for (int64_t u = 0, slice, step; u < out; u++) {
                unsigned char nothing[PACKET];
                memset(nothing, BENCH_POISON, PACKET);
                origin(k, d, u, &slice, &step);
                if (k->topology == TOPOLOGY_CUSTOM) {
                    slice = copied[u % k->grows];
                    step = u / k->grows;
                }
                const unsigned char *sent = slice < senders ? in + ((cluster * held + slice) * k->packets + step) * PACKET : nothing;
                if (memcmp(found + ((cluster * receivers + d) * out + u) * PACKET, sent, PACKET) != 0)
                    ck_abort_msg("cluster %lld, slice %lld, step %lld: not the packet of slice %lld, step %lld", (long long)cluster,
                                 (long long)d, (long long)u, (long long)slice, (long long)step);
            }
        }
    free(in);
    free(found);
}
END_TEST

/* Packets of 24 bytes of 4-bit elements, which are no whole number of what a port takes at once. */
START_TEST(switched_packets_leave_whole)
{
    enum { FEW = 4, PACKETS = 400, PACKET_ELEMENTS = 48, PACKET_BYTES = 24 };
    static const switch_case k = {TOPOLOGY_BROADCAST1, 2, 2, 1, 1, PACKETS, 2, {{0}}, NULL, FEW, FEW};
    static unsigned char in[FEW * PACKETS * PACKET_BYTES], found[FEW * 2 * PACKETS * PACKET_BYTES];
    port *from = bench_port(&b, PORT_DM, PORT_IN, DTYPE_I4), *to = bench_port(&b, PORT_STREAM, PORT_OUT, DTYPE_I4);
    from->mapping[COMPONENT_SLICE] = to->mapping[COMPONENT_SLICE] = bench_layout(&b, FEW, FEW);
    from->mapping[COMPONENT_ELEMENT] = bench_layout(&b, PACKETS * PACKET_ELEMENTS, PACKETS * PACKET_ELEMENTS);
    to->mapping[COMPONENT_TIME] = bench_layout(&b, 2 * PACKETS, 2 * PACKETS);
    to->mapping[COMPONENT_PACKET] = bench_layout(&b, PACKET_ELEMENTS, PACKET_ELEMENTS);
    ADD(&b, CONTEXT_MAIN, OP_UNITS, 1, 1, (1 << FEW) - 1, 0, 0, 0);
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_FETCH, DM_IN, DTYPE_I4, DTYPE_I4, PACKET_BYTES / 3, PACKET_ELEMENTS), PACKETS * PACKET_ELEMENTS, 1);
    add_switch(&k);
    ADD(&b, CONTEXT_MAIN, OP_STREAM_OUT, 1, DTYPE_I4, 1, PACKET_ELEMENTS, 2 * PACKETS);
    uint64_t random = 5;
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (unsigned char)bench_random(&random);
    COMPUTE(&b, 1, found, BYTES_OF(0, in));
    for (int64_t d = 0; d < FEW; d++)
        for (int64_t u = 0; u < 2 * PACKETS; u++)
            ck_assert_mem_eq(found + (d * 2 * PACKETS + u) * PACKET_BYTES, in + ((d / 2 * 2 + u % 2) * PACKETS + u / 2) * PACKET_BYTES,
                             PACKET_BYTES);
}
END_TEST

START_TEST(exchanges_are_bounded)
{
    static const switch_case k = {TOPOLOGY_FORWARDING, 1, 1, 1, 1, 0, 1, {{0}}, NULL, 1, 1};
    add_units(1);
    command *fetch = ADD(&b, CONTEXT_MAIN, OP_FETCH, DM_IN, DTYPE_I8, DTYPE_I8, PACKET, PACKET);
    ENTRY(fetch, 65536, 0);
    ENTRY(fetch, 129, 0); /* times 8 bytes times 256 slices: past 2^34 */
    ENTRY(fetch, PACKET, 1);
    add_switch(&k);
    ADD(&b, CONTEXT_MAIN, OP_COLLECT, DTYPE_I8, 1, PACKET);
    command *commit = ADD(&b, CONTEXT_MAIN, OP_COMMIT, DM_OUT, DTYPE_I8, PACKET, PACKET);
    ENTRY(commit, 65536, 0);
    ENTRY(commit, 129, 0);
    ENTRY(commit, PACKET, 1);
    bench_fails(&b, E_RUN_LIMIT, "8454144 packets of 8 bytes in each slice are too many to be sent to other slices");
}
END_TEST

START_TEST(switched_packets_are_counted)
{
    static const switch_case k = {TOPOLOGY_BROADCAST1, 256, 256, 1, 1, 0, 256, {{0}}, NULL, 0, 0};
    add_units(0);
    command *fetch = ADD(&b, CONTEXT_MAIN, OP_FETCH, DM_IN, DTYPE_I8, DTYPE_I8, PACKET, PACKET);
    for (int i = 0; i < 7; i++) /* 2^56 packets, and 256 times as many */
        ENTRY(fetch, 256, 0);
    ENTRY(fetch, PACKET, 1);
    add_switch(&k);
    ADD(&b, CONTEXT_MAIN, OP_COLLECT, DTYPE_I8, 1, PACKET);
    ENTRY(ADD(&b, CONTEXT_MAIN, OP_COMMIT, DM_OUT, DTYPE_I8, PACKET, PACKET), PACKET, 1);
    bench_fails(&b, E_RUN_CHAIN, "switch: the number of packets overflows");
}
END_TEST

/* What a slice sends it reads: bytes that nobody wrote are in doubt, whoever receives them. */
START_TEST(switched_packets_were_written)
{
    enum { PACKETS = 4, FEW = 2, BYTES = PACKETS * PACKET };
    static const switch_case k = {TOPOLOGY_TRANSPOSE, 2, 2, 1, 1, PACKETS, 1, {{0}}, NULL, FEW, FEW};
    for (int64_t written = 1; written <= FEW; written++) {
        unsigned char data[FEW * BYTES] = {1};
        bench_reset();
        b.options.prove = true;
        port *from = bench_port(&b, PORT_DM, PORT_IN, DTYPE_I8), *to = bench_port(&b, PORT_DM, PORT_OUT, DTYPE_I8);
        from->mapping[COMPONENT_SLICE] = bench_layout(&b, written, written);
        to->mapping[COMPONENT_SLICE] = bench_layout(&b, FEW, FEW);
        from->mapping[COMPONENT_ELEMENT] = to->mapping[COMPONENT_ELEMENT] = bench_layout(&b, BYTES, BYTES);
        to->address = DM_OUT;
        ADD(&b, CONTEXT_MAIN, OP_UNITS, 1, 1, (1 << FEW) - 1, 0, 0, 0);
        ENTRY(ADD(&b, CONTEXT_MAIN, OP_FETCH, DM_IN, DTYPE_I8, DTYPE_I8, PACKET, PACKET), BYTES, 1);
        add_switch(&k);
        ADD(&b, CONTEXT_MAIN, OP_COLLECT, DTYPE_I8, 1, PACKET);
        ENTRY(ADD(&b, CONTEXT_MAIN, OP_COMMIT, DM_OUT, DTYPE_I8, PACKET, PACKET), BYTES, 1);
        bench_build(&b);
        bench_write(&b, 0, data, (size_t)(written * BYTES));
        bench_run(&b);
        bench_read(&b, 1, data, sizeof data);
        ck_assert_int_eq(machine_is_proven(b.machine), written == FEW);
    }
}
END_TEST

int main(void)
{
    TCase *transfers = suite_case_with("transfers", setup, teardown);
    suite_tests(transfers, transfers_onto_themselves);
    TCase *transpose = suite_case_with("transpose", setup, teardown);
    tcase_add_loop_test(transpose, transposes, 0, sizeof transpose_cases / sizeof *transpose_cases);
    suite_tests(transpose, transpose_takes_the_streams_type);
    tcase_add_loop_test(transpose, transposed_filling_is_not_proven, 0, sizeof filling_cases / sizeof *filling_cases);
    TCase *switching = suite_case_with("switch", setup, teardown);
    tcase_add_loop_test(switching, switches, 0, sizeof switch_cases / sizeof *switch_cases);
    suite_tests(switching, switched_packets_leave_whole, exchanges_are_bounded, switched_packets_are_counted,
                switched_packets_were_written);
    return suite_status("machine moves", transfers, transpose, switching);
}
