/* The search among kernels whose operand that lies turned goes around as it lies (lanes_plan.h), beside the other forms.
 *
 * The one idea: as standing.h, these are few plans of one form, of which the best few are compiled, where they may be faster than what is
 * known already. */
#ifndef VISA_LIBVISA_TUNE_LANES_H
#define VISA_LIBVISA_TUNE_LANES_H

#include "libvisa/tune/lanes_plan.h"
#include "libvisa/tune/search.h"

/* Looks for a kernel that takes fewer than `found->cycles` (0: there is none yet) with what its search has left of the work; counts what
 * is compiled there. True: `*found` has its cycles, those of its steps too, and `*best` says which it is. */
bool lanes_search(const target *t, const tune_question *q, arena *a, tune_answer *found, lanes_plan *best);

/* "//   M: 32 slices x 32 in a slice" for each axis. */
const char *lanes_describe(const tune_question *q, const lanes_plan *p, arena *a);

#endif
