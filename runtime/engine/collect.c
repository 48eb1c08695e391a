#include "runtime/engine/collect.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/machine/chain.h"
#include "runtime/timing/duration.h"
#include "support/integer.h"

static bool collect_command_legal(const stream_shape *in, const command *c, fault *f)
{
    dtype type = (dtype)command_get(c, COLLECT_DTYPE);
    if (in->rows != 1)
        return fault_set(f, E_RUN_CHAIN, c, "cannot follow a contraction tensor of %lld Rows", (long long)in->rows);
    if (type != in->dtype)
        return fault_set(f, E_RUN_CHAIN, c, "takes %s elements, the stream has %s", dtype_row_of(type)->name,
                         dtype_row_of(in->dtype)->name);
    if (command_get(c, COLLECT_PACKET_ELEMENTS) != in->packet_elements)
        return fault_set(f, E_RUN_CHAIN, c, "takes packets of %lld elements, the stream has %lld",
                         (long long)command_get(c, COLLECT_PACKET_ELEMENTS), (long long)in->packet_elements);
    return true;
}

bool collect_plan(collect *out, const target *t, const stream_shape *in, const command *c, const command *next, fault *f)
{
    *out = (collect){.flit_bytes = t->flit_bytes, .packet_bytes = in->packet_bytes, .shape = *in};
    out->flit_elements = t->flit_bytes * 8 / dtype_row_of(in->dtype)->bits;
    if (c && !collect_command_legal(in, c, f))
        return false;
    out->flits_per_packet = c ? command_get(c, COLLECT_FLITS) : 1;
    if (!c && (in->packet_bytes != t->flit_bytes || in->rows != 1))
        return fault_set(f, E_RUN_CHAIN, next, "takes flits of %lld bytes, the stream has packets of %lld bytes and %lld Rows",
                         (long long)t->flit_bytes, (long long)in->packet_bytes, (long long)in->rows);
    if (out->flits_per_packet * t->flit_bytes < in->packet_bytes)
        return fault_set(f, E_RUN_CHAIN, c, "%lld flits are too few for a packet of %lld bytes", (long long)out->flits_per_packet,
                         (long long)in->packet_bytes);
    out->shape.packet_elements = out->flit_elements;
    out->shape.packet_bytes = out->shape.computed_bytes = t->flit_bytes;
    out->shape.form = STREAM_FLITS;
    if (__builtin_mul_overflow(in->packets, out->flits_per_packet, &out->shape.packets))
        return fault_set(f, E_RUN_CHAIN, c, "the number of flits overflows");
    return true;
}

bool collect_has_places(const collect *k, const stage_run *from, int64_t flits)
{
    const stage_type *t = from->stage->type;
    return k->packet_bytes == k->flits_per_packet * k->flit_bytes && t->has_places && t->has_places(from, flits * k->flit_elements);
}

void collect_read(const collect *k, collect_run *r, stage_run *from, unsigned char *to, int64_t flits)
{
    if (k->packet_bytes == k->flits_per_packet * k->flit_bytes) {
        from->stage->type->read(from, to, flits * k->flit_elements);
        return;
    }
    while (flits > 0) {
        int64_t left = k->flits_per_packet - r->flit;
        int64_t part = flits < left ? flits : left;
        int64_t bytes = part * k->flit_bytes;
        int64_t live = k->packet_bytes - r->flit * k->flit_bytes;
        live = live < 0 ? 0 : live < bytes ? live : bytes;
        if (live > 0)
            from->stage->type->read(from, to, live * k->flit_elements / k->flit_bytes);
        memset(to + live, 0, (size_t)(bytes - live));
        to += bytes, flits -= part;
        r->flit = (r->flit + part) % k->flits_per_packet;
    }
}

/* ---- as a stage of a chain ---- */

typedef struct collect_stage_run {
    collect_run at;
    unsigned char *flits; /* a block of them */
} collect_stage_run;

static bool plan_collect(stage *s, chain *c, fault *f)
{
    collect *k = s->plan;
    if (!collect_plan(k, c->machine->target, &s->in, s->commands, chain_peek(c), f))
        return false;
    s->out = k->shape;
    return true;
}

static bool collect_run_new(stage_run *r)
{
    collect_stage_run *at = r->state;
    at->flits = malloc((size_t)(CHAIN_BLOCK_FLITS * ((const collect *)r->stage->plan)->flit_bytes));
    return at->flits;
}

static void collect_run_free(stage_run *r)
{
    free(((collect_stage_run *)r->state)->flits);
}

static bool open_collect(stage_run *r)
{
    ((collect_stage_run *)r->state)->at = (collect_run){0};
    return true;
}

static bool drive_collect(stage_run *r)
{
    const collect *k = r->stage->plan;
    collect_stage_run *at = r->state;
    for (int64_t left = k->shape.packets, n; left > 0; left -= n) {
        n = smaller(left, CHAIN_BLOCK_FLITS);
        collect_read(k, &at->at, r->before, at->flits, n);
        if (!stage_push(r->next, at->flits, n))
            return false;
    }
    return true;
}

static void collect_cycles(const stage *s, duration *d)
{
    const collect *k = s->plan;
    d->items = k->shape.packets;
    d->item_cycles = duration_arrival(s->chain, 1, &d->in);
    duration_busy(d, ENGINE_COLLECT, k->shape.packets, 1);
}

const stage_type stage_collect = {.plan_bytes = sizeof(collect),
                                  .run_bytes = sizeof(collect_stage_run),
                                  .plan = plan_collect,
                                  .run_new = collect_run_new,
                                  .run_free = collect_run_free,
                                  .open = open_collect,
                                  .drive = drive_collect,
                                  .cycles = collect_cycles,
                                  .field = &field_collect};
