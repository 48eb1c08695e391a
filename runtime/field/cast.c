/* Cast Engine over a field: a cast is the identity; what follows the narrowed values is filling. */
#include "runtime/field/engine.h"
#include "support/integer.h"

static void read_cast(field_stage_run *r, int64_t first, int64_t count, field_value *out)
{
    int64_t wide = r->run->machine->plans->target->flit_bytes / 4, each = r->stage->out.packet_elements;
    for (int64_t part; count > 0; first += part, out += part, count -= part) {
        int64_t flit = first / each, element = first % each;
        part = element < wide ? smaller(count, wide - element) : smaller(count, each - element);
        if (element < wide)
            field_before(r, flit * wide + element, part, out);
        for (int64_t i = 0; element >= wide && i < part; i++)
            out[i] = field_unknown(&r->run->unknowns);
    }
}

const field_stage field_cast = {.moves = true, .read = read_cast};
