/* The border of an image in the slices that fold its windows.
 *
 * The one idea: where slices have equal parts of the image, each part comes once, as it lies, between places that are filled; then places
 * of neighbours are copied over those that are no border, along one axis after the other, so that corners come along. That is a copy for
 * each side, in place of the image with a border in HBM. */
#ifndef VISA_LIBVISA_TUNE_POOL_FRAME_H
#define VISA_LIBVISA_TUNE_POOL_FRAME_H

#include "libvisa/tune/pool_plan.h"
#include "libvisa/tune/text.h"

/* Along an axis: what a slice holds of the image, and which part of that is its own. */
typedef struct pool_frame {
    bool is_made;       /* there is a window: places have names of their own */
    int64_t parts;      /* of the image, in as many slices; 1: a slice has all of it */
    int64_t held;       /* places in a slice: `front`, `own`, and `behind` */
    int64_t front, own; /* front and behind: of neighbours, or border */
    int64_t behind;
    int64_t from;       /* the first place of the image that is taken */
    const char *part;   /* axes of the kernel: parts of the image, NULL: one; */
    const char *places; /* places in a slice, with those of the image that none takes; */
    const char *result; /* results of a part; NULL: one */
    int64_t places_size;
} pool_frame;

/* Of the axis; false: there is none, since slices have no equal parts, or need more than a neighbour's. Names live in the arena. */
bool pool_frame_of(const pool_question *q, const pool_box *b, int dim, arena *a, pool_frame *out);

/* Have all axes one, and is there room for slices that are padded along each? */
bool pool_is_framed(const target *t, const pool_question *q, const pool_box *b);

/* Slices along an axis in a cluster, with what pads them to a power of two. */
int64_t pool_padded_slices(const target *t, const pool_box *b, int dim);

/* Of a slice of the image: what differs from one plan to another. */
typedef struct pool_frame_text {
    const char *port, *type, *fill_value, *fill_name;
    const char *outer;       /* images of a slice; NULL: one */
    const char *image_outer; /* all of them */
    const char *channels;    /* of a slice, as copied */
    const char *image_channels;
    int64_t channel_count; /* elements */
    const char *windows;   /* the tensor as windows take it */
} pool_frame_text;

void pool_frame_write_axes(tune_page *w, const pool_question *q, const pool_box *b);
void pool_frame_write(tune_page *w, const target *t, const pool_question *q, const pool_box *b, const pool_frame_text *x);

#endif
