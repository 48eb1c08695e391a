/* The text of a kernel that folds windows (pool_plan.h). */
#ifndef VISA_LIBVISA_TUNE_POOL_WRITE_H
#define VISA_LIBVISA_TUNE_POOL_WRITE_H

#include "libvisa/tune/pool_plan.h"
#include "libvisa/tune/text.h"

void pool_write(const target *t, const pool_question *q, const pool_plan *p, const char *head, const tune_text *found, arena *a,
                tune_text *out);

/* A line for each axis, as tune_describe_split has it. */
const char *pool_describe(const target *t, const pool_question *q, const pool_plan *p, arena *a);

#endif
