/* A realistic binary, made by hand: out[M, N] = sum over K of a[M, K] * b[N, K], M = 32, N = 8, K = 32, in
 * bf16. */
#ifndef VISA_TEST_BINARY_SAMPLE_BINARY_H
#define VISA_TEST_BINARY_SAMPLE_BINARY_H

#include <string.h>

#include "codegen/container.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* The file of a binary that is here as a whole. */
static inline bool sample_write(const binary *b, arena *a, diag_list *list, const unsigned char **bytes, size_t *size)
{
    binary_writer *w = binary_writer_new(b->target, a, list);
    bool good = true;
    for (size_t i = 0; i < b->kernel_count && good; i++)
        good = binary_writer_kernel(w, &b->kernels[i], a);
    for (size_t i = 0; i < b->program_count && good; i++)
        good = binary_writer_program(w, &b->programs[i], a);
    return good && binary_writer_finish(w, bytes, size);
}

typedef struct sample_builder {
    arena *arena;
    command *commands;
    size_t count, capacity;
} sample_builder;

static inline command *sample_add(sample_builder *s, context where, command_op op, uint32_t line)
{
    command c = {.op = op, .context = where, .line = line};
    ARENA_PUSH(s->arena, s->commands, s->count, s->capacity, c);
    return &s->commands[s->count - 1];
}

static inline void sample_entry(command *c, int64_t first, int64_t second, int64_t third)
{
    c->entries[c->entry_count][0] = first;
    c->entries[c->entry_count][1] = second;
    c->entries[c->entry_count++][2] = third;
}

static inline void sample_wait(sample_builder *s, context where, context other, int64_t count)
{
    command *c = sample_add(s, where, OP_WAIT, 0);
    command_set(c, WAIT_CONTEXT, other);
    command_set(c, WAIT_COUNT, count);
}

static inline void sample_units(sample_builder *s, context where)
{
    command *c = sample_add(s, where, OP_UNITS, 0);
    command_set(c, UNITS_CHIPS, 1);
    command_set(c, UNITS_CLUSTERS, 1);
    command_set(c, UNITS_SLICES_0, 1);
}

static inline void sample_dma_copy(sample_builder *s, bool to_dm, int64_t from, int64_t to, int64_t rows, uint32_t line)
{
    command *c = sample_add(s, CONTEXT_DMA, OP_DMA, line);
    command_set(c, DMA_SOURCE, !to_dm);
    command_set(c, DMA_DESTINATION, to_dm);
    command_set(c, DMA_PACKET_BYTES, 64);
    command_set(c, DMA_SOURCE_BASE, from);
    command_set(c, DMA_DESTINATION_BASE, to);
    sample_entry(c, rows, 64, 64);
}

static inline void sample_dma(sample_builder *s)
{
    sample_dma_copy(s, true, 0, 0, 32, 6);
    sample_dma_copy(s, true, 2048, 4096, 8, 7);
    sample_wait(s, CONTEXT_DMA, CONTEXT_MAIN, 12);
    sample_dma_copy(s, false, 8192, 1 << 20, 8, 24);
}

static inline void sample_fetch(sample_builder *s, context where, int64_t base, int64_t rows, uint32_t line)
{
    command *c = sample_add(s, where, OP_FETCH, line);
    command_set(c, FETCH_BASE, base);
    command_set(c, FETCH_DTYPE_IN, DTYPE_BF16);
    command_set(c, FETCH_DTYPE_OUT, DTYPE_BF16);
    command_set(c, FETCH_ACCESS_BYTES, where == CONTEXT_SUB ? 8 : 32);
    command_set(c, FETCH_PACKET_ELEMENTS, 32);
    sample_entry(c, rows, 32, 0);
    sample_entry(c, 32, 1, 0);
    c = sample_add(s, where, OP_COLLECT, line + 1);
    command_set(c, COLLECT_DTYPE, DTYPE_BF16);
    command_set(c, COLLECT_FLITS, 2);
    command_set(c, COLLECT_PACKET_ELEMENTS, 32);
}

static inline void sample_sub(sample_builder *s)
{
    sample_wait(s, CONTEXT_SUB, CONTEXT_DMA, 2);
    sample_units(s, CONTEXT_SUB);
    sample_fetch(s, CONTEXT_SUB, 4096, 8, 11);
    command *c = sample_add(s, CONTEXT_SUB, OP_TRF_STORE, 13);
    command_set(c, TRF_STORE_ADDRESS, TRF_FULL);
    command_set(c, TRF_STORE_ROWS, 8);
    command_set(c, TRF_STORE_REG_TYPE, 3);
    command_set(c, TRF_STORE_FLITS_PER_ROW, 2);
}

static inline void sample_contraction(sample_builder *s)
{
    command *c = sample_add(s, CONTEXT_MAIN, OP_ALIGN, 18);
    command_set(c, ALIGN_COLLECT_FLITS, 2);
    command_set(c, ALIGN_ROWS, 8);
    command_set(c, ALIGN_DTYPE, DTYPE_BF16);
    command_set(c, ALIGN_TILING, 1);
    command_set(c, ALIGN_PACKETS, 32);
    c = sample_add(s, CONTEXT_MAIN, OP_TRF_READ, 18);
    command_set(c, TRF_READ_ROWS, 8);
    command_set(c, TRF_READ_REG_TYPE, 3);
    command_set(c, TRF_READ_SIZE, 64);
    sample_entry(c, 32, 0, 0);
    c = sample_add(s, CONTEXT_MAIN, OP_CONTRACT, 19);
    command_set(c, CONTRACT_DTYPE, DTYPE_BF16);
    command_set(c, CONTRACT_DEPTH, 5);
    command_set(c, CONTRACT_COLUMNS, 1);
    c = sample_add(s, CONTEXT_MAIN, OP_MASK, 0);
    command_set(c, MASK_LIMIT, 32);
    sample_entry(c, 1, 1, 32);
    c->entries[0][3] = 1;
    c = sample_add(s, CONTEXT_MAIN, OP_ACCUMULATE, 20);
    command_set(c, ACCUMULATE_ROWS, 8);
    command_set(c, ACCUMULATE_COLUMNS, 1);
    command_set(c, ACCUMULATE_SLOTS, 1);
    sample_entry(c, 32, 0, 0);
}

static inline void sample_main(sample_builder *s)
{
    sample_wait(s, CONTEXT_MAIN, CONTEXT_SUB, 5);
    sample_wait(s, CONTEXT_MAIN, CONTEXT_DMA, 1);
    sample_units(s, CONTEXT_MAIN);
    sample_fetch(s, CONTEXT_MAIN, 0, 32, 16);
    sample_contraction(s);
    command *c = sample_add(s, CONTEXT_MAIN, OP_CAST, 21);
    command_set(c, CAST_FROM, DTYPE_F32);
    command_set(c, CAST_TO, DTYPE_BF16);
    c = sample_add(s, CONTEXT_MAIN, OP_COMMIT, 22);
    command_set(c, COMMIT_BASE, 8192);
    command_set(c, COMMIT_DTYPE, DTYPE_BF16);
    command_set(c, COMMIT_IN_BYTES, 16);
    command_set(c, COMMIT_BYTES, 16);
    sample_entry(c, 32, 8, 0);
    sample_entry(c, 8, 1, 0);
}

/* The offsets that the reader fills in, so that a written binary and its reading compare equal. */
static inline void sample_offsets(arena *a, command *commands, size_t count)
{
    diag_list found;
    uint64_t *words = NULL;
    size_t word_count = 0, capacity = 0;
    diag_list_init(&found, a);
    for (size_t i = 0; i < count; i++) {
        commands[i].offset = (uint32_t)(word_count * 8);
        command_encode(&commands[i], a, &words, &word_count, &capacity, &found, SRC_NOWHERE);
    }
}

static inline void sample_streams(arena *a, binary_kernel *k)
{
    static void (*const makers[3])(sample_builder *) = {sample_main, sample_sub, sample_dma};
    for (int where = 0; where < 3; where++) {
        sample_builder s = {.arena = a};
        makers[where](&s);
        sample_offsets(a, s.commands, s.count);
        k->streams[where].commands = s.commands;
        k->streams[where].count = s.count;
    }
}

enum { SAMPLE_M, SAMPLE_N, SAMPLE_K };

static const layout_axis sample_axes[] = {{"M", 32}, {"N", 8}, {"K", 32}};
static const uint64_t sample_one[] = {LAYOUT_WORD(LAYOUT_BROADCAST, 1)};
static const uint64_t sample_mk[] = {LAYOUT_WORD(LAYOUT_AXIS, SAMPLE_M), LAYOUT_WORD(LAYOUT_AXIS, SAMPLE_K), LAYOUT_WORD(LAYOUT_PAIR, 0)};
static const uint64_t sample_nk[] = {LAYOUT_WORD(LAYOUT_AXIS, SAMPLE_N), LAYOUT_WORD(LAYOUT_AXIS, SAMPLE_K), LAYOUT_WORD(LAYOUT_PAIR, 0)};
static const uint64_t sample_mn[] = {LAYOUT_WORD(LAYOUT_AXIS, SAMPLE_M), LAYOUT_WORD(LAYOUT_AXIS, SAMPLE_N), LAYOUT_WORD(LAYOUT_PAIR, 0)};

#define SAMPLE_HBM(chip, element) \
    { \
        [COMPONENT_CHIP] = {chip, 1}, [COMPONENT_ELEMENT] = { element, 3 } \
    }

static const port sample_ports[] = {
    {.name = "a", .dtype = DTYPE_BF16, .mapping = SAMPLE_HBM(sample_one, sample_mk)},
    {.name = "b", .dtype = DTYPE_BF16, .address = 2048, .mapping = SAMPLE_HBM(sample_one, sample_nk)},
    {.name = "out", .direction = PORT_OUT, .dtype = DTYPE_BF16, .address = 1 << 20, .mapping = SAMPLE_HBM(sample_one, sample_mn)},
};

static const uint32_t sample_axes_mk[] = {SAMPLE_M, SAMPLE_K}, sample_axes_nk[] = {SAMPLE_N, SAMPLE_K},
                      sample_axes_mn[] = {SAMPLE_M, SAMPLE_N};
static const einsum_tensor sample_tensors[] = {
    {"a", DTYPE_BF16, 0, 2, sample_axes_mk},
    {"b", DTYPE_BF16, 1, 2, sample_axes_nk},
    {"%0", DTYPE_BF16, -1, 2, sample_axes_mn},
    {"out", DTYPE_BF16, 2, 2, sample_axes_mn},
};
static const einsum_digit sample_digits[] = {{SAMPLE_M, true, 1, 32, 0, 0, 0, 0},
                                             {SAMPLE_N, true, 1, 8, 0, 0, 0, 0},
                                             {SAMPLE_K, false, 16, 2, 0, 0, 0, 0},
                                             {SAMPLE_K, false, 1, 16, 0, 0, 0, 0}};
static const einsum_statement sample_statements[] = {
    {.op = MATH_CONTRACT,
     .dst = 2,
     .sources = {0, 1},
     .source_count = 2,
     .accumulator = DTYPE_F32,
     .digit_count = 4,
     .digits = sample_digits},
    {.op = MATH_COPY, .dst = 3, .sources = {2}, .source_count = 1, .accumulator = DTYPE_BF16, .digit_count = 2, .digits = sample_digits},
};

static inline binary_kernel *sample_kernel(arena *a, const char *name)
{
    binary_kernel *k = ARENA_NEW(a, binary_kernel);
    k->name = name;
    k->axes = sample_axes;
    k->axis_count = COUNT_OF(sample_axes);
    k->ports = sample_ports;
    k->port_count = COUNT_OF(sample_ports);
    sample_streams(a, k);
    k->einsum = (einsum){sample_axes,
                         COUNT_OF(sample_axes),
                         sample_tensors,
                         COUNT_OF(sample_tensors),
                         sample_statements,
                         COUNT_OF(sample_statements),
                         "MK,NK->MN; MN->MN",
                         NULL,
                         0,
                         NULL};
    return k;
}

static inline binary sample_binary(arena *a)
{
    return (binary){.target = target_by_name("rngd"), .kernels = sample_kernel(a, "matmul"), .kernel_count = 1};
}

/* The example of docs/format.md: 16 elements of i16 from HBM address 0 to 4096. */
static const layout_axis sample_copy_axes[] = {{"A", 16}};
static const uint64_t sample_copy_a[] = {LAYOUT_WORD(LAYOUT_AXIS, 0)};
static const port sample_copy_ports[] = {
    {.name = "x", .dtype = DTYPE_I16, .mapping = {[COMPONENT_CHIP] = {sample_one, 1}, [COMPONENT_ELEMENT] = {sample_copy_a, 1}}},
    {.name = "out",
     .direction = PORT_OUT,
     .dtype = DTYPE_I16,
     .address = 4096,
     .mapping = {[COMPONENT_CHIP] = {sample_one, 1}, [COMPONENT_ELEMENT] = {sample_copy_a, 1}}},
};
static const uint32_t sample_copy_rank[] = {0};
static const einsum_tensor sample_copy_tensors[] = {{"x", DTYPE_I16, 0, 1, sample_copy_rank}, {"out", DTYPE_I16, 1, 1, sample_copy_rank}};
static const einsum_digit sample_copy_digits[] = {{0, true, 1, 16, 0, 0, 0, 0}};
static const einsum_statement sample_copy_statement = {
    .op = MATH_COPY, .dst = 1, .sources = {0}, .source_count = 1, .accumulator = DTYPE_I16, .digit_count = 1, .digits = sample_copy_digits};

static inline binary sample_copy_binary(arena *a)
{
    command *c = ARENA_NEW(a, command);
    binary_kernel *k = ARENA_NEW(a, binary_kernel);
    *c = (command){.op = OP_DMA, .context = CONTEXT_DMA, .line = 5};
    command_set(c, DMA_PACKET_BYTES, 32);
    command_set(c, DMA_DESTINATION_BASE, 4096);
    sample_entry(c, 1, 0, 0);
    *k = (binary_kernel){.name = "copy",
                         .axes = sample_copy_axes,
                         .axis_count = 1,
                         .ports = sample_copy_ports,
                         .port_count = 2,
                         .streams[CONTEXT_DMA] = {c, 1}};
    k->einsum = (einsum){sample_copy_axes, 1, sample_copy_tensors, 2, &sample_copy_statement, 1, "A->A", NULL, 0, NULL};
    return (binary){.target = target_by_name("rngd"), .kernels = k, .kernel_count = 1};
}

#endif
