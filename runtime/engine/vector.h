/* Vector Engine: flits go through the operations of a pass, block by block.
 *
 * The one idea: a pass is a list of steps, each an operation on all words of a block or a change of the lanes that a packet has; a step
 * takes the whole block before the next one does. */
#ifndef VISA_RUNTIME_ENGINE_VECTOR_H
#define VISA_RUNTIME_ENGINE_VECTOR_H

#include "runtime/engine/vector_reduce.h"

#include "runtime/engine/stage.h"

enum { VECTOR_MOST_STEPS = 64, VECTOR_LANES = 8 };

typedef struct vector_step {
    const vector_op_row *row; /* NULL: a change of width, a reduction, or what is set aside */
    bool stashes;             /* sets the words aside */
    bool reduces;             /* the pass's reduction */
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
    uint64_t used;          /* bit per unit, of blocks before as well */
    vector_reduction reduction;
} vector_pass;

/* A block on its way, of the stream or of what was set aside. */
typedef struct vector_block {
    stream_word *words; /* a block, and as much again, since split and pad together make two packets of one */
    int64_t count;
    stream_word half[4];
    bool holds_half; /* a packet of 4 lanes that waits for the next one */
} vector_block;

typedef struct vector_run {
    vector_block stream, stash;
    vector_reduction_run reduction;
    int64_t capacity; /* flits */
} vector_run;

/* The commands of a block inside slices, up to vector_final or, where `before` is NULL, vector_slices; they take what `in` says, and s->out
 * is filled. `before`: the pass whose units are in use already. */
bool vector_pass_plan(stage *s, struct chain *c, const stream_shape *in, vector_pass *pass, const vector_pass *before, fault *f);
/* A stage whose state is a vector_run: pushes what flits become through the pass. */
bool vector_pass_push(stage_run *r, const vector_pass *p, const void *flits, int64_t count);
bool vector_pass_open(stage_run *r);
void vector_pass_free(stage_run *r);

#endif
