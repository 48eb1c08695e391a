/* What a graph costs, as expressions over its sizes (reference/step.md section 5, the paper's section 4.1).
 *
 * The one idea: every cost is a sum over the values of a stream, so it follows from the shapes alone: bytes that cross the edge of the
 * chip, bytes that lie on it, FLOPs. Memory on the chip is counted by two sets of equations: those that the paper prints, and those of
 * its artifact, whose published numbers they give. */
#ifndef VISA_PASSES_STEP_METRICS_H
#define VISA_PASSES_STEP_METRICS_H

#include "ir/step/graph.h"

typedef enum step_equations { STEP_PAPER, STEP_ARTIFACT, STEP_EQUATIONS } step_equations;
extern const char *const step_equation_names[STEP_EQUATIONS];

/* NULL: past 2^62. */
typedef struct step_cost_expr {
    const step_expr *offchip_bytes;
    const step_expr *onchip_bytes[STEP_EQUATIONS];
    const step_expr *flops;
} step_cost_expr;

typedef struct step_metrics {
    const step_cost_expr *nodes; /* by index */
    step_cost_expr total;
    const step_expr *const *accesses; /* by index: bytes that it writes to its memory and reads there; NULL: that holds any number */
} step_metrics;

const step_metrics *step_measure(step_graph *g);

/* Of one operator, in all of the run; and the node in whose memory that is. */
const step_expr *step_accesses(step_graph *g, const step_graph_node *n);
uint32_t step_accesses_owner(const step_graph *g, const step_graph_node *n);

/* By node: a load whose tiles only kernels take, as they are stored, moves nothing itself: their commands move them from where they lie. */
const bool *step_in_place(const step_graph *g);

/* Bytes on the chip that the kernels of the graph keep: they have room or there is no run. Saturates. */
int64_t step_kernel_room(step_graph *g);

/* A bit for each input port of the node's kernel whose tile is the same for all calls. */
uint32_t step_kept_inputs(const step_graph_node *n);

#endif
