/* The plans of a question that are worth a compilation, best first by estimate.
 *
 * The one idea: every plan is enumerated and estimated, and the best few of each kind are kept, where plans of a kind differ in numbers
 * only: so that a kind which the compiler refuses, or whose estimate is too good, does not push the others out. */
#ifndef VISA_LIBVISA_TUNE_SPACE_H
#define VISA_LIBVISA_TUNE_SPACE_H

#include "libvisa/tune/plan.h"

enum { TUNE_KINDS = 262144, TUNE_KEPT_OF_A_KIND = 32 };

/* A kind's number: below TUNE_KINDS. */
unsigned tune_kind_of(const tune_question *q, const tune_plan *p);

/* The best `kept` of each kind, sorted; lives in the arena. */
tune_plan *tune_space(const target *t, const tune_question *q, size_t kept, arena *a, size_t *count);

#endif
