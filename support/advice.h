/* What a mapping leaves unused, in words: warnings of -Wperformance (passes/advice.c) and the lints of a report (runtime/timing/lint.c) say
 * the same of the same thing. The rules' ids and explanations are rows of diagnostics.def. */
#ifndef VISA_SUPPORT_ADVICE_H
#define VISA_SUPPORT_ADVICE_H

#include "support/arena.h"

/* "2 of 8 Rows are used", and what to do about it. */
const char *advice_rows(arena *a, int64_t used, int64_t all);
const char *advice_more_rows(arena *a, int64_t all);
/* Of the bytes that a cycle multiplies. */
const char *advice_lanes(arena *a, int64_t used, int64_t all);
const char *advice_more_lanes(arena *a, int64_t all);
const char *advice_slices(arena *a, int64_t used, int64_t all);
/* Of a copy: what lies together on both sides. */
const char *advice_pieces(arena *a, int64_t count, int64_t bytes);
const char *advice_larger_pieces(arena *a, int64_t bytes);

#endif
