/* Transpose Engine over a field: an element that leaves is the one of its row in its column; what follows the rows is filling. */
#include "runtime/engine/transpose.h"

#include "runtime/field/engine.h"

static void read_transpose(field_stage_run *r, int64_t first, int64_t count, field_value *out)
{
    const transpose *k = r->stage->plan;
    int64_t flit = k->flit_bytes * 8 / k->bits;
    for (; count > 0; first++, out++, count--) {
        int64_t row = first % flit, column = first / flit % k->out_rows, block = first / flit / k->out_rows;
        if (row >= k->in_rows)
            *out = field_unknown(&r->run->unknowns);
        else
            field_before(r, (block * k->block_flits + row * k->packets_per_col + column / k->valid) * flit + column % k->valid, 1, out);
    }
}

const field_stage field_transpose = {.read = read_transpose};
