/* Rows by index: gathers, scatters, and views that begin where a number of the launch says.
 *
 * The one idea: an index says by how much the place moves along digits of one axis, so each of those digits is read by the list, and the
 * others by the statement. */
#ifndef VISA_PASSES_MATHEMATICS_EINSUM_ROWS_H
#define VISA_PASSES_MATHEMATICS_EINSUM_ROWS_H

#include "passes/mathematics/einsum_build.h"

void einsum_gather(einsum_builder *b, op *o);
void einsum_scatter(einsum_builder *b, op *o);
/* The part of a memory that a view is, from a beginning that is known. */
reference einsum_view_of(einsum_builder *b, op *o);
/* A view when it is read, and those that it is in, the outermost first. */
void einsum_starts(einsum_builder *b, op *o, op *view);

#endif
