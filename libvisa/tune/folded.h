/* The search among kernels whose sums are shared by slices (folded_plan.h), beside that of whole sums.
 *
 * The one idea: these are few plans of one form, so the best few by their estimates are compiled, where they may be faster than what is
 * known already. */
#ifndef VISA_LIBVISA_TUNE_FOLDED_H
#define VISA_LIBVISA_TUNE_FOLDED_H

#include "libvisa/tune/folded_plan.h"
#include "libvisa/tune/search.h"

/* Looks for a kernel that takes fewer than `found->cycles` (0: there is none yet) with what its search has left of the work; counts what
 * is compiled there. True: `*found` has its cycles, those of its steps too, and `*best` says which it is. */
bool folded_search(const target *t, const tune_question *q, arena *a, tune_answer *found, folded_plan *best);

/* "//   M: 32 slices x 32 in a slice" for each axis. */
const char *folded_describe(const tune_question *q, const folded_plan *p, arena *a);

#endif
