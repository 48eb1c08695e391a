/* How operators are written, for messages.
 *
 * The one idea: a call with too few or too many arguments is answered with the calls that there are, a name that is none with the nearest
 * that is one. */
#ifndef VISA_FRONTEND_STEP_SIGNATURE_H
#define VISA_FRONTEND_STEP_SIGNATURE_H

#include "support/arena.h"

/* "`x.accum(b, f)`, `x.accum(b, f, y)`: ..": NULL for a name that is none. */
const char *step_signature(const char *name);
/* The nearest operator of streams, or function of values; NULL: none is near. */
const char *step_nearest_operator(const char *name);
const char *step_nearest_function(const char *name, arena *a);

#endif
