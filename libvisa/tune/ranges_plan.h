/* A contraction of few rows and many columns, whatever divides the number of these: how columns are divided.
 *
 * The one idea: a tile of an axis is a whole part of it, but a range of its positions may begin and end anywhere. So columns come in ranges
 * that all slices share evenly, as large as is fast, and what is left comes in a last one, which begins inside of the range before it and
 * is written from there on only. Nothing is padded, and no range divides the columns. */
#ifndef VISA_LIBVISA_TUNE_RANGES_PLAN_H
#define VISA_LIBVISA_TUNE_RANGES_PLAN_H

#include "libvisa/tune/question.h"

typedef struct ranges_plan {
    int64_t tile;                 /* columns of a slice in a range; */
    int64_t idle;                 /* of so many neighbours one has columns, so that its pieces are longer; 1: all work */
    int64_t iterations, stores;   /* ranges whose results are stored together; and how often that is */
    int64_t last_tile;            /* columns of a slice in the last range; 0: nothing is left for one */
    int64_t row_clusters;         /* of which each has a part of the rows, and all columns; 1: clusters share the columns */
    int64_t rows;                 /* with padding: equal parts for clusters, for slices that exchange, and for those that bring */
    int64_t exchange;             /* neighbours that exchange rows for columns, so that their pieces are longer; 1: none */
    int64_t row_parts, sum_parts; /* of the rows each slice brings one such part, and all go around; 0: each slice gets all rows */
    bool brings;                  /* a copy from DM to DM makes rows whole before they are stored; false: slices write what they have */
    int64_t pieces;               /* of such a row, a slice for each: a divisor of the iterations */
    bool main_weights;            /* the TRF is filled by the main context */
    int64_t cycles;               /* as estimated */
} ranges_plan;

/* Slices that share a range, of all clusters or of each; rows of a slice. */
int64_t ranges_slices(const target *t, const ranges_plan *p);
int64_t ranges_rows(const ranges_plan *p);

/* Columns of a range, of those that are stored together, and of the last range. */
int64_t ranges_width(const target *t, const ranges_plan *p);
int64_t ranges_stored(const target *t, const ranges_plan *p);
int64_t ranges_last(const target *t, const ranges_plan *p);

/* Columns that only the last range has. */
int64_t ranges_left(const target *t, const tune_question *q, const ranges_plan *p);

/* Elements of a sum with padding. */
int64_t ranges_padded_sum(const target *t, const tune_question *q);

/* Does the last range of what meets the sums begin inside of a word, so that it is copied to where one begins? */
bool ranges_shifts_extra(const target *t, const tune_question *q, const ranges_plan *p, const tune_extra *e);

/* Clusters and slices that have whole rows. */
int64_t ranges_row_clusters(const target *t, const tune_question *q);
int64_t ranges_row_slices(const target *t, const tune_question *q);

/* The best `most` plans by their estimates, the fastest first; returns how many there are. None: a question of another form. */
size_t ranges_plans(const target *t, const tune_question *q, ranges_plan *out, size_t most);

#endif
