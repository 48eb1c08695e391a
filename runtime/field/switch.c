/* Switch Engine over a field: an element that leaves is asked of the source in the slice in which its packet went in. */
#include "runtime/engine/switch.h"

#include "runtime/field/engine.h"
#include "support/integer.h"

typedef struct switch_state {
    unsigned char from[EXCHANGE_MOST_SLICES];
} switch_state;

static bool open_switch(field_stage_run *r)
{
    const routes *k = r->stage->plan;
    return k->topology != TOPOLOGY_CUSTOM || routes_copied(k, r->run->unit % k->slices, ((switch_state *)r->state)->from) == k->copied;
}

static bool has_packets(const chain *c, int64_t slice)
{
    return c->units.slices[slice / 64 % 4] >> slice % 64 & 1;
}

static void read_switch(field_stage_run *r, int64_t first, int64_t count, field_value *out)
{
    const routes *k = r->stage->plan;
    int64_t packet = r->stage->in.packet_elements, unit = r->run->unit;
    for (int64_t part; count > 0; first += part, out += part, count -= part) {
        int64_t slice, step;
        routes_origin(k, unit % k->slices, first / packet, ((switch_state *)r->state)->from, &slice, &step);
        part = smaller(count, packet - first % packet);
        if (has_packets(r->run->chain, slice))
            field_before_in(r, unit - unit % k->slices + slice, step * packet + first % packet, part, out);
        for (int64_t i = 0; !has_packets(r->run->chain, slice) && i < part; i++)
            out[i] = field_unknown(&r->run->unknowns);
    }
}

/* A list goes to one slice after the other, each with as many as follow each other. */
static void read_switch_spans(field_stage_run *r, const field_span *spans, size_t count, field_value *out)
{
    const routes *k = r->stage->plan;
    int64_t packet = r->stage->in.packet_elements, unit = r->run->unit, base = unit - unit % k->slices, now = -1;
    field_spans asked = {0};
    field_value *to = out; /* of what is asked */
    for (size_t i = 0; i < count; i++)
        for (int64_t done = 0, n; done < spans[i].count; done += n, out += n) {
            field_span of = {spans[i].first + done * spans[i].apart, spans[i].apart, spans[i].count - done};
            int64_t slice, step;
            n = field_span_within(of, packet);
            routes_origin(k, unit % k->slices, of.first / packet, ((switch_state *)r->state)->from, &slice, &step);
            if (asked.count > 0 && slice != now)
                field_before_spans_in(r, base + now, &asked, to);
            to = asked.count > 0 ? to : out;
            now = slice;
            if (has_packets(r->run->chain, slice))
                field_spans_add(&asked, (field_span){step * packet + of.first % packet, of.apart, n});
            for (int64_t j = 0; !has_packets(r->run->chain, slice) && j < n; j++)
                out[j] = field_unknown(&r->run->unknowns);
        }
    if (asked.count > 0)
        field_before_spans_in(r, base + now, &asked, to);
    field_spans_free(&asked);
}

const field_stage field_switch = {
    .moves = true, .state_bytes = sizeof(switch_state), .open = open_switch, .read = read_switch, .read_spans = read_switch_spans};
