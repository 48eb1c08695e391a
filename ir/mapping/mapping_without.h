/* A mapping without some of its digits. */
#ifndef VISA_IR_MAPPING_MAPPING_WITHOUT_H
#define VISA_IR_MAPPING_MAPPING_WITHOUT_H

#include "ir/mapping/mapping.h"

/* m without the digits of `run`, which are one run in it, wherever that stands; *stride: positions of m between two values of the run. The
 * innermost digit of `run` is one of m's, or a part of one. NULL: it is not there as one run. */
const mapping *mapping_without(mapping_context *c, const mapping *m, const mapping *run, int64_t *stride);

#endif
