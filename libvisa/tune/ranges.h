/* Contractions whose columns come in ranges, to the search (ranges_plan.h, ranges_write.h).
 *
 * The one idea: they are a family like any other, which is asked for its plans, their cycles and their text. */
#ifndef VISA_LIBVISA_TUNE_RANGES_H
#define VISA_LIBVISA_TUNE_RANGES_H

#include "libvisa/tune/search.h"

extern const tune_family ranges_family;

#endif
