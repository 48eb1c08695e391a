/* Collect Engine: a packet of any size becomes whole flits. */
#ifndef VISA_PASSES_COLLECT_H
#define VISA_PASSES_COLLECT_H

#include "passes/pass.h"

void pass_collect(pass_context *p, kernel *k);

#endif
