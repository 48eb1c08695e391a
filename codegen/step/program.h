/* A Streaming Tensor Program as it stands in the binary: a graph of operators on streams of tiles.
 *
 * The one idea: a node knows the rank and the data type of each of its output streams and the numbers that its operator needs
 * (rows of target/step/step.def), so that it can be run without knowing any shape. Shapes are kept as text, for people. An edge is a
 * bounded queue; several edges from one output are a broadcast. Nodes stand in the order in which they were made: that is the
 * order in which the memory serves them. A graph may have cycles (feedback). */
#ifndef VISA_CODEGEN_STEP_PROGRAM_H
#define VISA_CODEGEN_STEP_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "support/arena.h"
#include "support/diag.h"
#include "target/step/formula.h"
#include "target/step/step.h"

/* The data type of a stream. Types stand in a table; a buffer's or pair's parts stand before it. */
typedef struct step_type {
    step_kind kind;
    dtype dtype;            /* tile: type of an element on the stream */
    int64_t rows, columns;  /* tile, in elements; -1: known only when it runs */
    int64_t width;          /* selector: outputs that it can name */
    int64_t hot;            /* selector: how many it names each time; 0: any number */
    uint32_t first, second; /* buffer: what it holds; pair: its parts */
    uint32_t rank;          /* buffer: its dimensions */
    uint32_t depth, parts;  /* buffers and pairs in it: inside each other; and each as often as it is met */
} step_type;

typedef struct step_output {
    uint32_t type, rank;
    const char *shape; /* "[B, 4]" */
} step_output;

typedef struct step_input {
    uint32_t node, port;
    uint32_t depth; /* values that the queue holds; 0: any number */
} step_input;

/* Tiles in memory off the chip, row-major over `shape`. */
typedef struct step_tensor {
    const char *name;
    dtype dtype;           /* of an element as stored */
    int64_t rows, columns; /* of a tile, in elements */
    uint32_t dim_count;
    const int64_t *shape; /* tiles, outermost first */
    bool written;
} step_tensor;

typedef struct step_node {
    step_op op;
    const char *name; /* unique in the program */
    uint32_t line;
    uint32_t input_count, output_count;
    const step_input *inputs;
    const step_output *outputs;
    int64_t param[STEP_PARAMS];
    uint32_t walk_count;                      /* linear_load, streamify through a view: loops, outermost first */
    const int64_t *walk_sizes, *walk_strides; /* strides in tiles */
    uint32_t tensor;                          /* off-chip operators */
    step_fn fn;
    const char *kernel;          /* the vISA kernel of the function `kernel`; else NULL */
    const step_formula *formula; /* of the function `formula`; else NULL */
    int64_t flops_per_cycle;     /* of a higher-order operator */
    bool writes_back;            /* the result goes through memory on the chip */
} step_node;

typedef struct step_program {
    const char *name;
    step_machine machine;
    const step_type *types;
    uint32_t type_count;
    const step_tensor *tensors;
    uint32_t tensor_count;
    const step_node *nodes;
    uint32_t node_count;
} step_program;

int64_t step_tensor_tiles(const step_tensor *t); /* checked when it was read */
/* The program with queues that hold any number of values; a copy in the arena, which shares all else. */
const step_program *step_program_unbounded(const step_program *p, arena *a);
/* The program on a chip whose memory holds so many bytes; a copy likewise. */
const step_program *step_program_with_room(const step_program *p, int64_t onchip_bytes, arena *a);

/* The section's 64-bit words, in the arena. */
bool step_program_encode(const step_program *p, arena *a, uint64_t **words, size_t *count);
/* Decodes and checks everything that running it takes for granted: codes, counts, numbers within their rows, types in order,
 * edges to outputs that exist with a type that the operator takes, products below 2^62. Errors name `section` and the offset. */
bool step_program_decode(const uint64_t *words, size_t word_count, const char *section, arena *a, diag_list *diags, step_program *out);

#endif
