/* What one value of a sweep makes of the stream programs of a file: a row for each, from the costs that the compiler says. */
#ifndef VISA_RUNTIME_STEP_SWEEP_H
#define VISA_RUNTIME_STEP_SWEEP_H

#include "support/arena.h"

/* The names of the columns, after that of what is swept. */
const char *step_sweep_head(const char *name, arena *a);
/* `costs`: VISA_EMIT_STEP_JSON. A cost with sizes that have no number stands there as its expression. */
const char *step_sweep_rows(const char *costs, long long value, arena *a);

#endif
