/* A contraction whose sum is shared by neighbouring slices: how rows, columns and the sum are divided.
 *
 * The one idea: slices that have parts of the sum are multiplied for side by side, and the inter-slice reducer adds what they have on its
 * way, each slice keeping a part of the results. So a slice has long runs of few rows, which stay in the TRF, and needs no ring for them;
 * columns come once, are brought by all slices of a group together, and go around it ahead of the products. */
#ifndef VISA_LIBVISA_TUNE_FOLDED_PLAN_H
#define VISA_LIBVISA_TUNE_FOLDED_PLAN_H

#include "libvisa/tune/aside.h"

/* Of the question, sum <= sum_slices * sums, the last of these slices having less, and columns == clusters * iterations * groups * columns;
 * rows are padded to row_slices * rows, at the end, where they are whole parts of what slices keep of the results. */
typedef struct folded_plan {
    int64_t sum_slices, sums;                      /* neighbours with parts of the sum; elements in each */
    int64_t row_slices, rows;                      /* of a group; rows in each */
    int64_t clusters, iterations, groups, columns; /* of a group in one iteration */
    int64_t pieces;         /* of these columns, that go around and are multiplied one by one, and are stored together */
    bool main_begins;       /* the first piece goes around by the main context, the others by sub */
    bool in_halves;         /* rows come in two copies, upper and lower ones, and each meets the columns of the first two iterations */
    bool columns_in_halves; /* and columns, too, by iterations, so that the first ones go around early */
    int64_t brought_sums;   /* elements of the sum that a slice brings of columns: all of its part, but of those that lie turned; */
    int64_t gather;         /* these are turned before they go around, and so many slices, whose copies had longer runs, exchange parts of
                               the sum for columns meanwhile; 1: none */
    int64_t aside;          /* rows that lie turned are turned once, in front of all, by slices that have so many of them; 0: they do not */
    int64_t cycles;         /* as estimated */
} folded_plan;

/* Columns of a group that are multiplied at once; those of them that a slice brings, and slices that bring others of the same part of the
 * sum; rows of the results that it keeps. */
int64_t folded_piece(const folded_plan *p);
int64_t folded_columns_brought(const folded_plan *p);
int64_t folded_column_bringers(const folded_plan *p);
int64_t folded_rows_kept(const folded_plan *p);

/* Of columns that lie turned those of a piece that follow each other in a slice. */
int64_t folded_columns_together(const folded_plan *p);

/* Those of the question with the padding of slices that have none, and elements of a whole sum with its padding. */
int64_t folded_padded_rows(const folded_plan *p);
int64_t folded_padded_sum(const folded_plan *p);

/* Elements of the sum for each of so many slices: whole packets. 0: one of them would have none, or a row of an operand is no whole words,
 * which a copy takes. */
int64_t folded_sums_of(const target *t, const tune_question *q, int64_t slices);

/* Rows of a slice that follow each other: all, or half of them. */
int64_t folded_rows_together(const folded_plan *p);

/* Of rows that are turned aside, what is done. */
aside folded_aside_of(const target *t, const tune_question *q, const folded_plan *p);

/* Rows of a block of the Transpose Engine: columns side by side in what leaves it. */
int64_t folded_turned_columns(const target *t, const tune_question *q);

/* May slices share its sums? Of one chip, without a batch. */
bool folded_shares_sums(const tune_question *q);

/* A copy of so many runs for every slice, by the slowest of DMA engines, DMNs and channels. `live` of `slices` have some. */
int64_t folded_copy_cycles(const target *t, int64_t pieces, int64_t run_bytes, int64_t live, int64_t slices);

/* The same of what has so many bytes in HBM, which lie in fewer channels than there are where these are few. */
int64_t folded_copy_cycles_of(const target *t, int64_t pieces, int64_t run_bytes, int64_t live, int64_t slices, int64_t hbm_bytes);

/* What slices bring around all of a group: every packet passes all of them, each of which writes those of its part of the sum. Flits of a
 * slice. */
int64_t folded_around_cycles(int64_t slices, int64_t brought_flits, int64_t written_flits, bool by_main);

/* The best `most` plans by their estimates, the fastest first; returns how many there are. None: a question of another form. */
size_t folded_plans(const target *t, const tune_question *q, folded_plan *out, size_t most);

#endif
