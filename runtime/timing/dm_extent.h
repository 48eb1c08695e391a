/* Which bytes of a slice's DM a command touches.
 *
 * The one idea: a walk over a command's table has a lowest and a highest address; that other slices are walked too changes nothing about
 * them. */
#ifndef VISA_RUNTIME_TIMING_DM_EXTENT_H
#define VISA_RUNTIME_TIMING_DM_EXTENT_H

#include "codegen/command.h"

/* Bytes begin .. end - 1; none: end is 0. */
typedef struct dm_extent {
    int64_t begin, end;
} dm_extent;

/* Of a fetch or commit, or what a copy writes there. */
dm_extent dm_extent_of(const target *t, const command *c);
/* Of what a copy writes, in the address space of all slices, which lie one after the other. */
dm_extent dm_extent_written(const command *c);
bool dm_extents_meet(dm_extent a, dm_extent b);

#endif
