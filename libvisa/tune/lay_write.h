/* The text of a tensor that is brought into another order (lay_plan.h). */
#ifndef VISA_LIBVISA_TUNE_LAY_WRITE_H
#define VISA_LIBVISA_TUNE_LAY_WRITE_H

#include "libvisa/tune/lay_plan.h"
#include "libvisa/tune/text.h"

/* Axes of the kernel that neither order has: ", C_WIDE = 8". */
void lay_write_axes(tune_page *w, const lay_order *x, const lay_plan *p);

/* Elements of the tensor in HBM, as it lies and as it is to lie: "M, N". */
const char *lay_source(const lay_order *x, arena *a);
const char *lay_target(const lay_order *x, arena *a);

/* All elements in the new order as one axis: where rows are put one after the other. */
const char *lay_flat(const lay_order *x, arena *a);
int64_t lay_flat_size(const lay_order *x);

/* The body of a function that takes the tensor in HBM as `port` and has it in the new order as its value. */
void lay_write(tune_page *w, const target *t, const lay_order *x, const lay_plan *p, const char *port);

/* A line for each axis: which part of it a slice has. */
const char *lay_describe(const target *t, const lay_order *x, const lay_plan *p, arena *a);

#endif
