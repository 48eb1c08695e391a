/* Which rule an operator has (ir/step_shape_*.c; reference/step.md sections 3 and 4, the paper's appendix A.1), and that what it made fits.
 */
#include "ir/step/shape_parts.h"

#include <inttypes.h>

static bool infer(step_graph *g, step_graph_node *n)
{
    switch (n->spec.op) {
    case STEP_SOURCE: return shape_infer_source(g, n);
    case STEP_SINK: shape_outputs(g, n, 0); return true;
    case STEP_ONCE: return shape_infer_once(g, n);
    case STEP_LINEAR_LOAD: return shape_infer_linear_load(g, n);
    case STEP_LINEAR_STORE: return shape_infer_linear_store(g, n);
    case STEP_RANDOM_LOAD: return shape_infer_random_load(g, n);
    case STEP_RANDOM_STORE: return shape_infer_random_store(g, n);
    case STEP_BUFFERIZE: return shape_infer_bufferize(g, n);
    case STEP_STREAMIFY: return shape_infer_streamify(g, n);
    case STEP_PARTITION: return shape_infer_partition(g, n);
    case STEP_REASSEMBLE: return shape_infer_reassemble(g, n);
    case STEP_EAGER_MERGE: return shape_infer_eager_merge(g, n);
    case STEP_PARALLELIZE: return shape_infer_parallelize(g, n);
    case STEP_BROADCAST: return shape_same_shape(g, n, n->spec.inputs[0]->data);
    case STEP_MAP: return shape_infer_map(g, n);
    case STEP_ACCUM: return shape_infer_accum(g, n);
    case STEP_SCAN: return shape_infer_scan(g, n);
    case STEP_FLAT_MAP: return shape_infer_flat_map(g, n);
    case STEP_FLATTEN: return shape_infer_flatten(g, n);
    case STEP_RESHAPE: return shape_infer_reshape(g, n);
    case STEP_PROMOTE: return shape_infer_promote(g, n);
    case STEP_EXPAND: return shape_infer_expand(g, n);
    case STEP_REPEAT: return shape_infer_repeat(g, n);
    case STEP_ZIP: return shape_infer_zip(g, n);
    }
    return false;
}

/* Every size is a number below 2^62 or an expression. */
static bool sizes_fit(step_graph *g, const step_graph_node *n)
{
    for (uint32_t o = 0; o < n->output_count; o++)
        for (uint32_t i = 0; i <= n->outputs[o].rank; i++)
            if (!n->outputs[o].dims[i])
                return shape_refuse(g, n, E_STEP_SHAPE, "use smaller sizes",
                                    "dimension D%" PRIu32 " of output %" PRIu32 " would have more than 2^62 values", n->outputs[o].rank - i,
                                    o);
    return true;
}

bool step_infer(step_graph *g, step_graph_node *n)
{
    return infer(g, n) && sizes_fit(g, n);
}
