/* Transformations of stream programs: a graph is made anew, node by node, and here and there something else stands in it.
 *
 * The one idea: what is copied goes through the same rules as what was written, so a transformed graph is well typed or there is none; the
 * pass itself has to say why the values that leave the graph are the same. */
#ifndef VISA_PASSES_STEP_REWRITE_H
#define VISA_PASSES_STEP_REWRITE_H

#include "ir/step/graph.h"

typedef struct step_pass_argument {
    const char *name, *value;
} step_pass_argument;

typedef struct step_pass_call {
    const struct step_pass *pass;
    const step_pass_argument *arguments;
    size_t argument_count;
} step_pass_call;

typedef struct step_rewrite {
    const step_pass_call *call;
    step_graph *from, *to;
    diag_list *diags;             /* where refusals go */
    const step_stream ***streams; /* by node and port of `from`: what it became; NULL: not yet */
    bool *done;                   /* by node */
    size_t changes;
    bool bad;
    void *user; /* the pass's own */
} step_rewrite;

typedef struct step_pass {
    const char *name, *summary;
    const char *parameters; /* "node, rows": what its arguments may be called */
    /* Looks at r->from, prepares, and makes r->to with step_rewrite_all. Refusals go to step_rewrite_refuse. */
    void (*run)(step_rewrite *r);
} step_pass;

/* Ended by a row without a name (passes/step/passes.c). */
extern const step_pass step_passes[];

/* The graph after the pass; NULL: diagnosed. */
step_graph *step_pass_run(const step_pass_call *call, step_graph *g);

/* ---- for passes ---- */

/* An argument's text, or `otherwise`. */
const char *step_rewrite_text(const step_rewrite *r, const char *name, const char *otherwise);
/* An argument's number from 1 on, or `otherwise`; refuses what is none. */
int64_t step_rewrite_number(step_rewrite *r, const char *name, int64_t otherwise);

/* NULL, after saying at the node (NULL: at the program) why the pass is not legal, and what to do. */
void *step_rewrite_refuse(step_rewrite *r, const step_graph_node *n, const char *help, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same operator with the same function, types and numbers; where a load begins counts only with `bases`, and speeds and queues never
 * do. */
bool step_rewrite_is_alike(const step_graph_node *a, const step_graph_node *b, bool bases);

/* Who takes the output, in r->from. */
typedef struct step_consumer {
    const step_graph_node *node;
    uint32_t input;
} step_consumer;
step_consumer *step_rewrite_consumers(step_rewrite *r, const step_stream *s, size_t *count);

/* What a stream of `from` became. */
const step_stream *step_rewrite_stream(const step_rewrite *r, const step_stream *s);
void step_rewrite_become(step_rewrite *r, const step_stream *old, const step_stream *now);
/* The node as it was, on what its inputs became. */
step_graph_node *step_rewrite_copy(step_rewrite *r, const step_graph_node *n);
/* The same, without the sizes that it had: they are derived once more, and nothing is assumed. */
step_graph_node *step_rewrite_copy_anew(step_rewrite *r, const step_graph_node *n);
/* A new node; `like` gives its place, and its name with `suffix` after it. NULL: it does not fit, and r->bad. */
step_graph_node *step_rewrite_add(step_rewrite *r, const step_graph_node *like, const char *suffix, step_spec spec);

/* Every node in order, as soon as its inputs are there: `visit` copies it or makes something else of it and returns true; false: not yet.
 */
void step_rewrite_all(step_rewrite *r, bool (*visit)(step_rewrite *r, const step_graph_node *n));

void step_pass_dynamic_tiling(step_rewrite *r);
void step_pass_hierarchical_tiling(step_rewrite *r);
void step_pass_time_multiplex(step_rewrite *r);
void step_pass_dynamic_parallel(step_rewrite *r);

#endif
