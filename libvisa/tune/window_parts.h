/* Parts of what a slice has of a convolution's results, which the passes after the sums go over one after the other.
 *
 * The one idea: the VRF has 8 KiB. What has an element for each result there, a gate or a residual, has those of one part at a time, in a
 * loop around these passes; the sums of all parts wait in DM. */
#ifndef VISA_LIBVISA_TUNE_WINDOW_PARTS_H
#define VISA_LIBVISA_TUNE_WINDOW_PARTS_H

#include "libvisa/tune/window_plan.h"

/* So many parts along each axis of a slice's results; all 1: passes go over all of them. */
typedef struct window_parts {
    int64_t rows, places, columns;
} window_parts;

/* The fewest that the VRF has room for. False: there are none. */
bool window_parts_of(const target *t, const tune_question *q, const window_plan *p, window_parts *out);

int64_t window_parts_count(const window_parts *x);

/* Does an operand meet the values of a part alone? */
bool window_parts_have(const window_plan *p, const tune_extra *e);

/* Have the image and the results of a slice room in DM, beside each other? */
bool window_has_room(const target *t, const tune_question *q, const window_plan *p);

#endif
