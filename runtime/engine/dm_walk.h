/* A sequencer's walk over the elements of a slice's DM: what fetch and commit share. */
#ifndef VISA_RUNTIME_ENGINE_DM_WALK_H
#define VISA_RUNTIME_ENGINE_DM_WALK_H

#include "runtime/machine/fault.h"
#include "runtime/machine/walk.h"

typedef struct dm_walk {
    walk elements;                /* merged; elements counted from DM byte low_byte */
    int64_t positions;            /* elements of the whole walk */
    int64_t low_byte, span_bytes; /* the part of the DM that the walk touches */
    unsigned bits;                /* of one element */
} dm_walk;

/* Takes the command's table (element strides) from DM byte `base`; every element must lie in the DM. `verb`:
 * "reads" or "writes". */
bool dm_walk_plan(dm_walk *w, const target *t, const command *c, int64_t base, unsigned bits, command_column size, command_column stride,
                  const char *verb, fault *f);

#endif
