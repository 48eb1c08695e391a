/* Vector Engine: flits go through the operations of a pass, block by block.
 *
 * The one idea: a pass is a list of steps, each an operation on all words of a block or a change of the lanes that a packet has; a step
 * takes the whole block before the next one does. */
#ifndef VISA_RUNTIME_ENGINE_VECTOR_H
#define VISA_RUNTIME_ENGINE_VECTOR_H

#include "runtime/engine/vector_ops.h"

enum { VECTOR_MOST_STEPS = 64 };

typedef struct vector_step {
    const vector_op_row *row; /* NULL: a change of width, or of what is set aside */
    bool stashes;             /* sets the words aside */
    bool takes_stash;         /* operand 1 is what was set aside */
    vector_function function;
    unsigned mode; /* VECTOR_MODE */
    stream_word constants[2];
    vector_width_kind width;
} vector_step;

typedef struct vector_pass {
    vector_step steps[VECTOR_MOST_STEPS];
    unsigned count;
    int64_t lanes;          /* 8; of narrow packets 4 */
    int64_t narrow_packets; /* of a slice's stream; 0: the pass stays at 8 lanes */
    unsigned units;         /* that work in it */
} vector_pass;

#endif
