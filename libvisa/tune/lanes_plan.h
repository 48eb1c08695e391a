/* A contraction one of whose operands lies turned, and is never turned: how both operands and the sum are divided.
 *
 * The one idea: what lies side by side in that operand need not be what the tree adds. It stays in the columns of the Reducer, each element
 * of the other operand, in the TRF, meets all of them, and the sum goes on in time. Slices share the sum and the operand goes around them
 * in steps, as in standing_plan.h. Either way round what leaves the Reducer lies as HBM has it. */
#ifndef VISA_LIBVISA_TUNE_LANES_PLAN_H
#define VISA_LIBVISA_TUNE_LANES_PLAN_H

#include "libvisa/tune/question.h"
#include "libvisa/tune/steps.h"

/* Of the question, sum == sum_slices * sums, what goes around == steps * clusters * groups * step, and what stands is whole slices of
 * `standing`; what there are more of standing_slices are padding, at the end. */
typedef struct lanes_plan {
    tune_role around, stands;          /* of rows and columns the one whose operand lies turned, and the other one */
    int64_t sum_slices, sums;          /* neighbours with parts of the sum; elements in each */
    int64_t standing_slices, standing; /* of a group; rows or columns in each, which come in two halves */
    int64_t clusters, groups, step;    /* rows or columns of a group that go around in one step */
    int64_t inner;                     /* steps of a group that follow each other; those of all groups stand inside the others, */
    bool clusters_outside;             /* of each cluster by itself */
    steps_order order;
} lanes_plan;

/* Rows or columns that stand, with the padding of slices that have none. */
int64_t lanes_padded_standing(const lanes_plan *p);

/* Elements of the sum that a slice brings of a step, and those that the tree adds for a column of a packet: a packet is as many columns as
 * the Reducer keeps. */
int64_t lanes_brought(const lanes_plan *p);
int64_t lanes_paired(const target *t, const tune_question *q);

/* Steps whose results lie together in a slice: whole blocks of HBM, so that those of others are apart from them. */
int64_t lanes_unit(const target *t, const tune_question *q, const lanes_plan *p);

/* A pass over one packet has nothing to keep outside of the sum, and its results would leave when all of it is done: where there are tiles
 * enough in the TRF, the packet is fetched so often, for a part of them each. */
int64_t lanes_refetches(const target *t, const lanes_plan *p);

/* Positions from one to the next of what goes around: of steps that do not follow each other, groups and clusters; of what stands: of its
 * halves and slices. */
int64_t lanes_outer_stride(const lanes_plan *p);
int64_t lanes_group_stride(const lanes_plan *p);
int64_t lanes_cluster_stride(const lanes_plan *p);
int64_t lanes_half_stride(const lanes_plan *p);
int64_t lanes_slice_stride(const lanes_plan *p);

/* The best `most` plans by their estimates, the fastest first; returns how many there are. None: a question of another form. */
size_t lanes_plans(const target *t, const tune_question *q, lanes_plan *out, size_t most);

#endif
