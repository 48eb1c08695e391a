/* Vector Engine: flits go through the operations of a pass, block by block.
 *
 * The one idea: a pass is a list of steps, each an operation on all words of a block or a change of the lanes that a packet has; a step
 * takes the whole block before the next one does. What goes along with the stream (what was set aside, the tags) changes its packets with
 * it. */
#ifndef VISA_RUNTIME_ENGINE_VECTOR_H
#define VISA_RUNTIME_ENGINE_VECTOR_H

#include "runtime/engine/vector_ops.h"

enum { VECTOR_MOST_INSIDE = 32, VECTOR_MOST_STEPS = 64, VECTOR_MOST_READS = 16, VECTOR_READ_LOOPS = 8 };

typedef enum vector_step_kind {
    VECTOR_STEP_OP,
    VECTOR_STEP_WIDTH,
    VECTOR_STEP_STASH, /* sets the words aside */
    VECTOR_STEP_TAG,   /* gives each word its tag */
    VECTOR_STEP_UNZIP, /* packets of two streams come by turns */
    VECTOR_STEP_ZIP,   /* an operation on the words of both, which are one stream then */
} vector_step_kind;

/* Where operand 1 is read, once for each packet: a walk over the slice's VRF. */
typedef struct vector_read {
    unsigned count;                                             /* loops, outermost first */
    int64_t base;                                               /* bytes */
    int64_t size[VECTOR_READ_LOOPS], stride[VECTOR_READ_LOOPS]; /* packets, bytes */
    int64_t lanes;                                              /* words that are read; 1: all lanes have it */
} vector_read;

typedef struct vector_step {
    vector_step_kind kind;
    const vector_op_row *row; /* VECTOR_STEP_OP */
    vector_function function;
    bool takes_stash; /* operand 1 is what was set aside, */
    int read;         /* or the word of this read; -1: neither, a constant */
    unsigned mode;    /* VECTOR_MODE */
    unsigned tags;    /* bit t: done for elements with tag t */
    unsigned groups;  /* bit g: done for that stream of two */
    stream_word constants[2];
    vector_width_kind width;
    int64_t lanes; /* of a packet that it takes */
} vector_step;

typedef struct vector_pass {
    vector_step steps[VECTOR_MOST_STEPS];
    unsigned count;
    vector_read reads[VECTOR_MOST_READS];
    unsigned read_count;
    vector_comparison tag[VECTOR_TAG_BITS];
    dtype tagged;           /* elements that the tags are of */
    int64_t inside;         /* of two streams: packets of one before those of the other; 0: there is one */
    bool by_tag;            /* some operation is not done for all tags */
    int64_t lanes;          /* 8; of narrow packets 4 */
    int64_t narrow_packets; /* of a slice's stream; 0: the pass stays at 8 lanes */
    unsigned units;         /* that work in it */
} vector_pass;

/* The byte of the VRF that a packet's read begins at. */
int64_t vector_read_address(const vector_read *r, int64_t packet);

#endif
