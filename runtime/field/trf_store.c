/* SRAM-to-TRF over a field: flits fill one Row after the other. */
#include "runtime/engine/trf_store.h"

#include "runtime/engine/trf.h"
#include "runtime/field/engine.h"
#include "support/integer.h"

static int64_t bits_of(const field_stage_run *r)
{
    return dtype_row_of(r->stage->stored)->bits;
}

static int64_t row_elements(const field_stage_run *r)
{
    const trf_store *k = r->stage->plan;
    return k->flits_per_row * k->flit_bytes * 8 / bits_of(r);
}

static int64_t count_store(const field_stage_run *r)
{
    return ((const trf_store *)r->stage->plan)->rows * row_elements(r);
}

static int64_t place_store(const field_stage_run *r, int64_t first, field_place *to)
{
    const trf_store *k = r->stage->plan;
    const target *t = r->run->machine->plans->target;
    int64_t row = first / row_elements(r), bit = first % row_elements(r) * bits_of(r), byte = k->base + bit / 8;
    *to = (field_place){FIELD_TRF, r->run->unit, trf_address_of(t, row, k->rows, k->mode, byte) * 8 + bit % 8};
    return smaller((trf_contiguous_bytes(t, k->mode, byte) * 8 - bit % 8) / bits_of(r), row_elements(r) - first % row_elements(r));
}

static int64_t find_store(const field_stage_run *r, const field_place *at, int64_t *count, unsigned *part)
{
    const trf_store *k = r->stage->plan;
    int64_t row, byte = field_trf_byte(r->run->machine, k->rows, k->mode, at->bit / 8, &row);
    int64_t bit = (byte - k->base) * 8 + at->bit % 8, element = bit / bits_of(r);
    if (byte < k->base || element >= row_elements(r))
        return -1;
    field_place to;
    *part = (unsigned)(bit % bits_of(r) / FIELD_CELL_BITS);
    *count = place_store(r, row * row_elements(r) + element, &to);
    return row * row_elements(r) + element;
}

static unsigned ranges_store(const stage *s, field_range *out)
{
    *out = (field_range){FIELD_TRF, 0, 0, s->chain->machine->target->trf_bytes * 8};
    return 1;
}

const field_stage field_trf_store = {.moves = true,
                                     .count = count_store,
                                     .read = field_before,
                                     .read_spans = field_before_listed,
                                     .place = place_store,
                                     .find = find_store,
                                     .ranges = ranges_store};
