#include "runtime/engine/vector_slices.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/engine/exchange.h"
#include "runtime/machine/chain.h"
#include "runtime/machine/proof.h"
#include "runtime/timing/duration.h"
#include "support/integer.h"

static bool plan_slices(stage *s, chain *c, fault *f)
{
    vector_slices *k = s->plan;
    const command *at = s->commands;
    int64_t steps = 1, last = 0, reach;
    *k = (vector_slices){
        .row = vector_op_row_of((unsigned)command_get(at, VECTOR_SLICES_CODE)), .ring = command_get(at, VECTOR_SLICES_RING), .packets = 1};
    if (!k->row || k->row->class != VECTOR_CLASS_SLICES)
        return fault_set(f, E_RUN_CHAIN, at, "there is no reduction over slices 0x%llx", (long long)command_get(at, VECTOR_SLICES_CODE));
    if (k->row->from != s->in.dtype)
        return fault_set(f, E_RUN_CHAIN, at, "%s takes %s elements, the stream has %s", k->row->name, dtype_row_of(k->row->from)->name,
                         dtype_row_of(s->in.dtype)->name);
    k->function = vector_function_of(vector_set_of(c->machine->options.cpu), k->row->op);
    k->identity = vector_identity_of(k->row);
    for (unsigned i = 0; i < at->entry_count; i++) {
        int64_t size = command_entry(at, i, VECTOR_SLICES_SIZE), stride = command_entry(at, i, VECTOR_SLICES_STRIDE),
                place = command_entry(at, i, VECTOR_SLICES_PLACE);
        if (__builtin_mul_overflow(steps, size, &steps) || __builtin_mul_overflow(size - 1, stride, &reach) ||
            __builtin_add_overflow(last, reach, &last))
            return fault_set(f, E_RUN_CHAIN, at, "the number of steps overflows");
        k->packets *= place ? 1 : size;
        k->loops[k->count].size = size;
        k->loops[k->count].stride = stride;
        k->loops[k->count++].place = place;
    }
    if (steps != s->in.packets || last != s->in.packets - 1)
        return fault_set(f, E_RUN_CHAIN, at, "the loops do not make the %lld steps that arrive", (long long)s->in.packets);
    c->mid_units = c->out_units;
    for (int i = 0; i < 4; i++)
        c->out_units.slices[i] = (uint64_t)command_get(at, (command_field)(VECTOR_SLICES_0 + i));
    stream_shape behind = s->in;
    behind.packets = k->packets;
    return vector_pass_plan(s, c, &behind, &k->pass, chain_part(c, &stage_vector), f);
}

int64_t vector_slices_step(const vector_slices *k, int64_t slice, int64_t packet)
{
    int64_t step = 0, place = slice % k->ring;
    for (unsigned i = k->count; i-- > 0;)
        if (k->loops[i].place) {
            step += place / k->loops[i].place % k->loops[i].size * k->loops[i].stride;
        } else {
            step += packet % k->loops[i].size * k->loops[i].stride;
            packet /= k->loops[i].size;
        }
    return step;
}

/* What arrives in a slice is kept for those of its group. */
static bool push_slices(stage_run *r, const void *flits, int64_t count)
{
    int64_t slice = r->unit_index % r->stage->chain->machine->target->slices_per_cluster, bytes = count * r->stage->in.packet_bytes;
    exchange *to = r->record;
    if (!to->slices[slice]) {
        to->slices[slice] = malloc((size_t)(r->stage->in.packets * r->stage->in.packet_bytes) + 1);
        if (!to->slices[slice])
            return fault_memory(r->fault, r->stage->commands, "the packets of a cluster");
    }
    memcpy(to->slices[slice] + to->filled[slice], flits, (size_t)bytes);
    to->filled[slice] += bytes;
    return true;
}

static bool drive_slices(stage_run *r)
{
    enum { BLOCK = 64 };
    const vector_slices *k = r->stage->plan;
    stream_word block[BLOCK * VECTOR_LANES];
    int64_t slice = r->unit_index % r->stage->chain->machine->target->slices_per_cluster, first = slice - slice % k->ring;
    for (int64_t at = 0, n; at < k->packets; at += n) {
        n = smaller(k->packets - at, BLOCK);
        for (int64_t i = 0; i < n * VECTOR_LANES; i++)
            block[i] = k->identity;
        for (int64_t s = first; s < first + k->ring && s < EXCHANGE_MOST_SLICES; s++) {
            const unsigned char *from = r->exchange->slices[s];
            for (int64_t i = 0; from && i < n; i++) {
                stream_word packet[VECTOR_LANES], *to = block + i * VECTOR_LANES;
                memcpy(packet, from + vector_slices_step(k, slice, at + i) * (int64_t)sizeof packet, sizeof packet);
                k->function(to, (const vector_operand[]){{to, 1}, {packet, 1}}, VECTOR_LANES);
            }
        }
        if (!vector_pass_push(r, &k->pass, block, n))
            return false;
    }
    return true;
}

static bool open_slices(stage_run *r)
{
    return vector_pass_open(r, &((const vector_slices *)r->stage->plan)->pass);
}

static unsigned slices_ranges(const stage *s, proof_range *out)
{
    return vector_pass_ranges(&((const vector_slices *)s->plan)->pass, out);
}

static void slices_proof(const stage *s, int64_t unit_index)
{
    vector_pass_proof(s, &((const vector_slices *)s->plan)->pass, unit_index);
}

/* One trip round the ring, then a packet for each cycle. */
static void slices_cycles(const stage *s, duration *d)
{
    const vector_slices *k = s->plan;
    const target *t = s->chain->machine->target;
    d->fill += k->ring * t->vector_ring_cycles + k->pass.units * t->vector_alu_cycles;
    duration_busy(d, ENGINE_VECTOR, larger(k->pass.narrow_packets, k->packets), 1);
}

const stage_type stage_vector_slices = {.plan_bytes = sizeof(vector_slices),
                                        .run_bytes = sizeof(vector_run),
                                        .plan = plan_slices,
                                        .run_free = vector_pass_free,
                                        .open = open_slices,
                                        .push = push_slices,
                                        .drive = drive_slices,
                                        .cycles = slices_cycles,
                                        .ranges = slices_ranges,
                                        .proof_reads = slices_proof,
                                        .field = &field_vector_slices};
