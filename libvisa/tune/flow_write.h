/* A flow as a .vm file: which part of each axis a slice has, and the passes over it, as the plan says. */
#ifndef VISA_LIBVISA_TUNE_FLOW_WRITE_H
#define VISA_LIBVISA_TUNE_FLOW_WRITE_H

#include "libvisa/tune/flow_plan.h"
#include "libvisa/tune/text.h"

/* `found`: the result of compiling the same plan, for the comments; NULL: none yet. `head` stands in front of everything. */
void flow_write(const tune_flow *f, const flow_plan *p, const target *t, const char *head, const tune_text *found, arena *a,
                tune_text *out);

#endif
