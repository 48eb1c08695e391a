/* The search among kernels whose sums are shared by slices, and whose columns stand (standing_plan.h), beside the other forms.
 *
 * The one idea: these are few plans of one form, whose estimates follow the schedule, so the best few are compiled, where they may be
 * faster than what is known already. */
#ifndef VISA_LIBVISA_TUNE_STANDING_H
#define VISA_LIBVISA_TUNE_STANDING_H

#include "libvisa/tune/search.h"
#include "libvisa/tune/standing_plan.h"

/* Looks for a kernel that takes fewer than `found->cycles` (0: there is none yet) with what its search has left of the work; counts what
 * is compiled there. True: `*found` has its cycles, those of its steps too, and `*best` says which it is. */
bool standing_search(const target *t, const tune_question *q, arena *a, tune_answer *found, standing_plan *best);

/* "//   M: 16 iterations x 2 clusters x 2 slices x 16 in a slice" for each axis. */
const char *standing_describe(const tune_question *q, const standing_plan *p, arena *a);

#endif
