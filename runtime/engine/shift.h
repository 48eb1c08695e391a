/* Stream Adapter, advanced modes: collected flits turned, and packets taken from several offsets of them.
 *
 * The one idea: lane i of a packet is the collected element i + offset, zero where there is none. A pop turns its flits once and
 * sets the offset anew; then the loops inside it give packet after packet, of which those with the same offset stand together. */
#ifndef VISA_RUNTIME_ENGINE_SHIFT_H
#define VISA_RUNTIME_ENGINE_SHIFT_H

#include "runtime/machine/fault.h"

enum { SHIFT_MAX_DIMS = 8, SHIFT_MAX_BYTES = 96 };

typedef struct shift {
    const command *command; /* NULL: packets are the collected flits as they are */
    int64_t bits;           /* of an element */
    int64_t flit_bytes, flits, packet_bytes;
    int64_t rows;                     /* of a flit that is turned; 1: it is not */
    int64_t windows;                  /* packets of one pop that may differ ... */
    int64_t repeat;                   /* ... each for this many steps */
    int64_t stride, limit;            /* offset += stride * (window % limit); elements */
    int64_t initial_div, initial_mod; /* initial[pop / div % mod] */
    int64_t initial[SHIFT_MAX_DIMS];
} shift;

/* `steps` computation steps for each of `packets` pops of `flits` flits. */
bool shift_plan(shift *k, const target *t, const command *c, dtype type, int64_t flits, int64_t steps, int64_t packets, fault *f);

/* Turns the flits of one pop. */
void shift_pop(const shift *k, const unsigned char *flits, unsigned char source[SHIFT_MAX_BYTES]);
/* The packet of window number `window` of pop number `pop`. */
void shift_window(const shift *k, const unsigned char *source, int64_t pop, int64_t window, unsigned char *packet);

#endif
