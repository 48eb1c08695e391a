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

const field_stage field_switch = {.moves = true, .state_bytes = sizeof(switch_state), .open = open_switch, .read = read_switch};
