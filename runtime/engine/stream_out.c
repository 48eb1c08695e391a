/* The end of a chain at a stream port: packets, flits, the contraction tensor, or an aligned pair, which goes to two ports. */
#include <string.h>

#include "runtime/engine/source.h"
#include "runtime/machine/chain.h"
#include "runtime/machine/port.h"
#include "runtime/machine/proof.h"
#include "support/integer.h"

typedef struct stream_out {
    stream_port *ports[2]; /* the second of a pair: its weights; else NULL */
    stream_shape shape;    /* at the port */
} stream_out;

typedef struct stream_out_run {
    unsigned char *port[2]; /* next packet of Row 0 at the ports; NULL: the port lacks this unit */
    int64_t step;
} stream_out_run;

static bool plan_stream_out(stage *s, chain *c, fault *f)
{
    stream_out *k = s->plan;
    const command *at = s->commands;
    stream_shape *shape = &s->in; /* columns after the computed ones are padding */
    int64_t elements = command_get(at, STREAM_OUT_PACKET_ELEMENTS);
    if (shape->form == STREAM_PARTIALS && s - 1 == chain_source(c))
        return fault_set(f, E_RUN_CHAIN, at, "cannot follow stream_in of a contraction tensor; accumulate can");
    if (shape->form == STREAM_PARTIALS && elements >= shape->packet_elements) {
        shape->packet_elements = elements;
        shape->packet_bytes = elements * 4;
    }
    if ((dtype)command_get(at, STREAM_OUT_DTYPE) != shape->dtype || command_get(at, STREAM_OUT_ROWS) != shape->rows ||
        elements != shape->packet_elements || command_get(at, STREAM_OUT_PACKETS) != shape->packets)
        return fault_set(f, E_RUN_CHAIN, at, "gives %lld packets of %lld Rows x %lld %s elements, the stream has %lld of %lld x %lld %s",
                         (long long)command_get(at, STREAM_OUT_PACKETS), (long long)command_get(at, STREAM_OUT_ROWS), (long long)elements,
                         dtype_row_of((dtype)command_get(at, STREAM_OUT_DTYPE))->name, (long long)shape->packets, (long long)shape->rows,
                         (long long)shape->packet_elements, dtype_row_of(shape->dtype)->name);
    uint32_t first = (uint32_t)command_get(at, STREAM_OUT_PORT);
    *k = (stream_out){.shape = *shape};
    for (uint32_t i = 0; i < 1 + (shape->form == STREAM_PAIRS); i++) {
        if (!stream_port_ready(c->machine, at, first + i, shape, PORT_OUT, f))
            return false;
        k->ports[i] = &c->machine->streams[first + i];
    }
    return true;
}

static bool open_stream_out(stage_run *r)
{
    const stream_out *k = r->stage->plan;
    stream_out_run *at = r->state;
    *at = (stream_out_run){0};
    for (int i = 0; i < 2 && k->ports[i]; i++) {
        int64_t position = stream_port_position(k->ports[i], r->stage->chain->machine->target, r->unit_index);
        at->port[i] = position < 0 ? NULL : stream_port_packet(k->ports[i], position, 0, k->ports[i]->cursors[position]);
    }
    return true;
}

/* A step of a contraction tensor: one packet per Row; columns without a live lane are zero. */
static void give_partial(const stream_out *k, stream_out_run *at, const tree_shape *tree, const stream_partial *item)
{
    const stream_port *p = k->ports[0];
    for (int64_t row = 0; at->port[0] && row < tree->rows; row++) {
        unsigned char *packet = at->port[0] + (row * p->steps + at->step) * p->packet_bytes;
        for (int64_t g = 0; g < tree->columns; g++) {
            uint32_t value = item->present >> g & 1 ? item->words[g * tree->rows + row] : 0;
            memcpy(packet + g * 4, &value, sizeof value);
        }
    }
    at->step++;
}

/* A step of an aligned pair: the data packet for every Row, and every Row's weights. */
static void give_pair(const stream_out *k, stream_out_run *at, const contraction *c, const stream_pair *item)
{
    int64_t address = walk_step(&c->weights.walk, item->weights);
    for (int64_t row = 0; row < c->rows; row++) {
        unsigned char *packet = at->port[0] ? at->port[0] + (row * k->ports[0]->steps + at->step) * k->ports[0]->packet_bytes : NULL;
        if (packet) {
            memcpy(packet, item->packet, (size_t)c->data_bytes);
            memset(packet + c->data_bytes, 0, (size_t)(c->packet_bytes - c->data_bytes));
        }
        if (at->port[1])
            weights_packet(&c->weights, item->file, row, address,
                           at->port[1] + (row * k->ports[1]->steps + at->step) * k->ports[1]->packet_bytes);
    }
    at->step++;
}

static bool push_stream_out(stage_run *r, const void *items, int64_t count)
{
    const stream_out *k = r->stage->plan;
    stream_out_run *at = r->state;
    const contraction *c = chain_contraction(r->stage->chain);
    const stream_pair *pairs = items;
    const stream_partial *partials = items;
    int64_t bytes = count * (k->shape.form == STREAM_PACKETS ? 1 : k->shape.packet_bytes);
    switch (k->shape.form) {
    case STREAM_PAIRS:
        for (int64_t i = 0; i < count; i++)
            for (int64_t step = 0; step < pairs[i].steps; step++)
                give_pair(k, at, c, &pairs[i]);
        break;
    case STREAM_PARTIALS:
        for (int64_t i = 0; i < count; i++)
            give_partial(k, at, &c->tree, &partials[i]);
        break;
    default:
        if (at->port[0]) {
            memcpy(at->port[0], items, (size_t)bytes);
            at->port[0] += bytes;
        }
    }
    return true;
}

static void advance_stream_out(const stage *s, const int64_t *units, size_t count)
{
    const stream_out *k = s->plan;
    for (int i = 0; i < 2 && k->ports[i]; i++)
        stream_port_advance(k->ports[i], s->chain->machine->target, units, count, k->shape.packets);
}

/* Queues have no addresses. */
static void stream_out_proof(const stage *s, int64_t unit_index)
{
    (void)unit_index;
    proof_doubt(s->chain->machine);
}

const stage_type stage_stream_out = {.plan_bytes = sizeof(stream_out),
                                     .run_bytes = sizeof(stream_out_run),
                                     .plan = plan_stream_out,
                                     .open = open_stream_out,
                                     .push = push_stream_out,
                                     .advance = advance_stream_out,
                                     .proof_reads = stream_out_proof,
                                     .field = &field_stream_out};
