/* Hand-made kernels for the machine's tests: command streams written one line per command, ports from plain
 * sizes. */
#ifndef VISA_TEST_MACHINE_MACHINE_BENCH_H
#define VISA_TEST_MACHINE_MACHINE_BENCH_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/machine/machine.h"
#include "support/float_bits.h"

enum { BENCH_COMMANDS = 32, BENCH_PORTS = 8, BENCH_POISON = 0xa5 };

typedef struct bench {
    arena *arena;
    diag_list diags;
    command commands[3][BENCH_COMMANDS];
    size_t counts[3];
    port ports[BENCH_PORTS];
    uint32_t port_count;
    binary_kernel kernel;
    machine_options options;
    machine *machine;
} bench;

static inline void bench_init(bench *b)
{
    memset(b, 0, sizeof *b);
    b->arena = arena_new();
    diag_list_init(&b->diags, b->arena);
    b->options.poison = BENCH_POISON;
}

static inline void bench_free(bench *b)
{
    if (b->machine)
        machine_free(b->machine);
    arena_free(b->arena);
}

/* Appends a command whose fields, in the order of its rows, are the trailing values; those that are left out are 0. */
static inline command *bench_add(bench *b, context c, command_op op, const int64_t *fields, size_t count)
{
    size_t index = b->counts[c]++;
    ck_assert_uint_lt(index, BENCH_COMMANDS);
    ck_assert_uint_le(count, command_row_of(op)->field_count);
    command *k = &b->commands[c][index];
    *k = (command){.op = op, .context = c, .offset = (uint32_t)(0x10 * index), .line = (uint32_t)(100 + index)};
    if (count > 0)
        memcpy(k->fields, fields, count * sizeof *fields);
    return k;
}
#define ADD(b, c, op, ...) \
    bench_add((b), (c), (op), (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* Appends an entry: its columns in the order of its rows. */
static inline void bench_entry(command *k, const int64_t *columns, size_t count)
{
    ck_assert_uint_eq(count, command_row_of(k->op)->column_count);
    ck_assert_uint_lt(k->entry_count, COMMAND_MAX_ENTRIES);
    memcpy(k->entries[k->entry_count++], columns, count * sizeof *columns);
}
#define ENTRY(k, ...) bench_entry((k), (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

#define UNIT_0 1, 1, 1, 0, 0, 0

/* A mapping of `live` live positions padded to `size`. */
static inline layout bench_layout(bench *b, int64_t live, int64_t size)
{
    uint64_t *words = ARENA_ARRAY(b->arena, uint64_t, 2);
    words[0] = LAYOUT_WORD(LAYOUT_BROADCAST, live);
    words[1] = LAYOUT_WORD(LAYOUT_PAD, size);
    return (layout){words, size > live ? 2 : 1};
}

static inline port *bench_port(bench *b, port_space space, port_direction direction, dtype type)
{
    ck_assert_uint_lt(b->port_count, BENCH_PORTS);
    port *p = &b->ports[b->port_count++];
    *p = (port){.name = "p", .space = space, .direction = direction, .dtype = type};
    p->mapping[COMPONENT_CHIP] = bench_layout(b, 1, 1);
    if (space != PORT_HBM) {
        p->mapping[COMPONENT_CLUSTER] = bench_layout(b, 1, 1);
        p->mapping[COMPONENT_SLICE] = bench_layout(b, 1, 1);
    }
    return p;
}

static inline uint32_t bench_stream(bench *b, port_direction direction, dtype type, int64_t rows, int64_t steps, int64_t packet)
{
    port *p = bench_port(b, PORT_STREAM, direction, type);
    p->mapping[COMPONENT_ROW] = bench_layout(b, rows, rows);
    p->mapping[COMPONENT_TIME] = bench_layout(b, steps, steps);
    p->mapping[COMPONENT_PACKET] = bench_layout(b, packet, packet);
    return b->port_count - 1;
}

/* DM bytes [address, address + bytes) of slice 0 of chip 0, as an i8 port. */
static inline uint32_t bench_dm(bench *b, port_direction direction, int64_t address, int64_t bytes)
{
    port *p = bench_port(b, PORT_DM, direction, DTYPE_I8);
    p->address = address;
    p->mapping[COMPONENT_ELEMENT] = bench_layout(b, bytes, bytes);
    return b->port_count - 1;
}

static inline uint32_t bench_hbm(bench *b, port_direction direction, int64_t chips, int64_t address, int64_t bytes)
{
    port *p = bench_port(b, PORT_HBM, direction, DTYPE_I8);
    p->address = address;
    p->mapping[COMPONENT_CHIP] = bench_layout(b, chips, chips);
    p->mapping[COMPONENT_ELEMENT] = bench_layout(b, bytes, bytes);
    return b->port_count - 1;
}

static inline uint32_t bench_trf(bench *b, port_direction direction, dtype type, trf_address mode, int64_t rows, int64_t elements)
{
    port *p = bench_port(b, PORT_TRF, direction, type);
    p->trf_address = mode;
    p->mapping[COMPONENT_ROW] = bench_layout(b, rows, rows);
    p->mapping[COMPONENT_ELEMENT] = bench_layout(b, elements, elements);
    return b->port_count - 1;
}

/* The machine for what has been written so far. */
static inline void bench_build(bench *b)
{
    b->kernel = (binary_kernel){.name = "k", .ports = b->ports, .port_count = b->port_count};
    for (int c = 0; c < 3; c++) {
        b->kernel.streams[c].commands = b->commands[c];
        b->kernel.streams[c].count = b->counts[c];
    }
    b->machine = machine_new(target_by_name("rngd"), &b->kernel, b->arena, &b->options);
}

static inline void bench_explain(const bench *b)
{
    for (size_t i = 0; i < b->diags.count; i++)
        fprintf(stderr, "%s: %s\n", diag_row_of(b->diags.items[i]->id)->name, b->diags.items[i]->message);
}

static inline void bench_write(bench *b, uint32_t p, const void *bytes, size_t size)
{
    if (!machine_port_write(b->machine, p, bytes, size, &b->diags)) {
        bench_explain(b);
        ck_abort_msg("port %u cannot be written", p);
    }
}

static inline void bench_read(bench *b, uint32_t p, void *bytes, size_t size)
{
    if (!machine_port_read(b->machine, p, bytes, size, &b->diags)) {
        bench_explain(b);
        ck_abort_msg("port %u cannot be read", p);
    }
}

static inline void bench_run(bench *b)
{
    if (!machine_run(b->machine, &b->diags)) {
        bench_explain(b);
        ck_abort_msg("the run fails");
    }
}

/* Bytes of a port. */
typedef struct bench_bytes {
    uint32_t port;
    const void *bytes;
    size_t size;
} bench_bytes;
#define BYTES_OF(port, array) \
    (bench_bytes) \
    { \
        (port), (array), sizeof(array) \
    }

/* What the commands so far make of these bytes: `size` bytes of the port `out`. */
static inline void bench_compute(bench *b, const bench_bytes *given, size_t count, uint32_t out, void *bytes, size_t size)
{
    bench_build(b);
    for (size_t i = 0; i < count; i++)
        bench_write(b, given[i].port, given[i].bytes, given[i].size);
    bench_run(b);
    bench_read(b, out, bytes, size);
}
#define COMPUTE(b, out, got, ...) \
    bench_compute((b), (const bench_bytes[]){__VA_ARGS__}, sizeof((const bench_bytes[]){__VA_ARGS__}) / sizeof(bench_bytes), (out), (got), \
                  sizeof(got))

/* The run must fail with this diagnostic and these words. */
static inline void bench_fails(bench *b, diag_id id, const char *words)
{
    if (!b->machine)
        bench_build(b);
    ck_assert(!machine_run(b->machine, &b->diags));
    ck_assert_uint_eq(b->diags.count, 1);
    if (b->diags.items[0]->id != id || !strstr(b->diags.items[0]->message, words)) {
        bench_explain(b);
        ck_abort_msg("expected %s with \"%s\"", diag_row_of(id)->name, words);
    }
}

/* A small generator: the same numbers in every run. */
static inline uint64_t bench_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline int64_t bench_pick(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(bench_random(state) % (uint64_t)(high - low + 1));
}

static inline uint16_t bf16(float x)
{
    return (uint16_t)(f32_bits(x) >> 16); /* the tests use values that fit */
}

static inline int64_t dm_address(int64_t chip, int64_t cluster, int64_t slice, int64_t offset)
{
    return (((chip * 2 + cluster) * 256 + slice) << 22) + offset;
}

#endif
