#include "runtime/engine/accumulate.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/machine/chain.h"
#include "runtime/timing/duration.h"
#include "support/integer.h"

static bool loops_join(const accumulate_loop *outer, const accumulate_loop *inner)
{
    return outer->reduced == inner->reduced && (outer->reduced || outer->slot_stride == inner->size * inner->slot_stride);
}

/* Loops of the table; kept ones outside the outermost reduced one have no slot of their own. */
static bool loops_read(accumulate *k, const command *c, int64_t *steps, int64_t *kept, int64_t *last_slot)
{
    bool inside = false;
    *steps = *kept = 1;
    *last_slot = 0;
    for (unsigned i = 0; i < c->entry_count; i++) {
        accumulate_loop loop = {command_entry(c, i, ACCUMULATE_LOOP_SIZE), 0, command_entry(c, i, ACCUMULATE_LOOP_REDUCED) != 0};
        inside |= loop.reduced;
        if (inside && !loop.reduced)
            loop.slot_stride = command_entry(c, i, ACCUMULATE_LOOP_SLOT);
        int64_t reach;
        if (__builtin_mul_overflow(*steps, loop.size, steps) || __builtin_mul_overflow(*kept, loop.reduced ? 1 : loop.size, kept) ||
            __builtin_mul_overflow(loop.size - 1, loop.slot_stride, &reach) || __builtin_add_overflow(*last_slot, reach, last_slot))
            return false;
        if (loop.size == 1)
            continue;
        if (k->count > 0 && loops_join(&k->loops[k->count - 1], &loop)) {
            k->loops[k->count - 1].size *= loop.size;
            k->loops[k->count - 1].slot_stride = loop.slot_stride;
        } else {
            k->loops[k->count++] = loop;
        }
    }
    return true;
}

/* Interleaved slots share the columns of a register, Sequential ones its Rows ("Slot mapping"). */
static bool slots_fit(const accumulate *k, const target *t, const command *c, int64_t last_slot, fault *f)
{
    if (last_slot >= k->slots)
        return fault_set(f, E_RUN_ACCESS, c, "reaches slot %lld, the command has %lld slots", (long long)last_slot, (long long)k->slots);
    int64_t used = k->sequential ? k->slots * k->rows : k->slots * power_of_two_above(k->columns);
    int64_t limit = t->accumulator_registers * (k->sequential ? t->rows : t->accumulator_columns);
    if (used > limit)
        return fault_set(f, E_RUN_ACCESS, c, "%lld slots of %lld %s pass the accumulator's %lld", (long long)k->slots,
                         (long long)(used / k->slots), k->sequential ? "Rows" : "columns", (long long)limit);
    return true;
}

static bool input_legal(const accumulate *k, const target *t, const command *c, const stream_shape *in, fault *f)
{
    if (in->dtype != DTYPE_I32 && in->dtype != DTYPE_F32)
        return fault_set(f, E_RUN_CHAIN, c, "cannot sum %s", dtype_row_of(in->dtype)->name);
    if (k->rows != in->rows || k->rows > t->rows || k->rows > t->output_lanes)
        return fault_set(f, E_RUN_CHAIN, c, "has %lld Rows, the stream has %lld", (long long)k->rows, (long long)in->rows);
    if (k->columns > in->packet_elements || k->columns > t->accumulator_columns)
        return fault_set(f, E_RUN_CHAIN, c, "has %lld columns, the stream has %lld", (long long)k->columns, (long long)in->packet_elements);
    return true;
}

bool accumulate_plan(accumulate *k, const target *t, const command *c, const stream_shape *in, fault *f)
{
    *k = (accumulate){.command = c,
                      .sequential = command_get(c, ACCUMULATE_KIND) == 1,
                      .is_float = in->dtype == DTYPE_F32,
                      .rows = command_get(c, ACCUMULATE_ROWS),
                      .columns = command_get(c, ACCUMULATE_COLUMNS),
                      .slots = command_get(c, ACCUMULATE_SLOTS),
                      .lanes = t->output_lanes,
                      .beat_bytes = t->flit_bytes};
    int64_t steps, kept, last_slot, beats;
    if (!input_legal(k, t, c, in, f))
        return false;
    if (!loops_read(k, c, &steps, &kept, &last_slot) || steps != in->packets)
        return fault_set(f, E_RUN_CHAIN, c, "the loops do not make the %lld steps that arrive", (long long)in->packets);
    if (!slots_fit(k, t, c, last_slot, f))
        return false;
    k->beats_each = k->sequential ? k->rows * ((k->columns + k->lanes - 1) / k->lanes) : k->columns;
    if (__builtin_mul_overflow(kept, k->beats_each, &beats))
        return fault_set(f, E_RUN_CHAIN, c, "the number of beats overflows");
    k->shape =
        (stream_shape){in->dtype, t->flit_bytes / 4, t->flit_bytes, beats, 1, STREAM_BEATS, k->sequential ? t->flit_bytes : k->rows * 4, 0};
    return true;
}

/* ---- as a stage of a chain ---- */

typedef struct accumulate_run {
    stream_word *cells; /* slots x columns x Rows */
    uint64_t *seen;     /* per slot: bit of every column that has a value */
    int64_t index[COMMAND_MAX_ENTRIES];
    int64_t slot;
    unsigned started;     /* reduced loops past their first iteration */
    unsigned unfinished;  /* reduced loops before their last iteration */
    unsigned char *beats; /* complete ones that have not been pushed */
    int64_t beat_count;
} accumulate_run;

static bool plan_accumulate(stage *s, chain *c, fault *f)
{
    accumulate *k = s->plan;
    if (!accumulate_plan(k, c->machine->target, s->commands, &s->in, f))
        return false;
    s->out = k->shape;
    return true;
}

static bool accumulate_run_new(stage_run *run)
{
    const accumulate *k = run->stage->plan;
    accumulate_run *r = run->state;
    size_t bytes = (size_t)((CHAIN_BLOCK_FLITS + k->beats_each) * k->beat_bytes);
    r->cells = malloc((size_t)(k->slots * k->columns * k->rows) * sizeof *r->cells);
    r->seen = malloc((size_t)k->slots * sizeof *r->seen);
    r->beats = malloc(bytes);
    if (!r->cells || !r->seen || !r->beats)
        return false;
    memset(r->beats, run->stage->chain->machine->options.poison, bytes);
    return true;
}

static void accumulate_run_free(stage_run *run)
{
    accumulate_run *r = run->state;
    free(r->cells);
    free(r->seen);
    free(r->beats);
}

static bool open_accumulate(stage_run *run)
{
    const accumulate *k = run->stage->plan;
    accumulate_run *r = run->state;
    memset(r->index, 0, sizeof r->index);
    r->slot = r->beat_count = 0;
    r->started = r->unfinished = 0;
    for (unsigned i = 0; i < k->count; i++)
        r->unfinished += k->loops[i].reduced;
    return true;
}

static void advance(const accumulate *k, accumulate_run *r)
{
    for (unsigned i = k->count; i-- > 0;) {
        const accumulate_loop *l = &k->loops[i];
        int64_t now = ++r->index[i];
        if (now < l->size) {
            r->slot += l->slot_stride;
            r->started += l->reduced && now == 1;
            r->unfinished -= l->reduced && now == l->size - 1;
            return;
        }
        r->index[i] = 0;
        r->slot -= l->slot_stride * (l->size - 1);
        r->started -= l->reduced;
        r->unfinished += l->reduced;
    }
}

/* Columns without a value are -0.0 or 0 in `words`: adding them changes nothing. */
static void cells_add(const accumulate *k, stream_word *cells, const stream_word *words)
{
    int64_t count = k->columns * k->rows;
    if (!k->is_float) {
        for (int64_t i = 0; i < count; i++)
            cells[i] += words[i];
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        float a, b;
        memcpy(&a, cells + i, sizeof a);
        memcpy(&b, words + i, sizeof b);
        a += b;
        memcpy(cells + i, &a, sizeof a);
    }
}

static int64_t emit_interleaved(const accumulate *k, const stream_word *cells, unsigned char *beats)
{
    for (int64_t g = 0; g < k->columns; g++)
        memcpy(beats + g * k->beat_bytes, cells + g * k->rows, (size_t)k->rows * sizeof *cells);
    return k->columns;
}

static int64_t emit_sequential(const accumulate *k, const stream_word *cells, unsigned char *beats)
{
    int64_t per_row = k->beats_each / k->rows;
    for (int64_t row = 0; row < k->rows; row++)
        for (int64_t j = 0; j < per_row * k->lanes; j++) {
            uint32_t value = j < k->columns ? cells[j * k->rows + row] : 0;
            int64_t beat = row * per_row + j / k->lanes;
            memcpy(beats + beat * k->beat_bytes + j % k->lanes * 4, &value, sizeof value);
        }
    return k->beats_each;
}

static void absent_to_zero(const accumulate *k, stream_word *cells, uint64_t seen)
{
    for (int64_t g = 0; g < k->columns; g++)
        if (!(seen >> g & 1))
            memset(cells + g * k->rows, 0, (size_t)k->rows * sizeof *cells);
}

static uint64_t all_columns(const accumulate *k)
{
    return (UINT64_C(1) << k->columns) - 1;
}

int64_t accumulate_emit(const accumulate *k, stream_word *cells, uint64_t seen, unsigned char *beats)
{
    if ((seen & all_columns(k)) != all_columns(k))
        absent_to_zero(k, cells, seen);
    return k->sequential ? emit_sequential(k, cells, beats) : emit_interleaved(k, cells, beats);
}

/* One step; writes the beats that are complete and returns their number, at most beats_each; lanes without data are left alone. */
static int64_t accumulate_step(const accumulate *k, accumulate_run *r, const stream_word *words, uint64_t present, unsigned char *beats)
{
    stream_word *cells = r->cells + r->slot * k->columns * k->rows;
    uint64_t *seen = &r->seen[r->slot];
    if (r->started == 0) {
        memcpy(cells, words, (size_t)(k->columns * k->rows) * sizeof *cells);
        *seen = present;
    } else {
        cells_add(k, cells, words);
        *seen |= present;
    }
    int64_t emitted = 0;
    if (r->unfinished == 0)
        emitted = accumulate_emit(k, cells, *seen, beats);
    advance(k, r);
    return emitted;
}

static bool finish_accumulate(stage_run *run)
{
    accumulate_run *r = run->state;
    int64_t count = r->beat_count;
    r->beat_count = 0;
    return count == 0 || stage_push(run->next, r->beats, count);
}

static bool push_accumulate(stage_run *run, const void *items, int64_t count)
{
    const accumulate *k = run->stage->plan;
    accumulate_run *r = run->state;
    const stream_partial *steps = items;
    for (int64_t i = 0; i < count; i++) {
        r->beat_count += accumulate_step(k, r, steps[i].words, steps[i].present, r->beats + r->beat_count * k->beat_bytes);
        if (r->beat_count >= CHAIN_BLOCK_FLITS && !finish_accumulate(run))
            return false;
    }
    return true;
}

static void accumulate_cycles(const stage *s, duration *d)
{
    const accumulate *k = s->plan;
    const target *t = s->chain->machine->target;
    d->fill += t->accumulator_fill_cycles + t->output_fill_cycles;
    d->drains = k->count > 0 && k->loops[0].reduced;
    d->beats = s->out.packets;
    if (d->busy[ENGINE_REDUCER] == 0)
        duration_busy(d, ENGINE_REDUCER, s->in.packets, 1);
}

const stage_type stage_accumulate = {.plan_bytes = sizeof(accumulate),
                                     .run_bytes = sizeof(accumulate_run),
                                     .plan = plan_accumulate,
                                     .run_new = accumulate_run_new,
                                     .run_free = accumulate_run_free,
                                     .open = open_accumulate,
                                     .push = push_accumulate,
                                     .finish = finish_accumulate,
                                     .cycles = accumulate_cycles,
                                     .field = &field_accumulate};
