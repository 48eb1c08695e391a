/* Which elements of memory that is written in parts have been written. */
#ifndef VISA_PASSES_COVERAGE_H
#define VISA_PASSES_COVERAGE_H

#include "passes/pass.h"

void pass_coverage(pass_context *p, kernel *k);

#endif
