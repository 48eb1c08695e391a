#include "runtime/field/align.h"

#include <stdlib.h>

#include "runtime/engine/trf.h"
#include "support/integer.h"

enum { MOST_LANES = 128 };

typedef struct align_state {
    field_value lanes[MOST_LANES];
    int64_t packet;       /* whose lanes these are; -1: none */
    field_value *weights; /* of every Row: the part of its partition that is read; NULL: not read yet */
    int64_t row_values;
    walk_cursor cursor;
    int64_t next_step;
} align_state;

static int64_t bits_of(const contraction *k)
{
    return dtype_row_of(k->operand)->bits;
}

static bool open_align(field_stage_run *r)
{
    const contraction *k = r->stage->plan;
    align_state *s = r->state;
    s->packet = -1;
    walk_start(&k->weights.walk, &s->cursor);
    return true;
}

static void close_align(field_stage_run *r)
{
    free(((align_state *)r->state)->weights);
}

/* ---- data ---- */

/* The element of a pop's flits that is in a lane; -1: none, it is zero. */
static int64_t lane_source(const contraction *k, int64_t step, int64_t lane)
{
    int64_t pop = step / k->tiling;
    if (!k->shift.command)
        return lane < k->data_bytes * 8 / bits_of(k) ? lane : -1;
    const shift *s = &k->shift;
    int64_t window = step % k->tiling / s->repeat, flit = s->flit_bytes * 8 / s->bits;
    int64_t at = lane + s->initial[pop / s->initial_div % s->initial_mod] + window % s->limit * s->stride;
    if (at < 0 || at >= s->flits * flit)
        return -1;
    int64_t element = at % flit; /* of the turned flit: column * rows + row */
    return at / flit * flit + element % s->rows * (flit / s->rows) + element / s->rows;
}

static void read_lanes(field_stage_run *r, int64_t step, int64_t first, int64_t count, field_value *out)
{
    const contraction *k = r->stage->plan;
    const target *t = r->run->machine->plans->target;
    int64_t flits = step / k->tiling * k->collect_flits * (t->flit_bytes * 8 / bits_of(k));
    int64_t data = k->shift.command ? 0 : smaller(count, larger(k->data_bytes * 8 / bits_of(k) - first, 0));
    if (data > 0)
        field_before(r, flits + first, data, out);
    for (int64_t i = data, n; i < count; i += n) {
        int64_t at = lane_source(k, step, first + i);
        for (n = 1; at >= 0 && i + n < count && lane_source(k, step, first + i + n) == at + n; n++)
            ;
        if (at >= 0)
            field_before(r, flits + at, n, out + i);
        else
            out[i] = 0;
    }
}

/* Steps with the same packet follow each other. */
const field_value *field_align_lanes(field_stage_run *r, int64_t step)
{
    const contraction *k = r->stage->plan;
    align_state *s = r->state;
    int64_t packet = step / (k->shift.command ? k->shift.repeat : k->tiling);
    if (packet != s->packet)
        read_lanes(r, step, 0, k->lanes, s->lanes);
    s->packet = packet;
    return s->lanes;
}

/* ---- weights ---- */

static void read_partition(field_stage_run *r, int64_t row, int64_t byte, int64_t bit, int64_t count, field_value *out)
{
    const weights *w = &((const contraction *)r->stage->plan)->weights;
    int64_t bits = dtype_row_of(w->operand)->bits;
    for (int64_t part; count > 0; count -= part, out += part) {
        part = smaller(count, (trf_contiguous_bytes(w->target, w->mode, byte) * 8 - bit) / bits);
        field_place at = {FIELD_TRF, r->run->unit, trf_address_of(w->target, row, w->rows, w->mode, byte) * 8 + bit};
        field_read(r->run, &at, w->operand, 1, part, out);
        bit += part * bits;
        byte += bit / 8;
        bit %= 8;
    }
}

/* All that the walk can read, once for a slice. */
static bool read_weights(field_stage_run *r)
{
    const weights *w = &((const contraction *)r->stage->plan)->weights;
    align_state *s = r->state;
    s->row_values = w->reads * w->read_elements;
    s->weights = malloc((size_t)(s->row_values * w->rows) * sizeof *s->weights + 1);
    for (int64_t row = 0; s->weights && row < w->rows; row++)
        read_partition(r, row, w->low_byte, 0, s->row_values, s->weights + row * s->row_values);
    return s->weights || fault_memory(r->run->fault, w->command, "a slice's weights");
}

const field_value *field_align_reads(field_stage_run *r, int64_t *row_values)
{
    align_state *s = r->state;
    if (!s->weights && !read_weights(r))
        return NULL;
    *row_values = s->row_values;
    return s->weights;
}

static int64_t read_at(const weights *w, int64_t address)
{
    return (address - w->low_byte) >> w->read_shift;
}

bool field_align_steps(const weights *w, int64_t count, int32_t *reads)
{
    walk_cursor cursor;
    walk_start(&w->walk, &cursor);
    for (int64_t i = 0; i < count; i++) {
        int64_t address = walk_step(&w->walk, &cursor);
        if (!weights_address_inside(w, address))
            return false;
        reads[i] = (int32_t)read_at(w, address);
    }
    return true;
}

const field_value *field_align_weights(field_stage_run *r, int64_t step, int64_t *row_values)
{
    const weights *w = &((const contraction *)r->stage->plan)->weights;
    align_state *s = r->state;
    if (!field_align_reads(r, row_values))
        return NULL;
    const bool goes_back = step < s->next_step; /* the walk is in order */
    for (; s->next_step < step; s->next_step++)
        walk_step(&w->walk, &s->cursor);
    int64_t address = goes_back ? field_walk_address(&w->walk, step) : walk_step(&w->walk, &s->cursor);
    s->next_step += !goes_back;
    if (!weights_address_inside(w, address)) {
        weights_outside(w, step, address, r->run->fault);
        return NULL;
    }
    return s->weights + read_at(w, address) * w->read_elements;
}

static void read_weight(field_stage_run *r, int64_t step, int64_t row, int64_t first, int64_t count, field_value *out)
{
    const weights *w = &((const contraction *)r->stage->plan)->weights;
    int64_t address = field_walk_address(&w->walk, step), bits = dtype_row_of(w->operand)->bits;
    if (!weights_address_inside(w, address)) {
        weights_outside(w, step, address, r->run->fault);
        return;
    }
    for (int64_t part; count > 0; first += part, out += part, count -= part) {
        int64_t element = first % w->read_elements;
        part = smaller(count, w->read_elements - element);
        read_partition(r, row, address + element * bits / 8, element * bits % 8, part, out);
    }
}

static void read_align(field_stage_run *r, int64_t first, int64_t count, field_value *out)
{
    const contraction *k = r->stage->plan;
    for (int64_t part; count > 0; first += part, out += part, count -= part) {
        int64_t lane = first % k->lanes, row = first / k->lanes % k->rows, side = first / k->lanes / k->rows % 2,
                step = first / k->lanes / k->rows / 2;
        part = smaller(count, k->lanes - lane);
        if (side == 0)
            read_lanes(r, step, lane, part, out);
        else
            read_weight(r, step, row, lane, part, out);
    }
}

/* Lanes of a step, as elements of the stage before it. */
static void add_lanes(const field_stage_run *r, int64_t step, field_span lanes, field_spans *to)
{
    const contraction *k = r->stage->plan;
    int64_t flits = step / k->tiling * k->collect_flits * (r->run->machine->plans->target->flit_bytes * 8 / bits_of(k));
    for (int64_t i = 0, n; i < lanes.count; i += n) {
        int64_t lane = lanes.first + i * lanes.apart, at = lane_source(k, step, lane);
        bool data = !k->shift.command && at >= 0 && lanes.apart == 1;
        n = data ? smaller(lanes.count - i, k->data_bytes * 8 / bits_of(k) - lane) : 1;
        field_spans_add(to, (field_span){at < 0 ? FIELD_ZEROS : flits + at, 1, n});
    }
}

/* The same of weights, as bits of the register file. */
static void add_weights(const field_stage_run *r, int64_t step, int64_t row, field_span lanes, field_spans *to)
{
    const weights *w = &((const contraction *)r->stage->plan)->weights;
    int64_t address = field_walk_address(&w->walk, step), bits = dtype_row_of(w->operand)->bits;
    if (!weights_address_inside(w, address)) {
        weights_outside(w, step, address, r->run->fault);
        return;
    }
    for (int64_t i = 0, n; i < lanes.count; i += n) {
        int64_t element = (lanes.first + i * lanes.apart) % w->read_elements, byte = address + element * bits / 8, bit = element * bits % 8;
        int64_t together = smaller(w->read_elements - element, (trf_contiguous_bytes(w->target, w->mode, byte) * 8 - bit) / bits);
        n = lanes.apart == 1 ? smaller(lanes.count - i, together) : 1;
        field_spans_add(to, (field_span){trf_address_of(w->target, row, w->rows, w->mode, byte) * 8 + bit, bits, n});
    }
}

/* A list of lanes, all of them data or all of them weights. */
static void read_side(field_stage_run *r, int side, const field_span *spans, size_t count, field_value *out)
{
    const contraction *k = r->stage->plan;
    field_spans before = {0};
    for (size_t i = 0; i < count && !r->run->fault->set; i++)
        for (int64_t done = 0, n; done < spans[i].count; done += n) {
            field_span of = {spans[i].first + done * spans[i].apart, spans[i].apart, spans[i].count - done};
            int64_t step = of.first / k->lanes / k->rows / 2;
            n = field_span_within(of, k->lanes);
            field_span lanes = {of.first % k->lanes, of.apart, n};
            if (side == 0)
                add_lanes(r, step, lanes, &before);
            else
                add_weights(r, step, of.first / k->lanes % k->rows, lanes, &before);
        }
    if (before.failed)
        fault_memory(r->run->fault, k->weights.command, "what a value is traced back to");
    if (side == 0)
        field_before_spans(r, &before, out);
    else if (!r->run->fault->set)
        field_read_spans(r->run, &(field_place){FIELD_TRF, r->run->unit, 0}, k->weights.operand, &before, out);
    field_spans_free(&before);
}

static void read_align_spans(field_stage_run *r, const field_span *spans, size_t count, field_value *out)
{
    const contraction *k = r->stage->plan;
    for (size_t i = 0, n; i < count; i += n) {
        int side = (int)(spans[i].first / k->lanes / k->rows % 2);
        int64_t elements = 0;
        for (n = 0; i + n < count && spans[i + n].first / k->lanes / k->rows % 2 == side; n++)
            elements += spans[i + n].count;
        read_side(r, side, spans + i, n, out);
        out += elements;
    }
}

const field_stage field_align = {
    .state_bytes = sizeof(align_state), .open = open_align, .close = close_align, .read = read_align, .read_spans = read_align_spans};
