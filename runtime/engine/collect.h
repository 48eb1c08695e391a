/* Collect Engine: packets become whole flits.
 *
 * The one idea: a packet is followed by zero bytes up to flits_per_packet flits; when no bytes are missing,
 * the flits are simply the source's run of elements, cut every 32 bytes. */
#ifndef VISA_RUNTIME_ENGINE_COLLECT_H
#define VISA_RUNTIME_ENGINE_COLLECT_H

#include "runtime/engine/source.h"
#include "runtime/engine/stage.h"

typedef struct collect {
    int64_t flit_bytes, flit_elements;
    int64_t packet_bytes, flits_per_packet;
    stream_shape shape; /* one flit per time step */
} collect;

/* `c` NULL: no collect, packets must be one flit each as they are; `next` is the command that needs flits. */
bool collect_plan(collect *out, const target *t, const stream_shape *in, const command *c, const command *next, fault *f);

typedef struct collect_run {
    int64_t flit; /* of the current packet: flits already given */
} collect_run;

/* Are runs of so many flits whole runs of what gives packets, which can be read where they lie? */
bool collect_has_places(const collect *k, const stage_run *from, int64_t flits);

/* The next `flits` flits of what gives packets. */
void collect_read(const collect *k, collect_run *r, stage_run *from, unsigned char *to, int64_t flits);

#endif
