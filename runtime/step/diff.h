/* What changed between two stream programs, and what that does to their costs.
 *
 * The one idea: operators are aligned in their order, those of one name or of one text first; what is aligned nowhere was added or removed.
 * What each costs only the compiler knows, so costs are compared where both programs come from a source. */
#ifndef VISA_RUNTIME_STEP_DIFF_H
#define VISA_RUNTIME_STEP_DIFF_H

#include "codegen/container.h"

/* A binary, and what --emit=step-json says of its programs; NULL where there is no source. */
typedef struct step_diff_side {
    const binary *programs;
    const char *costs;
} step_diff_side;

/* Programs of one name are compared; two files of one program each are, whatever the names. Empty where neither has one. */
const char *step_diff(step_diff_side before, step_diff_side after, arena *a);

#endif
