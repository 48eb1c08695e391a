/* Multiplications per second of the simulated machine on one core, next to a packet loop written by hand.
 *
 * The one idea: a matmul as its commands (fetch, align, contract, accumulate, commit) in some slices, every
 * packet full; only machine_run is timed. `visa-run` adds files, ports and the check to this.
 *
 * Prints one JSON object a line: {"name": .., "macs": .., "ns": ..}; bench/sections/machine.py makes a table of rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/packet_loop.h"
#include "runtime/machine/machine.h"

enum { SLICES = 16, POISON = 0xa5, WEIGHT_PORT = 0, OUT_ADDRESS = 448 << 10, MOST_COMMANDS = 16 };

typedef struct shape {
    const char *name;
    dtype type, cast; /* cast: the type that is committed; the accumulator's: none */
    int64_t rows;
    int64_t packets; /* of 64 bytes: what one sum takes */
    int64_t tiles;   /* groups of Rows that meet each packet */
    int64_t vectors; /* m */
} shape;

static const shape shapes[] = {
    {"i8 K=8192 N=8 M=48", DTYPE_I8, DTYPE_I8, 8, 128, 1, 48},       {"i8 K=1024 N=8 M=256", DTYPE_I8, DTYPE_I8, 8, 16, 1, 256},
    {"i8 K=1024 N=64 M=256", DTYPE_I8, DTYPE_I8, 8, 16, 8, 256},     {"i8 K=64 N=8 M=4096", DTYPE_I8, DTYPE_I8, 8, 1, 1, 4096},
    {"i8 K=16384 N=4 M=24", DTYPE_I8, DTYPE_I8, 4, 256, 1, 24},      {"i8 K=8192 N=8 M=1", DTYPE_I8, DTYPE_I8, 8, 128, 1, 1},
    {"i4 K=16384 N=8 M=48", DTYPE_I4, DTYPE_I8, 8, 128, 1, 48},      {"bf16 K=4096 N=8 M=48", DTYPE_BF16, DTYPE_BF16, 8, 128, 1, 48},
    {"bf16 K=512 N=8 M=256", DTYPE_BF16, DTYPE_BF16, 8, 16, 1, 256}, {"bf16 K=512 N=64 M=256", DTYPE_BF16, DTYPE_BF16, 8, 16, 8, 256},
    {"bf16 K=32 N=8 M=4096", DTYPE_BF16, DTYPE_BF16, 8, 1, 1, 4096}, {"f8e4m3 K=8192 N=8 M=48", DTYPE_F8E4M3, DTYPE_BF16, 8, 128, 1, 48},
};

typedef struct kernel {
    arena *arena;
    binary_kernel binary;
    command commands[MOST_COMMANDS];
    port ports[2];
} kernel;

static command *add(kernel *k, command_op op, const int64_t *fields, size_t count)
{
    command *c = &k->commands[k->binary.streams[CONTEXT_MAIN].count++];
    *c = (command){.op = op, .context = CONTEXT_MAIN};
    memcpy(c->fields, fields, count * sizeof *fields);
    return c;
}
#define ADD(k, op, ...) add((k), (op), (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static void entry(command *c, const int64_t *columns, size_t count)
{
    memcpy(c->entries[c->entry_count++], columns, count * sizeof *columns);
}
#define ENTRY(c, ...) entry((c), (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static layout plain(arena *a, int64_t size)
{
    uint64_t *word = ARENA_NEW(a, uint64_t);
    *word = LAYOUT_WORD(LAYOUT_BROADCAST, size);
    return (layout){word, 1};
}

static void add_port(kernel *k, port_space space, dtype type, int64_t rows, int64_t elements)
{
    port *p = &k->ports[k->binary.port_count++];
    *p = (port){.name = "p", .space = space, .direction = PORT_IN, .dtype = type};
    p->mapping[COMPONENT_CHIP] = plain(k->arena, 1);
    p->mapping[COMPONENT_CLUSTER] = plain(k->arena, 1);
    p->mapping[COMPONENT_SLICE] = plain(k->arena, SLICES);
    if (space == PORT_TRF)
        p->mapping[COMPONENT_ROW] = plain(k->arena, rows);
    p->mapping[COMPONENT_ELEMENT] = plain(k->arena, elements);
}

/* for m: for packets of K: for tiles: sum over the packets. */
static void kernel_make(kernel *k, const shape *s)
{
    *k = (kernel){.arena = arena_new()};
    k->binary = (binary_kernel){.name = "k", .ports = k->ports};
    k->binary.streams[CONTEXT_MAIN].commands = k->commands;
    int64_t bits = dtype_row_of(s->type)->bits, lanes = 512 / bits, elements = s->vectors * s->packets * lanes;
    dtype sum = dtype_row_of(s->type)->accumulates_in;
    int64_t out_bits = dtype_row_of(s->cast)->bits, out = 8 * out_bits / 8 < 8 ? 8 : 8 * out_bits / 8;
    add_port(k, PORT_TRF, s->type, s->rows, s->tiles * s->packets * lanes);
    add_port(k, PORT_DM, s->type, 1, elements);
    ADD(k, OP_UNITS, 1, 1, (INT64_C(1) << SLICES) - 1, 0, 0, 0);
    command *fetch = ADD(k, OP_FETCH, 0, s->type, s->type, 32, lanes);
    ENTRY(fetch, elements, 1);
    ADD(k, OP_COLLECT, s->type, 2, lanes);
    ADD(k, OP_ALIGN, 2, s->rows, s->type, s->tiles, s->vectors * s->packets);
    command *read = ADD(k, OP_TRF_READ, TRF_FULL, s->rows, dtype_row_of(s->type)->trf_reg_type, 64, 0, s->type);
    ENTRY(read, s->tiles, s->packets * 64);
    ENTRY(read, s->packets, 64);
    ENTRY(read, s->vectors, 0);
    ADD(k, OP_CONTRACT, s->type, dtype_row_of(s->type)->max_tree_depth, 1);
    command *sums = ADD(k, OP_ACCUMULATE, 0, s->rows, 1, s->tiles);
    ENTRY(sums, s->vectors, 0, 0);
    ENTRY(sums, s->packets, 1, 0);
    ENTRY(sums, s->tiles, 0, 1);
    if (s->cast != sum)
        ADD(k, OP_CAST, sum, s->cast);
    command *commit = ADD(k, OP_COMMIT, OUT_ADDRESS, s->cast, out, out);
    ENTRY(commit, s->vectors * s->tiles, 0); /* all to one place: the DM holds the operands */
    ENTRY(commit, out * 8 / out_bits, 1);
    k->binary.streams[CONTEXT_MAIN].commands = k->commands;
}

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void fill(unsigned char *bytes, int64_t size, dtype type)
{
    uint32_t state = 12345;
    for (int64_t i = 0; i < size; i++) {
        state = state * 1664525 + 1013904223;
        bytes[i] = (unsigned char)(state >> 24);
        if (type == DTYPE_BF16 && i % 2) /* between 0.5 and 2 */
            bytes[i] = (unsigned char)((bytes[i] & 0x80) | 0x3f);
        if (type == DTYPE_F8E4M3)
            bytes[i] &= 0xbf;
    }
}

static bool write_port(machine *m, uint32_t number, dtype type, diag_list *diags)
{
    int64_t size = machine_port_bytes(m, number);
    unsigned char *bytes = size > 0 ? malloc((size_t)size) : NULL;
    if (!bytes)
        return false;
    fill(bytes, size, type);
    bool done = machine_port_write(m, number, bytes, (size_t)size, diags);
    free(bytes);
    return done;
}

static bool measure(const shape *s, cpu_level level, int warm)
{
    kernel k;
    kernel_make(&k, s);
    diag_list diags;
    diag_list_init(&diags, k.arena);
    machine_options options = {.poison = POISON, .threads = 1, .cpu = level};
    machine *m = machine_new(target_by_name("rngd"), &k.binary, k.arena, &options);
    bool done = write_port(m, 0, s->type, &diags) && write_port(m, 1, s->type, &diags);
    double begin = cpu_ns();
    done = done && machine_run(m, &diags);
    double ns = cpu_ns() - begin;
    double macs = (double)SLICES * (double)(s->vectors * s->packets * s->tiles * s->rows * (512 / dtype_row_of(s->type)->bits));
    if (done && !warm)
        printf("{\"name\": \"%s\", \"level\": \"%s\", \"macs\": %.0f, \"ns\": %.0f}\n", s->name, cpu_level_name(level), macs, ns);
    for (size_t i = 0; i < diags.count; i++)
        fprintf(stderr, "bench_machine: %s: %s\n", s->name, diags.items[i]->message);
    machine_free(m);
    arena_free(k.arena);
    return done;
}

/* Of i8 and bf16; more narrow types are widened to one of them, as the machine does. */
static void measure_by_hand(const shape *s, cpu_level level)
{
    bool is_float = s->type == DTYPE_BF16;
    if (!is_float && s->type != DTYPE_I8)
        return;
    packet_shape p = {is_float, SLICES, s->rows, s->tiles, s->packets, s->vectors};
    packet_loop *l = packet_loop_new(level, &p);
    if (!l)
        return;
    packet_loop_run(l);
    double begin = cpu_ns();
    packet_loop_run(l);
    double ns = cpu_ns() - begin;
    double macs = (double)SLICES * (double)(s->vectors * s->packets * s->tiles * s->rows * (512 / dtype_row_of(s->type)->bits));
    printf("{\"name\": \"%s\", \"level\": \"%s by hand\", \"macs\": %.0f, \"ns\": %.0f}\n", s->name, cpu_level_name(level), macs, ns);
    packet_loop_free(l);
}

static bool is_there(cpu_level level, const shape *s)
{
    return level == CPU_BEST || cpu_has(level, dtype_row_of(s->type)->accumulates_in == DTYPE_F32);
}

/* bench_machine [LEVEL [SHAPE TIMES]]: all shapes once, or those with SHAPE in their names, so often, each in turns with its loop by hand.
 */
int main(int argc, char **argv)
{
    cpu_level level = CPU_BEST;
    if (argc > 1 && !cpu_level_named(argv[1], &level)) {
        fprintf(stderr, "bench_machine: no level `%s`\n", argv[1]);
        return 2;
    }
    int times = argc > 3 ? atoi(argv[3]) : 1;
    bool done = true;
    for (size_t i = 0; done && i < sizeof shapes / sizeof *shapes; i++)
        for (int j = 0; done && j < times && is_there(level, &shapes[i]) && (argc < 3 || strstr(shapes[i].name, argv[2])); j++) {
            done = measure(&shapes[i], level, 1) && measure(&shapes[i], level, 0);
            measure_by_hand(&shapes[i], level);
        }
    return done ? 0 : 1;
}
