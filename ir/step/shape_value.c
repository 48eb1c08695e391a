/* Shapes of higher-order operators. */
#include "ir/step/shape_parts.h"

#include <inttypes.h>
#include <string.h>

#include "ir/step/route.h"

/* ---- higher-order ---- */

static const step_data *function_data(step_graph *g, step_graph_node *n, const step_expr *folded)
{
    const char *why = NULL;
    const step_data *d = step_function_type(g, &n->spec, folded, &why);
    if (!d)
        shape_refuse(g, n, E_STEP_TYPE, "docs/step.md has a table of the functions", "%s", why);
    return d;
}

/* Selectors made of what marks the padding of D_0: what is none are the values that there were. */
static void know_padding(step_graph *g, const step_graph_node *n)
{
    const step_stream *in = n->spec.inputs[0];
    const step_spec *reshape = &in->node->spec;
    if (n->spec.fn == STEP_FN_SELECT && n->spec.param[STEP_N] == 1 && reshape->op == STEP_RESHAPE && in->port == 1 &&
        reshape->param[STEP_B] == 0)
        step_route_define(g, (step_route){.by = &n->outputs[0]}, 0, NULL, step_cardinality(g, reshape->inputs[0]));
}

bool shape_infer_map(step_graph *g, step_graph_node *n)
{
    if (!shape_in_step(g, n) || !shape_same_shape(g, n, function_data(g, n, NULL)))
        return false;
    know_padding(g, n);
    return true;
}

/* Are D_b-2 .. D_0 the same everywhere? Then a group of b dimensions has D_b-1 times as many values. */
static bool even_inside(const step_stream *in, uint32_t b)
{
    for (uint32_t i = 0; i + 1 < b; i++)
        if (step_expr_is_ragged(step_dim(in, i)))
            return false;
    return true;
}

/* The number of values that a fold of b dimensions takes. */
static const step_expr *folded_values(step_graph *g, const step_stream *in, uint32_t b)
{
    const step_expr *values = shape_number(g, 1);
    for (uint32_t i = 0; i < b; i++)
        values = step_expr_multiply(g->exprs, values, step_dim(in, i));
    const step_expr *real = step_groups_real(g, in, b), *each = step_expr_multiply(g->exprs, values, real);
    if (!each || !step_expr_is_ragged(each) || (each == values && step_expr_is_symbol(values)))
        return each;
    bool is_new;
    const step_expr *fresh = step_groups_size(g, in, b, STEP_GROUP_FOLDED, each, &is_new);
    if (!is_new)
        return fresh;
    step_total_define(g, fresh, step_groups_count(g, in, b), each == values ? each : fresh, step_cardinality(g, in));
    if (even_inside(in, b)) /* groups that stand for none have no value */
        step_total_define_largest(g, fresh, step_total_where_any(g, in, values));
    return fresh;
}

/* A tile for each group has the sizes that those of the group share. */
static const step_data *of_groups(step_graph *g, const step_stream *in, uint32_t b, const step_data *d)
{
    if (!d || d->kind != STEP_TILE)
        return d;
    step_data *out = ARENA_NEW(g->arena, step_data);
    *out = *d;
    out->rows = step_groups_shared(g, in, b, d->rows);
    out->columns = step_groups_shared(g, in, b, d->columns);
    return out->rows == d->rows && out->columns == d->columns ? d : out;
}

/* [D_a..D_b, D_b-1..D_0] -> [D_a..D_b], as tokens have them. */
bool shape_infer_accum(step_graph *g, step_graph_node *n)
{
    const step_stream *in = n->spec.inputs[0];
    uint32_t b = (uint32_t)n->spec.param[STEP_B];
    if (!shape_rank_at_least(g, n, 0, b, "b") || !shape_in_step(g, n))
        return false;
    const step_data *d = of_groups(g, in, b, function_data(g, n, folded_values(g, in, b)));
    shape_outputs(g, n, 1);
    step_stream *out = shape_output(g, n, 0, in->rank - b, d);
    step_groups_dims(g, in, in->rank, b, out->dims);
    return d != NULL;
}

bool shape_infer_scan(step_graph *g, step_graph_node *n)
{
    return shape_rank_at_least(g, n, 0, n->spec.param[STEP_B], "b") && shape_in_step(g, n) &&
           shape_same_shape(g, n, function_data(g, n, step_expr_fresh(g->exprs, "K", true)));
}

/* D_0 streams of `size` values, one after the other. */
static const step_expr *concatenated(step_graph *g, const step_stream *in, const step_expr *size)
{
    const step_expr *places = step_total_places(g, in, in->rank), *all = step_expr_multiply(g->exprs, step_dim(in, 0), size);
    return shape_absorbed(g, in, 0, 0, all, places, step_total_of(g, step_cardinality(g, in), size));
}

/* The bound of a dimension that values or pieces determine: values that a function makes are counted by one stream, those of the last one,
 * and the pieces of a tile by the pieces themselves. */
static const step_expr *counted(step_graph *g, const step_graph_node *n, uint32_t b)
{
    bool is_ragged = b > 0 || n->spec.inputs[0]->rank > 0;
    if (n->spec.fn == STEP_FN_TILES)
        return step_expr_fresh(g->exprs, "F", is_ragged);
    return step_groups_counted(g, n->spec.inputs[n->spec.input_count - 1], b, is_ragged);
}

/* [D_a..D_0] -> [D_a..D_1, D'_b..D'_0]: D'_b is ragged unless the function's size is fixed, then D_0 times it (b = 0), or D_0 and it. */
bool shape_infer_flat_map(step_graph *g, step_graph_node *n)
{
    const step_stream *in = n->spec.inputs[0];
    uint32_t b = (uint32_t)n->spec.param[STEP_B];
    if (!shape_in_step(g, n) || !shape_rank_fits(g, n, (int64_t)in->rank + b))
        return false;
    const step_data *d = function_data(g, n, NULL);
    if (!d)
        return false;
    const step_expr *size = step_function_size(g, &n->spec);
    shape_outputs(g, n, 1);
    step_stream *out = shape_output(g, n, 0, in->rank + b, d);
    memcpy(out->dims, in->dims, (in->rank + 1) * sizeof *out->dims);
    if (b == 0)
        out->dims[in->rank] = size ? concatenated(g, in, size) : counted(g, n, b);
    else
        out->dims[in->rank + 1] = size ? size : counted(g, n, b);
    return true;
}
