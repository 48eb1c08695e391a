/* The design space of a dataflow model: every iPar that divides its block, every wPar that divides its blocks (seed 003).
 *
 * The one idea: cycles fall and widths rise with each parameter, so a part of the space whose best corner is worse than a point that is
 * known, or whose smallest corner breaks a limit, is counted without a visit. What is left is the front: the points of which no other
 * has both fewer cycles and fewer multipliers.
 *
 * Multipliers: elements of the inputs' streams together times weight blocks at a time together (1 without weights). */
#ifndef VISA_IR_EXPLORE_H
#define VISA_IR_EXPLORE_H

#include "ir/dataflow.h"

enum { EXPLORE_PARAMETERS_MAX = 64, EXPLORE_INTERFACES_MAX = 16, EXPLORE_WAYS_MAX = 1024 };

/* One number to choose: a dimension of an interface. */
typedef struct explore_parameter {
    size_t interface; /* of the model */
    uint32_t dimension;
    int64_t *divisors; /* ascending */
    size_t count;
} explore_parameter;

/* What a point may need at most; 0: anything. */
typedef struct explore_limits {
    int64_t multipliers;
    int64_t weight_bits; /* per cycle, of all weights */
    int64_t input_bits;  /* per cycle, of each input */
    int64_t block_bits;  /* per cycle, of one weight block: FINN's bound of a memory word */
    int64_t rows;        /* weight blocks at a time, of each weight */
    int64_t cycles;      /* L */
} explore_limits;

typedef struct explore_cost {
    int64_t latency, multipliers, weight_bits, input_bits, block_bits, rows;
} explore_cost;

typedef struct explore_point {
    int64_t latency, multipliers;
    int64_t ways; /* points of this latency and these multipliers */
    int64_t *choices; /* one list of positions in the divisors for each way, in order; the first EXPLORE_WAYS_MAX */
    size_t choice_count, choice_capacity;
} explore_point;

typedef struct explore {
    const dataflow_model *model;
    explore_limits limits;
    arena *arena;
    explore_parameter *parameters; /* outermost first: inputs, then weights */
    size_t parameter_count;
    int64_t points; /* of the space */
    int64_t legal;  /* within the limits */
    explore_point *front; /* by multipliers */
    size_t count, capacity;
    int64_t part, parts; /* only every parts-th piece of the space, from `part` on */
    void (*progress)(void *user, int64_t done, int64_t points);
    void *user;
} explore;

/* Prepares the space of an evaluated model. False: diagnosed. */
bool explore_open(explore *x, const dataflow_model *m, arena *a, diag_list *diags);
/* Walks its part of the space. */
void explore_run(explore *x);
/* The front as numbers, to be carried to another process, and back: what is there already stays. False: they are of another space. */
size_t explore_save(const explore *x, int64_t **out);
bool explore_merge(explore *x, const int64_t *numbers, size_t count);

/* What the positions in the divisors stand for. */
explore_cost explore_cost_of(const explore *x, const int64_t *choice);

/* FINN's folding of one input and one weight: iPar rises until L is below `cycles`, but steps back where a block's bits pass the limit;
 * then wPar rises. Leaves the one point as the front. */
void explore_fold(explore *x, int64_t cycles);

/* The model at that choice, evaluated anew. */
dataflow_model *explore_model(const explore *x, const int64_t *choice, diag_list *diags);

#endif
