/* Like regions of a graph, to which `parallelize` deals out chunks in turn: which operators stand in which, and whether it matters where a
 * chunk goes.
 *
 * The one idea: it does not matter when each region does the same to every chunk on its own, and stores what it makes where an address says
 * that was dealt out with the chunk. So the regions have to be equal operator by operator, nothing but dealt streams may go in, nothing may
 * come out, and no operator may join chunks. */
#ifndef VISA_PASSES_STEP_REGIONS_H
#define VISA_PASSES_STEP_REGIONS_H

#include "passes/step/rewrite.h"

typedef struct step_regions {
    int64_t count, chunks;
    const step_graph_node **done; /* by region: the operator whose chunk, once complete, frees the region */
    int64_t *of;                  /* by node: 1 + its region; 0: outside; -1: after several */
    const step_graph_node **like; /* by node of a region: its like in the first one */
} step_regions;

/* The regions each of which has an operator called `done`; NULL: refused. */
step_regions *step_regions_find(step_rewrite *r, const char *done);

/* Does the node deal chunks out to these regions? */
bool step_regions_deals(const step_regions *g, const step_graph_node *n);

/* The sizes of a region's stream when the region gets `share` chunks: the outermost one counts them, the others belong to each chunk. */
const step_expr **step_regions_dims(step_rewrite *r, const step_regions *g, const step_stream *s, const step_expr *share);

#endif
