/* What is chosen for windows that are folded: which results a slice has.
 *
 * The one idea: as lay_plan.h, a slice has a box, so many results along each axis, and of the image what their windows take, with a halo;
 * where boxes that are good to fold are bad to write, a copy from DM to DM makes others of them. */
#ifndef VISA_LIBVISA_TUNE_POOL_PLAN_H
#define VISA_LIBVISA_TUNE_POOL_PLAN_H

#include "libvisa/tune/pool_question.h"

/* Results of a box along each axis, and how many boxes there are. */
typedef struct pool_box {
    int64_t tile[POOL_DIMS], count[POOL_DIMS];
} pool_box;

typedef struct pool_plan {
    pool_box folded, whole; /* whole: that are written, where a copy brings them together */
    bool brings;
    bool frames; /* slices have parts of the image, and fill what is around it (pool_frame.h) */
    pool_order order;
    bool short_border; /* little is filled around the image (border.h) */
    int64_t cycles;    /* as estimated */
} pool_plan;

/* Results along an axis in all boxes, with what pads them. */
int64_t pool_padded(const pool_box *b, int dim);

/* Clusters share the boxes of this axis, the outermost with an even number; POOL_DIMS: of none. Slices of a cluster that work. */
int pool_cluster_dim(const target *t, const pool_box *b);
int64_t pool_slices(const target *t, const pool_box *b);

/* Boxes that are written are so many slices apart, so that they do not share what brings their bytes. */
int64_t pool_apart(const target *t, const pool_box *b);

/* Channels that are fetched, computed and written together are whole packets and words. */
int64_t pool_unit(const target *t, const pool_question *q);

/* The plans that are possible, the best estimate first; at most `most`. */
size_t pool_plans(const target *t, const pool_question *q, pool_plan *plans, size_t most);

#endif
