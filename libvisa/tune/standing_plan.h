/* A contraction whose sum is shared by neighbouring slices, and whose columns stand: how rows, columns and the sum are divided.
 *
 * The one idea: it is the other way round than folded_plan.h. The columns of a slice stay in the TRF, whole blocks of HBM of each row of
 * the result, and rows go around the slices of a group in steps. So what leaves the reducer lies as HBM has it, without being turned, and
 * may be stored after any step: the last store, which nothing hides, is as small as one likes. Half of the columns comes first, and rows
 * that are there meet it while the other half comes. */
#ifndef VISA_LIBVISA_TUNE_STANDING_PLAN_H
#define VISA_LIBVISA_TUNE_STANDING_PLAN_H

#include "libvisa/tune/question.h"
#include "libvisa/tune/steps.h"

/* Of the question, sum <= sum_slices * sums and rows <= steps * clusters * groups * column_slices * brought: each slice of a group brings
 * some rows of each step. What is more is padding, at the end. A tile of rows in HBM has none, so where rows have some the steps are the
 * innermost digit of the rows, a divisor of them. Columns are padded to column_slices * columns, at the end. */
typedef struct standing_plan {
    int64_t sum_slices, sums;       /* neighbours with parts of the sum; elements in each */
    int64_t column_slices, columns; /* of a group; columns in each, which come in two halves */
    int64_t clusters, groups, steps, brought;
    bool clusters_inside;          /* neighbouring rows of a step are of different clusters: these end together where rows do */
    bool columns_at_once;          /* in one copy: the last slice has less, so halves are no digit of them in HBM */
    int64_t whole, whole_clusters; /* rows that a slice writes after a copy from DM to DM has brought them there, in so many clusters,
                                      where rows of the result are no whole blocks of HBM: in one store; 0: slices write their own */
    int64_t whole_partial;         /* cycles of the blocks of HBM that they write in part */
    int64_t most_steps;            /* of a pass: what meets them in the VRF has room for no more */
    steps_order order;             /* rows go around, columns stay */
} standing_plan;

/* Columns of the question with the padding of slices that have none. */
int64_t standing_padded_columns(const standing_plan *p);

/* Rows of the question with the padding of the last slices, and elements of a whole sum with it. */
int64_t standing_padded_rows(const standing_plan *p);
int64_t standing_padded_sum(const standing_plan *p);

/* Positions of the rows from one to the next in a step and cluster, from one cluster to the next, and from one step to the next. */
int64_t standing_row_stride(const tune_question *q, const standing_plan *p);
int64_t standing_cluster_stride(const tune_question *q, const standing_plan *p);
int64_t standing_step_stride(const tune_question *q, const standing_plan *p);

/* Rows of a group in one step, and those of them that a slice keeps of the results. */
int64_t standing_rows(const standing_plan *p);
int64_t standing_rows_kept(const standing_plan *p);

/* Does it have an element for each result, so that it comes into the VRF for each pass? What has one for a column is there from the begin.
 */
bool standing_is_of_results(const tune_extra *e);

/* Of such an operand the copies that it comes in, of equal steps: each takes what is in one row of HBM, where steps are that small, since
 * slices that read from several rows of a bank in turn wait for each. */
int64_t standing_copies(const tune_question *q, const standing_plan *p, const tune_extra *e);

/* The best plans by their estimates, at most `most`, the fastest first: the best one of each way to divide rows, columns and the sum.
 * Returns how many there are. None: a question of another form. */
size_t standing_plans(const target *t, const tune_question *q, arena *a, standing_plan *out, size_t most);

#endif
