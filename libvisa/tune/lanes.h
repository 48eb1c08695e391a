/* The search among kernels whose operand that lies turned goes around as it lies (lanes_plan.h), beside the other forms.
 *
 * The one idea: as standing.h, these are few plans of one form, of which the best few are compiled, where they may be faster than what is
 * known already. */
#ifndef VISA_LIBVISA_TUNE_LANES_H
#define VISA_LIBVISA_TUNE_LANES_H

#include "libvisa/tune/search.h"

extern const tune_family lanes_family;

#endif
