/* Tensor ports: where their physical bytes live in the machine.
 *
 * The one idea: chip, cluster and slice positions of a mapping *are* unit numbers, so a port is a list of
 * equal pieces, one per unit, and each piece is one range of a memory (TRF: one range per Row). */
#ifndef VISA_RUNTIME_MACHINE_PORT_H
#define VISA_RUNTIME_MACHINE_PORT_H

#include "runtime/machine/machine_state.h"

/* Fills m->streams. */
void stream_ports_init(machine *m);
void stream_ports_free(machine *m);

/* Gives the port a poisoned buffer and cursors if it has none. False: no memory. */
bool stream_port_open(machine *m, uint32_t port);

/* The position of a unit in the port's mapping, or -1 when the mapping does not have it or it is dead. */
int64_t stream_port_position(const stream_port *p, const target *t, int64_t unit_index);

/* Moves the cursors of these units past `packets` time steps. */
void stream_port_advance(stream_port *p, const target *t, const int64_t *units, size_t count, int64_t packets);

/* First byte of a Row's packet at time step `step`. */
static inline unsigned char *stream_port_packet(const stream_port *p, int64_t position, int64_t row, int64_t step)
{
    return p->bytes + ((position * p->rows + row) * p->steps + step) * p->packet_bytes;
}

#endif
