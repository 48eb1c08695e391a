/* Which warnings are given, and which of them are errors.
 *
 * The one idea: a warning's name on the command line is its id without `W-`, in lower case (W-DMA-GRANULE: dma-granule), so no
 * second table can disagree with support/diagnostics.def. Rows of severity PERFORMANCE are legal but slow; they are
 * given only when asked for, since small kernels and tests are slow on purpose. */
#ifndef VISA_SUPPORT_WARNING_H
#define VISA_SUPPORT_WARNING_H

#include "support/diag.h"

/* What follows -W: `NAME`, `no-NAME`, `error`, `error=NAME`, `no-error=NAME`; NAME may be `all` or `performance`.
 * Later options win. False: unknown. */
bool warning_option(warning_levels *levels, const char *option);

/* The severity of that rule; false: it is not given. */
bool warning_level(const warning_levels *levels, diag_id id, diag_severity *severity);

/* "dma-granule", in `out` of `bytes` bytes. */
const char *warning_name(diag_id id, char *out, size_t bytes);

#endif
