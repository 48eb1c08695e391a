/* Who reads a copy reads what was copied.
 *
 * The one idea: an element of an intermediate that a copy put there is the element that the copy took, so a map or reduction may read that
 * where it lies. A tensor may be put together by several copies, each at a place of its own along one axis, as two streams that
 * come by turns are: then the place that is read says which copy it was. A copy that nobody reads any more is `absorbed`. */
#ifndef VISA_CODEGEN_REFERENCE_FORWARD_H
#define VISA_CODEGEN_REFERENCE_FORWARD_H

#include "codegen/reference/plan.h"

/* All statements were checked, their nodes made, and none fused. False without memory. */
bool forward_copies(reference_plan *p);

#endif
