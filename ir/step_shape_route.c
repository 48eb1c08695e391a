/* Shapes of what routes and merges. */
#include "ir/step_shape_parts.h"

#include <inttypes.h>
#include <string.h>

/* ---- routing ---- */

/* What is routed alike has the same new dimensions, or a later zip of two of them could not be proven: partitions that one selector drives
 * (`by`), and streams of one size (`of`) that are dealt out to as many outputs. */
typedef struct step_split {
    struct step_split *next;
    const step_stream *by;
    const step_expr *of;
    uint32_t outputs, output;
    const step_expr *size;
} step_split;

static const step_expr *split_size(step_graph *g, step_split wanted, const char *stem)
{
    for (step_split *s = g->splits; s; s = s->next)
        if (s->by == wanted.by && s->of == wanted.of && s->outputs == wanted.outputs && s->output == wanted.output)
            return s->size;
    step_split *s = ARENA_NEW(g->arena, step_split);
    *s = wanted;
    s->next = g->splits;
    s->size = step_expr_fresh(g->exprs, arena_printf(g->arena, "%s%" PRIu32, stem, wanted.output), false);
    g->splits = s;
    return s->size;
}

/* D_b-1 .. D_0 of chunks, as tokens have them. */
static const step_expr **sizes_inside(step_graph *g, const step_stream *s, uint32_t b)
{
    const step_expr **all = ARENA_ARRAY(g->arena, const step_expr *, s->rank + 1);
    if (b > 0)
        step_groups_dims(g, s, s->rank, 0, all);
    return all + (s->rank + 1 - b);
}

/* data [D_a..D_b, D_b-1..D_0], selector [D_a..D_b] -> n x [new_i, D_b-1..D_0]. */
bool shape_infer_partition(step_graph *g, step_graph_node *n)
{
    const step_stream *data = n->spec.inputs[0], *selector = n->spec.inputs[1];
    uint32_t b = (uint32_t)n->spec.param[STEP_B];
    if (!shape_is_kind(g, n, 1, STEP_SELECTOR, "selectors") || !shape_rank_at_least(g, n, 0, b, "b"))
        return false;
    if (selector->data->width != n->spec.output_count)
        return shape_refuse(g, n, E_STEP_TYPE, "a selector names each output with one bit", "selectors of %" PRId64 " for %" PRIu32 " outputs", selector->data->width, n->spec.output_count);
    if (selector->rank != data->rank - b)
        return shape_refuse(g, n, E_STEP_SHAPE, "one selector routes one chunk", "the selector has rank %" PRIu32 "; data of rank %" PRIu32 " in chunks of b = %" PRIu32 " wants %" PRIu32,
                      selector->rank, data->rank, b, data->rank - b);
    for (uint32_t i = 0; i <= selector->rank; i++)
        if (data->dims[i] != selector->dims[i])
            return shape_refuse(g, n, E_STEP_SHAPE, shape_equal_help, "dimension D%" PRIu32 " of the data is %s where the selector has %s", data->rank - i, shape_text_of(g, data->dims[i]),
                          shape_text_of(g, selector->dims[i]));
    shape_outputs(g, n, n->spec.output_count);
    const step_expr **inside = sizes_inside(g, data, b);
    for (uint32_t o = 0; o < n->output_count; o++) {
        step_stream *out = shape_output(g, n, o, b, data->data);
        out->dims[0] = split_size(g, (step_split){.by = selector, .outputs = n->output_count, .output = o}, selector->node->name);
        memcpy(out->dims + 1, inside, b * sizeof *inside);
    }
    return true;
}

/* What a stream carries that takes values of both: tiles may differ in a number of rows that is known only when the program runs. */
static const step_data *joined_data(step_graph *g, const step_data *a, const step_data *b)
{
    int64_t rows;
    if (step_data_equal(a, b))
        return a;
    if (a->kind != STEP_TILE || b->kind != STEP_TILE || a->dtype != b->dtype || a->columns != b->columns || step_expr_is_number(a->rows, &rows) ||
        step_expr_is_number(b->rows, &rows))
        return NULL;
    step_data *d = ARENA_NEW(g->arena, step_data);
    *d = *a;
    d->rows = step_expr_fresh(g->exprs, "rows", true);
    return d;
}

/* Inputs of one rank and equal D_b-1..D_0. What they carry; NULL when they do not agree. */
static const step_data *same_chunks(step_graph *g, const step_graph_node *n, uint32_t count, uint32_t rank)
{
    const step_stream *first = n->spec.inputs[0];
    const step_data *data = first->data;
    bool good = true;
    for (uint32_t k = 0; k < count && good; k++) {
        const step_stream *s = n->spec.inputs[k];
        if (s->rank != rank)
            good = shape_refuse(g, n, E_STEP_SHAPE, "a chunk is b dimensions, and a stream of chunks has one more", "input %" PRIu32 " has rank %" PRIu32 "; all have to have %" PRIu32, k, s->rank, rank);
        for (uint32_t i = 0; i < rank && good; i++)
            if (step_dim(s, i) != step_dim(first, i))
                good = shape_refuse(g, n, E_STEP_SHAPE, shape_equal_help, "dimension D%" PRIu32 " is %s of input 0 and %s of input %" PRIu32, i, shape_text_of(g, step_dim(first, i)),
                              shape_text_of(g, step_dim(s, i)), k);
        const step_data *joined = joined_data(g, data, s->data);
        if (good && !joined)
            good = shape_refuse(g, n, E_STEP_TYPE, "streams that become one carry one type", "input 0 carries %s and input %" PRIu32 " %s", step_data_text(first->data, g->arena), k,
                          step_data_text(s->data, g->arena));
        data = joined;
    }
    return good ? data : NULL;
}

/* n x [_, D_b-1..D_0], selector [T_c..T_0] -> [T_c..T_0, D_sel, D_b-1..D_0]; D_sel is ragged unless every selector names k. */
bool shape_infer_reassemble(step_graph *g, step_graph_node *n)
{
    uint32_t b = (uint32_t)n->spec.param[STEP_B], count = n->spec.input_count - 1;
    const step_stream *selector = n->spec.inputs[count], *first = n->spec.inputs[0];
    const step_data *data = shape_is_kind(g, n, count, STEP_SELECTOR, "selectors") ? same_chunks(g, n, count, b) : NULL;
    if (!data || !shape_rank_fits(g, n, (int64_t)selector->rank + b + 1))
        return false;
    if (selector->data->width != count)
        return shape_refuse(g, n, E_STEP_TYPE, "a selector names each input with one bit", "selectors of %" PRId64 " for %" PRIu32 " inputs", selector->data->width, count);
    shape_outputs(g, n, 1);
    step_stream *out = shape_output(g, n, 0, selector->rank + b + 1, data);
    memcpy(out->dims, selector->dims, (selector->rank + 1) * sizeof *out->dims);
    out->dims[selector->rank + 1] = selector->data->hot > 0 ? shape_number(g, selector->data->hot) : step_expr_fresh(g->exprs, "S", true);
    for (uint32_t i = 0; i < b; i++)
        out->dims[out->rank - i] = step_dim(first, i);
    return true;
}

/* Tiles of several dynamic sizes in one stream have a size that differs from one to the next. */
static const step_data *merged_data(step_graph *g, const step_graph_node *n, const step_expr *places)
{
    const step_stream *first = n->spec.inputs[0];
    const step_expr *total = shape_number(g, 0);
    bool same = true;
    for (uint32_t i = 0; i < n->spec.input_count; i++)
        same = same && step_data_equal(n->spec.inputs[i]->data, first->data);
    if (same)
        return first->data;
    for (uint32_t i = 0; i < n->spec.input_count; i++)
        total = step_expr_add(g->exprs, total, step_total_of(g, step_cardinality(g, n->spec.inputs[i]), n->spec.inputs[i]->data->rows));
    step_data *d = ARENA_NEW(g->arena, step_data);
    *d = *first->data;
    d->rows = step_expr_fresh(g->exprs, "R", true);
    step_total_define(g, d->rows, places, d->rows, total);
    return d;
}

/* n x [D^i_a, D_a-1..D_0] -> [sum of D^i_a, D_a-1..D_0], and one-hot selectors [sum of D^i_a]. */
bool shape_infer_eager_merge(step_graph *g, step_graph_node *n)
{
    const step_stream *first = n->spec.inputs[0];
    const step_data *data = same_chunks(g, n, n->spec.input_count, first->rank);
    if (!data)
        return false;
    const step_expr *sum = shape_number(g, 0);
    for (uint32_t i = 0; i < n->spec.input_count; i++)
        sum = step_expr_add(g->exprs, sum, n->spec.inputs[i]->dims[0]);
    step_data *selector = ARENA_NEW(g->arena, step_data);
    *selector = (step_data){.kind = STEP_SELECTOR, .width = n->spec.input_count, .hot = 1};
    shape_outputs(g, n, 2);
    step_stream *out = shape_output(g, n, 0, first->rank, data);
    memcpy(out->dims, first->dims, (first->rank + 1) * sizeof *out->dims);
    out->dims[0] = shape_absorbed(g, sum, shape_number(g, 1), step_total_of(g, shape_number(g, 1), sum));
    out->data = merged_data(g, n, step_cardinality(g, out));
    shape_output(g, n, 1, 0, selector)->dims[0] = out->dims[0];
    return true;
}

/* Of `chunks` that are dealt out in turn: how many go to one output. */
static const step_expr *share(step_graph *g, const step_expr *chunks, uint32_t outputs, uint32_t output)
{
    int64_t known;
    if (!chunks)
        return NULL;
    if (step_expr_is_number(chunks, &known))
        return shape_number(g, known / outputs + (known % outputs > output));
    const step_expr *even = step_expr_ceil_divide(g->exprs, chunks, outputs);
    if (step_expr_multiply(g->exprs, even, shape_number(g, outputs)) == chunks)
        return even;
    return split_size(g, (step_split){.of = chunks, .outputs = outputs, .output = output}, "P");
}

/* Chunks of b dimensions in turn: n x [D / n, D_b-1..D_0], D the number of chunks. */
bool shape_infer_parallelize(step_graph *g, step_graph_node *n)
{
    const step_stream *in = n->spec.inputs[0];
    uint32_t b = (uint32_t)n->spec.param[STEP_B];
    if (!shape_rank_at_least(g, n, 0, b, "b"))
        return false;
    const step_expr *chunks = step_groups_count(g, in, b);
    shape_outputs(g, n, n->spec.output_count);
    const step_expr **inside = sizes_inside(g, in, b);
    for (uint32_t o = 0; o < n->output_count; o++) {
        step_stream *out = shape_output(g, n, o, b, in->data);
        out->dims[0] = share(g, chunks, n->output_count, o);
        for (uint32_t i = 0; i < b; i++) /* which of the ragged sizes come here is not known */
            out->dims[1 + i] = step_expr_is_ragged(inside[i]) ? step_expr_fresh(g->exprs, "R", true) : inside[i];
    }
    return true;
}
