/* Shapes of shape operators, expand, repeat and zip. */
#include "ir/step/shape_parts.h"

#include <inttypes.h>
#include <string.h>

/* ---- shape operators ---- */

/* D_max..D_min become their product. */
bool shape_infer_flatten(step_graph *g, step_graph_node *n)
{
    const step_stream *in = n->spec.inputs[0];
    int64_t min = n->spec.param[STEP_B], max = n->spec.param[STEP_N];
    if (min >= max)
        return shape_refuse(g, n, E_STEP_NUMBER, "dimensions are counted from the innermost one, D0",
                            "min is %" PRId64 " and max %" PRId64 "; min has to be the smaller one", min, max);
    if (!shape_rank_at_least(g, n, 0, max, "max"))
        return false;
    const step_expr *product = shape_number(g, 1), **sizes = ARENA_ARRAY(g->arena, const step_expr *, (size_t)max + 1);
    if (min > 0)
        step_groups_dims(g, in, (uint32_t)max, 0, sizes);
    for (int64_t i = 0; i <= max - min; i++)
        product = step_expr_multiply(g->exprs, product, min > 0 ? sizes[i] : step_dim(in, (uint32_t)(max - i)));
    shape_outputs(g, n, 1);
    step_stream *out = shape_output(g, n, 0, in->rank - (uint32_t)(max - min), in->data);
    const step_expr *outside = step_total_places(g, in, in->rank - (uint32_t)max),
                    *inside = step_groups_inside(g, in, (uint32_t)max, (uint32_t)min);
    const step_expr *joined = shape_absorbed(g, in, (uint32_t)min, (uint32_t)max, product, outside, inside);
    if (min > 0 && max < in->rank)
        step_total_set_positive(g, joined);
    uint32_t at = 0;
    for (uint32_t i = in->rank + 1; i-- > 0;)
        if (i > max)
            out->dims[at++] = step_dim(in, i);
        else if (i < min)
            out->dims[at++] = sizes[max - i];
        else if (i == max)
            out->dims[at++] = joined;
    return true;
}

/* D_b -> [ceil(D_b / S), S]; for b > 0 the division is exact. Second output: bools of the same shape. */
bool shape_infer_reshape(step_graph *g, step_graph_node *n)
{
    const step_stream *in = n->spec.inputs[0];
    uint32_t b = (uint32_t)n->spec.param[STEP_B];
    int64_t chunk = n->spec.param[STEP_N];
    if (!shape_rank_at_least(g, n, 0, b, "b") || !shape_rank_fits(g, n, (int64_t)in->rank + 1))
        return false;
    const step_expr *d = step_dim(in, b), *chunks = step_expr_ceil_divide(g->exprs, d, chunk);
    bool exact = step_expr_multiply(g->exprs, chunks, shape_number(g, chunk)) == d;
    int64_t size;
    if (b > 0 && !exact)
        return shape_refuse(g, n, E_STEP_SHAPE, "choose a chunk that divides the dimension, or `flatten` down to D0 first",
                            "dimension D%" PRIu32 ", %s, is split into chunks of %" PRId64 "; only D0 may leave a rest", b,
                            shape_text_of(g, d), chunk);
    if (!exact && !n->spec.param[STEP_PAD] && step_expr_is_number(d, &size))
        return shape_refuse(g, n, E_STEP_SHAPE, "a third argument of `reshape` is the value of the padding: `.reshape(0, 4, 0)`",
                            "%" PRId64 " values are no whole number of chunks of %" PRId64 ", and nothing says how to pad", size, chunk);
    shape_outputs(g, n, 2);
    const step_data *flags = shape_plain_data(g, STEP_BOOL);
    const step_expr *places = step_total_places(g, in, in->rank - b),
                    *count = shape_absorbed(g, in, b, b, chunks, places, step_total_of(g, places, chunks));
    for (uint32_t o = 0; o < 2; o++) {
        step_stream *out = shape_output(g, n, o, in->rank + 1, o == 0 ? in->data : flags);
        memcpy(out->dims, in->dims, (in->rank - b) * sizeof *out->dims);
        out->dims[in->rank - b] = count;
        out->dims[in->rank - b + 1] = shape_number(g, chunk);
        memcpy(out->dims + (in->rank - b + 2), in->dims + (in->rank - b + 1), b * sizeof *out->dims);
    }
    return true;
}

/* An output of one dimension more than the input; NULL: refused. */
static step_stream *deeper(step_graph *g, step_graph_node *n)
{
    const step_stream *in = n->spec.inputs[0];
    if (!shape_rank_fits(g, n, (int64_t)in->rank + 1))
        return NULL;
    shape_outputs(g, n, 1);
    return shape_output(g, n, 0, in->rank + 1, in->data);
}

/* [D_a..D_0] -> [present(D_a), D_a..D_0]. */
bool shape_infer_promote(step_graph *g, step_graph_node *n)
{
    const step_stream *in = n->spec.inputs[0];
    step_stream *out = deeper(g, n);
    if (!out)
        return false;
    out->dims[0] = step_expr_present(g->exprs, in->dims[0]);
    memcpy(out->dims + 1, in->dims, (in->rank + 1) * sizeof *out->dims);
    return true;
}

/* [D_a..D_b, 1..1], ref [D_a..D_0] -> the reference's shape. */
bool shape_infer_expand(step_graph *g, step_graph_node *n)
{
    const step_stream *in = n->spec.inputs[0], *ref = n->spec.inputs[1];
    uint32_t b = (uint32_t)n->spec.param[STEP_B];
    if (!shape_rank_at_least(g, n, 0, b, "b") || !shape_same_dims(g, n, in, ref, b))
        return false;
    for (uint32_t i = 0; i < b; i++)
        if (step_dim(in, i) != shape_number(g, 1))
            return shape_refuse(g, n, E_STEP_SHAPE, "`repeat(1)` adds a dimension of 1 that can be expanded",
                                "dimension D%" PRIu32 " is %s; the b = %" PRIu32 " innermost dimensions have to be 1", i,
                                shape_text_of(g, step_dim(in, i)), b);
    shape_outputs(g, n, 1);
    memcpy(shape_output(g, n, 0, ref->rank, in->data)->dims, ref->dims, (ref->rank + 1) * sizeof *ref->dims);
    return true;
}

/* [D_a..D_0] -> [D_a..D_0, N]. */
bool shape_infer_repeat(step_graph *g, step_graph_node *n)
{
    const step_stream *in = n->spec.inputs[0];
    step_stream *out = deeper(g, n);
    if (!out)
        return false;
    memcpy(out->dims, in->dims, (in->rank + 1) * sizeof *out->dims);
    out->dims[in->rank + 1] = shape_number(g, n->spec.param[STEP_N]);
    return true;
}

bool shape_infer_zip(step_graph *g, step_graph_node *n)
{
    step_data *d = ARENA_NEW(g->arena, step_data);
    *d = (step_data){.kind = STEP_PAIR, .first = n->spec.inputs[0]->data, .second = n->spec.inputs[1]->data};
    shape_nest(g, d);
    return shape_in_step(g, n) && shape_same_shape(g, n, d);
}
