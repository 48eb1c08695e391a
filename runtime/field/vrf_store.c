/* Stores to the VRF over a field: flits fill it one after the other. */
#include "runtime/engine/vrf_store.h"

#include "runtime/field/engine.h"

enum { WORD_BITS = 32 };

static int64_t count_store(const field_stage_run *r)
{
    return ((const vrf_store *)r->stage->plan)->bytes * 8 / WORD_BITS;
}

static int64_t place_store(const field_stage_run *r, int64_t first, field_place *to)
{
    const vrf_store *k = r->stage->plan;
    *to = (field_place){FIELD_VRF, r->run->unit, k->base * 8 + first * WORD_BITS};
    return count_store(r) - first;
}

static int64_t find_store(const field_stage_run *r, const field_place *at, int64_t *count, unsigned *part)
{
    const vrf_store *k = r->stage->plan;
    int64_t bit = at->bit - k->base * 8, element = bit / WORD_BITS;
    if (bit < 0 || element >= count_store(r))
        return -1;
    *part = (unsigned)(bit % WORD_BITS / FIELD_CELL_BITS);
    *count = count_store(r) - element;
    return element;
}

static unsigned ranges_store(const stage *s, field_range *out)
{
    const vrf_store *k = s->plan;
    *out = (field_range){FIELD_VRF, 0, k->base * 8, (k->base + k->bytes) * 8};
    return 1;
}

const field_stage field_vrf_store = {.moves = true,
                                     .count = count_store,
                                     .read = field_before,
                                     .read_spans = field_before_listed,
                                     .place = place_store,
                                     .find = find_store,
                                     .ranges = ranges_store};
