/* What operators do with their memory on the chip: the table of docs/step.md, "Less memory than it wants". */
#include "ir/step/total.h"
#include "ir/step/type.h"
#include "passes/step/metrics.h"

static const step_expr *number(step_graph *g, int64_t value)
{
    return step_expr_number(g->exprs, value);
}

static const step_expr *sum(step_graph *g, const step_expr *a, const step_expr *b)
{
    return step_expr_add(g->exprs, a, b);
}

static const step_expr *twice(step_graph *g, const step_expr *e)
{
    return step_expr_multiply(g->exprs, number(g, 2), e);
}

/* Of so many values, each with the bytes of a value of that type. */
static const step_expr *bytes_of(step_graph *g, const step_expr *values, const step_data *type)
{
    return step_total_of(g, values, step_data_bytes(g, type));
}

/* Of all values of the stream. */
static const step_expr *stream_bytes(step_graph *g, const step_stream *s)
{
    return bytes_of(g, step_cardinality(g, s), s->data);
}

/* Rows of the first operand and the second one are written for each product, and read for it. */
static const step_expr *operand_bytes(step_graph *g, const step_graph_node *n)
{
    if (!step_fn_acts(n->spec.fn, STEP_ACTS_PRODUCT))
        return number(g, 0);
    const step_expr *rows = step_expr_multiply(g->exprs, number(g, g->machine.compute_tile), step_operand(&n->spec, 0)->columns);
    const step_expr *each = sum(g, rows, step_data_bytes(g, step_operand(&n->spec, 1)));
    return twice(g, step_total_of(g, step_cardinality(g, n->spec.inputs[0]), each));
}

/* An accumulator is read and written for each value; tiles that are put side by side are written once, and read once as what they became.
 */
static const step_expr *fold_bytes(step_graph *g, const step_graph_node *n)
{
    const step_stream *counted = step_fn_stacks(n->spec.fn) ? &n->outputs[0] : n->spec.inputs[0];
    return twice(g, bytes_of(g, step_cardinality(g, counted), n->outputs[0].data));
}

const step_expr *step_accesses(step_graph *g, const step_graph_node *n)
{
    if (n->spec.kernel)
        return number(g, 0);
    switch (n->spec.op) {
    case STEP_LINEAR_LOAD:
    case STEP_RANDOM_LOAD: {
        const step_graph_tensor *t = n->spec.tensor;
        step_data tile = {.kind = STEP_TILE, .dtype = t->dtype, .rows = number(g, t->rows), .columns = number(g, t->columns)};
        return bytes_of(g, step_cardinality(g, &n->outputs[0]), &tile);
    }
    case STEP_BUFFERIZE: return stream_bytes(g, n->spec.inputs[0]);
    case STEP_STREAMIFY: return stream_bytes(g, &n->outputs[0]);
    case STEP_EXPAND:
    case STEP_REPEAT: return sum(g, stream_bytes(g, n->spec.inputs[0]), stream_bytes(g, &n->outputs[0]));
    case STEP_ACCUM:
    case STEP_SCAN: return sum(g, operand_bytes(g, n), fold_bytes(g, n));
    case STEP_MAP: return operand_bytes(g, n);
    default: return number(g, 0);
    }
}

/* A reader's buffer was made by the first bufferize on the way back along first inputs. */
uint32_t step_accesses_owner(const step_graph *g, const step_graph_node *n)
{
    const step_graph_node *at = n;
    if (n->spec.op != STEP_STREAMIFY)
        return n->index;
    for (size_t i = 0; i < g->node_count && at->spec.input_count > 0 && at->spec.op != STEP_BUFFERIZE; i++)
        at = at->spec.inputs[0]->node;
    return at->spec.op == STEP_BUFFERIZE ? at->index : n->index;
}
