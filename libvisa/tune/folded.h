/* The search among kernels whose sums are shared by slices (folded_plan.h), beside that of whole sums.
 *
 * The one idea: these are few plans of one form, so the best few by their estimates are compiled, where they may be faster than what is
 * known already. */
#ifndef VISA_LIBVISA_TUNE_FOLDED_H
#define VISA_LIBVISA_TUNE_FOLDED_H

#include "libvisa/tune/search.h"

extern const tune_family folded_family;

#endif
