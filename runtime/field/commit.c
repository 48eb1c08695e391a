/* Commit Engine over a field: the kept beginnings of flits go where the walk says. */
#include "runtime/engine/commit.h"

#include "runtime/field/engine.h"
#include "runtime/field/function.h"
#include "support/integer.h"

static int64_t kept_of(const commit *k)
{
    return k->in_bytes * 8 / k->bits;
}

static int64_t count_commit(const field_stage_run *r)
{
    return ((const commit *)r->stage->plan)->dm.positions;
}

static void read_commit(field_stage_run *r, int64_t first, int64_t count, field_value *out)
{
    const commit *k = r->stage->plan;
    int64_t kept = kept_of(k), flit = r->run->machine->plans->target->flit_bytes * 8 / k->bits;
    for (int64_t part; count > 0; first += part, out += part, count -= part) {
        part = kept == flit ? count : smaller(count, kept - first % kept);
        field_before(r, first / kept * flit + first % kept, part, out);
        for (int64_t i = 0; k->relu && i < part; i++)
            out[i] = field_expression(r->run->machine->seed, scalar_relu_steps, SCALAR_RELU_STEPS, &out[i]);
    }
}

static int64_t map_commit(const field_stage_run *r, field_span of, field_span *from)
{
    const commit *k = r->stage->plan;
    int64_t kept = kept_of(k), flit = r->run->machine->plans->target->flit_bytes * 8 / k->bits;
    bool flits = of.apart % kept == 0;
    *from = (field_span){of.first / kept * flit + of.first % kept, flits ? of.apart / kept * flit : of.apart, 0};
    return kept == flit || flits ? of.count : field_span_within(of, kept);
}

static void read_commit_spans(field_stage_run *r, const field_span *spans, size_t count, field_value *out)
{
    const commit *k = r->stage->plan;
    field_mapped_spans(r, map_commit, spans, count, out);
    for (size_t i = 0; k->relu && i < count; out += spans[i++].count)
        for (int64_t j = 0; j < spans[i].count; j++)
            out[j] = field_expression(r->run->machine->seed, scalar_relu_steps, SCALAR_RELU_STEPS, &out[j]);
}

static int64_t place_commit(const field_stage_run *r, int64_t first, field_place *to)
{
    const commit *k = r->stage->plan;
    const walk *w = &k->dm.elements;
    int64_t run = walk_run(w);
    *to = (field_place){FIELD_DM, r->run->unit, k->dm.low_byte * 8 + field_walk_address(w, first) * k->dm.bits};
    return run - first % run;
}

static int64_t find_commit(const field_stage_run *r, const field_place *at, int64_t *count, unsigned *part)
{
    const commit *k = r->stage->plan;
    const walk *w = &k->dm.elements;
    int64_t bit = at->bit - k->dm.low_byte * 8, run = walk_run(w);
    if (bit < 0)
        return -1;
    *part = (unsigned)(bit % k->dm.bits / FIELD_CELL_BITS);
    int64_t element = field_walk_find(w, bit / k->dm.bits, 1, -1);
    *count = element < 0 ? 0 : run - element % run;
    return element;
}

static int64_t follow_commit(const field_stage_run *r, int64_t first, int64_t apart_bits, int64_t count, field_spans *elements)
{
    const commit *k = r->stage->plan;
    return field_walk_follow_all(&k->dm.elements, first, apart_bits / k->dm.bits, apart_bits % k->dm.bits ? 1 : count, elements);
}

static unsigned ranges_commit(const stage *s, field_range *out)
{
    const commit *k = s->plan;
    *out = (field_range){FIELD_DM, 0, k->dm.low_byte * 8, (k->dm.low_byte + k->dm.span_bytes) * 8};
    return 1;
}

const field_stage field_commit = {.moves = true,
                                  .count = count_commit,
                                  .read = read_commit,
                                  .read_spans = read_commit_spans,
                                  .place = place_commit,
                                  .find = find_commit,
                                  .follow = follow_commit,
                                  .ranges = ranges_commit};
