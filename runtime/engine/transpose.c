/* Transpose Engine: a block of rows is held until it is whole, and leaves column by column. */
#include "runtime/engine/transpose.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/timing/duration.h"
#include "support/integer.h"

static bool transpose_sizes_legal(const transpose *k, const target *t, const command *c, const stream_shape *in, fault *f)
{
    int64_t columns = k->packets_per_col * k->valid, row_bits = k->in_rows * k->bits;
    bool four = k->bits == 4;
    if (k->bits * k->valid > t->flit_bytes * 8 || (four && k->valid != 16) || columns > t->transpose_columns)
        return fault_set(f, E_RUN_CHAIN, c, "no block of %u-bit elements has rows of %lld flits, %lld elements each", k->bits,
                         (long long)k->packets_per_col, (long long)k->valid);
    if (row_bits > t->transpose_row_bytes * 8 || k->out_rows > columns)
        return fault_set(f, E_RUN_CHAIN, c, "a block has %lld rows of %u-bit elements and gives %lld of its %lld columns",
                         (long long)k->in_rows, k->bits, (long long)k->out_rows, (long long)columns);
    if (in->packets % k->block_flits)
        return fault_set(f, E_RUN_CHAIN, c, "%lld flits arrive, which are no blocks of %lld", (long long)in->packets,
                         (long long)k->block_flits);
    return true;
}

/* Bytes of a flit that it reads: where fewer columns leave than a flit has, they are in the first flit of each row. */
static int64_t read_bytes(const transpose *k)
{
    return (smaller(k->out_rows, k->valid) * k->bits + 7) / 8;
}

static bool plan_transpose(stage *s, chain *c, fault *f)
{
    transpose *k = s->plan;
    const target *t = c->machine->target;
    const command *at = s->commands;
    dtype type = (dtype)command_get(at, TRANSPOSE_DTYPE);
    *k = (transpose){.bits = dtype_row_of(type)->bits,
                     .valid = command_get(at, TRANSPOSE_VALID_SIZE),
                     .in_rows = command_get(at, TRANSPOSE_IN_ROWS),
                     .packets_per_col = command_get(at, TRANSPOSE_PACKETS_PER_COL),
                     .out_rows = command_get(at, TRANSPOSE_OUT_ROWS),
                     .flit_bytes = t->flit_bytes};
    k->block_flits = k->in_rows * k->packets_per_col;
    if (type != s->in.dtype)
        return fault_set(f, E_RUN_CHAIN, at, "takes %s elements, the stream has %s", dtype_row_of(type)->name,
                         dtype_row_of(s->in.dtype)->name);
    if (!transpose_sizes_legal(k, t, at, &s->in, f))
        return false;
    s->out = s->in;
    s->out.form = STREAM_BEATS;
    s->out.packets = s->in.packets / k->block_flits * k->out_rows;
    s->out.computed_bytes = read_bytes(k) <= s->in.computed_bytes ? k->in_rows * k->bits / 8 : 0;
    return true;
}

typedef struct transpose_run {
    unsigned char *block;  /* flits that are here of the block at hand */
    unsigned char *turned; /* out_rows flits; bytes after the elements keep the poison */
    int64_t held;          /* flits */
} transpose_run;

static bool transpose_run_new(stage_run *r)
{
    const transpose *k = r->stage->plan;
    transpose_run *at = r->state;
    size_t turned = (size_t)(k->out_rows * k->flit_bytes);
    at->block = malloc((size_t)(k->block_flits * k->flit_bytes));
    at->turned = malloc(turned);
    if (at->turned)
        memset(at->turned, r->stage->chain->machine->options.poison, turned);
    return at->block && at->turned;
}

static void transpose_run_free(stage_run *r)
{
    transpose_run *at = r->state;
    free(at->block);
    free(at->turned);
}

static bool open_transpose(stage_run *r)
{
    ((transpose_run *)r->state)->held = 0;
    return true;
}

static void copy_element(unsigned char *to, int64_t to_index, const unsigned char *from, int64_t from_index, unsigned bits)
{
    if (bits == 4) {
        unsigned value = from[from_index / 2] >> from_index % 2 * 4 & 15u, low_bit = (unsigned)(to_index % 2 * 4);
        to[to_index / 2] = (unsigned char)((to[to_index / 2] & ~(15u << low_bit)) | value << low_bit);
        return;
    }
    memcpy(to + to_index * (bits / 8), from + from_index * (bits / 8), bits / 8);
}

static void turn_block(const transpose *k, transpose_run *at)
{
    for (int64_t column = 0; column < k->out_rows; column++)
        for (int64_t row = 0; row < k->in_rows; row++) {
            const unsigned char *flit = at->block + (row * k->packets_per_col + column / k->valid) * k->flit_bytes;
            copy_element(at->turned + column * k->flit_bytes, row, flit, column % k->valid, k->bits);
        }
}

static bool push_transpose(stage_run *r, const void *flits, int64_t count)
{
    const transpose *k = r->stage->plan;
    transpose_run *at = r->state;
    const unsigned char *from = flits;
    for (int64_t n; count > 0; count -= n, from += n * k->flit_bytes) {
        n = smaller(count, k->block_flits - at->held);
        memcpy(at->block + at->held * k->flit_bytes, from, (size_t)(n * k->flit_bytes));
        at->held += n;
        if (at->held < k->block_flits)
            continue;
        at->held = 0;
        turn_block(k, at);
        if (!stage_push(r->next, at->turned, k->out_rows))
            return false;
    }
    return true;
}

/* A block fills while the one before leaves, when two fit the buffer; else one after the other. */
static void transpose_cycles(const stage *s, duration *d)
{
    const transpose *k = s->plan;
    int64_t blocks = s->in.packets / k->block_flits, in = k->block_flits, out = k->out_rows;
    bool twice = k->packets_per_col * k->valid <= s->chain->machine->target->transpose_double_columns;
    d->fill += twice ? smaller(in, out) : 0;
    duration_leaves(d, blocks, twice ? larger(in, out) : in + out, BOUND_TRANSPOSE);
    duration_busy(d, ENGINE_TRANSPOSE, blocks, twice ? larger(in, out) : in + out);
}

const stage_type stage_transpose = {.plan_bytes = sizeof(transpose),
                                    .run_bytes = sizeof(transpose_run),
                                    .plan = plan_transpose,
                                    .run_new = transpose_run_new,
                                    .run_free = transpose_run_free,
                                    .open = open_transpose,
                                    .push = push_transpose,
                                    .cycles = transpose_cycles,
                                    .field = &field_transpose};
