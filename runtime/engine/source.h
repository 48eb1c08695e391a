/* The beginning of a chain: the Fetch Engine or a stream port.
 *
 * The one idea: both are a long run of elements, of which the next stage takes as many as it wants; packets
 * are only where the run is cut. */
#ifndef VISA_RUNTIME_ENGINE_SOURCE_H
#define VISA_RUNTIME_ENGINE_SOURCE_H

#include "runtime/engine/dm_walk.h"
#include "runtime/engine/stream.h"
#include "runtime/machine/machine_state.h"
#include "runtime/tensor/convert.h"

/* Copies `count` elements from index `from_index`, `from_index + stride`, ... of `from` to `to_index`... of
 * `to`. */
typedef void element_copy(unsigned char *to, int64_t to_index, const unsigned char *from, int64_t from_index, int64_t stride,
                          int64_t count);

typedef struct source {
    const command *command;
    stream_shape shape;
    /* fetch */
    dm_walk dm;
    const command *lift;  /* where each unit begins, or NULL */
    const command *start; /* the first number that says where it begins; the others follow it */
    unsigned start_count; /* 0: none does */
    int64_t start_bytes;  /* what they say, known when the chain runs (source_begin) */
    bool stands;          /* while the chain runs nothing is written where it reads (source_begin) */
    element_copy *copy;
    convert_run *lookup;  /* the table, in front of the conversion; NULL: none */
    convert_run *convert; /* NULL: no conversion */
    /* stream_in */
    stream_port *stream; /* NULL: a fetch */
    uint32_t port;
} source;

/* Bytes that a unit's fetch begins after the command's base by its lift. */
int64_t source_lift_bytes(const source *s, const machine *m, int64_t unit_index);
/* Bytes by which the position that a number says begins after the base; false: there is no such position. */
bool source_start_bytes(const command *start, uint64_t number, int64_t *bytes, fault *f);

typedef struct source_run {
    bool stands;                 /* what many slices share: nobody writes there while the chain runs */
    const unsigned char *memory; /* DM bytes from low_byte, or the port's bytes; NULL: the port lacks this unit */
    walk_cursor cursor;
    int64_t position; /* stream port: its unit position */
    unsigned char poison;
} source_run;

bool source_open(const source *s, machine *m, int64_t unit_index, source_run *r, fault *f);

/* The next elements, packed from to[0] on. They fill whole bytes. */
void source_read(const source *s, source_run *r, unsigned char *to, int64_t elements);

/* Accesses of one packet: fetch_size bytes of the DM each. A stream port is always fast enough: 0. */
int64_t source_accesses(const source *s);

/* Does a stream port have `packets` more time steps for every unit that it feeds or drains? Used by stream_in
 * and stream_out; moves no cursor. */
bool stream_port_ready(machine *m, const command *c, uint32_t port, const stream_shape *shape, port_direction direction, fault *f);

#endif
