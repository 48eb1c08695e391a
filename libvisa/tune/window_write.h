/* The text of a convolution's kernel (window_plan.h). */
#ifndef VISA_LIBVISA_TUNE_WINDOW_WRITE_H
#define VISA_LIBVISA_TUNE_WINDOW_WRITE_H

#include "libvisa/tune/text.h"
#include "libvisa/tune/window_plan.h"

/* `head`: lines in front of it; `found`: the result of compiling the same text, NULL: none yet. Lives in the arena. */
void window_write(const target *t, const tune_question *q, const window_plan *p, const char *head, const tune_text *found, arena *a,
                  tune_text *out);

#endif
