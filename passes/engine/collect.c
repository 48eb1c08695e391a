/* Rule ("Collect Engine", Packet Normalization): pad the packet to whole flits of 32 bytes, split at the flit. The inner 32
 * bytes are the new Packet; the flit count joins Time on the inside. */
#include "passes/engine/collect.h"

#include "passes/verify.h"

bool collect_flits(pass_context *p, const tensor *in, int64_t *flits, const mapping **time, const mapping **packet)
{
    int64_t flit_bytes = p->target->flit_bytes, flit = elements_of(in->dtype, flit_bytes);
    int64_t bytes = dtype_bytes(in->dtype, in->part[PACKET]->size);
    *time = *packet = NULL;
    if (bytes < 0)
        return false;
    *flits = (bytes + flit_bytes - 1) / flit_bytes;
    const mapping *padded = pass_pad(p, in->part[PACKET], *flits * flit);
    *packet = pass_inner(p, padded, flit);
    const mapping *count = pass_outer(p, padded, flit);
    *time = count ? pass_pair(p, in->part[TIME], count) : NULL;
    return *packet && *time;
}

static void collect_one(pass_context *p, kernel *k, op *o)
{
    const tensor *in = &op_input(o)->out;
    tensor *out = &o->out;
    int64_t flit_bytes = p->target->flit_bytes, flits = 0;
    int64_t bytes = dtype_bytes(in->dtype, in->part[PACKET]->size);
    const mapping *time, *packet;
    bool derived = collect_flits(p, in, &flits, &time, &packet);
    if (bytes < 0) {
        diag *d = pass_refuse(p, k, o, PACKET, E_COLLECT_BYTES, "a packet of %lld %s elements is not a whole number of bytes",
                              (long long)in->part[PACKET]->size, dtype_row_of(in->dtype)->name);
        diag_help(p->diags, d, "fetch a packet with an even number of elements: pad the innermost axis");
        return;
    }
    if (!derived) {
        diag *d = pass_refuse(p, k, o, TIME, E_MAP_SIZE, "%s steps of %s have more than 2^62 positions", pass_text(p, in->part[TIME]),
                              arena_count(p->arena, flits, "flit"));
        diag_help(p->diags, d, "let Time or Packet be smaller");
        return;
    }
    if (!out->part[PACKET])
        out->part[PACKET] = packet;
    if (!out->part[TIME])
        out->part[TIME] = time;
    diag *d = NULL;
    int64_t out_bytes = dtype_bytes(out->dtype, out->part[PACKET]->size);
    if (out_bytes != flit_bytes)
        d = pass_refuse(p, k, o, PACKET, E_COLLECT_FLIT, "Collect output packet must be exactly 32 bytes (one flit), got %s from %s of %s",
                        arena_count(p->arena, out_bytes, "byte"), pass_text(p, out->part[PACKET]), dtype_row_of(out->dtype)->name);
    else if (!mapping_equal(p->mappings, out->part[PACKET], packet))
        d = pass_refuse(p, k, o, PACKET, E_COLLECT_PACKET, "Collect packet mismatch: the inner flit of packet %s is %s, not %s",
                        pass_text(p, in->part[PACKET]), pass_text(p, packet), pass_text(p, out->part[PACKET]));
    else if (!mapping_equal(p->mappings, out->part[TIME], time))
        d = pass_refuse(p, k, o, TIME, E_COLLECT_TIME, "Collect time mismatch: a packet of %s is %s, so time becomes %s, not %s",
                        arena_count(p->arena, bytes, "byte"), arena_count(p->arena, flits, "flit"), pass_text(p, time),
                        pass_text(p, out->part[TIME]));
    if (d) {
        pass_help_parts(p, o, d, "this stream collects as", (written_part){TIME, "Time", time}, (written_part){PACKET, "Packet", packet});
        return;
    }
    if (flits > p->target->collect_packet_flits) {
        d = pass_refuse(p, k, o, PACKET, E_STREAM_SIZE, "a packet of %s; a command counts %lld at most",
                        arena_count(p->arena, flits, "flit"), (long long)p->target->collect_packet_flits);
        diag_help(p->diags, d, "fetch smaller packets: move axes from Packet to Time");
        return;
    }
    verify_counts(p, k, o);
    if (o->bad)
        return;
    o->collect = ARENA_NEW(p->arena, collect_config);
    *o->collect = (collect_config){.flits_per_packet = flits, .pad_bytes = flits * flit_bytes - bytes};
}

void pass_collect(pass_context *p, kernel *k)
{
    pass_each(p, k, IR_COLLECT, collect_one);
}
