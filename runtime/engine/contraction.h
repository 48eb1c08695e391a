/* Stream Adapter, TRF Sequencer and the spatial part of the Reducer, step by step.
 *
 * The one idea: a packet of lanes is loaded once and used for `tiling` steps; a step pairs it with its
 * weights and makes one partial result per column and Row. These are two stages of a chain, align and contract, which share what they
 * planned: the first fills in the operands, the second the tree. */
#ifndef VISA_RUNTIME_ENGINE_CONTRACTION_H
#define VISA_RUNTIME_ENGINE_CONTRACTION_H

#include "runtime/engine/mask.h"
#include "runtime/engine/shift.h"
#include "runtime/engine/stream.h"
#include "runtime/engine/tree.h"
#include "runtime/engine/weights.h"

/* The commands of one contraction; contract NULL: the aligned pair leaves as it is. */
typedef struct contraction_commands {
    const command *align, *shift, *trf_read, *contract, *masks; /* shift may be NULL */
    size_t mask_count;
} contraction_commands;

typedef struct contraction {
    contraction_commands commands;
    int64_t collect_flits, tiling, packets, steps;
    int64_t rows, lanes;
    int64_t packet_bytes; /* mac_width */
    int64_t data_bytes;   /* of one packet that come from flits; the others are zero */
    dtype operand;        /* of the data; the weights' is in weights */
    convert_lanes *decode;
    int64_t zero_point; /* of the data */
    shift shift;
    weights weights;
    bool is_float;
    tree_shape tree;
    tree_kernel *kernel;
    mask_set masks;
} contraction;

/* An item of STREAM_PAIRS: a packet that is used for `steps` steps, and where the weights of each step are. */
typedef struct stream_pair {
    const unsigned char *packet; /* data_bytes of it; the others are zero */
    int64_t steps;
    const unsigned char *file; /* the slice's TRF */
    walk_cursor *weights;      /* of weights.walk: moves on by one for each step */
} stream_pair;

/* The counters of a unit, for its masks. */
mask_unit contraction_unit(const machine *m, int64_t unit);

#endif
