/* Shapes at the edges of the graph, of memory off the chip and of buffers on it. */
#include "ir/step/shape_parts.h"

#include <inttypes.h>
#include <string.h>

/* ---- edges of the graph, memory off the chip ---- */

bool shape_infer_source(step_graph *g, step_graph_node *n)
{
    shape_outputs(g, n, 1);
    memcpy(shape_output(g, n, 0, n->spec.rank, n->spec.data)->dims, n->spec.dims, (n->spec.rank + 1) * sizeof *n->spec.dims);
    return true;
}

/* [1], rank 0. */
bool shape_infer_once(step_graph *g, step_graph_node *n)
{
    step_data *d = ARENA_NEW(g->arena, step_data);
    d->kind = STEP_ADDRESS;
    shape_outputs(g, n, 1);
    shape_output(g, n, 0, 0, d)->dims[0] = shape_number(g, 1);
    return true;
}

static const step_data *tile_of(step_graph *g, const step_graph_node *n)
{
    const step_graph_tensor *t = n->spec.tensor;
    step_data *d = ARENA_NEW(g->arena, step_data);
    *d = (step_data){.kind = STEP_TILE,
                     .dtype = n->spec.has_dtype ? n->spec.dtype : t->dtype,
                     .rows = shape_number(g, t->rows),
                     .columns = shape_number(g, t->columns)};
    return d;
}

/* The walk has to stay inside the stored tiles. */
static bool walk_fits(step_graph *g, const step_graph_node *n, int64_t tiles)
{
    __int128 base = n->spec.op == STEP_LINEAR_LOAD ? n->spec.param[STEP_BASE] : 0, first = base, last = base;
    for (uint32_t i = 0; i < n->spec.walk_count; i++) {
        __int128 span = (__int128)(n->spec.walk_sizes[i] - 1) * n->spec.walk_strides[i];
        if (n->spec.walk_sizes[i] < 1)
            return shape_refuse(g, n, E_STEP_NUMBER, "leave the dimension out of the walk",
                                "a dimension of the walk has %" PRId64 " tiles; it has to be 1 or more", n->spec.walk_sizes[i]);
        first += span < 0 ? span : 0;
        last += span > 0 ? span : 0;
    }
    if (first >= 0 && last < tiles)
        return true;
    return shape_refuse(g, n, E_STEP_NUMBER, "sizes and strides are counted in tiles, outermost first",
                        "the walk reads tiles %" PRId64 " to %" PRId64 " of %s, which has %" PRId64, (int64_t)first, (int64_t)last,
                        n->spec.tensor ? arena_printf(g->arena, "`%s`", n->spec.tensor->name) : "a buffer", tiles);
}

static int64_t stored_tiles(const step_graph_tensor *t)
{
    int64_t tiles = 1;
    for (uint32_t i = 0; i < t->dim_count; i++)
        tiles *= t->shape[i];
    return tiles;
}

/* [ref..] -> [ref.., out_shape]. */
bool shape_infer_linear_load(step_graph *g, step_graph_node *n)
{
    const step_stream *ref = n->spec.inputs[0];
    uint32_t inner = n->spec.walk_count;
    if (!shape_rank_fits(g, n, (int64_t)ref->rank + inner) || !walk_fits(g, n, stored_tiles(n->spec.tensor)))
        return false;
    shape_outputs(g, n, 1);
    step_stream *out = shape_output(g, n, 0, ref->rank + inner, tile_of(g, n));
    for (uint32_t i = 0; i <= ref->rank; i++)
        out->dims[i] = ref->dims[i];
    for (uint32_t i = 0; i < inner; i++)
        out->dims[ref->rank + 1 + i] = shape_number(g, n->spec.walk_sizes[i]);
    return true;
}

static bool takes_tiles(step_graph *g, const step_graph_node *n, uint32_t input)
{
    const step_data *d = n->spec.inputs[input]->data;
    const step_graph_tensor *t = n->spec.tensor;
    if (!shape_is_kind(g, n, input, STEP_TILE, "tiles"))
        return false;
    if (d->rows == shape_number(g, t->rows) && d->columns == shape_number(g, t->columns))
        return true;
    return shape_refuse(g, n, E_STEP_TYPE,
                        "tiles in memory have one size; `retile_rows`, `retile_cols` and `tiles` change that of a stream",
                        "tiles %s x %s go to `%s`, whose tiles are %" PRId64 " x %" PRId64, shape_text_of(g, d->rows),
                        shape_text_of(g, d->columns), t->name, t->rows, t->columns);
}

bool shape_infer_linear_store(step_graph *g, step_graph_node *n)
{
    shape_outputs(g, n, 0);
    return takes_tiles(g, n, 0);
}

bool shape_infer_random_load(step_graph *g, step_graph_node *n)
{
    return shape_is_kind(g, n, 0, STEP_ADDRESS, "addresses") && shape_same_shape(g, n, tile_of(g, n));
}

bool shape_infer_random_store(step_graph *g, step_graph_node *n)
{
    return shape_is_kind(g, n, 0, STEP_ADDRESS, "addresses") && takes_tiles(g, n, 1) &&
           shape_same_dims(g, n, n->spec.inputs[0], n->spec.inputs[1], 0) && shape_same_shape(g, n, shape_plain_data(g, STEP_BOOL));
}

/* ---- buffers ---- */

/* [D_a..D_b, D_b-1..D_0] -> [D_a..D_b] of buffers [D_b-1..D_0], which have to be regular. */
bool shape_infer_bufferize(step_graph *g, step_graph_node *n)
{
    const step_stream *in = n->spec.inputs[0];
    uint32_t b = (uint32_t)n->spec.param[STEP_B];
    if (!shape_rank_at_least(g, n, 0, b, "b"))
        return false;
    for (uint32_t i = 0; i < b; i++)
        if (step_expr_is_ragged(step_dim(in, i)))
            return shape_refuse(g, n, E_STEP_SHAPE, "buffer the dimensions inside of the ragged one only",
                                "dimension D%" PRIu32 " of the buffer, %s, is ragged; buffers are regular", i,
                                shape_text_of(g, step_dim(in, i)));
    step_data *d = ARENA_NEW(g->arena, step_data);
    *d = (step_data){.kind = STEP_BUFFER,
                     .first = in->data,
                     .dims = in->dims + (in->rank + 1 - b),
                     .dim_count = b,
                     .may_be_empty = step_groups_real(g, in, b) != shape_number(g, 1)};
    shape_nest(g, d);
    shape_outputs(g, n, 1);
    step_stream *out = shape_output(g, n, 0, in->rank - b, d);
    step_groups_dims(g, in, in->rank, b, out->dims);
    return true;
}

/* A walk over a buffer stays inside it, where its size is known. */
static bool view_fits(step_graph *g, const step_graph_node *n, const step_data *buffer)
{
    const step_expr *size = shape_number(g, 1);
    int64_t values;
    for (uint32_t i = 0; i < buffer->dim_count; i++)
        size = step_expr_multiply(g->exprs, size, buffer->dims[i]);
    return !size || !step_expr_is_number(size, &values) || walk_fits(g, n, values);
}

/* data [D_b..D_0], ref [D_b..D_0, D'_c-1..D'_0] -> [D_b..D_0, D'_c-1..D'_0, view..]. */
bool shape_infer_streamify(step_graph *g, step_graph_node *n)
{
    const step_stream *data = n->spec.inputs[0], *ref = n->spec.inputs[1];
    uint32_t c = (uint32_t)n->spec.param[STEP_B];
    if (!shape_is_kind(g, n, 0, STEP_BUFFER, "buffers"))
        return false;
    if (ref->rank != data->rank + c)
        return shape_refuse(g, n, E_STEP_SHAPE, "c counts the innermost dimensions of the reference that repeat one buffer",
                            "the reference has rank %" PRIu32 "; buffers of rank %" PRIu32 " with c = %" PRIu32 " want %" PRIu32, ref->rank,
                            data->rank, c, data->rank + c);
    for (uint32_t i = 0; i <= data->rank; i++)
        if (data->dims[i] != ref->dims[i])
            return shape_refuse(g, n, E_STEP_SHAPE, shape_equal_help, "dimension D%" PRIu32 " of the buffers is %s and of the reference %s",
                                data->rank - i, shape_text_of(g, data->dims[i]), shape_text_of(g, ref->dims[i]));
    uint32_t view = n->spec.walk_count > 0 ? n->spec.walk_count : data->data->dim_count;
    if (!shape_rank_fits(g, n, (int64_t)ref->rank + view))
        return false;
    if (n->spec.walk_count > 0 && !view_fits(g, n, data->data))
        return false;
    shape_outputs(g, n, 1);
    step_stream *out = shape_output(g, n, 0, ref->rank + view, data->data->first);
    memcpy(out->dims, ref->dims, (ref->rank + 1) * sizeof *ref->dims);
    for (uint32_t i = 0; i < view; i++)
        out->dims[ref->rank + 1 + i] = n->spec.walk_count > 0     ? shape_number(g, n->spec.walk_sizes[i])
                                       : data->data->may_be_empty ? step_expr_fresh(g->exprs, "R", true)
                                                                  : data->data->dims[i];
    return true;
}
