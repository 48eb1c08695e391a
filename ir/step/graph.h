/* A Streaming Tensor Program in the compiler: a graph of operators whose streams have symbolic shapes.
 *
 * The one idea: a node is added with its operator, its inputs and its numbers, and what it gives (rank, shape, data type of each output)
 * follows by the operator's rule (ir/step/shape.c; reference/step.md sections 3 and 4). So a graph that exists is well typed, and an error
 * is found where the operator is written: it names the operator, both shapes and the dimension.
 *
 * Shapes are written as in the paper, outermost dimension first: [D_a, .., D_1, D_0]. A dimension is static (a number), dynamic (an
 * expression over symbols) or ragged (one with a ragged symbol). */
#ifndef VISA_IR_STEP_GRAPH_H
#define VISA_IR_STEP_GRAPH_H

#include "ir/step/expr.h"
#include "support/diag.h"
#include "target/step/formula.h"
#include "target/step/step.h"

typedef struct step_data step_data;
struct step_data {
    step_kind kind;
    dtype dtype;                     /* tile: of an element on the stream */
    const step_expr *rows, *columns; /* tile, in elements */
    int64_t width;                   /* selector: outputs that it can name */
    int64_t hot;                     /* selector: how many it names each time; 0: not known */
    const step_data *first, *second; /* buffer: what it holds; pair: its parts */
    const step_expr *const *dims;    /* buffer: its shape, outermost first */
    uint32_t dim_count;              /* buffer */
    bool may_be_empty;               /* buffer: some may stand for groups that are not there */
    uint32_t depth;                  /* of buffers and pairs in it: 0, none */
    uint64_t parts;                  /* those, each as often as it is met */
};

typedef struct step_graph_node step_graph_node;

typedef struct step_stream {
    step_graph_node *node;
    uint32_t port;
    const step_data *data;
    uint32_t rank;
    const step_expr **dims; /* rank + 1, outermost first */
    bool assumed;           /* the writer gave the sizes */
    bool used;              /* somebody takes it; otherwise what is sent there is dropped */
} step_stream;

typedef struct step_graph_tensor {
    const char *name;
    src_range range;
    dtype dtype;           /* as stored */
    int64_t rows, columns; /* of a tile, in elements */
    uint32_t dim_count;
    const int64_t *shape; /* tiles, outermost first */
    bool written;
    uint32_t index;
} step_graph_tensor;

/* A vISA kernel as a function of tiles: its input ports in order, and its outputs, of which several are a pair of the first and the others.
 */
enum { STEP_KERNEL_INPUTS = STEP_MAP_INPUTS, STEP_KERNEL_OUTPUTS = STEP_MAP_INPUTS };
typedef struct step_kernel_tile {
    dtype dtype;
    int64_t rows, columns; /* elements: the first axis of the port, and the others together; a port of one axis is a row */
} step_kernel_tile;

typedef struct step_kernel {
    const char *name;
    uint32_t input_count, output_count;
    step_kernel_tile inputs[STEP_KERNEL_INPUTS], outputs[STEP_KERNEL_OUTPUTS];
    int64_t flops;                                         /* of one run */
    int64_t offchip_bytes, kept_bytes[STEP_KERNEL_INPUTS]; /* of a run; of those what is not moved again where an input is the same */
    int64_t dm_bytes, dm_bytes_most, slices, trf_bytes;    /* DM of a slice: what it takes, and what there is */
    const char *why;                                       /* it cannot be applied to tiles; NULL: it can, or was diagnosed */
    bool bad;                                              /* diagnosed */
} step_kernel;

enum { STEP_DEPTH_DEFAULT = -1 };

/* What an operator is given. Unused fields are zero. */
typedef struct step_spec {
    step_op op;
    const char *name; /* NULL: made from the operator */
    src_range range;
    const step_stream **inputs;
    uint32_t input_count;
    uint32_t output_count; /* partition, parallelize */
    int64_t param[STEP_PARAMS];
    const int64_t *walk_sizes, *walk_strides; /* outermost first */
    uint32_t walk_count;
    step_graph_tensor *tensor;
    step_fn fn;
    bool has_dtype;
    dtype dtype;                 /* of the result, where it is not the first input's */
    const step_data *data;       /* source: its type; tiles: the pieces' */
    const step_kernel *kernel;   /* of the function `kernel` */
    const step_formula *formula; /* of the function `formula` */
    const step_expr **dims;      /* source: its shape */
    uint32_t rank;
} step_spec;

struct step_graph_node {
    step_spec spec;
    uint32_t index;
    const char *name; /* unique */
    int64_t *depths;  /* of each input's queue, in values; 0: any number */
    step_stream *outputs;
    uint32_t output_count;
    int64_t flops_per_cycle;
    bool writes_back;
};

typedef struct step_graph {
    const char *name;
    src_range range;
    arena *arena;
    diag_list *diags;
    step_exprs *exprs;
    step_machine machine;
    int64_t default_depth; /* values */
    int64_t default_flops_per_cycle;
    step_graph_node **nodes;
    size_t node_count, node_capacity;
    step_graph_tensor **tensors;
    size_t tensor_count, tensor_capacity;
    struct step_split *splits; /* sizes of what is routed (ir/step/route.h) */
    step_stream **feedbacks;   /* not connected yet */
    size_t feedback_count, feedback_capacity;
    struct step_group *groups;  /* ragged sizes of groups, so that equal ones are one symbol (ir/step/groups.c) */
    struct step_alias *aliases; /* what the writer knows to be equal (ir/step/total.c) */
    struct step_total *totals;  /* sums and maxima of ragged sizes (ir/step/total.h) */
    struct step_stems *stems;   /* names that were given, and how often; NULL: none yet */
    bool bad;                   /* diagnosed: nothing is to be made of it */
} step_graph;

/* Adds the node. NULL when a rule of the operator does not hold: then it was diagnosed. */
step_graph_node *step_graph_add(step_graph *g, const step_spec *spec);

/* A stream that is given its source later: other nodes may take it at once. `spec` has its name, place, data type and shape. */
step_stream *step_graph_feedback(step_graph *g, const step_spec *spec);
/* Everything that takes `feedback` takes `source` from now on; ranks and data types have to agree, sizes are taken as they were
 * written. False: diagnosed. */
bool step_graph_connect(step_graph *g, step_stream *feedback, const step_stream *source, src_range range);
/* Diagnoses those that were never connected. */
void step_graph_close(step_graph *g);

/* The same, but for what follows from the inputs: fills outputs and counts of `n`, whose spec is complete. */
bool step_infer(step_graph *g, step_graph_node *n);

/* The dimension D_i, counted from the innermost one. */
static inline const step_expr *step_dim(const step_stream *s, uint32_t i)
{
    return s->dims[s->rank - i];
}

/* "[B, 4] of tiles 16 x 256 f32". */
const char *step_stream_text(const step_stream *s, arena *a);
const char *step_shape_text(const step_stream *s, arena *a);
const char *step_data_text(const step_data *d, arena *a);

/* Bytes of a value of that type, as an expression; NULL past 2^62. */
const step_expr *step_data_bytes(step_graph *g, const step_data *d);
/* FLOPs of one application of a node's function; 0 for operators without one. */
const step_expr *step_node_flops(step_graph *g, const step_graph_node *n);

#endif
