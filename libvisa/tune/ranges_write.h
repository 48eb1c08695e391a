/* The text of a kernel whose columns come in ranges (ranges_plan.h).
 *
 * The one idea: a range is an axis like any other, `N = 2048`, whatever position it begins at, so every iteration has the same digits; and
 * what is stored together is a range as well, of which an iteration writes a part. */
#ifndef VISA_LIBVISA_TUNE_RANGES_WRITE_H
#define VISA_LIBVISA_TUNE_RANGES_WRITE_H

#include "libvisa/tune/ranges_plan.h"
#include "libvisa/tune/text.h"

void ranges_write(const target *t, const tune_question *q, const ranges_plan *p, const char *head, const tune_text *found, arena *a,
                  tune_text *out);

#endif
