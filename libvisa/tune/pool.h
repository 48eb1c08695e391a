/* Windows that are folded: the search for a kernel, and its text.
 *
 * The one idea: boxes of results are few numbers each, estimated all and compiled as far as the budget goes, in the order of a rough
 * estimate. */
#ifndef VISA_LIBVISA_TUNE_POOL_H
#define VISA_LIBVISA_TUNE_POOL_H

#include "libvisa/tune/pool_question.h"
#include "support/strbuf.h"

/* A kernel for it; false: diagnosed. */
bool pool_answer(const target *t, const visa_tune_options *o, const tune_expression *e, const pool_question *q, diag_list *diags,
                 strbuf *out);

#endif
