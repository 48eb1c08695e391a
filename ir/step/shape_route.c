/* Shapes of what routes and merges. */
#include "ir/step/shape_parts.h"

#include <inttypes.h>
#include <string.h>

#include "ir/step/route.h"

/* ---- routing ---- */

/* D_b-1 .. D_0 of chunks, as tokens have them; of all groups of the stream, or only of those that are its own. */
static const step_expr **sizes_inside(step_graph *g, const step_stream *s, uint32_t b, bool all)
{
    uint32_t top = all ? s->rank : b - 1;
    const step_expr **sizes = ARENA_ARRAY(g->arena, const step_expr *, s->rank + 1);
    if (b == 0)
        return sizes;
    step_groups_dims(g, s, top, 0, sizes);
    return sizes + (top + 1 - b);
}

/* data [D_a..D_b, D_b-1..D_0], selector [D_a..D_b] -> n x [new_i, D_b-1..D_0]. */
bool shape_infer_partition(step_graph *g, step_graph_node *n)
{
    const step_stream *data = n->spec.inputs[0], *selector = n->spec.inputs[1];
    uint32_t b = (uint32_t)n->spec.param[STEP_B];
    if (!shape_is_kind(g, n, 1, STEP_SELECTOR, "selectors") || !shape_rank_at_least(g, n, 0, b, "b"))
        return false;
    if (selector->data->width != n->spec.output_count)
        return shape_refuse(g, n, E_STEP_TYPE, "a selector names each output with one bit",
                            "selectors of %" PRId64 " for %" PRIu32 " output%s", selector->data->width, n->spec.output_count,
                            n->spec.output_count == 1 ? "" : "s");
    if (selector->rank != data->rank - b)
        return shape_refuse(g, n, E_STEP_SHAPE, "one selector routes one chunk",
                            "the selector has rank %" PRIu32 "; data of rank %" PRIu32 " in chunks of b = %" PRIu32 " wants %" PRIu32,
                            selector->rank, data->rank, b, data->rank - b);
    for (uint32_t i = 0; i <= selector->rank; i++)
        if (data->dims[i] != selector->dims[i])
            return shape_refuse(g, n, E_STEP_SHAPE, shape_equal_help, "dimension D%" PRIu32 " of the data is %s where the selector has %s",
                                data->rank - i, shape_text_of(g, data->dims[i]), shape_text_of(g, selector->dims[i]));
    const step_route route = step_route_by(selector);
    const step_expr **inside = sizes_inside(g, data, b, false);
    shape_outputs(g, n, n->spec.output_count);
    for (uint32_t o = 0; o < n->output_count; o++) {
        step_stream *out = shape_output(g, n, o, b, step_route_data(g, route, o, data->data));
        out->dims[0] = step_route_count(g, route, o);
        for (uint32_t i = 0; i < b; i++)
            out->dims[1 + i] = step_route_size(g, route, o, inside[i]);
    }
    return true;
}

/* ---- chunks of several streams become one stream ---- */

/* Whole chunks of inputs 0 .. count - 1 in `out`, whose dimensions D_a .. D_b are known. */
typedef struct joining {
    step_graph *g;
    const step_graph_node *n;
    uint32_t count, b;
    step_route taken_by; /* the selectors by which they are taken back, where each chunk comes equally often; else .by NULL */
    step_stream *out;
} joining;

static const step_stream *input(const joining *j, uint32_t i)
{
    return j->n->spec.inputs[i];
}

/* The size of which all inputs have their part; NULL: they do not. */
static const step_expr *whole_of(const joining *j, const step_expr *const *sizes)
{
    const step_expr *whole = NULL;
    for (uint32_t i = 0; i < j->count && j->taken_by.by; i++) {
        const step_expr *of = step_route_whole(j->g, j->taken_by, i, sizes[i]);
        if (!of || (whole && of != whole))
            return NULL;
        whole = of;
    }
    return whole;
}

/* What a size is that is sizes[i] of the chunks of input i, at places[i] places, and at `all` of them together. */
static const step_expr *joined_size(const joining *j, const step_expr *const *sizes, const step_expr *const *places, const step_expr *all,
                                    const char *stem)
{
    bool same = true;
    for (uint32_t i = 0; i < j->count; i++)
        same = same && sizes[i] == sizes[0];
    if (same && !step_expr_is_ragged(sizes[0]))
        return sizes[0];
    const step_expr *whole = whole_of(j, sizes);
    if (whole)
        return whole;
    step_total_part *parts = ARENA_ARRAY(j->g->arena, step_total_part, j->count + 1);
    const step_expr *fresh = step_expr_fresh(j->g->exprs, stem, true);
    for (uint32_t i = 0; i < j->count; i++)
        parts[i] = (step_total_part){sizes[i], places[i]};
    step_total_define_union(j->g, fresh, j->out, all, parts, j->count);
    return fresh;
}

/* D_b-1 .. D_0, as tokens have them. */
static void join_sizes(const joining *j)
{
    const step_expr ***inside = ARENA_ARRAY(j->g->arena, const step_expr **, j->count + 1);
    const step_expr **sizes = ARENA_ARRAY(j->g->arena, const step_expr *, j->count + 1),
                    **places = ARENA_ARRAY(j->g->arena, const step_expr *, j->count + 1);
    for (uint32_t i = 0; i < j->count; i++)
        inside[i] = sizes_inside(j->g, input(j, i), j->b, false);
    for (uint32_t d = j->b; d-- > 0;) {
        for (uint32_t i = 0; i < j->count; i++) {
            sizes[i] = inside[i][j->b - 1 - d];
            places[i] = step_groups_count(j->g, input(j, i), d + 1);
        }
        const step_expr *size = joined_size(j, sizes, places, step_total_places(j->g, j->out, j->out->rank - d), "R");
        if (d > 0)
            step_total_set_positive(j->g, size);
        j->out->dims[j->out->rank - d] = size;
    }
}

/* Sizes of tiles may differ in what is known only when the program runs. */
static bool may_join(const step_expr *a, const step_expr *b)
{
    int64_t number;
    return a == b || (!step_expr_is_number(a, &number) && !step_expr_is_number(b, &number));
}

static bool data_may_join(const step_data *a, const step_data *b);

/* A pair keeps what its selectors name. */
static bool part_may_join(const step_data *a, const step_data *b)
{
    return a->kind == STEP_SELECTOR ? step_data_equal(a, b) : data_may_join(a, b);
}

/* Tiles of other unknown sizes, selectors of other numbers of outputs: what is joined says less of them. */
static bool data_may_join(const step_data *a, const step_data *b)
{
    if (step_data_equal(a, b) || (a->kind == STEP_SELECTOR && b->kind == STEP_SELECTOR && a->width == b->width))
        return true;
    if (a->kind != b->kind)
        return false;
    if (a->kind == STEP_TILE)
        return a->dtype == b->dtype && may_join(a->rows, b->rows) && may_join(a->columns, b->columns);
    return a->kind == STEP_PAIR && part_may_join(a->first, b->first) && part_may_join(a->second, b->second);
}

static const step_data *join_data(const joining *j, const step_data *const *part);

/* Of the first or second parts of pairs. */
static const step_data *join_parts(const joining *j, const step_data *const *pair, bool second)
{
    const step_data **inner = ARENA_ARRAY(j->g->arena, const step_data *, j->count + 1);
    for (uint32_t i = 0; i < j->count; i++)
        inner[i] = second ? pair[i]->second : pair[i]->first;
    return join_data(j, inner);
}

/* Of the inputs' types, which may join; `part`: the inputs' types, or parts of them. */
static const step_data *join_data(const joining *j, const step_data *const *part)
{
    step_data *d = ARENA_NEW(j->g->arena, step_data);
    const step_expr **sizes = ARENA_ARRAY(j->g->arena, const step_expr *, j->count + 1),
                    **places = ARENA_ARRAY(j->g->arena, const step_expr *, j->count + 1);
    *d = *part[0];
    if (d->kind == STEP_PAIR) {
        d->first = join_parts(j, part, false);
        d->second = join_parts(j, part, true);
    }
    for (uint32_t i = 1; d->kind == STEP_SELECTOR && i < j->count; i++)
        d->hot = part[i]->hot == d->hot ? d->hot : 0;
    if (d->kind != STEP_TILE)
        return d;
    for (int columns = 0; columns < 2; columns++) {
        for (uint32_t i = 0; i < j->count; i++) {
            sizes[i] = columns ? part[i]->columns : part[i]->rows;
            places[i] = step_cardinality(j->g, input(j, i));
        }
        *(columns ? &d->columns : &d->rows) = joined_size(j, sizes, places, step_cardinality(j->g, j->out), columns ? "columns" : "rows");
    }
    return d;
}

static void join(const joining *j)
{
    const step_data **data = ARENA_ARRAY(j->g->arena, const step_data *, j->count + 1);
    for (uint32_t i = 0; i < j->count; i++)
        data[i] = input(j, i)->data;
    join_sizes(j);
    j->out->data = join_data(j, data);
}

static bool sizes_agree(step_graph *g, const step_graph_node *n, uint32_t k, uint32_t b)
{
    const step_stream *first = n->spec.inputs[0], *s = n->spec.inputs[k];
    for (uint32_t i = 0; i < b; i++) {
        const step_expr *one = step_dim(first, i), *other = step_dim(s, i);
        if (one != other && !(step_expr_is_ragged(one) && step_expr_is_ragged(other)))
            return shape_refuse(g, n, E_STEP_SHAPE, shape_equal_help, "dimension D%" PRIu32 " is %s of input 0 and %s of input %" PRIu32, i,
                                shape_text_of(g, one), shape_text_of(g, other), k);
    }
    return true;
}

/* Inputs of rank b whose D_b-1..D_0 are equal, or ragged, and which carry one type. */
static bool may_become_one(step_graph *g, const step_graph_node *n, uint32_t count, uint32_t b)
{
    const step_data *data = n->spec.inputs[0]->data;
    for (uint32_t k = 0; k < count; k++) {
        const step_stream *s = n->spec.inputs[k];
        if (s->rank != b)
            return shape_refuse(g, n, E_STEP_SHAPE, "a chunk is b dimensions, and a stream of chunks has one more",
                                "input %" PRIu32 " has rank %" PRIu32 "; all have to have %" PRIu32, k, s->rank, b);
        if (!sizes_agree(g, n, k, b))
            return false;
        if (!data_may_join(data, s->data))
            return shape_refuse(g, n, E_STEP_TYPE, "streams that become one carry one type", "input 0 carries %s and input %" PRIu32 " %s",
                                step_data_text(data, g->arena), k, step_data_text(s->data, g->arena));
    }
    return true;
}

/* All chunks of the inputs. */
static const step_expr *chunks_of(step_graph *g, const step_graph_node *n, uint32_t count)
{
    const step_expr *sum = shape_number(g, 0);
    for (uint32_t i = 0; i < count; i++)
        sum = step_expr_add(g->exprs, sum, n->spec.inputs[i]->dims[0]);
    return sum;
}

/* n x [_, D_b-1..D_0], selector [T_c..T_0] -> [T_c..T_0, D_sel, D_b-1..D_0]; D_sel is ragged unless every selector names k. All chunks are
 * taken. */
bool shape_infer_reassemble(step_graph *g, step_graph_node *n)
{
    uint32_t b = (uint32_t)n->spec.param[STEP_B], count = n->spec.input_count - 1;
    const step_stream *selector = n->spec.inputs[count];
    if (!shape_is_kind(g, n, count, STEP_SELECTOR, "selectors") || !may_become_one(g, n, count, b) ||
        !shape_rank_fits(g, n, (int64_t)selector->rank + b + 1))
        return false;
    if (selector->data->width != count)
        return shape_refuse(g, n, E_STEP_TYPE, "a selector names each input with one bit",
                            "selectors of %" PRId64 " for %" PRIu32 " input%s", selector->data->width, count, count == 1 ? "" : "s");
    shape_outputs(g, n, 1);
    step_stream *out = shape_output(g, n, 0, selector->rank + b + 1, NULL);
    memcpy(out->dims, selector->dims, (selector->rank + 1) * sizeof *out->dims);
    const step_expr *picked = shape_number(g, selector->data->hot);
    if (selector->data->hot == 0) {
        picked = step_expr_fresh(g->exprs, "S", true);
        step_total_define(g, picked, step_cardinality(g, selector), picked, chunks_of(g, n, count));
    }
    out->dims[selector->rank + 1] = picked;
    join(&(joining){.g = g,
                    .n = n,
                    .count = count,
                    .b = b,
                    .taken_by = selector->data->hot > 0 ? step_route_by(selector) : (step_route){0},
                    .out = out});
    return true;
}

/* Who routes by the merge's selectors gets back what the inputs had. */
static void remember_inputs(step_graph *g, const step_graph_node *n)
{
    const step_stream *out = &n->outputs[0];
    const step_route route = {.by = &n->outputs[1]};
    for (uint32_t i = 0; i < n->spec.input_count; i++) {
        const step_stream *in = n->spec.inputs[i];
        const step_expr **inside = sizes_inside(g, in, in->rank, false);
        step_route_define(g, route, i, NULL, in->dims[0]);
        for (uint32_t d = 0; d < in->rank; d++)
            if (step_expr_is_ragged(out->dims[1 + d]))
                step_route_define(g, route, i, out->dims[1 + d], inside[d]);
        if (in->data->kind == STEP_TILE && step_expr_is_ragged(out->data->rows))
            step_route_define(g, route, i, out->data->rows, in->data->rows);
    }
}

/* n x [D^i_a, D_a-1..D_0] -> [sum of D^i_a, D_a-1..D_0], and one-hot selectors [sum of D^i_a]. */
bool shape_infer_eager_merge(step_graph *g, step_graph_node *n)
{
    uint32_t rank = n->spec.inputs[0]->rank;
    if (!may_become_one(g, n, n->spec.input_count, rank))
        return false;
    step_data *selector = ARENA_NEW(g->arena, step_data);
    *selector = (step_data){.kind = STEP_SELECTOR, .width = n->spec.input_count, .hot = 1};
    const step_expr *sum = chunks_of(g, n, n->spec.input_count);
    shape_outputs(g, n, 2);
    step_stream *out = shape_output(g, n, 0, rank, NULL);
    out->dims[0] = shape_absorbed(g, n->spec.inputs[0], rank, rank, sum, shape_number(g, 1), step_total_of(g, shape_number(g, 1), sum));
    join(&(joining){.g = g, .n = n, .count = n->spec.input_count, .b = rank, .out = out});
    shape_output(g, n, 1, 0, selector)->dims[0] = out->dims[0];
    remember_inputs(g, n);
    return true;
}

/* Chunks of b dimensions in turn: n x [D_i, D_b-1..D_0], of D chunks D_i = floor((D + n - 1 - i) / n). */
bool shape_infer_parallelize(step_graph *g, step_graph_node *n)
{
    const step_stream *in = n->spec.inputs[0];
    uint32_t b = (uint32_t)n->spec.param[STEP_B], outputs = n->spec.output_count;
    if (!shape_rank_at_least(g, n, 0, b, "b"))
        return false;
    const step_route route = {.chunks = step_groups_count(g, in, b), .b = b, .outputs = outputs};
    const step_expr **inside = sizes_inside(g, in, b, true);
    shape_outputs(g, n, outputs);
    for (uint32_t o = 0; o < outputs; o++) {
        step_stream *out = shape_output(g, n, o, b, step_route_data(g, route, o, in->data));
        out->dims[0] = step_expr_floor_divide(g->exprs, step_expr_add(g->exprs, route.chunks, shape_number(g, outputs - 1 - o)), outputs);
        for (uint32_t i = 0; i < b; i++)
            out->dims[1 + i] = step_route_size(g, route, o, inside[i]);
    }
    return true;
}
