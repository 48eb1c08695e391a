/* What --explore writes: the front of a model's design space as text, table or picture, and a point as a kernel. */
#ifndef VISA_LIBVISA_EXPLORE_H
#define VISA_LIBVISA_EXPLORE_H

#include "ir/dataflow/explore.h"
#include "libvisa/compilation.h"

/* "x [1, 49]  w [16, 1]": what a way chooses. */
const char *explore_choice_text(const explore *x, const int64_t *choice);
void explore_text(const explore *x, const visa_explore_options *o, strbuf *out);
void explore_csv(const explore *x, strbuf *out);
/* Items of a file that run one after the other, folded together: the target that was asked for, and the one of the second pass, 0: there
 * was none.
 */
typedef struct explore_chain {
    int64_t target, second, latency, multipliers;
    const char *bottleneck; /* the slowest item */
} explore_chain;

void explore_json(const explore *x, strbuf *out);
void explore_chain_json(const explore *items, size_t count, const explore_chain *chain, strbuf *out);
void explore_svg(const explore *x, strbuf *out);

/* A .vm file with the kernel that realises the fastest point, or the one that is `written`. False: diagnosed. */
bool explore_kernel(const explore *x, bool written, const target *t, diag_list *diags, strbuf *out);

#endif
