#include "runtime/collect.h"

#include <string.h>

static bool collect_command_legal(const stream_shape *in, const command *c, fault *f)
{
    dtype type = (dtype)command_get(c, COLLECT_DTYPE);
    if (in->rows != 1)
        return fault_set(f, E_RUN_CHAIN, c, "cannot follow a contraction tensor of %lld Rows",
                         (long long)in->rows);
    if (type != in->dtype)
        return fault_set(f, E_RUN_CHAIN, c, "takes %s elements, the stream has %s", dtype_row_of(type)->name,
                         dtype_row_of(in->dtype)->name);
    if (command_get(c, COLLECT_PACKET_ELEMENTS) != in->packet_elements)
        return fault_set(f, E_RUN_CHAIN, c, "takes packets of %lld elements, the stream has %lld",
                         (long long)command_get(c, COLLECT_PACKET_ELEMENTS), (long long)in->packet_elements);
    return true;
}

bool collect_plan(collect *out, const target *t, const stream_shape *in, const command *c,
                  const command *next, fault *f)
{
    *out = (collect){.flit_bytes = t->flit_bytes, .packet_bytes = in->packet_bytes, .shape = *in};
    out->flit_elements = t->flit_bytes * 8 / dtype_row_of(in->dtype)->bits;
    if (c && !collect_command_legal(in, c, f))
        return false;
    out->flits_per_packet = c ? command_get(c, COLLECT_FLITS) : 1;
    if (!c && (in->packet_bytes != t->flit_bytes || in->rows != 1))
        return fault_set(f, E_RUN_CHAIN, next,
                         "takes flits of %lld bytes, the stream has packets of %lld bytes and %lld Rows",
                         (long long)t->flit_bytes, (long long)in->packet_bytes, (long long)in->rows);
    if (out->flits_per_packet * t->flit_bytes < in->packet_bytes)
        return fault_set(f, E_RUN_CHAIN, c, "%lld flits are too few for a packet of %lld bytes",
                         (long long)out->flits_per_packet, (long long)in->packet_bytes);
    out->shape.packet_elements = out->flit_elements;
    out->shape.packet_bytes = t->flit_bytes;
    if (__builtin_mul_overflow(in->packets, out->flits_per_packet, &out->shape.packets))
        return fault_set(f, E_RUN_CHAIN, c, "the number of flits overflows");
    return true;
}

bool collect_has_places(const collect *k, const source *s, int64_t flits)
{
    return k->packet_bytes == k->flits_per_packet * k->flit_bytes && source_has_places(s, flits * k->flit_elements);
}

void collect_read(const collect *k, collect_run *r, const source *s, source_run *sr, unsigned char *to,
                  int64_t flits)
{
    if (k->packet_bytes == k->flits_per_packet * k->flit_bytes) {
        source_read(s, sr, to, flits * k->flit_elements);
        return;
    }
    while (flits > 0) {
        int64_t left = k->flits_per_packet - r->flit;
        int64_t part = flits < left ? flits : left;
        int64_t bytes = part * k->flit_bytes;
        int64_t live = k->packet_bytes - r->flit * k->flit_bytes;
        live = live < 0 ? 0 : live < bytes ? live : bytes;
        if (live > 0)
            source_read(s, sr, to, live * k->flit_elements / k->flit_bytes);
        memset(to + live, 0, (size_t)(bytes - live));
        to += bytes, flits -= part;
        r->flit = (r->flit + part) % k->flits_per_packet;
    }
}
