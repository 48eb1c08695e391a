/* Commit Engine: flits go back to DM.
 *
 * The one idea: the kept beginnings of the flits are one run of bytes, dealt out along the walk in pieces
 * that are contiguous in DM; a piece is a whole number of commit_bytes writes. */
#ifndef VISA_RUNTIME_COMMIT_H
#define VISA_RUNTIME_COMMIT_H

#include "runtime/dm_walk.h"
#include "runtime/machine_state.h"
#include "runtime/stream.h"

typedef struct commit {
    const command *command;
    dm_walk dm;
    walk bytes; /* the walk in bytes from dm.low_byte; the innermost loop is contiguous */
    int64_t in_bytes, flit_bytes;
} commit;

bool commit_plan(commit *k, const target *t, const command *c, const stream_shape *flits, fault *f);

typedef struct commit_run {
    unsigned char *memory; /* DM from dm.low_byte */
    walk_cursor cursor;
} commit_run;

bool commit_open(const commit *k, machine *m, int64_t unit_index, commit_run *r, fault *f);
void commit_push(const commit *k, commit_run *r, const unsigned char *flits, int64_t count);

#endif
