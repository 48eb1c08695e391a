/* The text of a kernel whose operand that lies turned goes around as it lies (lanes_plan.h). */
#ifndef VISA_LIBVISA_TUNE_LANES_WRITE_H
#define VISA_LIBVISA_TUNE_LANES_WRITE_H

#include "libvisa/tune/lanes_plan.h"
#include "libvisa/tune/text.h"

/* `head`: lines in front of it; `found`: the result of compiling the same text, NULL: none yet. Lives in the arena. */
void lanes_write(const target *t, const tune_question *q, const lanes_plan *p, const char *head, const tune_text *found, arena *a,
                 tune_text *out);

#endif
