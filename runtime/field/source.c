/* The beginning of a chain over a field: what the Fetch Engine reads, what a stream port gives. A conversion
 * and a table are the identity; of a zero point the difference is the field's. */
#include "runtime/engine/source.h"

#include "runtime/field/engine.h"
#include "runtime/field/function.h"
#include "runtime/field/inputs.h"
#include "runtime/machine/port.h"
#include "support/integer.h"

/* Where numbers of the launch let it begin; they are numbers that came in. */
static int64_t start_bytes(field_stage_run *r)
{
    const source *k = r->stage->plan;
    int64_t bytes = 0, moved;
    for (unsigned i = 0; i < k->start_count; i++) {
        field_place at = {FIELD_HBM, 0, command_get(&k->start[i], START_BASE) * 8};
        field_value v;
        field_read(r->run, &at, DTYPE_I32, 1, 1, &v);
        if (!source_start_bytes(&k->start[i], field_number(v) < 0 ? UINT64_MAX : (uint64_t)field_number(v), &moved, r->run->fault))
            return 0;
        bytes += moved;
    }
    return bytes;
}

/* A zero point is taken away from what was read. */
static void take_zero_point(const field_stage_run *r, field_value *values, int64_t count)
{
    const source *k = r->stage->plan;
    const scalar_step difference[] = {{SCALAR_SOURCE, 0}, {SCALAR_CONSTANT_I32, (uint32_t)k->shape.zero_point}, {SCALAR_SUB_I32, 0}};
    for (int64_t i = 0; dtype_is_staging(k->shape.dtype) && i < count; i++)
        values[i] = field_expression(r->run->machine->seed, difference, sizeof difference / sizeof *difference, &values[i]);
}

static void read_fetch(field_stage_run *r, int64_t first, int64_t count, field_value *out)
{
    const source *k = r->stage->plan;
    const walk *w = &k->dm.elements;
    dtype type = (dtype)command_get(k->command, FETCH_DTYPE_IN);
    int64_t size = w->size[w->count - 1], stride = w->stride[w->count - 1],
            lifted = start_bytes(r) + source_lift_bytes(k, r->run->machine->plans, r->run->unit);
    for (int64_t part; count > 0; first += part, out += part, count -= part) {
        part = smaller(count, size - first % size);
        field_place at = {FIELD_DM, r->run->unit, (k->dm.low_byte + lifted) * 8 + field_walk_address(w, first) * k->dm.bits};
        field_read(r->run, &at, type, stride, part, out);
        take_zero_point(r, out, part);
    }
}

static void read_fetch_spans(field_stage_run *r, const field_span *spans, size_t count, field_value *out)
{
    const source *k = r->stage->plan;
    const walk *w = &k->dm.elements;
    field_place at = {FIELD_DM, r->run->unit, 0};
    field_spans bits = {0};
    int64_t base = (k->dm.low_byte + start_bytes(r) + source_lift_bytes(k, r->run->machine->plans, r->run->unit)) * 8, all = 0;
    for (size_t i = 0; i < count; all += spans[i++].count)
        for (int64_t done = 0, n, apart; done < spans[i].count; done += n) {
            field_span of = {spans[i].first + done * spans[i].apart, spans[i].apart, spans[i].count - done};
            n = field_walk_along(w, of, &apart);
            field_spans_add(&bits, (field_span){base + field_walk_address(w, of.first) * k->dm.bits, apart * k->dm.bits, n});
        }
    if (bits.failed)
        fault_memory(r->run->fault, k->command, "what a value is traced back to");
    else
        field_read_spans(r->run, &at, (dtype)command_get(k->command, FETCH_DTYPE_IN), &bits, out);
    field_spans_free(&bits);
    take_zero_point(r, out, all);
}

const field_stage field_fetch = {.moves = true, .read = read_fetch, .read_spans = read_fetch_spans};

/* Where an element of a Row's packets is in the port. */
static int64_t port_element(const stream_port *p, int64_t position, int64_t row, int64_t step, int64_t element)
{
    return ((position * p->rows + row) * p->steps + step) * p->packet_elements + element;
}

static void read_unknowns(field_stage_run *r, int64_t count, field_value *out)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = field_unknown(&r->run->unknowns);
}

/* Partial results have their Rows apart, packets are side by side. */
static void read_stream_in(field_stage_run *r, int64_t first, int64_t count, field_value *out)
{
    const source *k = r->stage->plan;
    const stream_port *p = k->stream;
    int64_t position = stream_port_position(p, r->run->machine->plans->target, r->run->unit), bits = dtype_row_of(k->shape.dtype)->bits;
    if (position < 0) {
        read_unknowns(r, count, out);
        return;
    }
    for (int64_t part; count > 0; first += part, out += part, count -= part) {
        int64_t element = first % k->shape.packet_elements, row = first / k->shape.packet_elements % k->shape.rows;
        int64_t step = first / k->shape.packet_elements / k->shape.rows;
        part = k->shape.rows == 1 ? count : smaller(count, k->shape.packet_elements - element);
        field_place at = {FIELD_PORT, (int64_t)k->port, port_element(p, position, row, r->run->cursors[0] + step, element) * bits};
        field_read(r->run, &at, k->shape.dtype, 1, part, out);
    }
}

const field_stage field_stream_in = {.moves = true, .read = read_stream_in};
