#include "runtime/machine/proof.h"

#include "runtime/engine/trf.h"
#include "runtime/machine/chain.h"

enum { MOST_UNORDERED = 4096 /* commands that one is compared with */ };

void proof_doubt(machine *m)
{
    if (m->proof)
        atomic_store(&m->proof->doubt, true);
}

bool machine_is_proven(const machine *m)
{
    return proof_is_open(m);
}

/* --- bytes of a slice ------------------------------------------------------------------------------------- */

/* Does the walk take every position of its span once, in whatever order? Then its strides, sorted, are the products of the sizes. */
static bool is_dense(const walk *w)
{
    int64_t next = 1;
    for (unsigned found = 0; found < w->count; found++) {
        unsigned i = 0;
        while (i < w->count && w->stride[i] != next)
            i++;
        if (i == w->count)
            return false;
        next *= w->size[i];
    }
    return true;
}

/* All bytes of the walk, range by range. */
static void walk_ranges(machine *m, const dm_walk *w, memory *dm, void (*each)(machine *, memory *, int64_t, int64_t))
{
    const walk *e = &w->elements;
    if (is_dense(e)) {
        each(m, dm, w->low_byte, w->span_bytes);
        return;
    }
    int64_t run = walk_run(e);
    walk_cursor c;
    walk_start(e, &c);
    for (int64_t i = 0; i < w->positions && proof_is_open(m); i += run) {
        int64_t at = c.run_address + c.run_position * e->stride[e->count - 1];
        int64_t begin = at * w->bits / 8, end = ((at + run) * w->bits + 7) / 8;
        each(m, dm, w->low_byte + begin, end - begin);
        c.run_position += run;
        if (c.run_position == e->size[e->count - 1])
            walk_next_run(e, &c);
    }
}

static void range_read(machine *m, memory *dm, int64_t address, int64_t bytes)
{
    proof_read(m, dm, address, bytes);
}

static void range_write(machine *m, memory *dm, int64_t address, int64_t bytes)
{
    proof_write(m, dm, address, bytes);
}

/* [begin, begin + bytes) of every Row's partition. */
static void trf_ranges(machine *m, memory *trf, int64_t rows, trf_address mode, int64_t begin, int64_t bytes,
                       void (*each)(machine *, memory *, int64_t, int64_t))
{
    for (int64_t row = 0; row < rows; row++)
        for (int64_t byte = begin; byte < begin + bytes;) {
            int64_t together = trf_contiguous_bytes(m->target, mode, byte), left = begin + bytes - byte;
            int64_t part = left < together ? left : together;
            each(m, trf, trf_address_of(m->target, row, rows, mode, byte), part);
            byte += part;
        }
}

void proof_dm_reads(machine *m, const dm_walk *w, int64_t unit_index)
{
    memory *dm = &m->units[unit_index].dm;
    if (!memory_is_written(dm, w->low_byte, w->span_bytes)) /* between its places may be others */
        walk_ranges(m, w, dm, range_read);
}

void proof_dm_writes(machine *m, const dm_walk *w, int64_t unit_index)
{
    walk_ranges(m, w, &m->units[unit_index].dm, range_write);
}

void proof_trf_reads(machine *m, int64_t unit_index, int64_t rows, trf_address mode, int64_t begin, int64_t bytes)
{
    trf_ranges(m, &m->units[unit_index].trf, rows, mode, begin, bytes, range_read);
}

void proof_trf_writes(machine *m, int64_t unit_index, int64_t rows, trf_address mode, int64_t begin, int64_t bytes)
{
    trf_ranges(m, &m->units[unit_index].trf, rows, mode, begin, bytes, range_write);
}

/* --- the order of commands -------------------------------------------------------------------------------- */

void proof_wait(machine *m, int number, int other, size_t count)
{
    if (!proof_is_open(m))
        return;
    proof *p = m->proof;
    proof_order *now = &p->order[number], before = {0};
    size_t last = p->waits[other].count;
    while (last > 0 && p->waits[other].items[last - 1].end > count)
        last--;
    if (last > 0)
        before = p->waits[other].items[last - 1]; /* what the other one knew when it was so far */
    before.known[other] = count;
    for (int i = 0; i < PROOF_CONTEXTS; i++)
        now->known[i] = before.known[i] > now->known[i] ? before.known[i] : now->known[i];
    now->end = m->done[number] + 1;
    ARENA_PUSH(m->arena, p->waits[number].items, p->waits[number].count, p->waits[number].capacity, *now);
}

static bool ranges_conflict(const proof_access *a, const proof_access *b)
{
    for (unsigned i = 0; i < a->count; i++)
        for (unsigned j = 0; j < b->count; j++) {
            const proof_range *x = &a->ranges[i], *y = &b->ranges[j];
            if (x->space == y->space && (x->writes || y->writes) && x->begin < y->end && y->begin < x->end)
                return true;
        }
    return false;
}

/* Holds it against all that ran before it and that it did not wait for. */
static void access_done(machine *m, int number, const proof_access *a)
{
    proof *p = m->proof;
    for (int other = 0; other < PROOF_CONTEXTS; other++) {
        if (other == number)
            continue;
        size_t compared = 0;
        for (size_t i = p->done[other].count; i-- > 0 && p->done[other].items[i].end > p->order[number].known[other];)
            if (++compared > MOST_UNORDERED || ranges_conflict(a, &p->done[other].items[i])) {
                proof_doubt(m);
                return;
            }
    }
    ARENA_PUSH(m->arena, p->done[number].items, p->done[number].count, p->done[number].capacity, *a);
}

proof_range proof_dm_range(const dm_walk *w, bool writes)
{
    return (proof_range){PROOF_DM, w->low_byte, w->low_byte + w->span_bytes, writes};
}

proof_range proof_trf_range(trf_address mode, bool writes)
{
    return (proof_range){PROOF_TRF, mode == TRF_SECOND_HALF, mode == TRF_FIRST_HALF ? 1 : 2, writes};
}

void proof_chain(machine *m, int number, const chain *c, size_t end)
{
    if (!proof_is_open(m))
        return;
    proof_access a = {.end = end};
    for (unsigned i = 0; i < c->stage_count && a.count < PROOF_MOST_RANGES; i++)
        if (c->stages[i].type->ranges)
            a.count += c->stages[i].type->ranges(&c->stages[i], &a.ranges[a.count]);
    access_done(m, number, &a);
}

void proof_copy(machine *m, int number, const proof_range *ranges, unsigned count, size_t end)
{
    if (!proof_is_open(m))
        return;
    proof_access a = {.end = end, .count = count};
    for (unsigned i = 0; i < count; i++)
        a.ranges[i] = ranges[i];
    access_done(m, number, &a);
}
