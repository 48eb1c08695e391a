/* The text of a kernel whose sums are shared by slices (folded_plan.h). */
#ifndef VISA_LIBVISA_TUNE_FOLDED_WRITE_H
#define VISA_LIBVISA_TUNE_FOLDED_WRITE_H

#include "libvisa/tune/folded_plan.h"
#include "libvisa/tune/text.h"

/* `head`: lines in front of it; `found`: the result of compiling the same text, NULL: none yet. Lives in the arena. */
void folded_write(const target *t, const tune_question *q, const folded_plan *p, const char *head, const tune_text *found, arena *a,
                  tune_text *out);

#endif
