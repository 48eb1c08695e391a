/* What --explore writes: the front of a model's design space as text, table or picture, and a point as a kernel. */
#ifndef VISA_LIBVISA_EXPLORE_H
#define VISA_LIBVISA_EXPLORE_H

#include "ir/dataflow/explore_chain.h"
#include "libvisa/compilation.h"

/* "x [1, 49]  w [16, 1]": what a way chooses. */
const char *explore_choice_text(const explore *x, const int64_t *choice);
void explore_text(const explore *x, strbuf *out);
void explore_csv(const explore *x, strbuf *out);
/* Items that run one after the other, each at a point: FINN's folding, or the exact one. */
typedef struct network {
    explore *items;
    const explore_point **points; /* of each item */
    size_t count;
    int64_t latency, multipliers;
    const char *bottleneck;     /* the slowest item */
    int64_t target, second;     /* of folding, in cycles; of its second pass, 0: there was none */
    int64_t limit;              /* of multipliers; 0: any */
    const explore_chain *chain; /* NULL: it was folded */
    int64_t clock_hz, batch;    /* of all items, 0: they differ, or say none */
    struct network_link *links; /* count - 1 */
} network;

/* The first output of an item and the first input of the one after it, at their points. */
typedef struct network_link {
    dataflow_interface out, in;
    int64_t elements_out, elements_in; /* of the tensors, with the batch */
    bool converts;                     /* their words differ */
} network_link;

bool network_explore(visa_compilation *c, const dataflow_model **models, size_t count, const visa_explore_options *o, strbuf *out);
/* Cycles that are asked for, of an item; 0: any. False: diagnosed. */
bool explore_target(visa_compilation *c, const dataflow_model *m, const visa_explore_options *o, int64_t *cycles);
int64_t explore_fold_target(const visa_explore_options *o, int64_t cycles);
void explore_limit_to_target(explore_limits *l, const target *t, int64_t batch);

void explore_json(const explore *x, strbuf *out);
void network_json(const network *n, strbuf *out);
void explore_svg(const explore *x, strbuf *out);

/* A .vm file with the kernel that realises the fastest point, or the one that is `written`. False: diagnosed. */
bool explore_kernel(const explore *x, bool written, const target *t, diag_list *diags, strbuf *out);

#endif
