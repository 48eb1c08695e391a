/* What is computed of values that go through the Vector Engine, step by step: `Y[r, c] = softmax(c) X[r, c]`, of tensors, of sums of a
 * contraction, or of both.
 *
 * The one idea: of two values that meet, the one with more axes is the stream, and the other one waits in the VRF. So a tree becomes chains
 * of operations on one stream each; a chain ends where its values are an operand (in the VRF), are read again (in DM), or are the result.
 * What is read twice in a chain of few operations is computed twice: that takes no cycle as long as the units are free. */
#ifndef VISA_LIBVISA_TUNE_FLOW_H
#define VISA_LIBVISA_TUNE_FLOW_H

#include "libvisa/tune/chips.h"
#include "libvisa/tune/expression.h"

enum { FLOW_GROUPS_MAX = 8, FLOW_VALUES_MAX = 32, FLOW_STEPS_MAX = 32, FLOW_SOFTMAXES_MAX = 8 };

/* Axes that stand side by side in every tensor that has them, and are reduced together: one axis of the kernel. */
typedef struct flow_group {
    const char *text;  /* the kernel's axis: "C", "B_R" */
    const char *parts; /* "B, R" */
    int64_t size;      /* elements */
    unsigned axes;     /* a bit each */
    bool is_reduced;   /* somewhere */
} flow_group;

/* FLOW_STREAM: sums of a contraction, as they leave the Reducer. */
typedef enum flow_place { FLOW_DM, FLOW_VRF, FLOW_TRF, FLOW_STREAM, FLOW_OUT } flow_place;

typedef struct flow_value {
    const char *name;                      /* as a kernel calls it */
    size_t groups[FLOW_GROUPS_MAX], count; /* as it lies in a slice, outermost first */
    unsigned has;                          /* these groups, a bit each */
    dtype type;
    flow_place place;
    size_t tensor;                /* in tune_expression.tensors of what is loaded; 0: it is computed, or the result */
    bool is_packed;               /* its innermost group is that of the packets; else each flit has one element in front */
    size_t rows, weights, summed; /* of sums: values in DM and in the TRF, and the group that both have and the sums have not */
    size_t lying;                 /* of sums: [summed, kept] in DM, streams as it lies past weights made of the rows; 0: the rows stream */
    bool is_left;                 /* what slices share is folded as it is in the result: an operand of that */
} flow_value;

/* FLOW_TURN: [summed, kept] in DM becomes [kept, summed]; FLOW_FILL: from DM into the TRF; FLOW_ONES: a column of ones there. */
typedef enum flow_kind { FLOW_LOAD, FLOW_PASS, FLOW_TURN, FLOW_FILL, FLOW_ONES } flow_kind;

typedef struct flow_step {
    flow_kind kind;
    size_t from, to; /* values; a load and ones have no `from` */
    tune_operation operations[TUNE_OPERATIONS_MAX];
    size_t count;
    const char *why;
} flow_step;

/* Ways to compute what is the same. */
typedef struct flow_reading {
    bool multiplies_again; /* sums of a contraction that are read more than once are computed again, and not kept in DM */
    bool divides_after;    /* powers meet weights where shares do, and their sums are divided: fewer, and the Reducer adds the powers */
    bool streams_less;     /* of two values with the same axes that in which less is computed streams, and the other one waits in the VRF */
    bool leaves_sums;      /* a sum that meets another one over the same axis is left where that is, and not in all slices that share it */
    bool streams_lying;    /* what lies [summed, kept] is not turned: it streams, and what would be rows are the weights */
} flow_reading;

/* A softmax: no power before the largest of its row is known, no share before the sum of its powers is. */
typedef struct flow_softmax {
    size_t of;    /* the value that its chain reads */
    unsigned has; /* groups of what it is of */
    size_t rows;  /* what the next contraction has of it; 0: it meets none */
} flow_softmax;

typedef struct tune_flow {
    const tune_expression *e;
    flow_group groups[FLOW_GROUPS_MAX];
    size_t group_count;
    tune_share share[FLOW_GROUPS_MAX];  /* of chips; sizes and axes of groups are those of one */
    flow_value values[FLOW_VALUES_MAX]; /* [0]: the result */
    size_t value_count;
    uint32_t rows_alone;   /* values that are the rows of one contraction and nothing else, a bit each */
    uint32_t filled_alone; /* that one step takes, which fills the TRF with them */
    uint32_t copied_alone; /* or copies them into the VRF */
    unsigned batches;      /* groups that both operands of a contraction have, and its sums */
    flow_step steps[FLOW_STEPS_MAX];
    size_t step_count;
    flow_softmax softmaxes[FLOW_SOFTMAXES_MAX];
    size_t softmax_count;
    int64_t most_slices; /* of a cluster that work; 0: all */
    flow_reading how;
    bool has_sums_again, has_divisions, has_choice, has_meeting, has_lying; /* of each, there is something to read otherwise */
    dtype meets, type, out_type; /* in which values are worked on; of tensors without a type; of the result */
} tune_flow;

/* Groups of a chain's values after its first `count` operations. */
unsigned tune_flow_groups(const tune_flow *f, const flow_step *s, size_t count);

/* Groups of a tensor as it lies in HBM, outermost first, into FLOW_GROUPS_MAX places. Returns how many. */
size_t tune_flow_order_in_hbm(const tune_flow *f, size_t tensor, size_t *groups);

/* The value that an operation's operand is. */
/* Is a pass of this step nothing but what the sub context can do: a tensor into the VRF? */
bool tune_flow_is_copy(const tune_flow *f, const flow_step *s);

const flow_value *tune_flow_operand(const tune_flow *f, const tune_operation *o);

/* Groups that a value depends on. */
unsigned tune_flow_depends(const tune_flow *f, size_t value);

/* False: diagnosed. Lives in the list's arena. */
bool tune_flow_read(const tune_expression *e, const visa_tune_options *options, flow_reading how, diag_list *diags, tune_flow *out);

#endif
