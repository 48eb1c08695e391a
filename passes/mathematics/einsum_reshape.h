/* Memory under new names: what a reshape makes of the axes of its source.
 *
 * The one idea: positions keep their elements, so an axis of the source is read through digits of the new axes (a relabel), as a window is
 * through its terms. */
#ifndef VISA_PASSES_MATHEMATICS_EINSUM_RESHAPE_H
#define VISA_PASSES_MATHEMATICS_EINSUM_RESHAPE_H

#include "passes/mathematics/einsum_build.h"

void einsum_reshape(einsum_builder *b, op *o);

/* Must reshapes read the axis under a name of its own? */
bool einsum_is_own(const einsum_builder *b, const axis *a);
/* Is the axis one of the new names? */
bool einsum_is_term(const einsum_relabel *r, uint32_t number);
/* By value: does it hold the same at every coordinate of the axis? */
const bool *einsum_constants_along(const einsum_builder *b, uint32_t number);
/* E_EINSUM: why the axis cannot be named anew. False. */
bool einsum_refuse_relabel(einsum_builder *b, op *o, const axis *a, const char *why);

#endif
