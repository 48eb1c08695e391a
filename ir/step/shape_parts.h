/* What the rules of shapes share (ir/step_shape_*.c): refusing, and filling outputs.
 *
 * The one idea: a rule looks at the inputs of a node, refuses with the shapes it saw, or fills the outputs; it is the operator's row of
 * reference/step.md section 3. D_i counts from the innermost dimension. */
#ifndef VISA_IR_STEP_SHAPE_PARTS_H
#define VISA_IR_STEP_SHAPE_PARTS_H

#include "ir/step/graph.h"
#include "ir/step/groups.h"
#include "ir/step/total.h"
#include "ir/step/type.h"

extern const char shape_equal_help[];

/* Always false. Shows the inputs' shapes, and what would be accepted. */
bool shape_refuse(step_graph *g, const step_graph_node *n, diag_id id, const char *help, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
const char *shape_text_of(step_graph *g, const step_expr *e);
/* An output with room for rank + 1 sizes; all outputs, without. */
step_stream *shape_output(step_graph *g, step_graph_node *n, uint32_t port, uint32_t rank, const step_data *data);
void shape_outputs(step_graph *g, step_graph_node *n, uint32_t count);
/* One output with the first input's shape. */
bool shape_same_shape(step_graph *g, step_graph_node *n, const step_data *data);
/* An expression with a ragged part is a ragged dimension of its own ("absorbing"), whose sizes add up to `total` over `places`: one
 * wherever D_max .. D_min of a stream of these sizes become it. */
const step_expr *shape_absorbed(step_graph *g, const step_stream *in, uint32_t min, uint32_t max, const step_expr *e,
                                const step_expr *places, const step_expr *total);
const step_expr *shape_number(step_graph *g, int64_t value);
/* False: diagnosed. */
bool shape_rank_at_least(step_graph *g, const step_graph_node *n, uint32_t input, int64_t least, const char *what);
bool shape_rank_fits(step_graph *g, const step_graph_node *n, int64_t rank);
/* Equal ranks, and D_from .. D_a of both equal. */
bool shape_same_dims(step_graph *g, const step_graph_node *n, const step_stream *a, const step_stream *b, uint32_t from);
bool shape_is_kind(step_graph *g, const step_graph_node *n, uint32_t input, step_kind kind, const char *what);
bool shape_in_step(step_graph *g, const step_graph_node *n);
const step_data *shape_plain_data(step_graph *g, step_kind kind);

/* Data that hold data, just made: `depth` and `parts` follow from those inside. */
void shape_nest(step_graph *g, step_data *d);

/* ---- one rule for each operator; false: diagnosed ---- */

bool shape_infer_source(step_graph *g, step_graph_node *n);
bool shape_infer_once(step_graph *g, step_graph_node *n);
bool shape_infer_linear_load(step_graph *g, step_graph_node *n);
bool shape_infer_linear_store(step_graph *g, step_graph_node *n);
bool shape_infer_random_load(step_graph *g, step_graph_node *n);
bool shape_infer_random_store(step_graph *g, step_graph_node *n);
bool shape_infer_bufferize(step_graph *g, step_graph_node *n);
bool shape_infer_streamify(step_graph *g, step_graph_node *n);
bool shape_infer_partition(step_graph *g, step_graph_node *n);
bool shape_infer_reassemble(step_graph *g, step_graph_node *n);
bool shape_infer_eager_merge(step_graph *g, step_graph_node *n);
bool shape_infer_parallelize(step_graph *g, step_graph_node *n);
bool shape_infer_map(step_graph *g, step_graph_node *n);
bool shape_infer_accum(step_graph *g, step_graph_node *n);
bool shape_infer_scan(step_graph *g, step_graph_node *n);
bool shape_infer_flat_map(step_graph *g, step_graph_node *n);
bool shape_infer_flatten(step_graph *g, step_graph_node *n);
bool shape_infer_reshape(step_graph *g, step_graph_node *n);
bool shape_infer_promote(step_graph *g, step_graph_node *n);
bool shape_infer_expand(step_graph *g, step_graph_node *n);
bool shape_infer_repeat(step_graph *g, step_graph_node *n);
bool shape_infer_zip(step_graph *g, step_graph_node *n);

#endif
