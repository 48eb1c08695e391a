/* A tensor in another order of its axes: which part of it a slice has while it is turned.
 *
 * The one idea: a slice has a box, so many positions of each axis. It reads what of the box follows each other as the tensor lies, puts it
 * in the new order in DM, 8 bytes after 8 bytes, and writes what follows each other then; where boxes that are good to read are bad to
 * write, a copy from DM to DM makes other boxes of them. */
#ifndef VISA_LIBVISA_TUNE_LAY_PLAN_H
#define VISA_LIBVISA_TUNE_LAY_PLAN_H

#include "libvisa/tune/expression.h"
#include "target/target.h"

typedef struct lay_axis {
    const char *name;
    const char *parts; /* the question's axes that it is: they lie side by side in both orders */
    int64_t size;
    int64_t padded;    /* positions in the new order, with zeros after them; else `size` */
    const char *wide;  /* an axis of so many positions; NULL: there are no zeros */
    bool apart;        /* it is joined with no other */
    const char *after; /* its name where rows have been put one after the other, since an axis is renamed once; NULL: the same */
} lay_axis;

typedef struct lay_order {
    lay_axis axes[TUNE_AXES_MAX]; /* in the new order, outermost first */
    size_t count;
    size_t source[TUNE_AXES_MAX]; /* which of them are where in the old order */
    dtype from, into;             /* into: the same, or what the fetch casts to */
    int64_t most_slices;          /* of a cluster that work; 0: all */
    size_t looped;                /* of a part of this axis, one of so many, which are turned one after the other; 1: all at once */
    int64_t parts;
} lay_order;

/* Positions of each axis, and how many boxes there are of each. */
typedef struct lay_box {
    int64_t tile[TUNE_AXES_MAX], count[TUNE_AXES_MAX];
} lay_box;

typedef struct lay_plan {
    lay_box turned; /* that are read and turned */
    lay_box whole;  /* that are written, where a copy brings them together */
    bool brings;
    bool unpacks;   /* what is innermost before is no whole 8 bytes, and zeros part its rows: these are put apart in DM first */
    bool packs;     /* the innermost axis is no whole 8 bytes: it has padding in DM until its rows are put one after the other */
    int64_t packet; /* elements that are fetched at once, of what was innermost; 1: each alone */
    size_t looped;  /* iterations share this axis evenly, */
    int64_t parts;  /* so many of them; 1: none */
    int64_t cycles; /* as estimated */
} lay_plan;

/* Axes that lie side by side in both orders become one; false: nothing lies otherwise. Names live in the arena. */
bool lay_order_join(lay_order *x, arena *a);
/* Those of one position go, and no more. */
bool lay_order_trim(lay_order *x);

/* The axis that is innermost now, and the one that was. */
size_t lay_innermost(const lay_order *x);
size_t lay_innermost_before(const lay_order *x);

/* Elements of 8 bytes as they leave. */
int64_t lay_row(const target *t, const lay_order *x);

/* Positions of an axis in all boxes, with what pads them. */
int64_t lay_padded(const lay_box *b, size_t axis);

/* Boxes are those of clusters, where an axis has an even number of them: the outermost such one; `count`: none has. */
size_t lay_cluster_axis(const target *t, const lay_order *x, const lay_box *b);
/* Slices of a cluster, and how far apart they are, so that they do not share what brings their bytes. */
int64_t lay_slices(const target *t, const lay_order *x, const lay_box *b);
int64_t lay_apart(const target *t, int64_t slices);

/* Elements of a box in DM. */
int64_t lay_elements(const lay_box *b, size_t count);

/* The plans that are possible, the best estimate first; at most `most`. */
size_t lay_plans(const target *t, const lay_order *x, lay_plan *plans, size_t most);

#endif
