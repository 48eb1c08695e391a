/* A plan as a .vm file that a person could have written: each choice with its reason, each piece of work with its cycles. */
#ifndef VISA_LIBVISA_TUNE_WRITE_H
#define VISA_LIBVISA_TUNE_WRITE_H

#include "libvisa/tune/text.h"

/* `found`: the result of compiling the same plan, for the comments; NULL: none yet. `head` stands in front of everything. */
void tune_write(const tune_question *q, const tune_plan *p, const target *t, const char *head, const tune_text *found, arena *a,
                tune_text *out);

/* "M # 128 / 32 % 4": the digit with that stride of a role's axis, NULL where it has one position only. */
const char *tune_digit(const tune_question *q, tune_role role, int64_t padded, int64_t stride, int64_t count, arena *a);

#endif
