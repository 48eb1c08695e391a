/* The text of a kernel whose sums are shared by slices, and whose columns stand (standing_plan.h). */
#ifndef VISA_LIBVISA_TUNE_STANDING_WRITE_H
#define VISA_LIBVISA_TUNE_STANDING_WRITE_H

#include "libvisa/tune/standing_plan.h"
#include "libvisa/tune/text.h"

/* `head`: lines in front of it; `found`: the result of compiling the same text, NULL: none yet. Lives in the arena. */
void standing_write(const target *t, const tune_question *q, const standing_plan *p, const char *head, const tune_text *found, arena *a,
                    tune_text *out);

#endif
