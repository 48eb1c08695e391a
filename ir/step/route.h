/* Sizes of chunks that were routed.
 *
 * The one idea: which chunks an output gets is known when the program runs, so what differs from chunk to chunk is at that output a ragged
 * size of its own, `~R.routing0`: those of the sizes ~R that `routing` sends to output 0. Streams that one selector routes have one such
 * size for one ~R, or a later zip of them could not be proven equal; and whoever takes the chunks back by the same selector has ~R again.
 */
#ifndef VISA_IR_STEP_ROUTE_H
#define VISA_IR_STEP_ROUTE_H

#include "ir/step/graph.h"

/* Who routes: a stream of selectors; or `by` is NULL, and `chunks` many chunks of b dimensions are dealt out in turn to so many outputs. */
typedef struct step_route {
    const step_stream *by;
    const step_expr *chunks;
    uint32_t b, outputs;
} step_route;

/* By these selectors, also after broadcasts. */
step_route step_route_by(const step_stream *selector);

/* How many chunks come to the output. */
const step_expr *step_route_count(step_graph *g, step_route r, uint32_t output);
/* At the output, of a size, or of everything in a data type. */
const step_expr *step_route_size(step_graph *g, step_route r, uint32_t output, const step_expr *size);
const step_data *step_route_data(step_graph *g, step_route r, uint32_t output, const step_data *data);
/* The selectors say from which stream chunks came: what routes by them gets back what that stream had, its count (`of` NULL) and its sizes.
 */
void step_route_define(step_graph *g, step_route r, uint32_t output, const step_expr *of, const step_expr *size);
/* What all outputs of a selector get together follows from the selector: so many chunks for each value of it. `e` with that in it. */
const step_expr *step_route_gather(step_graph *g, const step_expr *e);
/* The size of which `part` is what came to the output; NULL: it is not that. */
const step_expr *step_route_whole(step_graph *g, step_route r, uint32_t output, const step_expr *part);

#endif
