/* Streaming Tensor Programs as rows: operators, functions, numbers, and the machine around a graph.
 *
 * The one idea: what an operator takes and what each of its numbers may be is stated once, in step.def, and read by the compiler, the
 * binary's encoder and decoder, the simulator and the documentation. */
#ifndef VISA_TARGET_STEP_STEP_H
#define VISA_TARGET_STEP_STEP_H

#include "target/target.h"

enum {
    STEP_RANK_MAX = 15,
    STEP_PARAMS = 4,
    STEP_MAP_INPUTS = 5, /* streams that a map takes, and tiles that a kernel does */
    STEP_NODES_MAX = 1 << 20,
    STEP_TILE_MAX = 1 << 20 /* rows, or columns: FLOPs of a product stay below 2^62 */
};

/* Slots of a node's numbers; target/step/step.def says what each means to which operator. */
enum { STEP_B = 0, STEP_N = 1, STEP_PAD = 2, STEP_PAD_VALUE = 3, STEP_BASE = 0, STEP_FIRST = 2, STEP_KEPT = 2 };
enum { STEP_USE_MAP = 1, STEP_USE_UPDATE = 2, STEP_USE_FLAT = 4 };
enum { STEP_ACTS_COMPUTES = 1, STEP_ACTS_EACH_ROW = 2, STEP_ACTS_PRODUCT = 4 };

typedef enum step_op {
#define STEP_OP(symbol, code, name, least, most, outputs, summary) symbol = code,
#include "target/step/step.def"
} step_op;

typedef enum step_fn {
#define STEP_FN(symbol, code, name, least, most, use, acts, summary) symbol = code,
#include "target/step/step.def"
} step_fn;

typedef struct step_op_row {
    step_op op;
    const char *name, *summary;
    int least_inputs, most_inputs, outputs; /* -1: as many as the node says */
} step_op_row;

typedef struct step_fn_row {
    step_fn fn;
    const char *name, *summary;
    int least_arity, most_arity; /* an update counts its accumulator */
    unsigned use, acts;
} step_fn_row;

typedef struct step_param_row {
    step_op op;
    step_fn fn; /* STEP_FN_NONE: whatever is applied */
    unsigned slot;
    const char *name, *unit, *summary;
    int64_t minimum, maximum;
} step_param_row;

/* NULL past the end, for an unknown code or an unknown name. */
const step_op_row *step_op_row_at(size_t index);
const step_op_row *step_op_row_of(uint64_t code);
const step_fn_row *step_fn_row_at(size_t index);
const step_fn_row *step_fn_row_of(uint64_t code);
const step_fn_row *step_fn_row_by_name(const char *name);
/* Does it act in one of these ways (STEP_ACTS_COMPUTES ..)? */
bool step_fn_acts(step_fn fn, unsigned ways);
/* Does it put tiles side by side? */
bool step_fn_stacks(step_fn fn);
const step_param_row *step_param_row_at(size_t index);
/* Is it a number of an operator with that function? */
bool step_param_row_is_of(const step_param_row *row, step_op op, step_fn fn);

typedef enum step_kind { STEP_TILE, STEP_SELECTOR, STEP_BUFFER, STEP_PAIR, STEP_BOOL, STEP_ADDRESS, STEP_KINDS } step_kind;

/* What the machine around the graph can do (reference/step.md section 6; the paper's parameters). */
typedef struct step_machine {
    int64_t onchip_bytes_per_cycle;
    int64_t memory_channels, requests_per_cycle, request_bytes;
    int64_t memory_latency_cycles, memory_interval_cycles, memory_startup_cycles;
    int64_t compute_tile; /* rows and columns of what a compute unit takes */
    int64_t onchip_bytes; /* what the memory on the chip holds; 0: any number */
} step_machine;

/* The paper's machine for all but its validation runs, and queues as in its MoE runs. */
#define STEP_MACHINE_DEFAULT \
    ((step_machine){.onchip_bytes_per_cycle = 64, \
                    .memory_channels = 32, \
                    .requests_per_cycle = 1, \
                    .request_bytes = 64, \
                    .memory_latency_cycles = 2, \
                    .memory_interval_cycles = 2, \
                    .memory_startup_cycles = 14, \
                    .compute_tile = 16})
enum { STEP_DEFAULT_DEPTH = 2, STEP_COMPUTE_TILE_MAX = 1024 };
#define STEP_ONCHIP_BYTES_MAX (INT64_C(1) << 50)

/* FLOPs per cycle of an operator on units of t x t tiles: t x t x t. The paper's units take 16 x 16 tiles, one in each cycle, and its
 * published runs give an operator on them 4096 (reference/step.md section 7.1). */
static inline int64_t step_tile_flops(int64_t compute_tile)
{
    return compute_tile * compute_tile * compute_tile;
}

#endif
