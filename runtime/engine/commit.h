/* Commit Engine: flits go back to DM.
 *
 * The one idea: the kept beginnings of the flits are one run of bytes, dealt out along the walk in pieces
 * that are contiguous in DM; a piece is a whole number of commit_bytes writes. */
#ifndef VISA_RUNTIME_ENGINE_COMMIT_H
#define VISA_RUNTIME_ENGINE_COMMIT_H

#include "runtime/engine/dm_walk.h"
#include "runtime/engine/stream.h"
#include "runtime/machine/machine_state.h"
#include "runtime/tensor/convert.h"

typedef struct commit {
    const command *command;
    dm_walk dm;
    walk bytes;           /* the walk in bytes from dm.low_byte; the innermost loop is contiguous */
    int64_t in_bytes;     /* kept of each flit */
    int64_t flit_bytes;   /* from one flit to the next */
    int64_t bits;         /* of an element of the stream; dm.bits: of one in DM */
    int64_t kept_bytes;   /* of a flit in DM: in_bytes where nothing is converted */
    convert_run *convert; /* of what is kept; NULL: none */
    bool relu;
} commit;

#endif
