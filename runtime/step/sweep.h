/* What one variant of a sweep makes of the stream programs of a file: a row for each, from the costs that the compiler says. */
#ifndef VISA_RUNTIME_STEP_SWEEP_H
#define VISA_RUNTIME_STEP_SWEEP_H

#include "support/arena.h"

/* The names of the columns, after those of what is swept. `limited`: a chip holds a limited number of bytes. */
const char *step_sweep_head(const char *names, bool limited, arena *a);
/* `costs`: VISA_EMIT_STEP_JSON. A cost with sizes that have no number stands there as its expression; `values`
 * are those of what is swept. */
const char *step_sweep_rows(const char *costs, const char *values, arena *a);

#endif
