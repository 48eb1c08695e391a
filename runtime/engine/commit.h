/* Commit Engine: flits go back to DM.
 *
 * The one idea: the kept beginnings of the flits are one run of bytes, dealt out along the walk in pieces
 * that are contiguous in DM; a piece is a whole number of commit_bytes writes. */
#ifndef VISA_RUNTIME_ENGINE_COMMIT_H
#define VISA_RUNTIME_ENGINE_COMMIT_H

#include "runtime/engine/dm_walk.h"
#include "runtime/engine/stream.h"
#include "runtime/machine/machine_state.h"

typedef struct commit {
    const command *command;
    dm_walk dm;
    walk bytes; /* the walk in bytes from dm.low_byte; the innermost loop is contiguous */
    int64_t in_bytes, flit_bytes;
} commit;

#endif
