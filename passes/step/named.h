/* Operators by the names that a parameter of a pass gives.
 *
 * The one idea: each name has to be that of an operator that the pass is for; else the nearest such name is told, and all of them. */
#ifndef VISA_PASSES_STEP_NAMED_H
#define VISA_PASSES_STEP_NAMED_H

#include "passes/step/rewrite.h"

/* "tile", "tile.2", ..: what was written under one name. */
bool step_is_named(const step_graph_node *n, const char *stem);
/* Is the node one of those that the argument `node` names? "tile+out": written under one of these names; "=tile.2": this one alone. Without
 * the argument every node is. */
bool step_is_wanted(const step_rewrite *r, const step_graph_node *n);

typedef struct step_wanted {
    bool (*fits)(step_rewrite *r, const step_graph_node *n); /* NULL: every operator does */
    const char *one, *all;                                   /* "product", "products" */
} step_wanted;

/* Does each name in the argument `node` stand for an operator that fits? False: refused. Where none fits at all it is not the name. */
bool step_wanted_exist(step_rewrite *r, const step_wanted *w);
/* The same of an argument that is one name. */
bool step_wanted_exists(step_rewrite *r, const char *name, const step_wanted *w);

#endif
