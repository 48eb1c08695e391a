/* Transpose Engine over a field: an element that leaves is the one of its row in its column; what follows the rows is filling. What comes
 * before it may be there in order only (a contraction's sums), so where all is read a block is held until the next one. */
#include "runtime/engine/transpose.h"

#include <stdlib.h>

#include "runtime/field/engine.h"
#include "runtime/machine/fault.h"

typedef struct transpose_state {
    field_value *block; /* of the flits at hand; NULL: none yet */
    int64_t number;     /* of the block */
} transpose_state;

/* The flits of a block, in order; NULL with the fault. */
static const field_value *block_at(field_stage_run *r, int64_t number)
{
    const transpose *k = r->stage->plan;
    transpose_state *s = r->state;
    int64_t elements = k->block_flits * (k->flit_bytes * 8 / k->bits);
    if (s->block && s->number == number)
        return s->block;
    if (!s->block && !(s->block = calloc((size_t)elements, sizeof *s->block))) {
        fault_memory(r->run->fault, r->stage->commands, "the block of a transpose");
        return NULL;
    }
    s->number = number;
    field_before(r, number * elements, elements, s->block);
    return s->block;
}

static void read_transpose(field_stage_run *r, int64_t first, int64_t count, field_value *out)
{
    const transpose *k = r->stage->plan;
    int64_t flit = k->flit_bytes * 8 / k->bits;
    for (; count > 0 && !r->run->fault->set; first++, out++, count--) {
        int64_t row = first % flit, column = first / flit % k->out_rows, block = first / flit / k->out_rows;
        int64_t at = (row * k->packets_per_col + column / k->valid) * flit + column % k->valid;
        if (row >= k->in_rows) {
            *out = field_unknown(&r->run->unknowns);
        } else if (r->run->machine->trace) {
            field_before(r, block * k->block_flits * flit + at, 1, out);
        } else {
            const field_value *held = block_at(r, block);
            *out = held ? held[at] : 0;
        }
    }
}

static void close_transpose(field_stage_run *r)
{
    free(((transpose_state *)r->state)->block);
}

const field_stage field_transpose = {
    .moves = true, .state_bytes = sizeof(transpose_state), .close = close_transpose, .read = read_transpose};
