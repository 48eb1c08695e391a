#include "runtime/timing/trf_timing.h"

#include <stddef.h>
#include <string.h>

#include "runtime/engine/trf.h"
#include "support/integer.h"

void trf_timing_init(trf_timing *s, const target *t)
{
    memset(s, 0, offsetof(trf_timing, snapshots));
    s->target = t;
    trf_cache_clear(&s->cache, t);
}

static void snapshots_forget(trf_timing *s, unsigned first)
{
    for (unsigned i = first; i < s->reads.table.count; i++)
        s->has_snapshot[i] = false;
}

/* From here on the Rows may differ: each gets the tags that stood for all of them, those of Row 0. */
static void rows_equalise(trf_timing *s)
{
    const target *t = s->target;
    int64_t each = t->rows / s->reads.view.rows * t->trf_bank_columns * t->trf_cache_sets;
    for (int64_t row = 1; row < s->reads.view.rows; row++)
        memcpy(s->cache.tags + row * each, s->cache.tags, (size_t)each * sizeof *s->cache.tags);
}

/* May a flit of the writer replace what the reader has cached? Two halves never meet. */
static void meeting_update(trf_timing *s)
{
    trf_address a = s->reads.view.mode, b = s->writes.view.mode;
    bool apart = s->apart || (a != b && a != TRF_FULL && b != TRF_FULL);
    if (!s->meets_writes && s->reading && s->writing && !apart) {
        s->meets_writes = true;
        rows_equalise(s);
    }
}

static void inner_bounds(trf_timing *s)
{
    const walk *w = &s->reads.table;
    int64_t low = 0, high = s->reads.read_bytes - 1;
    for (unsigned i = w->count; i-- > 0;) {
        s->low[i] = low;
        s->high[i] = high;
        int64_t reach = w->stride[i] * (w->size[i] - 1);
        *(reach < 0 ? &low : &high) += reach;
    }
}

void trf_timing_begin_reads(trf_timing *s, const trf_reads *reads)
{
    walk_address low, high;
    s->reads = *reads;
    s->reading = true;
    s->read_counts = (trf_read_counts){0};
    trf_cache_clear(&s->cache, s->target);
    memset(s->used_at, -1, sizeof s->used_at);
    memset(s->counter, 0, sizeof s->counter);
    s->delay = reads->delay;
    s->phase = 0;
    s->address = reads->table.base;
    s->last_byte = trf_partition_bytes(s->target, reads->view.rows, reads->view.mode) - reads->read_bytes;
    walk_bounds(&reads->table, &low, &high);
    s->inside = low >= 0 && high <= s->last_byte;
    if (s->inside)
        inner_bounds(s);
    s->meets_writes = false;
    meeting_update(s);
    snapshots_forget(s, 0);
}

void trf_timing_begin_writes(trf_timing *s, const trf_writes *writes)
{
    s->writes = *writes;
    s->writing = writes->flits > 0;
    s->write_counts = (trf_write_counts){0};
    s->flit = 0;
    s->countdown = writes->delay + writes->cycles_per_flit - 1;
    s->waited = 0;
    s->stalled = false;
    meeting_update(s);
    snapshots_forget(s, 0);
}

/* ---- one cycle ---- */

/* One bank column of a read; true: occupied. Rows differ only after a write has dropped an entry of one of them. */
static bool read_column(trf_timing *s, int64_t byte)
{
    int64_t rows = s->meets_writes ? s->reads.view.rows : 1;
    unsigned of_first, of_row;
    bool miss = !trf_cache_read(&s->cache, &s->reads.view, 0, byte, &of_first);
    for (int64_t row = 1; row < rows; row++)
        miss |= !trf_cache_read(&s->cache, &s->reads.view, row, byte, &of_row);
    s->used_at[of_first] = s->read_counts.reads;
    *(miss ? &s->read_counts.column_misses : &s->read_counts.column_hits) += 1;
    return miss;
}

/* Bit mask of the occupied bank columns. A padded step may lie outside the partition: it reads nothing. */
static unsigned read_now(trf_timing *s)
{
    unsigned busy = 0;
    if (s->address >= 0 && s->address <= s->last_byte)
        for (int64_t done = 0; done < s->reads.read_bytes; done += s->target->trf_row_bytes)
            if (read_column(s, s->address + done))
                busy |= 1u << trf_cache_column(s->target, s->address + done);
    s->read_counts.reads++;
    return busy;
}

static void write_now(trf_timing *s, unsigned busy)
{
    const trf_writes *w = &s->writes;
    int64_t row = s->flit / w->flits_per_row;
    int64_t byte = w->base + s->flit % w->flits_per_row * s->target->flit_bytes;
    if (!s->apart && (busy >> trf_cache_column(s->target, byte) & 1)) {
        s->write_counts.stall_cycles++;
        s->write_counts.stalled_flits += !s->stalled;
        s->stalled = true;
        if (s->waited < w->cycles_per_flit - 1)
            s->waited++;
        else
            s->write_counts.late_cycles++;
        return;
    }
    if (s->meets_writes)
        trf_cache_write(&s->cache, &w->view, row, byte);
    s->stalled = false;
    s->countdown = w->cycles_per_flit - 1 - s->waited;
    s->write_counts.flits++;
    if (++s->flit == w->flits) {
        s->write_counts.late_cycles += s->waited; /* no other flit is on its way */
        s->writing = false;
        snapshots_forget(s, 0);
    }
    s->waited = 0;
}

/* The loops' next step: the loop that moved, or -1 after the last step. */
static int counters_advance(trf_timing *s)
{
    const walk *w = &s->reads.table;
    for (unsigned i = w->count; i-- > 0;) {
        s->address += w->stride[i];
        if (++s->counter[i] < w->size[i])
            return (int)i;
        s->address -= w->stride[i] * w->size[i];
        s->counter[i] = 0;
    }
    return -1;
}

/* Returns the loop that began another iteration, or -1. */
static int step(trf_timing *s)
{
    unsigned busy = 0;
    int moved = -1;
    if (s->reading && s->delay > 0) {
        s->delay--;
    } else if (s->reading) {
        if (s->phase < s->reads.tiling) {
            busy = read_now(s);
            moved = counters_advance(s);
            s->reading = moved >= 0;
        }
        s->phase = (s->phase + 1) % s->reads.period;
    }
    if (s->writing && s->countdown > 0)
        s->countdown--;
    else if (s->writing)
        write_now(s, busy);
    s->cycle++;
    s->stepped_cycles++;
    return moved;
}

/* ---- counting instead of stepping ---- */

static void snapshot_take(const trf_timing *s, trf_snapshot *p)
{
    p->age = 0;
    p->address = s->address;
    p->phase = s->phase;
    p->countdown = s->countdown;
    p->flit = s->flit;
    p->waited = s->waited;
    p->stalled = s->stalled;
    p->read_number = s->read_counts.reads;
    p->cycle = s->cycle;
    p->read_counts = s->read_counts;
    p->write_counts = s->write_counts;
    memcpy(p->tags, s->cache.tags, sizeof p->tags);
}

/* The flit at which the writer's turns among the columns are broken: after a Row whose flits do not fill its last
 * turn, or at the end. */
static int64_t segment_end(const trf_timing *s, int64_t flit)
{
    const trf_writes *w = &s->writes;
    int64_t end = w->flits_per_row % s->target->trf_bank_columns ? (flit / w->flits_per_row + 1) * w->flits_per_row : w->flits;
    return end < w->flits ? end : w->flits;
}

static bool writer_matches(const trf_timing *s, const trf_snapshot *p)
{
    return !s->writing || (s->countdown == p->countdown && s->waited == p->waited && s->stalled == p->stalled &&
                           (s->flit - p->flit) % s->target->trf_bank_columns == 0 && segment_end(s, s->flit) == segment_end(s, p->flit));
}

/* Do the entries that were used since the snapshot hold what they held then, moved by `moved` bytes? The others
 * play no part in what repeats. */
static bool tags_match(const trf_timing *s, const trf_snapshot *p, int64_t moved)
{
    const target *t = s->target;
    int64_t entries = t->rows * t->trf_bank_columns * t->trf_cache_sets;
    int64_t shift = moved / (t->trf_bank_columns * t->trf_row_bytes * t->trf_cache_sets);
    for (int64_t i = 0; i < entries; i++)
        if (s->used_at[i] >= p->read_number && s->cache.tags[i] != p->tags[i] + shift)
            return false;
    return true;
}

/* Iterations of the walk that may follow in the bank row of the snapshot's addresses. */
static int64_t periods_in_bank(const trf_timing *s, unsigned loop, const trf_snapshot *p, int64_t moved)
{
    if (moved == 0)
        return INT64_MAX;
    int64_t low = s->low[loop], high = s->high[loop];
    int64_t first = moved > 0 ? p->address + low : p->address + high;
    int64_t bank = trf_partition_bytes(s->target, s->reads.view.rows, s->reads.view.mode) / (s->target->rows / s->reads.view.rows);
    int64_t begin = first / bank * bank;
    if (s->address + low < begin || s->address + high >= begin + bank)
        return 0;
    return moved > 0 ? (begin + bank - 1 - (s->address + high)) / moved : (s->address + low - begin) / -moved;
}

static void skip(trf_timing *s, unsigned loop, const trf_snapshot *p, int64_t moved, int64_t periods)
{
    int64_t flits = s->flit - p->flit;
    int64_t shift = moved / (s->target->trf_bank_columns * s->target->trf_row_bytes * s->target->trf_cache_sets);
    for (unsigned i = 0; i < TRF_CACHE_MAX_ENTRIES; i++)
        if (s->used_at[i] >= p->read_number)
            s->cache.tags[i] += (int32_t)(shift * periods);
    s->counter[loop] += p->age * periods;
    s->address += moved * periods;
    s->cycle += (s->cycle - p->cycle) * periods;
    s->flit += flits * periods;
#define REPEAT(field) s->field += (s->field - p->field) * periods
    REPEAT(read_counts.reads);
    REPEAT(read_counts.column_hits);
    REPEAT(read_counts.column_misses);
    REPEAT(write_counts.flits);
    REPEAT(write_counts.stall_cycles);
    REPEAT(write_counts.stalled_flits);
    REPEAT(write_counts.late_cycles);
#undef REPEAT
}

/* How often what happened since the snapshot will happen again, as far as is known. */
static int64_t repetitions(const trf_timing *s, unsigned loop, const trf_snapshot *p, int64_t cycles_left)
{
    const target *t = s->target;
    int64_t moved = s->address - p->address;
    int64_t turn = t->trf_bank_columns * t->trf_row_bytes * t->trf_cache_sets; /* bytes after which sets repeat */
    if (moved % turn != 0 || s->phase != p->phase || !writer_matches(s, p) || (moved && !s->inside) || !tags_match(s, p, moved))
        return 0;
    int64_t periods = (s->reads.table.size[loop] - 1 - s->counter[loop]) / p->age;
    periods = smaller(periods, cycles_left / (s->cycle - p->cycle));
    periods = smaller(periods, periods_in_bank(s, loop, p, moved));
    int64_t flits = s->flit - p->flit;
    if (s->writing && flits > 0)
        periods = smaller(periods, (segment_end(s, s->flit) - 1 - s->flit) / flits);
    return periods;
}

/* Loop `loop` has begun another iteration. The snapshot is renewed at distances that double, so that every
 * period is found (Brent). */
static void recognise(trf_timing *s, unsigned loop, int64_t cycles_left)
{
    trf_snapshot *p = &s->snapshots[loop];
    snapshots_forget(s, loop + 1);
    if (!s->has_snapshot[loop]) {
        s->has_snapshot[loop] = true;
        p->patience = 1;
        snapshot_take(s, p);
        return;
    }
    p->age++;
    int64_t periods = repetitions(s, loop, p, cycles_left);
    if (periods > 0) {
        skip(s, loop, p, s->address - p->address, periods);
        s->has_snapshot[loop] = false;
    } else if (p->age == p->patience) {
        p->patience *= 2;
        snapshot_take(s, p);
    }
}

/* Only the writer, and no flit waits: nothing is ever occupied. */
static void write_alone(trf_timing *s, int64_t end)
{
    const trf_writes *w = &s->writes;
    int64_t flits = s->cycle + s->countdown < end ? (end - 1 - s->cycle - s->countdown) / w->cycles_per_flit + 1 : 0;
    flits = smaller(flits, w->flits - s->flit);
    if (flits == 0) {
        s->countdown -= end - s->cycle;
        s->cycle = end;
        return;
    }
    s->cycle += s->countdown + (flits - 1) * w->cycles_per_flit + 1;
    s->flit += flits;
    s->write_counts.flits += flits;
    s->countdown = w->cycles_per_flit - 1;
    s->writing = s->flit < w->flits;
    if (s->writing)
        write_alone(s, end);
}

int64_t trf_timing_run(trf_timing *s, int64_t cycles, int64_t step_limit)
{
    int64_t begin = s->cycle, end = cycles > INT64_MAX - begin ? INT64_MAX : begin + cycles, stepped = s->stepped_cycles;
    bool written = false;
    while (s->cycle < end && !written) {
        bool writing = s->writing;
        if (!s->reading && !s->stalled && !s->stepwise) {
            if (s->writing)
                write_alone(s, end);
            else
                s->cycle = end;
        } else if (s->stepped_cycles - stepped == step_limit) {
            break;
        } else {
            int moved = step(s);
            if (moved >= 0 && !s->stepwise && !s->meets_writes)
                recognise(s, (unsigned)moved, end - s->cycle);
        }
        written = writing && !s->writing;
    }
    return s->cycle - begin;
}
