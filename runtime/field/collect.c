/* Collect Engine over a field: packets become whole flits, zeros after them. */
#include "runtime/engine/collect.h"

#include "runtime/field/engine.h"
#include "support/integer.h"

static void read_collect(field_stage_run *r, int64_t first, int64_t count, field_value *out)
{
    const collect *k = r->stage->plan;
    int64_t whole = k->flits_per_packet * k->flit_elements, live = r->stage->in.packet_elements;
    for (int64_t part; count > 0; first += part, out += part, count -= part) {
        int64_t packet = first / whole, element = first % whole;
        if (live == whole)
            part = count;
        else if (element < live)
            part = smaller(count, live - element);
        else
            part = smaller(count, whole - element);
        if (element < live)
            field_before(r, packet * live + element, part, out);
        for (int64_t i = 0; element >= live && i < part; i++)
            out[i] = 0;
    }
}

static int64_t map_collect(const field_stage_run *r, field_span of, field_span *from)
{
    const collect *k = r->stage->plan;
    int64_t whole = k->flits_per_packet * k->flit_elements, live = r->stage->in.packet_elements, packet = of.first / whole,
            element = of.first % whole;
    bool zeros = element >= live, packets = of.apart % whole == 0;
    *from =
        live == whole ? of : (field_span){zeros ? FIELD_ZEROS : packet * live + element, packets ? of.apart / whole * live : of.apart, 0};
    if (live == whole || packets)
        return of.count;
    int64_t n = field_span_within(of, whole);
    return zeros || n == 1 ? n : smaller(n, (live - 1 - element) / of.apart + 1);
}

static void read_collect_spans(field_stage_run *r, const field_span *spans, size_t count, field_value *out)
{
    field_mapped_spans(r, map_collect, spans, count, out);
}

const field_stage field_collect = {.moves = true, .read = read_collect, .read_spans = read_collect_spans};
