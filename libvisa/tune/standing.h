/* The search among kernels whose sums are shared by slices, and whose columns stand (standing_plan.h), beside the other forms.
 *
 * The one idea: these are few plans of one form, whose estimates follow the schedule, so the best few are compiled, where they may be
 * faster than what is known already. */
#ifndef VISA_LIBVISA_TUNE_STANDING_H
#define VISA_LIBVISA_TUNE_STANDING_H

#include "libvisa/tune/search.h"

extern const tune_family standing_family;

#endif
