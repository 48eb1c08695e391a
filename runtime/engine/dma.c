#include "runtime/engine/dma.h"

#include <string.h>

#include "runtime/machine/parallel.h"
#include "runtime/machine/proof.h"
#include "runtime/machine/walk.h"

enum {
    SPACE_HBM = 0,
    SPACE_DM = 1,
    SPACE_NONE = 2, /* a source of zeros */
    STACK_PACKET_BYTES = 4096,
    THREAD_BYTES = 1 << 20, /* less is not worth a thread */
    MOST_WORKERS = 64,
};

/* One side of the transfer. */
typedef struct side {
    machine *machine;
    const command *command;
    int64_t space;
    const char *verb;
    walk table; /* as in the command */
    walk walk;  /* joined, in step with the other side */
} side;

typedef struct place {
    memory *memory;
    int64_t address;
} place;

static void side_read(side *s, machine *m, const command *c, command_field space, command_field base, command_column stride,
                      const char *verb)
{
    *s = (side){.machine = m, .command = c, .space = command_get(c, space), .verb = verb};
    s->table.count = c->entry_count;
    s->table.base = command_get(c, base);
    for (unsigned i = 0; i < c->entry_count; i++) {
        s->table.size[i] = command_entry(c, i, DMA_ENTRY_SIZE);
        s->table.stride[i] = command_entry(c, i, stride);
    }
    s->walk = s->table;
}

/* The memory at [address, address + bytes), or false when a byte has none. */
static bool place_at(const side *s, int64_t address, int64_t bytes, place *p)
{
    const target *t = s->machine->target;
    int64_t window = s->space == SPACE_HBM ? t->hbm_chip_stride_bytes : t->dm_slice_stride_bytes;
    int64_t count = s->space == SPACE_HBM ? t->chips : s->machine->unit_count;
    if (address < 0 || address / window >= count)
        return false;
    int64_t number = address / window;
    if (s->space == SPACE_HBM ? address % window > t->hbm_bytes_per_chip - bytes : !target_unit_holds(t, number, address % window, bytes))
        return false;
    p->memory = s->space == SPACE_HBM ? &s->machine->hbm[number] : &s->machine->units[number].dm;
    p->address = address % window;
    return true;
}

static bool outside(const side *s, const int64_t *counters, walk_address address, int64_t bytes, fault *f)
{
    char text[160];
    walk_counters_text(&s->table, counters, text, sizeof text);
    return fault_set(f, E_RUN_ACCESS, s->command, "%s outside %s: entry counters %s, address %lld (0x%llx), size %lld bytes", s->verb,
                     s->space == SPACE_HBM ? "HBM" : "DM", text, (long long)address, (unsigned long long)(int64_t)address,
                     (long long)bytes);
}

/* A first check of the whole walk, so that single addresses never overflow. */
static bool side_in_space(const side *s, int64_t bytes, fault *f)
{
    int64_t counters[WALK_MAX_LOOPS];
    walk_address address;
    if (!walk_first_outside(&s->table, 0, (INT64_C(1) << 48) - bytes, counters, &address))
        return true;
    return outside(s, counters, address, bytes, f);
}

/* Writes into DM go in units of 8 bytes, but not into SPM, nor for transfers that are marked as element by element. */
static bool destination_aligned(const side *d, int64_t packet_bytes, fault *f)
{
    int64_t unit = d->machine->target->dma_dm_multiple_bytes;
    bool aligned = packet_bytes % unit == 0 && d->table.base % unit == 0;
    for (unsigned i = 0; i < d->table.count; i++)
        aligned &= d->table.size[i] == 1 || d->table.stride[i] % unit == 0;
    bool spm = d->space == SPACE_DM && d->table.base % d->machine->target->dm_slice_stride_bytes >= d->machine->target->spm_base_bytes;
    return aligned || spm || d->space != SPACE_DM || command_get(d->command, DMA_GRANULAR) ||
           fault_set(f, E_RUN_ACCESS, d->command, "packet_bytes, base and strides of a DM destination must be multiples of %lld bytes",
                     (long long)unit);
}

/* Joins loops that continue each other on both sides; returns how many packets of `packet_bytes` the
 * innermost loop then has as one contiguous run, and takes that loop off both walks. */
static int64_t join(walk *a, walk *b, int64_t packet_bytes)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < a->count; i++) {
        if (a->size[i] == 1)
            continue;
        if (kept > 0 && a->stride[kept - 1] == a->size[i] * a->stride[i] && b->stride[kept - 1] == b->size[i] * b->stride[i]) {
            a->size[kept - 1] *= a->size[i];
            a->stride[kept - 1] = a->stride[i];
            b->stride[kept - 1] = b->stride[i];
        } else {
            a->size[kept] = a->size[i];
            a->stride[kept] = a->stride[i];
            b->stride[kept++] = b->stride[i];
        }
        b->size[kept - 1] = a->size[kept - 1];
    }
    int64_t run = 1;
    if (kept > 0 && a->stride[kept - 1] == packet_bytes && b->stride[kept - 1] == packet_bytes)
        run = a->size[--kept];
    if (kept == 0) {
        a->size[0] = b->size[0] = 1;
        a->stride[0] = b->stride[0] = 0;
        kept = 1;
    }
    a->count = b->count = kept;
    return run;
}

/* The first packet of a run, which is packet number `first` of the whole, that lies outside. */
static bool run_outside(const side *s, int64_t address, int64_t first, int64_t packet_bytes, fault *f)
{
    place p;
    while (place_at(s, address, packet_bytes, &p)) {
        address += packet_bytes;
        first++;
    }
    int64_t counters[WALK_MAX_LOOPS];
    walk_counters(&s->table, first, counters);
    return outside(s, counters, address, packet_bytes, f);
}

/* Packet after packet, as the engine does it: only seen when the two ranges overlap. */
static bool copy_packets(place to, place from, int64_t packets, int64_t packet_bytes)
{
    unsigned char packet[STACK_PACKET_BYTES];
    for (int64_t i = 0; i < packets; i++)
        if (!memory_read(from.memory, from.address + i * packet_bytes, packet, packet_bytes) ||
            !memory_write(to.memory, to.address + i * packet_bytes, packet, packet_bytes))
            return false;
    return true;
}

static bool copy_run(place to, place from, int64_t packets, int64_t packet_bytes)
{
    int64_t bytes = packets * packet_bytes;
    if (to.memory == from.memory && to.address < from.address + bytes && from.address < to.address + bytes)
        return copy_packets(to, from, packets, packet_bytes);
    return memory_copy(to.memory, to.address, from.memory, from.address, bytes);
}

static bool dma_legal(const side *source, const side *destination, int64_t packet_bytes, int64_t *packets, fault *f)
{
    const machine *m = source->machine;
    int64_t limit = m->options.step_limit;
    if (packet_bytes > STACK_PACKET_BYTES || packet_bytes > m->target->dma_packet_max_bytes)
        return fault_set(f, E_RUN_CHAIN, source->command, "packets of %lld bytes are too long", (long long)packet_bytes);
    if (!walk_positions(&source->table, packets))
        return fault_set(f, E_RUN_CHAIN, source->command, "the product of the entry sizes overflows");
    if (limit && *packets > limit)
        return fault_set(f, E_RUN_LIMIT, source->command, "%lld packets pass the limit of %lld", (long long)*packets, (long long)limit);
    return side_in_space(source, packet_bytes, f) && side_in_space(destination, packet_bytes, f) &&
           destination_aligned(destination, packet_bytes, f);
}

/* The range of all its packets: in HBM as the addresses are, in DM those of a slice, of all of them if it is not simple. */
static proof_range side_range(const side *s, int64_t packet_bytes, bool writes)
{
    const walk *w = &s->table;
    walk_address low, high;
    if (s->space == SPACE_HBM) {
        walk_bounds(w, &low, &high);
        return (proof_range){PROOF_HBM, low, high + packet_bytes, writes};
    }
    int64_t window = s->machine->target->dm_slice_stride_bytes;
    walk inner = {.base = w->base % window};
    for (unsigned i = 0; i < w->count; i++)
        if (w->stride[i] % window != 0) { /* else from slice to slice */
            inner.size[inner.count] = w->size[i];
            inner.stride[inner.count++] = w->stride[i];
        }
    walk_bounds(&inner, &low, &high);
    bool simple = low >= 0 && high + packet_bytes <= window;
    return (proof_range){PROOF_DM, simple ? low : 0, simple ? high + packet_bytes : window, writes};
}

/* A transfer whose walks are joined: `packets` in runs of `run`. */
typedef struct transfer {
    machine *machine;
    side from, to;
    int64_t packets, run, packet_bytes;
    unsigned workers;
    _Atomic bool no_memory;
} transfer;

/* Calls for every run; false at the first that fails. */
static bool each_run(const transfer *x, bool (*call)(const transfer *x, place from, place to, void *of), void *of, fault *f)
{
    int64_t bytes = x->run * x->packet_bytes;
    walk_cursor from, to;
    walk_start(&x->from.walk, &from);
    walk_start(&x->to.walk, &to);
    for (int64_t packet = 0; packet < x->packets; packet += x->run) {
        int64_t a = walk_step(&x->from.walk, &from), b = walk_step(&x->to.walk, &to);
        place p, q;
        if (!place_at(&x->from, a, bytes, &p))
            return run_outside(&x->from, a, packet, x->packet_bytes, f);
        if (!place_at(&x->to, b, bytes, &q))
            return run_outside(&x->to, b, packet, x->packet_bytes, f);
        if (!call(x, p, q, of))
            return fault_memory(f, x->from.command, "HBM and DM");
    }
    return true;
}

static bool copy_one(const transfer *x, place from, place to, void *of)
{
    (void)of;
    proof_read(x->machine, from.memory, from.address, x->run * x->packet_bytes);
    if (!copy_run(to, from, x->run, x->packet_bytes))
        return false;
    proof_write(x->machine, to.memory, to.address, x->run * x->packet_bytes);
    return true;
}

/* --- from HBM into many slices, on threads: a worker writes the slices that are its own ------------------- */

/* Afterwards nothing that the workers read has to be made. */
static bool touch_source(const transfer *x, place from, place to, void *of)
{
    (void)to, (void)of;
    for (int64_t at = from.address, end = at + x->run * x->packet_bytes, part; at < end; at += part) {
        part = from.memory->block_bytes - at % from.memory->block_bytes;
        part = part < end - at ? part : end - at;
        if (!memory_span(from.memory, at, part))
            return false;
    }
    return true;
}

static bool copy_own(const transfer *x, place from, place to, void *of)
{
    const size_t *share = of;
    size_t unit = (size_t)((const char *)to.memory - (const char *)x->machine->units) / sizeof *x->machine->units;
    return unit % x->workers != *share || copy_one(x, from, to, NULL);
}

static void copy_job(void *of, unsigned worker, size_t index)
{
    transfer *x = of;
    fault f = {0};
    (void)worker;
    if (!each_run(x, copy_own, &index, &f))
        atomic_store(&x->no_memory, true); /* what else there is was found before */
}

static bool copy_on_threads(transfer *x, fault *f)
{
    if (!each_run(x, touch_source, NULL, f))
        return false;
    parallel_for(x->workers, x->workers, copy_job, x);
    return !x->no_memory || fault_memory(f, x->from.command, "HBM and DM");
}

static unsigned worker_count(const transfer *x)
{
    bool worth = x->from.space == SPACE_HBM && x->to.space == SPACE_DM && x->packets >= THREAD_BYTES / x->packet_bytes;
    unsigned workers = parallel_workers(x->machine->options.threads);
    return !worth ? 1 : workers < MOST_WORKERS ? workers : MOST_WORKERS;
}

/* --- from HBM into many slices that get the same: what they hold is shared until one of them writes -------- */

/* A transfer taken apart: what a slice gets is one range, the same bytes for all slices of a group. */
typedef struct spread {
    int64_t low, bytes; /* the range in a slice's DM */
    walk slices, keys;  /* in step: the beginning of the range, slice after slice; where its bytes are in the pool */
    walk source, fill;  /* in step: the runs of one slice of each group, in HBM and in the pool */
    int64_t pool_bytes;
} spread;

static void walk_push(walk *w, int64_t size, int64_t stride)
{
    w->size[w->count] = size;
    w->stride[w->count++] = stride;
}

/* Do the loops inside a slice go over one range without gaps, whatever their order? Its length, or 0. */
static int64_t covered_bytes(const walk *to, int64_t window, int64_t run_bytes)
{
    int64_t covered = run_bytes;
    unsigned left = 0;
    for (unsigned i = 0; i < to->count; i++)
        left += to->size[i] > 1 && to->stride[i] % window != 0;
    for (bool found = true; left > 0 && found; left -= found) {
        found = false;
        for (unsigned i = 0; i < to->count && !found; i++)
            if (to->size[i] > 1 && to->stride[i] == covered) {
                covered *= to->size[i];
                found = true;
            }
    }
    return left == 0 ? covered : 0;
}

/* False: there is nothing to share. */
static bool spread_make(const transfer *x, spread *s)
{
    const walk *from = &x->from.walk, *to = &x->to.walk;
    int64_t window = x->machine->target->dm_slice_stride_bytes, copies = 1, unit = memory_granule(&x->machine->units[0].dm);
    if (x->from.space != SPACE_HBM || x->to.space != SPACE_DM || to->base < 0)
        return false;
    *s = (spread){.low = to->base % window, .bytes = covered_bytes(to, window, x->run * x->packet_bytes)};
    if (s->bytes == 0 || s->low % unit || s->bytes % unit || s->low + s->bytes > x->machine->target->dm_bytes_per_slice)
        return false;
    s->pool_bytes = s->bytes;
    s->slices.base = to->base;
    s->source.base = from->base;
    for (unsigned i = from->count; i-- > 0;) { /* the innermost first: only the outermost has to stay where it is */
        bool inside = to->size[i] > 1 && to->stride[i] % window != 0, same = from->stride[i] == 0;
        copies *= inside || !same ? 1 : from->size[i];
        if (!inside) {
            walk_push(&s->slices, to->size[i], to->stride[i]);
            walk_push(&s->keys, to->size[i], same ? 0 : s->pool_bytes);
        }
        if (inside || !same) {
            walk_push(&s->source, from->size[i], from->stride[i]);
            walk_push(&s->fill, from->size[i], inside ? to->stride[i] : s->pool_bytes);
        }
        if (!inside && !same && __builtin_mul_overflow(s->pool_bytes, to->size[i], &s->pool_bytes))
            return false;
    }
    walk *all[] = {&s->slices, &s->keys, &s->source, &s->fill};
    for (size_t w = 0; w < sizeof all / sizeof *all; w++) { /* in the order of the transfer, the outermost first */
        if (all[w]->count == 0)
            walk_push(all[w], 1, 0);
        for (unsigned i = 0, j = all[w]->count - 1; i < j; i++, j--) {
            int64_t size = all[w]->size[i], stride = all[w]->stride[i];
            all[w]->size[i] = all[w]->size[j], all[w]->stride[i] = all[w]->stride[j];
            all[w]->size[j] = size, all[w]->stride[j] = stride;
        }
    }
    return copies > 1;
}

static bool fill_pool(const transfer *x, const spread *s, const memory_pool *pool)
{
    int64_t runs, bytes = x->run * x->packet_bytes;
    walk_cursor from, to;
    walk_start(&s->source, &from);
    walk_start(&s->fill, &to);
    walk_positions(&s->source, &runs);
    for (int64_t i = 0; i < runs; i++) {
        int64_t a = walk_step(&s->source, &from), b = walk_step(&s->fill, &to);
        place p;
        if (!place_at(&x->from, a, bytes, &p) || !memory_read(p.memory, p.address, pool->bytes + b, bytes))
            return false;
        proof_read(x->machine, p.memory, p.address, bytes);
    }
    return true;
}

static bool share_pool(const transfer *x, const spread *s, memory_pool *pool)
{
    int64_t slices;
    walk_cursor to, key;
    walk_start(&s->slices, &to);
    walk_start(&s->keys, &key);
    walk_positions(&s->slices, &slices);
    for (int64_t i = 0; i < slices; i++) {
        int64_t address = walk_step(&s->slices, &to), from = walk_step(&s->keys, &key);
        place p;
        if (!place_at(&x->to, address, s->bytes, &p) || !memory_share(p.memory, p.address, pool, from, s->bytes))
            return false;
        proof_write(x->machine, p.memory, p.address, s->bytes);
    }
    return true;
}

/* False: there is nothing to share, or no memory for it. `ok`: done without a fault. */
static bool copy_shared(const transfer *x, bool *ok, fault *f)
{
    spread s;
    memory_pool *pool = spread_make(x, &s) ? memory_pool_new(s.pool_bytes) : NULL;
    if (!pool)
        return false;
    *ok = each_run(x, touch_source, NULL, f) && /* which finds all that is outside */
          ((fill_pool(x, &s, pool) && share_pool(x, &s, pool)) || fault_memory(f, x->from.command, "HBM and DM"));
    memory_pool_leave(pool);
    return true;
}

static bool copy_all(transfer *x, fault *f)
{
    bool ok;
    if (copy_shared(x, &ok, f))
        return ok;
    x->workers = worker_count(x);
    return x->workers > 1 ? copy_on_threads(x, f) : each_run(x, copy_one, NULL, f);
}

/* Zeros into all packets of the destination. */
static bool zero_packets(transfer *x, fault *f)
{
    static const unsigned char zeros[STACK_PACKET_BYTES];
    walk_cursor to;
    walk_start(&x->to.walk, &to);
    for (int64_t packet = 0; packet < x->packets; packet++) {
        int64_t address = walk_step(&x->to.walk, &to);
        place q;
        if (!place_at(&x->to, address, x->packet_bytes, &q))
            return run_outside(&x->to, address, packet, x->packet_bytes, f);
        if (!memory_write(q.memory, q.address, zeros, x->packet_bytes))
            return fault_memory(f, x->to.command, "HBM and DM");
        proof_write(x->machine, q.memory, q.address, x->packet_bytes);
    }
    return true;
}

bool dma_run(machine *m, const command *c, int number, fault *f)
{
    transfer x = {.machine = m, .packet_bytes = command_get(c, DMA_PACKET_BYTES)};
    side_read(&x.from, m, c, DMA_SOURCE, DMA_SOURCE_BASE, DMA_ENTRY_SOURCE_STRIDE, "reads");
    side_read(&x.to, m, c, DMA_DESTINATION, DMA_DESTINATION_BASE, DMA_ENTRY_DESTINATION_STRIDE, "writes");
    if (!dma_legal(&x.from, &x.to, x.packet_bytes, &x.packets, f))
        return false;
    bool zeros = x.from.space == SPACE_NONE;
    if (!zeros)
        x.run = join(&x.from.walk, &x.to.walk, x.packet_bytes);
    if (!(zeros ? zero_packets(&x, f) : copy_all(&x, f)))
        return false;
    if (proof_is_open(m)) {
        const proof_range ranges[] = {zeros ? (proof_range){0} : side_range(&x.from, x.packet_bytes, false),
                                      side_range(&x.to, x.packet_bytes, true)};
        proof_copy(m, number, ranges, 2, m->done[number] + 1);
    }
    return true;
}
