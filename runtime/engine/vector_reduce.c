#include "runtime/engine/vector_reduce.h"

#include <string.h>

#include "support/integer.h"

stream_word vector_identity_of(const vector_op_row *row)
{
    switch (row->op) {
    case VECTOR_SLICES_MAX_I32:
    case VECTOR_REDUCE_MAX_I32: return UINT32_C(0x80000000);
    case VECTOR_SLICES_MIN_I32:
    case VECTOR_REDUCE_MIN_I32: return UINT32_C(0x7fffffff);
    case VECTOR_SLICES_MAX_F32:
    case VECTOR_REDUCE_MAX_F32: return UINT32_C(0xff800000); /* -infinity */
    case VECTOR_SLICES_MUL_F32: return UINT32_C(0x3f800000); /* 1 */
    case VECTOR_SLICES_MIN_F32:
    case VECTOR_REDUCE_MIN_F32: return UINT32_C(0x7f800000);
    default: return 0;
    }
}

/* ---- the commands ---- */

static bool plan_loops(vector_reduction *r, const command *c, int64_t packets, fault *f)
{
    int64_t all = 1, last_slot = 0;
    bool inside = false;
    r->results = 1;
    for (unsigned i = 0; i < c->entry_count; i++) {
        accumulate_loop loop = {command_entry(c, i, VECTOR_REDUCE_LOOP_SIZE), command_entry(c, i, VECTOR_REDUCE_LOOP_SLOT),
                                command_entry(c, i, VECTOR_REDUCE_LOOP_REDUCED) != 0};
        inside |= loop.reduced;
        if ((!inside || loop.reduced) && loop.slot_stride)
            return fault_set(f, E_RUN_CHAIN, c, "loop %u selects no slot, and has a slot stride", i);
        if (__builtin_mul_overflow(all, loop.size, &all))
            return fault_set(f, E_RUN_CHAIN, c, "the number of packets overflows");
        r->results *= loop.reduced ? 1 : loop.size;
        last_slot += smaller(loop.size - 1, REDUCE_MOST_SLOTS) * loop.slot_stride;
        r->loops[r->count++] = loop;
    }
    if (all != packets)
        return fault_set(f, E_RUN_CHAIN, c, "the loops do not make the %lld packets that arrive", (long long)packets);
    if (last_slot >= r->slots)
        return fault_set(f, E_RUN_ACCESS, c, "reaches slot %lld, the command has %lld slots", (long long)last_slot, (long long)r->slots);
    return true;
}

static bool plan_counter(vector_counter *v, const command *c, int64_t flits, fault *f)
{
    int64_t all = 1, sum = 0, part;
    *v = (vector_counter){.kind = (valid_count_kind)command_get(c, VALID_COUNT_KIND),
                          .span = command_get(c, VALID_COUNT_SPAN),
                          .mask = command_get(c, VALID_COUNT_MASK),
                          .slice = command_get(c, VALID_COUNT_SLICE),
                          .limit = command_get(c, VALID_COUNT_LIMIT),
                          .loop_count = c->entry_count};
    if (v->kind == VALID_COUNT_CLIPPER ? v->mask || v->slice : v->span)
        return fault_set(f, E_RUN_CHAIN, c, "has a field of the other kind");
    for (unsigned i = 0; i < c->entry_count; i++) {
        v->loops[i].size = command_entry(c, i, VALID_COUNT_SIZE);
        v->loops[i].stride = command_entry(c, i, VALID_COUNT_STRIDE);
        if (__builtin_mul_overflow(all, v->loops[i].size, &all) ||
            __builtin_mul_overflow(v->loops[i].size - 1, v->loops[i].stride, &part) || __builtin_add_overflow(sum, part, &sum))
            return fault_set(f, E_RUN_CHAIN, c, "the index overflows");
    }
    if (all != flits && !(all == 1 && sum == 0))
        return fault_set(f, E_RUN_CHAIN, c, "the loops do not make the %lld flits that arrive", (long long)flits);
    return true;
}

bool vector_reduction_plan(vector_reduction *r, const command *c, const command *counts, unsigned count, int64_t packets, bool splits,
                           const vector_set *set, fault *f)
{
    unsigned clippers = 0;
    *r = (vector_reduction){.row = vector_op_row_of((unsigned)command_get(c, VECTOR_REDUCE_CODE)),
                            .tree = command_get(c, VECTOR_REDUCE_TREE) != 0,
                            .splits = splits,
                            .slots = command_get(c, VECTOR_REDUCE_SLOTS),
                            .packets = packets};
    if (!r->row || r->row->class != VECTOR_CLASS_REDUCE)
        return fault_set(f, E_RUN_CHAIN, c, "there is no reduction 0x%llx", (long long)command_get(c, VECTOR_REDUCE_CODE));
    r->function = vector_function_of(set, r->row->op);
    r->identity = vector_identity_of(r->row);
    if (!plan_loops(r, c, packets, f))
        return false;
    for (unsigned i = 0; i < count; i++) {
        if (r->counter_count == REDUCE_MOST_COUNTS)
            return fault_set(f, E_RUN_CHAIN, &counts[i], "is one of more than %d of a reduction", REDUCE_MOST_COUNTS);
        vector_counter *v = &r->counters[r->counter_count++];
        if (!plan_counter(v, &counts[i], splits ? packets / 2 : packets, f))
            return false;
        clippers += v->kind == VALID_COUNT_CLIPPER;
        if (clippers > 1 || r->counter_count - clippers > REDUCE_MOST_COUNTS - 1)
            return fault_set(f, E_RUN_CHAIN, &counts[i], "is one packet clipper or time filter more than there are");
    }
    return true;
}

/* ---- lanes ---- */

static int64_t index_of(const vector_counter *v, int64_t flit)
{
    int64_t index = 0;
    for (unsigned i = v->loop_count; i-- > 0; flit /= v->loops[i].size)
        index += flit % v->loops[i].size * v->loops[i].stride;
    return index;
}

static bool lets_through(const vector_counter *v, int64_t slice, int64_t flit)
{
    int64_t masked = slice & v->mask;
    if (masked < v->slice)
        return true;
    if (masked > v->slice && v->kind == VALID_COUNT_SLICE_MAJOR)
        return false;
    return index_of(v, flit) < v->limit;
}

int64_t vector_reduction_lanes(const vector_reduction *r, int64_t slice, int64_t packet)
{
    int64_t flit = r->splits ? packet / 2 : packet, valid = 2 * REDUCE_LANES;
    for (unsigned i = 0; i < r->counter_count; i++) {
        const vector_counter *v = &r->counters[i];
        if (v->kind == VALID_COUNT_CLIPPER)
            valid = smaller(valid, larger(smaller(v->limit - index_of(v, flit), v->span), 0));
        else if (!lets_through(v, slice, flit))
            valid = 0;
    }
    if (r->splits && packet % 2)
        valid -= REDUCE_LANES;
    return larger(smaller(valid, REDUCE_LANES), 0);
}

/* ---- at work ---- */

enum { MOST_RUN = 64 /* packets */ };

static stream_word apply(const vector_reduction *r, stream_word a, stream_word b)
{
    stream_word out;
    r->function(&out, (const vector_operand[]){{&a, 0}, {&b, 0}}, 1);
    return out;
}

/* Neighbours, then neighbours of those. */
static stream_word tree_of(const vector_reduction *r, const stream_word *lane, int64_t valid)
{
    stream_word left = valid > 1 ? apply(r, lane[0], lane[1]) : lane[0];
    if (valid <= 2)
        return left;
    return apply(r, left, valid > 3 ? apply(r, lane[2], lane[3]) : lane[2]);
}

/* On by `packets` of the innermost loop, which does not end before them. */
static void step(const vector_reduction *r, vector_reduction_run *at, int64_t packets)
{
    at->packet += packets;
    for (unsigned i = r->count; i-- > 0; packets = 1) {
        at->index[i] += packets;
        if (at->index[i] < r->loops[i].size)
            return;
        at->index[i] = 0;
    }
}

/* Whole packets that go into one cell, one after the other. */
static int64_t run_of(const vector_reduction *r, const vector_reduction_run *at, int64_t left)
{
    const accumulate_loop *inner = r->count ? &r->loops[r->count - 1] : NULL;
    bool whole = !r->counter_count && inner && inner->reduced;
    return whole ? smaller(smaller(left, inner->size - at->index[r->count - 1]), MOST_RUN) : 1;
}

/* What a loop writes it reads in its next turn: each packet is folded onto what the one before it left. */
static void fold(const vector_reduction *r, stream_word *cell, const stream_word *words, int64_t packets)
{
    stream_word sums[(MOST_RUN + 1) * REDUCE_LANES], pairs[2][MOST_RUN];
    int64_t width = r->tree ? 1 : REDUCE_LANES;
    if (r->tree) {
        for (int i = 0; i < 2; i++)
            r->function(pairs[i], (const vector_operand[]){{words + 2 * i, REDUCE_LANES}, {words + 2 * i + 1, REDUCE_LANES}}, packets);
        r->function(pairs[0], (const vector_operand[]){{pairs[0], 1}, {pairs[1], 1}}, packets);
    }
    memcpy(sums, cell, (size_t)width * sizeof *sums);
    r->function(sums + width, (const vector_operand[]){{sums, 1}, {r->tree ? pairs[0] : words, 1}}, packets * width);
    memcpy(cell, sums + packets * width, (size_t)width * sizeof *sums);
}

int64_t vector_reduction_run_packets(const vector_reduction *r, vector_reduction_run *at, int64_t slice, stream_word *words, int64_t count,
                                     unsigned char poison)
{
    int64_t results = 0;
    for (int64_t n = 0, run; n < count; n += run, step(r, at, run)) {
        const stream_word *lane = words + n * REDUCE_LANES;
        bool first = true, last = true;
        int64_t slot = 0, valid = r->counter_count ? vector_reduction_lanes(r, slice, at->packet) : REDUCE_LANES;
        run = run_of(r, at, count - n);
        for (unsigned i = 0; i < r->count; i++) {
            first = first && (!r->loops[i].reduced || at->index[i] == 0);
            last = last && (!r->loops[i].reduced || at->index[i] + (i + 1 == r->count ? run : 1) == r->loops[i].size);
            slot += at->index[i] * r->loops[i].slot_stride;
        }
        stream_word *cell = &at->cells[slot * REDUCE_LANES];
        for (int i = 0; first && i < REDUCE_LANES; i++)
            cell[i] = r->identity;
        if (run > 1)
            fold(r, cell, lane, run);
        else if (!r->tree)
            r->function(cell, (const vector_operand[]){{cell, 1}, {lane, 1}}, valid);
        else if (valid > 0)
            cell[0] = apply(r, cell[0], tree_of(r, lane, valid));
        if (!last)
            continue;
        stream_word *out = words + results++ * REDUCE_LANES; /* never past what was read */
        memcpy(out, cell, REDUCE_LANES * sizeof *out);
        if (r->tree)
            memset(out + 1, poison, (REDUCE_LANES - 1) * sizeof *out);
    }
    return results;
}

/* ---- backwards ---- */

void vector_reduction_packets(const vector_reduction *r, int64_t result, void (*call)(void *of, int64_t packet), void *of)
{
    int64_t index[COMMAND_MAX_ENTRIES] = {0};
    for (unsigned i = r->count; i-- > 0;)
        if (!r->loops[i].reduced) {
            index[i] = result % r->loops[i].size;
            result /= r->loops[i].size;
        }
    for (bool more = true; more;) {
        int64_t packet = 0;
        for (unsigned i = 0; i < r->count; i++)
            packet = packet * r->loops[i].size + index[i];
        call(of, packet);
        more = false;
        for (unsigned i = r->count; i-- > 0 && !more;)
            if (r->loops[i].reduced) {
                more = ++index[i] < r->loops[i].size;
                index[i] = more ? index[i] : 0;
            }
    }
}
