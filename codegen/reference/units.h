/* How closely the elements of an intermediate lie.
 *
 * The one idea: a tensor has whole axes, but statements may touch every 256th place of one alone, as parts of a sum that slices have do.
 * Places are then counted by the largest unit of which all are multiples, so that what nobody touches takes no memory. */
#ifndef VISA_CODEGEN_REFERENCE_UNITS_H
#define VISA_CODEGEN_REFERENCE_UNITS_H

#include "target/einsum.h"

/* By tensor and rank, of an einsum whose statements were checked; 1 for ports, and for what windows or indices move. To be freed as one.
 * NULL without memory. */
int64_t **units_find(const einsum *e);

/* Coordinates of the axis at that rank from one place that is counted to the next. */
static inline int64_t units_of(const einsum *e, uint32_t tensor, uint32_t rank)
{
    return e->units ? e->units[tensor][rank] : 1;
}

/* Places along the axis at that rank. */
static inline int64_t units_size(const einsum *e, uint32_t tensor, uint32_t rank)
{
    int64_t size = e->axes[e->tensors[tensor].axes[rank]].size, unit = units_of(e, tensor, rank);
    return size / unit + (size % unit != 0);
}

#endif
