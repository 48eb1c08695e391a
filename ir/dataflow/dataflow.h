/* A kernel as the streams that enter and leave it (seed 003, "Interface-Based Dataflow Model").
 *
 * The one idea: the cycles of a kernel follow from how much of each stream moves per cycle. An input block meets one block of every
 * weight (a calculation, cII cycles); with all weight blocks that is an execution (eII); with all input blocks an inference (L).
 *
 * Units: tensor, block and stream are in elements per dimension; cII, eII and L in cycles; streams in elements per cycle, which may be a
 * fraction (an output of one element every MW / SIMD cycles). Every product stays below 2^62 or is diagnosed. */
#ifndef VISA_IR_DATAFLOW_DATAFLOW_H
#define VISA_IR_DATAFLOW_DATAFLOW_H

#include "ir/dataflow/dataflow_ratio.h"
#include "support/diag.h"
#include "target/target.h"

enum { DATAFLOW_RANK_MAX = 8 };

typedef enum dataflow_kind { DATAFLOW_INPUT, DATAFLOW_WEIGHT, DATAFLOW_OUTPUT, DATAFLOW_CONFIG, DATAFLOW_CONTROL } dataflow_kind;

/* The initiation intervals of an input, each from the one before. */
typedef enum dataflow_interval { DATAFLOW_CII, DATAFLOW_EII, DATAFLOW_LATENCY, DATAFLOW_INTERVALS } dataflow_interval;

/* What a transfer carries (ir/dataflow/dataflow_shape.h), in elements; of dimensions as `block` has them. */
typedef struct dataflow_shape {
    int64_t across[DATAFLOW_RANK_MAX]; /* blocks side by side */
    int64_t part[DATAFLOW_RANK_MAX];   /* elements of one block */
    int64_t word[DATAFLOW_RANK_MAX];   /* both together, without the batch */
    int64_t folded[DATAFLOW_RANK_MAX]; /* words along each dimension of the tensor */
    int64_t elements;                  /* of a word, with the batch */
    dataflow_ratio period;             /* cycles from a word to the next, while a calculation goes on */
} dataflow_shape;

typedef struct dataflow_interface {
    dataflow_kind kind;
    const char *name;
    src_range range; /* of the whole interface */
    src_range tensor_range, block_range, parallel_range;
    const char *type;     /* of an element: "i8" */
    int64_t bits;         /* of an element; 0: not stated (an output) */
    uint32_t rank;        /* of block */
    uint32_t tensor_rank; /* 0: the tensor is not stated (an output) */
    uint32_t parallel_rank;
    int64_t tensor[DATAFLOW_RANK_MAX], block[DATAFLOW_RANK_MAX];
    int64_t parallel[DATAFLOW_RANK_MAX]; /* iPar of an input (elements of the block per cycle), wPar of a weight (blocks at a time) */
    const char *tensor_names[DATAFLOW_RANK_MAX], *block_names[DATAFLOW_RANK_MAX],
        *parallel_names[DATAFLOW_RANK_MAX]; /* of constants; NULL: a number */
    const char *text;                       /* config, control: what was stated */
    int64_t given[DATAFLOW_INTERVALS];      /* input: intervals of dataflow_given, in cycles; 0: by the formula */

    /* Results of dataflow_evaluate. */
    int64_t num_blocks;        /* input, weight */
    int64_t block_elements;    /* with the batch */
    dataflow_ratio stream;     /* elements per cycle */
    dataflow_ratio physical;   /* output: with all wPar calculations that run side by side, which the seed's stream_O leaves out */
    int64_t cii, eii, latency; /* input, in cycles */
    int64_t calculated[DATAFLOW_RANK_MAX]; /* output: the tensor that follows from the calculations, which is the stated one where one is */
    dataflow_shape shape;
} dataflow_interface;

/* "The initiation interval functions can all be overwritten" (seed 003). `before` is the interval before it (1 for cII), `times` what the
 * formula multiplies it by: prod(block / stream), the weight groups, the input blocks. False: past 2^62. */
typedef bool (*dataflow_function)(const dataflow_interface *input, dataflow_interval which, int64_t before, int64_t times, int64_t *cycles);
bool dataflow_formula(const dataflow_interface *input, dataflow_interval which, int64_t before, int64_t times, int64_t *cycles);
/* What the input's `given` says, else the formula. */
bool dataflow_given(const dataflow_interface *input, dataflow_interval which, int64_t before, int64_t times, int64_t *cycles);

typedef struct dataflow_model {
    const char *name;
    src_range range;
    dataflow_interface *interfaces;
    size_t count;
    int64_t batch;                                   /* inferences that L covers; at least 1 */
    const char *batch_name;                          /* of the constant; NULL: a number */
    bool pads;                                       /* blocks that do not tile are padded (Brainsmith); otherwise they are refused */
    int64_t clock_hz;                                /* 0: not stated */
    dataflow_function intervals[DATAFLOW_INTERVALS]; /* NULL: dataflow_formula */

    /* Results. */
    int64_t latency;   /* L, in cycles */
    int64_t groups;    /* max over weights of prod(num_blocks / wPar); 1 without weights */
    size_t bottleneck; /* the input with the largest eII, lowest on a tie */
    int64_t padding;   /* elements that `pads` added, over all interfaces */
} dataflow_model;

/* Checks the constraints of the model, each with its own diagnostic, and fills the results. False: diagnosed. */
bool dataflow_evaluate(dataflow_model *m, diag_list *diags);

const char *dataflow_kind_name(dataflow_kind kind);
/* -1: past 2^62 */
int64_t dataflow_block_elements(const dataflow_interface *i);
/* Elements of the inputs' iPar together times wPar of the weights together (1 without weights); -1: past 2^62 */
int64_t dataflow_multipliers(const dataflow_model *m);
/* Blocks along one dimension of the tensor, the last one padded. */
int64_t dataflow_blocks(const dataflow_interface *i, uint32_t dimension);

#endif
