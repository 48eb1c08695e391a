/* Transpose Engine over a field: an element that leaves is the one of its row in its column; what follows the rows is filling. What comes
 * before it may be there in order only (a contraction's sums), so where all is read a block is held until the next one. */
#include "runtime/engine/transpose.h"

#include <stdlib.h>

#include "runtime/field/engine.h"
#include "runtime/machine/fault.h"
#include "support/integer.h"

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

/* Where a row's element of a column is among the elements of the block. */
static int64_t place_in_block(const transpose *k, int64_t flit, int64_t row, int64_t column)
{
    return (row * k->packets_per_col + column / k->valid) * flit + column % k->valid;
}

static void read_transpose(field_stage_run *r, int64_t first, int64_t count, field_value *out)
{
    const transpose *k = r->stage->plan;
    int64_t flit = k->flit_bytes * 8 / k->bits;
    for (; count > 0 && !r->run->fault->set; first++, out++, count--) {
        int64_t row = first % flit, column = first / flit % k->out_rows, block = first / flit / k->out_rows;
        int64_t at = place_in_block(k, flit, row, column);
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

/* Of elements that are some rows, some columns or some blocks apart: how many go on so, and where they were. */
static int64_t map_transpose(const field_stage_run *r, field_span of, field_span *from)
{
    const transpose *k = r->stage->plan;
    int64_t flit = k->flit_bytes * 8 / k->bits, block = flit * k->out_rows;
    int64_t row = of.first % flit, column = of.first / flit % k->out_rows;
    *from = (field_span){of.first / block * k->block_flits * flit + place_in_block(k, flit, row, column), 1, 0};
    if (of.count == 1)
        return 1;
    if (of.apart % block == 0) {
        from->apart = of.apart / block * k->block_flits * flit;
        return of.count;
    }
    int64_t columns = of.apart / flit;
    if (of.apart % flit > 0) {
        from->apart = of.apart * k->packets_per_col * flit;
        return of.apart < flit ? smaller(of.count, (flit - 1 - row) / of.apart + 1) : 1;
    }
    int64_t left = smaller(of.count, (k->out_rows - 1 - column) / columns + 1);
    if (columns % k->valid == 0) {
        from->apart = columns / k->valid * flit;
        return left;
    }
    from->apart = columns;
    return smaller(left, (k->valid - 1 - column % k->valid) / columns + 1);
}

/* Does the list have filling? */
static bool has_filling(const transpose *k, const field_span *spans, size_t count)
{
    int64_t flit = k->flit_bytes * 8 / k->bits;
    for (size_t i = 0; i < count && k->in_rows < flit; i++)
        for (int64_t j = 0, n = spans[i].apart % flit == 0 ? 1 : spans[i].count; j < n; j++)
            if ((spans[i].first + j * spans[i].apart) % flit >= k->in_rows)
                return true;
    return false;
}

static void read_transpose_spans(field_stage_run *r, const field_span *spans, size_t count, field_value *out)
{
    if (r->run->machine->trace && !has_filling(r->stage->plan, spans, count)) {
        field_mapped_spans(r, map_transpose, spans, count, out);
        return;
    }
    for (size_t i = 0; i < count; i++)
        for (int64_t j = 0; j < spans[i].count; j++)
            read_transpose(r, spans[i].first + j * spans[i].apart, 1, out++);
}

static void close_transpose(field_stage_run *r)
{
    free(((transpose_state *)r->state)->block);
}

const field_stage field_transpose = {
    .moves = true,
    .state_bytes = sizeof(transpose_state),
    .close = close_transpose,
    .read = read_transpose,
    .read_spans = read_transpose_spans,
};
