#include "runtime/engine/commit.h"

#include <string.h>

#include "runtime/machine/chain.h"
#include "runtime/machine/proof.h"
#include "runtime/timing/duration.h"
#include "runtime/timing/schedule.h"
#include "support/integer.h"

enum { COMMIT_CAST_RELU = 2 };

static bool commit_sizes_legal(const commit *k, const target *t, const command *c, const stream_shape *flits, fault *f)
{
    int64_t write_bytes = command_get(c, COMMIT_BYTES), unit = t->commit_multiple_bytes;
    if (k->in_bytes % unit || k->in_bytes > t->flit_bytes || write_bytes % unit || k->kept_bytes % write_bytes)
        return fault_set(f, E_RUN_CHAIN, c, "commit_in_bytes %lld and commit_bytes %lld are not multiples of %lld that divide each other",
                         (long long)k->in_bytes, (long long)write_bytes, (long long)unit);
    int64_t elements = k->in_bytes * 8 / k->bits, wanted;
    if (__builtin_mul_overflow(flits->packets, elements, &wanted) || wanted != k->dm.positions)
        return fault_set(f, E_RUN_CHAIN, c, "the entries have %lld elements, %lld flits of %lld elements arrive",
                         (long long)k->dm.positions, (long long)flits->packets, (long long)elements);
    if (walk_run(&k->dm.elements) % (write_bytes * 8 / k->dm.bits))
        return fault_set(f, E_RUN_CHAIN, c, "a write of %lld bytes does not divide the contiguous run of %lld elements",
                         (long long)write_bytes, (long long)walk_run(&k->dm.elements));
    return true;
}

/* Bytes instead of elements; every address that a write can have must be a multiple of 8 bytes. */
static bool commit_bytes_walk(commit *k, const target *t, const command *c, fault *f)
{
    k->bytes = k->dm.elements;
    unsigned last = k->bytes.count - 1;
    bool aligned = command_get(c, COMMIT_BASE) % t->commit_multiple_bytes == 0;
    for (unsigned i = 0; i < last; i++) {
        int64_t bits = k->bytes.stride[i] * k->dm.bits;
        aligned &= bits % (t->commit_multiple_bytes * 8) == 0;
        k->bytes.stride[i] = bits / 8;
    }
    if (!aligned)
        return fault_set(f, E_RUN_ACCESS, c, "base and strides between writes must be multiples of %lld bytes",
                         (long long)t->commit_multiple_bytes);
    k->bytes.size[last] = k->bytes.size[last] * k->dm.bits / 8;
    k->bytes.base = k->bytes.base * k->dm.bits / 8;
    return true;
}

static bool commit_plan(commit *k, const target *t, const command *c, const stream_shape *flits, fault *f)
{
    *k = (commit){.command = c, .in_bytes = command_get(c, COMMIT_IN_BYTES), .flit_bytes = t->flit_bytes};
    dtype type = (dtype)command_get(c, COMMIT_DTYPE);
    int64_t cast = command_get(c, COMMIT_CAST);
    k->bits = dtype_row_of(flits->dtype)->bits;
    if (dtype_is_staging(type))
        return fault_set(f, E_RUN_CHAIN, c, "%s elements are in no memory", dtype_row_of(type)->name);
    if (cast && c->context != CONTEXT_MAIN)
        return fault_set(f, E_RUN_CHAIN, c, "the %s context casts nothing on the way to DM", context_name(c->context));
    if (cast && !(k->convert = convert_commit(flits->dtype, type)))
        return fault_set(f, E_RUN_CHAIN, c, "no cast on the way to DM from %s to %s", dtype_row_of(flits->dtype)->name,
                         dtype_row_of(type)->name);
    if (cast == COMMIT_CAST_RELU)
        k->convert = convert_relu, k->relu = true;
    if (!cast && type != flits->dtype)
        return fault_set(f, E_RUN_CHAIN, c, "takes %s elements, the stream has %s", dtype_row_of(type)->name,
                         dtype_row_of(flits->dtype)->name);
    k->kept_bytes = k->in_bytes * dtype_row_of(type)->bits / k->bits;
    return dm_walk_plan(&k->dm, t, c, command_get(c, COMMIT_BASE), dtype_row_of(type)->bits, COMMIT_ENTRY_SIZE, COMMIT_ENTRY_STRIDE,
                        "writes", f) &&
           commit_sizes_legal(k, t, c, flits, f) && commit_bytes_walk(k, t, c, f);
}

typedef struct commit_run {
    unsigned char *memory; /* DM from dm.low_byte */
    walk_cursor cursor;
} commit_run;

/* `count` runs of one size, which is a constant where it is inlined. */
static inline __attribute__((always_inline)) void copy_runs(unsigned char *to, int64_t stride, const unsigned char *from, int64_t bytes,
                                                            int64_t count)
{
    for (int64_t i = 0; i < count; i++, to += stride, from += bytes)
        memcpy(to, from, (size_t)bytes);
}

/* Whole runs of the loop around them, which lie one after the other in `from`. Returns the bytes taken. */
static int64_t push_runs(const walk *w, walk_cursor *c, unsigned char *dm, const unsigned char *from, int64_t bytes)
{
    unsigned loop = w->count - 2;
    int64_t run = w->size[w->count - 1], left = w->size[loop] - c->counter[loop], stride = w->stride[loop];
    int64_t count = bytes / run < left ? bytes / run : left;
    unsigned char *to = dm + c->run_address;
    switch (run) {
    case 8: copy_runs(to, stride, from, 8, count); break;
    case 16: copy_runs(to, stride, from, 16, count); break;
    case 32: copy_runs(to, stride, from, 32, count); break;
    default: copy_runs(to, stride, from, run, count);
    }
    c->counter[loop] += count - 1;
    c->run_address += (count - 1) * stride;
    walk_next_run(w, c);
    return count * run;
}

/* `apart`: bytes from one flit to the next. */
static void commit_push(const commit *k, commit_run *r, const unsigned char *flits, int64_t apart, int64_t count)
{
    const walk *w = &k->bytes;
    walk_cursor *c = &r->cursor;
    int64_t run_bytes = w->size[w->count - 1], bytes = k->kept_bytes;
    if (bytes == apart) { /* no gaps between them */
        bytes *= count;
        count = 1;
    }
    for (; count > 0; count--, flits += apart)
        for (int64_t done = 0; done < bytes;) {
            if (c->run_position == 0 && bytes - done >= run_bytes && w->count > 1) {
                done += push_runs(w, c, r->memory, flits + done, bytes - done);
                continue;
            }
            int64_t left = run_bytes - c->run_position;
            int64_t part = bytes - done < left ? bytes - done : left;
            memcpy(r->memory + c->run_address + c->run_position, flits + done, (size_t)part);
            done += part;
            c->run_position += part;
            if (c->run_position == run_bytes)
                walk_next_run(w, c);
        }
}

/* ---- as a stage of a chain ---- */

/* Narrowed flits of which no more than the elements is committed stand without gaps. */
static bool plan_commit(stage *s, chain *c, fault *f)
{
    commit *k = s->plan;
    if (!commit_plan(k, c->machine->target, s->commands, &s->in, f))
        return false;
    s->stored = (dtype)command_get(s->commands, COMMIT_DTYPE);
    stage *before = s - 1;
    int64_t bytes = c->machine->target->flit_bytes / 4 * dtype_row_of(s->in.dtype)->bits / 8;
    if (before->type->packs && !k->convert && k->in_bytes <= bytes)
        before->out_bytes = k->flit_bytes = bytes;
    return true;
}

static bool open_commit(stage_run *r)
{
    const commit *k = r->stage->plan;
    commit_run *at = r->state;
    at->memory = memory_span(&r->stage->chain->machine->units[r->unit_index].dm, k->dm.low_byte, k->dm.span_bytes);
    walk_start(&k->bytes, &at->cursor);
    return at->memory || fault_memory(r->fault, k->command, "a slice's DM");
}

static bool push_commit(stage_run *r, const void *flits, int64_t count)
{
    enum { PIECE_FLITS = 64 };
    const commit *k = r->stage->plan;
    const unsigned char *from = flits;
    if (!k->convert)
        commit_push(k, r->state, from, k->flit_bytes, count);
    for (int64_t n; k->convert && count > 0; count -= n, from += n * k->flit_bytes) {
        unsigned char piece[PIECE_FLITS * 32];
        n = smaller(count, PIECE_FLITS);
        for (int64_t i = 0; i < n; i++)
            k->convert(piece + i * k->kept_bytes, from + i * k->flit_bytes, k->in_bytes * 8 / k->bits);
        commit_push(k, r->state, piece, k->kept_bytes, n);
    }
    return true;
}

static void commit_cycles(const stage *s, duration *d)
{
    const commit *k = s->plan;
    int64_t writes = ceil_div(k->kept_bytes, command_get(k->command, COMMIT_BYTES));
    if (writes > 1)
        duration_leaves(d, s->in.packets, writes, BOUND_COMMIT);
    duration_busy(d, ENGINE_COMMIT, s->in.packets, writes);
}

static void commit_traffic(const stage *s, int64_t units, schedule_item *item)
{
    item->dm_written_bytes = product_bounded(product_bounded(s->in.packets, ((const commit *)s->plan)->kept_bytes), units);
}

static unsigned commit_ranges(const stage *s, proof_range *out)
{
    *out = proof_dm_range(&((const commit *)s->plan)->dm, true);
    return 1;
}

/* What follows the computed bytes of a flit is filling. */
static void commit_proof(const stage *s, int64_t unit_index)
{
    const commit *k = s->plan;
    if (k->in_bytes > s->in.computed_bytes)
        proof_doubt(s->chain->machine);
    else
        proof_dm_writes(s->chain->machine, &k->dm, unit_index);
}

const stage_type stage_commit = {.plan_bytes = sizeof(commit),
                                 .run_bytes = sizeof(commit_run),
                                 .plan = plan_commit,
                                 .open = open_commit,
                                 .push = push_commit,
                                 .cycles = commit_cycles,
                                 .traffic = commit_traffic,
                                 .ranges = commit_ranges,
                                 .proof_writes = commit_proof,
                                 .field = &field_commit};
