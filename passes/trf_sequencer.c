/* Rules ("TRF Sequencer"). reg_read_size: the largest power of two of bytes, at most 64, on which the innermost parts of the
 * TRF Element and of OutPacket agree. The rest of the packet repeats those bytes, so it may not name anything stored. The
 * entries walk OutTime over Element; what is not stored has stride 0. Strides are bytes and multiples of the read. */
#include "passes/trf_sequencer.h"

#include "passes/remedy.h"

/* Is each run of n lanes the first run over again, for another value of what is outside? A group that does not cut there is not. */
static bool repeats(pass_context *p, const mapping *packet, int64_t n)
{
    return mapping_equal(p->mappings, pass_pair(p, pass_outer(p, packet, n), pass_inner(p, packet, n)), packet);
}

static int64_t read_elements(pass_context *p, const mapping *element, const mapping *packet, dtype type)
{
    for (int64_t bytes = p->target->mac_width_bytes; bytes >= 1; bytes /= 2) {
        int64_t bits = dtype_row_of(type)->bits;
        if (bytes * 8 % bits)
            continue;
        int64_t n = bytes * 8 / bits;
        if (element->size % n == 0 && packet->size % n == 0 &&
            mapping_equal(p->mappings, pass_inner(p, element, n), pass_inner(p, packet, n)) && repeats(p, packet, n))
            return n;
    }
    return 0;
}

/* Does the packet beyond the read ask for stored elements that are not beside each other? */
static const mapping *stored_outside_read(pass_context *p, const mapping *element, const mapping *rest)
{
    sequence seq;
    if (!sequence_derive(p->mappings, element, rest, mapping_identity(p->mappings), SEQUENCE_READ, &seq))
        return seq.term;
    for (size_t i = 0; i < seq.count; i++)
        if (seq.parts[i].stride != 0)
            return seq.parts[i].term;
    return NULL;
}

/* The walk in the order of OutTime alone: the packet is read at each of its steps. */
static bool trf_accepts(pass_context *p, const op *o, const walk_request *walk)
{
    sequence seq;
    int64_t bits = dtype_row_of(o->out.dtype)->bits, n = read_elements(p, walk->buffer, o->out.part[PACKET], o->out.dtype);
    if (n == 0 || stored_outside_read(p, walk->buffer, pass_outer(p, o->out.part[PACKET], n)) ||
        !sequence_derive(p->mappings, walk->buffer, walk->time, mapping_identity(p->mappings), SEQUENCE_READ, &seq) ||
        !sequence_fit(p->mappings, &seq, sequencer_limits(p->target, (bits + 7) / 8)))
        return false;
    for (size_t i = 0; i < seq.count; i++)
        if (seq.parts[i].stride % n)
            return false;
    return true;
}

static void sequence_one(pass_context *p, kernel *k, op *o)
{
    const mapping *element = o->weights->out.part[ELEMENT], *packet = o->out.part[PACKET], *time = o->out.part[TIME];
    int64_t bits = dtype_row_of(o->out.dtype)->bits, n = read_elements(p, element, packet, o->out.dtype);
    if (n == 0) {
        diag *d = pass_refuse(p, k, o, PACKET, E_TRF_READ, "no reg_read_size: the innermost parts of the TRF Element %s and of OutPacket %s differ",
                              pass_text(p, element), pass_text(p, packet));
        diag_help(p->diags, d, "store the packet's innermost axis innermost in the TRF");
        return;
    }
    const mapping *outside = stored_outside_read(p, element, pass_outer(p, packet, n));
    if (outside) {
        diag *d = pass_refuse(p, k, o, PACKET, E_TRF_PACKET,
                              "OutPacket %s needs `%s` of the TRF Element %s in one cycle, but only %lld bytes lie together in both",
                              pass_text(p, packet), mapping_text(outside, p->arena), pass_text(p, element), (long long)(n * bits / 8));
        diag_help(p->diags, d, "store the weights in the packet's order, or move `%s` to OutTime", mapping_text(outside, p->arena));
        return;
    }
    sequence seq;
    bool ok = sequence_derive(p->mappings, element, time, mapping_identity(p->mappings), SEQUENCE_READ, &seq);
    if (!ok || !sequence_fit(p->mappings, &seq, sequencer_limits(p->target, (bits + 7) / 8))) {
        diag *d = pass_refuse(p, k, o, TIME, sequence_id(&seq), "the TRF Sequencer cannot walk OutTime: %s", sequence_reason(p, &seq));
        sequence_explain(p, d, &seq, element, time, packet,
                         remedy_find(p, o, &seq, &(walk_request){element, NULL, time, packet, true}, trf_accepts));
        return;
    }
    int64_t read_bits = n * bits;
    for (size_t i = 0; i < seq.count; i++)
        if (seq.parts[i].stride * bits % read_bits) {
            diag *d = pass_refuse(p, k, o, TIME, E_TRF_ALIGN, "the stride of `%s`, %lld%s bytes, is not a multiple of reg_read_size, %lld bytes",
                                  mapping_text(seq.parts[i].term, p->arena), (long long)(seq.parts[i].stride * bits / 8),
                                  seq.parts[i].stride * bits % 8 ? ".5" : "", (long long)(read_bits / 8));
            diag_help(p->diags, d, "pad the TRF Element so that its inner part is a multiple of %lld elements", (long long)n);
            return;
        }
    o->align->reg_read_size = read_bits / 8;
    o->align->broadcast = packet->size / n;
    sequencer_config *s = &o->align->trf_sequencer;
    *s = (sequencer_config){.memory = "trf", .access = "read", .unit = "byte", .packet = n, .access_bytes = read_bits / 8,
                            .contiguous_bytes = sequence_run(&seq) * bits / 8};
    sequencer_config_fill(s, &seq, 1);
    for (uint32_t i = 0; i < s->count; i++)
        s->entries[i].stride = s->entries[i].stride * bits / 8;
}

void pass_trf_sequencer(pass_context *p, kernel *k)
{
    pass_each(p, k, IR_ALIGN, sequence_one);
}
