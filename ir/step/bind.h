/* Numbers for the symbols of a graph.
 *
 * The one idea: a ragged symbol is given all its sizes, one for each place in the order of the stream, and its sums and maxima follow;
 * where only a sum is known, the sum itself is given by its name, `sum(~R)`. */
#ifndef VISA_IR_STEP_BIND_H
#define VISA_IR_STEP_BIND_H

#include "ir/step/graph.h"

typedef struct step_binding {
    const char *name; /* without the ~ */
    const int64_t *values;
    size_t count;            /* more than 1: sizes of a ragged symbol */
    const step_graph *graph; /* of which it is a symbol; NULL: of all */
} step_binding;

typedef struct step_bindings {
    const step_graph *graph;
    const step_binding *items;
    size_t count;
} step_bindings;

/* False when a symbol has no number, with its name in *missing, or past 2^62 (*missing NULL). */
bool step_bind_evaluate(const step_bindings *b, const step_expr *e, int64_t *value, const char **missing);

/* Can these be the sizes of their symbol? False: it is no ragged one and has one (*places -1), or they do not go into the places that there
 * are. Sizes of fewer places stand for several each. */
bool step_bind_fits(const step_bindings *b, const step_binding *sizes, int64_t *places);

#endif
