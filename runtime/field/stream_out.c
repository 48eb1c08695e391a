/* The end of a chain at a stream port over a field. Elements are those at the ports: of a pair first all of
 * the data, then all of the weights. */
#include "runtime/engine/contraction.h"
#include "runtime/field/engine.h"
#include "runtime/machine/port.h"
#include "support/integer.h"

/* The command's shape: packets that leave by the port; of partial results and pairs for each Row. */
typedef struct drain {
    const contraction *pair;             /* NULL: it is none */
    int64_t port, rows, steps, elements; /* of a packet at the port */
    int64_t live;                        /* of them that the stream has */
    int64_t each;                        /* elements that go to one port */
} drain;

static drain drain_of(const stage *s)
{
    const stage *before = s - 1;
    drain d = {.pair = before->out.form == STREAM_PAIRS ? before->plan : NULL,
               .port = command_get(s->commands, STREAM_OUT_PORT),
               .rows = command_get(s->commands, STREAM_OUT_ROWS),
               .steps = command_get(s->commands, STREAM_OUT_PACKETS),
               .elements = command_get(s->commands, STREAM_OUT_PACKET_ELEMENTS)};
    d.live = smaller(d.elements, before->out.packet_elements);
    d.each = d.rows * d.steps * d.live;
    return d;
}

static int64_t count_out(const field_stage_run *r)
{
    drain d = drain_of(r->stage);
    return d.each * (d.pair ? 2 : 1);
}

/* Element (Row, step, lane) of a port: ports have their Rows apart, streams their steps. */
static void read_out(field_stage_run *r, int64_t first, int64_t count, field_value *out)
{
    drain d = drain_of(r->stage);
    for (int64_t part; count > 0; first += part, out += part, count -= part) {
        int64_t side = first / d.each, at = first % d.each, lane = at % d.live, row = at / d.live % d.rows, step = at / d.live / d.rows;
        part = d.rows == 1 && !d.pair ? count : smaller(count, d.live - lane);
        if (d.pair)
            field_before(r, ((step * 2 + side) * d.rows + row) * d.live + lane, part, out);
        else
            field_before(r, (step * d.rows + row) * d.live + lane, part, out);
    }
}

static int64_t cursor_of(const field_stage_run *r, int64_t side)
{
    (void)side; /* both ports of a pair are drained alike */
    return r->run->cursors[1];
}

static int64_t place_out(const field_stage_run *r, int64_t first, field_place *to)
{
    drain d = drain_of(r->stage);
    int64_t side = first / d.each, at = first % d.each, lane = at % d.live, row = at / d.live % d.rows, step = at / d.live / d.rows;
    const stream_port *p = &r->run->machine->plans->streams[d.port + side];
    int64_t position = stream_port_position(p, r->run->machine->plans->target, r->run->unit);
    *to = (field_place){FIELD_PORT, position < 0 ? -1 : d.port + side, 0};
    if (position >= 0)
        to->bit = (((position * p->rows + row) * p->steps + cursor_of(r, side) + step) * p->packet_elements + lane) *
                  (int64_t)dtype_row_of(r->stage->in.dtype)->bits;
    return d.live - lane;
}

static int64_t find_out(const field_stage_run *r, const field_place *at, int64_t *count, unsigned *part)
{
    drain d = drain_of(r->stage);
    int64_t side = at->number - d.port, bits = dtype_row_of(r->stage->in.dtype)->bits;
    const stream_port *p = &r->run->machine->plans->streams[at->number];
    int64_t position = stream_port_position(p, r->run->machine->plans->target, r->run->unit), element = at->bit / bits;
    int64_t lane = element % p->packet_elements, step = element / p->packet_elements % p->steps - cursor_of(r, side),
            row = element / p->packet_elements / p->steps % p->rows;
    if (side < 0 || side > (d.pair ? 1 : 0) || position < 0 || element / p->packet_elements / p->steps / p->rows != position || step < 0 ||
        step >= d.steps || lane >= d.live)
        return -1;
    *part = (unsigned)(at->bit % bits / FIELD_CELL_BITS);
    *count = d.live - lane;
    return side * d.each + (step * d.rows + row) * d.live + lane;
}

static unsigned ranges_out(const stage *s, field_range *out)
{
    drain d = drain_of(s);
    for (unsigned i = 0; i < (d.pair ? 2 : 1); i++)
        out[i] = (field_range){FIELD_PORT, d.port + i, 0, INT64_MAX};
    return d.pair ? 2 : 1;
}

const field_stage field_stream_out = {
    .moves = true, .count = count_out, .read = read_out, .place = place_out, .find = find_out, .ranges = ranges_out};
