/* The design space of a dataflow model: every iPar that divides its block, every wPar that divides its blocks (seed 003).
 *
 * Two ideas. What a point costs depends on each interface's parameters by their product only, so the walk goes over the products of each
 * interface, each with the number of ways to it, and ways are told apart where they are shown. And cycles fall and widths rise with each
 * product, so a part of the space whose best corner is worse than a point that is known, or whose smallest corner breaks a limit, is
 * counted without a visit. What is left is the front: the points of which no other has both fewer cycles and fewer multipliers.
 *
 * Multipliers: elements of the inputs' streams together times weight blocks at a time together (1 without weights). */
#ifndef VISA_IR_DATAFLOW_EXPLORE_H
#define VISA_IR_DATAFLOW_EXPLORE_H

#include "ir/dataflow/dataflow.h"

enum { EXPLORE_PARAMETERS_MAX = 64, EXPLORE_FACES_MAX = 16, EXPLORE_WAYS_MAX = 64 };

/* One number to choose: a dimension of an interface. */
typedef struct explore_parameter {
    size_t face;
    size_t interface; /* of the model */
    uint32_t dimension;
    int64_t *divisors; /* ascending */
    size_t count;
    int64_t behind; /* what the parameters after it of the same interface are at most, multiplied */
} explore_parameter;

/* A product of an interface's parameters, and how many of their choices have it. */
typedef struct explore_level {
    int64_t product, ways;
} explore_level;

/* An input or a weight. */
typedef struct explore_face {
    size_t interface;      /* of the model */
    explore_level *levels; /* ascending */
    size_t level_count;
    int64_t elements; /* of a block */
    int64_t blocks, bits;
    dataflow_ratio per_input[EXPLORE_FACES_MAX]; /* weight: elements of its block for each of an input's */
} explore_face;

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
    int64_t ways;    /* choices of this latency and these multipliers */
    int64_t *levels; /* positions in the faces' levels, a list for each combination, in order; those of the first EXPLORE_WAYS_MAX ways */
    size_t count, capacity;
    int64_t ways_kept; /* of these lists */
} explore_point;

typedef struct explore {
    const dataflow_model *model;
    explore_limits limits;
    arena *arena;
    explore_parameter *parameters; /* outermost first, face by face */
    size_t parameter_count;
    explore_face *faces; /* inputs, then weights */
    size_t face_count, input_count;
    int64_t points;       /* of the space */
    int64_t legal;        /* within the limits */
    explore_point *front; /* by multipliers */
    size_t count, capacity;
    dataflow_model *trial; /* a copy to try choices on, where the stream of a weight or an output may not tile; NULL: all of them do */
    const int64_t *folded; /* the choice of explore_fold; NULL: there was none */
    int64_t part, parts;   /* only every parts-th piece of the space, from `part` on */
    void (*progress)(void *user, int64_t done, int64_t points);
    void *user;
} explore;

/* Prepares the space of an evaluated model. False: diagnosed. */
bool explore_open(explore *x, const dataflow_model *m, arena *a, diag_list *diags);
/* Walks its part of the space. */
void explore_run(explore *x);

/* The first EXPLORE_WAYS_MAX ways of a point: lists of positions in the parameters' divisors, in order of the products, then of the
 * choices. */
size_t explore_ways(const explore *x, const explore_point *p, int64_t **choices);
/* The product that a combination of a point takes of a face. */
int64_t explore_product(const explore *x, const explore_point *p, size_t combination, size_t face);
/* What a choice, or a product for each face, costs. */
explore_cost explore_cost_of(const explore *x, const int64_t *choice);
explore_cost explore_cost_of_products(const explore *x, const int64_t *products);

/* The front as numbers, to be carried to another process, and back: what is there already stays. False: they are of another space. */
size_t explore_save(const explore *x, int64_t **out);
bool explore_merge(explore *x, const int64_t *numbers, size_t count);

/* FINN's folding of one input and one weight: iPar rises until L is below `cycles`, but steps back where a block's bits pass the limit;
 * then wPar rises. Leaves the one point as the front. */
void explore_fold(explore *x, int64_t cycles);

#endif
