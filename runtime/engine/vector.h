/* Vector Engine: flits go through the operations of a pass, block by block.
 *
 * The one idea: a pass is a list of steps, each an operation on all words of a block or a change of the lanes that a packet has; a step
 * takes the whole block before the next one does. What goes along with the stream (what was set aside, the tags) changes its packets with
 * it. */
#ifndef VISA_RUNTIME_ENGINE_VECTOR_H
#define VISA_RUNTIME_ENGINE_VECTOR_H

#include "runtime/engine/vector_reduce.h"

#include "runtime/engine/stage.h"

enum { VECTOR_LANES = 8, VECTOR_MOST_INSIDE = 32, VECTOR_MOST_STEPS = 64, VECTOR_MOST_READS = 16, VECTOR_READ_LOOPS = 8 };

typedef enum vector_step_kind {
    VECTOR_STEP_OP,
    VECTOR_STEP_WIDTH,
    VECTOR_STEP_STASH, /* sets the words aside */
    VECTOR_STEP_TAG,   /* gives each word its tag */
    VECTOR_STEP_UNZIP, /* packets of two streams come by turns */
    VECTOR_STEP_ZIP,   /* an operation on the words of both, which are one stream then */
    VECTOR_STEP_REDUCE /* the pass's reduction */
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
    const vector_set *set; /* its loops */
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
    uint64_t used;          /* bit per unit, of blocks before as well */
    vector_reduction reduction;
    vector_step steps[VECTOR_MOST_STEPS]; /* those from count on hold anything */
} vector_pass;

/* A block on its way, of the stream or of what was set aside. */
typedef struct vector_block {
    stream_word *words; /* a block, and as much again, since split and pad together make two packets of one */
    int64_t count;
    stream_word half[4];
    bool holds_half; /* a packet of 4 lanes that waits for the next one */
} vector_block;

typedef struct vector_run {
    vector_block stream, other, stash, tags;      /* other: group 1 of two streams */
    stream_word held[2 * VECTOR_MOST_INSIDE * 8]; /* packets of a turn that is not whole */
    int64_t held_count;
    stream_word *operand, *result;   /* a block each: what is read from the VRF, and what is done for some tags only */
    int64_t capacity;                /* flits */
    unsigned char *vrf;              /* the slice's; NULL: nothing is read */
    int64_t read[VECTOR_MOST_READS]; /* packets that each read has read for */
    vector_reduction_run reduction;
} vector_run;

/* The commands of a block inside slices, up to vector_final or, where `before` is NULL, vector_slices; they take what `in` says, and s->out
 * is filled. `before`: the pass whose units are in use already. */
bool vector_pass_plan(stage *s, struct chain *c, const stream_shape *in, vector_pass *pass, const vector_pass *before, fault *f);
/* A stage whose state is a vector_run: pushes what flits become through the pass. */
bool vector_pass_push(stage_run *r, const vector_pass *p, const void *flits, int64_t count);
bool vector_pass_open(stage_run *r, const vector_pass *p);
void vector_pass_free(stage_run *r);
/* What of the VRF the pass reads: as stage_type has it. */
unsigned vector_pass_ranges(const vector_pass *p, struct proof_range *out);
void vector_pass_proof(const stage *s, const vector_pass *p, int64_t unit_index);
/* The byte of the VRF that a packet's read begins at. */
int64_t vector_read_address(const vector_read *r, int64_t packet);

#endif
