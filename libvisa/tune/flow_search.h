/* The search for a flow's kernel: every way to share its axes is estimated, the best are compiled, and the fastest is the answer. */
#ifndef VISA_LIBVISA_TUNE_FLOW_SEARCH_H
#define VISA_LIBVISA_TUNE_FLOW_SEARCH_H

#include "libvisa/tune/flow_write.h"
#include "libvisa/tune/search.h"

/* The best kernel's text with its comments, in the arena of the diagnostics, of one question in so many readings. False: diagnosed. */
bool flow_answer(const target *t, const tune_flow *readings, size_t count, const visa_tune_options *o, diag_list *diags, tune_found *out);

/* A kernel that takes fewer cycles than another one, or 0: any; false: there is none, and nothing is diagnosed. */
bool flow_beats(const target *t, const tune_flow *readings, size_t count, const visa_tune_options *o, int64_t cycles, arena *a,
                tune_found *out);

#endif
