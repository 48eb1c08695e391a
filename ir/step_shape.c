/* What each operator makes of its inputs' shapes (reference/step.md sections 3 and 4, the paper's appendix A.1). One function for each
 * operator; its comment is the rule. D_i counts from the innermost dimension. */
#include "ir/step_graph.h"
#include "ir/step_groups.h"
#include "ir/step_total.h"
#include "ir/step_type.h"

#include <inttypes.h>
#include <string.h>

/* ---- complaining ---- */

enum { NOTES_MAX = 4 }; /* inputs that a diagnostic shows */

static const char *op_name(const step_graph_node *n)
{
    return step_op_row_of(n->spec.op)->name;
}

/* Always false. Shows the inputs' shapes, and what would be accepted. */
static bool refuse(step_graph *g, const step_graph_node *n, diag_id id, const char *help, const char *format, ...) __attribute__((format(printf, 5, 6)));
static bool refuse(step_graph *g, const step_graph_node *n, diag_id id, const char *help, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(g->arena, format, args);
    va_end(args);
    diag *d = diag_add(g->diags, id, n->spec.range, "%s: %s", op_name(n), text);
    for (uint32_t i = 0; i < n->spec.input_count && i < NOTES_MAX; i++)
        diag_note(g->diags, d, n->spec.inputs[i]->node->spec.range, "input %" PRIu32 " is %s", i, step_stream_text(n->spec.inputs[i], g->arena));
    diag_help(g->diags, d, "%s", help);
    return false;
}

static const char *text_of(step_graph *g, const step_expr *e)
{
    return step_expr_text(e, g->arena);
}

/* ---- making outputs ---- */

static step_stream *output(step_graph *g, step_graph_node *n, uint32_t port, uint32_t rank, const step_data *data)
{
    step_stream *s = &n->outputs[port];
    s->rank = rank;
    s->data = data;
    s->dims = ARENA_ARRAY(g->arena, const step_expr *, rank + 1);
    return s;
}

static void outputs(step_graph *g, step_graph_node *n, uint32_t count)
{
    n->output_count = count;
    n->outputs = ARENA_ARRAY(g->arena, step_stream, count + 1);
}

/* One output with the first input's shape. */
static bool same_shape(step_graph *g, step_graph_node *n, const step_data *data)
{
    const step_stream *in = n->spec.inputs[0];
    outputs(g, n, 1);
    memcpy(output(g, n, 0, in->rank, data)->dims, in->dims, (in->rank + 1) * sizeof *in->dims);
    return data != NULL;
}

/* An expression with a ragged part is a new ragged dimension ("absorbing"), whose sizes add up to `total` over `places`. */
static const step_expr *absorbed(step_graph *g, const step_expr *e, const step_expr *places, const step_expr *total)
{
    if (!e || !step_expr_is_ragged(e) || step_expr_is_symbol(e))
        return e;
    const step_expr *fresh = step_expr_fresh(g->exprs, "R", true);
    step_total_define(g, fresh, places, e, total);
    return fresh;
}

static const step_expr *number(step_graph *g, int64_t value)
{
    return step_expr_number(g->exprs, value);
}

static const char equal_help[] = "sizes are equal when their expressions are; where you know more than they say, write `.assume([..])`";

static bool rank_at_least(step_graph *g, const step_graph_node *n, uint32_t input, int64_t least, const char *what)
{
    const step_stream *s = n->spec.inputs[input];
    if (s->rank >= least)
        return true;
    return refuse(g, n, E_STEP_SHAPE, "`promote`, `repeat` and `reshape` raise a rank; a rank is one less than the dimensions", "input %" PRIu32 " has rank %" PRIu32 " and `%s` wants %" PRId64, input, s->rank, what, least);
}

static bool rank_fits(step_graph *g, const step_graph_node *n, int64_t rank)
{
    return rank <= STEP_RANK_MAX || refuse(g, n, E_STEP_SHAPE, "`flatten` joins dimensions that need not be apart", "the output would have rank %" PRId64 "; ranks end at %d", rank, STEP_RANK_MAX);
}

/* Equal ranks, and D_from .. D_a of both equal. */
static bool same_dims(step_graph *g, const step_graph_node *n, const step_stream *a, const step_stream *b, uint32_t from)
{
    if (a->rank != b->rank)
        return refuse(g, n, E_STEP_SHAPE, "`repeat` or `expand` the stream that has fewer dimensions", "ranks %" PRIu32 " and %" PRIu32 " in lock step", a->rank, b->rank);
    for (uint32_t i = a->rank + 1; i-- > from;)
        if (step_dim(a, i) != step_dim(b, i))
            return refuse(g, n, E_STEP_SHAPE, equal_help, "dimension D%" PRIu32 " is %s of one input and %s of another", i, text_of(g, step_dim(a, i)),
                          text_of(g, step_dim(b, i)));
    return true;
}

static bool is_kind(step_graph *g, const step_graph_node *n, uint32_t input, step_kind kind, const char *what)
{
    const step_data *d = n->spec.inputs[input]->data;
    return d->kind == kind || refuse(g, n, E_STEP_TYPE, "docs/step.md has a table of what each operator takes", "input %" PRIu32 " carries %s; it takes %s", input, step_data_text(d, g->arena), what);
}

/* ---- edges of the graph, memory off the chip ---- */

static bool infer_source(step_graph *g, step_graph_node *n)
{
    outputs(g, n, 1);
    memcpy(output(g, n, 0, n->spec.rank, n->spec.data)->dims, n->spec.dims, (n->spec.rank + 1) * sizeof *n->spec.dims);
    return true;
}

/* [1], rank 0. */
static bool infer_once(step_graph *g, step_graph_node *n)
{
    step_data *d = ARENA_NEW(g->arena, step_data);
    d->kind = STEP_ADDRESS;
    outputs(g, n, 1);
    output(g, n, 0, 0, d)->dims[0] = number(g, 1);
    return true;
}

static const step_data *tile_of(step_graph *g, const step_graph_node *n)
{
    const step_graph_tensor *t = n->spec.tensor;
    step_data *d = ARENA_NEW(g->arena, step_data);
    *d = (step_data){.kind = STEP_TILE, .dtype = n->spec.has_dtype ? n->spec.dtype : t->dtype, .rows = number(g, t->rows), .columns = number(g, t->columns)};
    return d;
}

/* The walk has to stay inside the stored tiles. */
static bool walk_fits(step_graph *g, const step_graph_node *n, int64_t tiles)
{
    __int128 base = n->spec.op == STEP_LINEAR_LOAD ? n->spec.param[STEP_BASE] : 0, first = base, last = base;
    for (uint32_t i = 0; i < n->spec.walk_count; i++) {
        __int128 span = (__int128)(n->spec.walk_sizes[i] - 1) * n->spec.walk_strides[i];
        if (n->spec.walk_sizes[i] < 1)
            return refuse(g, n, E_STEP_NUMBER, "leave the dimension out of the walk", "a dimension of the walk has %" PRId64 " tiles; it has to be 1 or more", n->spec.walk_sizes[i]);
        first += span < 0 ? span : 0;
        last += span > 0 ? span : 0;
    }
    if (first >= 0 && last < tiles)
        return true;
    return refuse(g, n, E_STEP_NUMBER, "sizes and strides are counted in tiles, outermost first", "the walk reads tiles %" PRId64 " to %" PRId64 " of `%s`, which has %" PRId64, (int64_t)first, (int64_t)last,
                  n->spec.tensor ? n->spec.tensor->name : "the buffer", tiles);
}

static int64_t stored_tiles(const step_graph_tensor *t)
{
    int64_t tiles = 1;
    for (uint32_t i = 0; i < t->dim_count; i++)
        tiles *= t->shape[i];
    return tiles;
}

/* [ref..] -> [ref.., out_shape]. */
static bool infer_linear_load(step_graph *g, step_graph_node *n)
{
    const step_stream *ref = n->spec.inputs[0];
    uint32_t inner = n->spec.walk_count;
    if (!rank_fits(g, n, (int64_t)ref->rank + inner) || !walk_fits(g, n, stored_tiles(n->spec.tensor)))
        return false;
    outputs(g, n, 1);
    step_stream *out = output(g, n, 0, ref->rank + inner, tile_of(g, n));
    for (uint32_t i = 0; i <= ref->rank; i++)
        out->dims[i] = ref->dims[i];
    for (uint32_t i = 0; i < inner; i++)
        out->dims[ref->rank + 1 + i] = number(g, n->spec.walk_sizes[i]);
    return true;
}

static bool takes_tiles(step_graph *g, const step_graph_node *n, uint32_t input)
{
    const step_data *d = n->spec.inputs[input]->data;
    const step_graph_tensor *t = n->spec.tensor;
    if (!is_kind(g, n, input, STEP_TILE, "tiles"))
        return false;
    if (d->rows == number(g, t->rows) && d->columns == number(g, t->columns))
        return true;
    return refuse(g, n, E_STEP_TYPE, "tiles in memory have one size; `retile_rows`, `retile_cols` and `tiles` change that of a stream", "tiles %s x %s go to `%s`, whose tiles are %" PRId64 " x %" PRId64, text_of(g, d->rows), text_of(g, d->columns), t->name,
                  t->rows, t->columns);
}

static bool infer_linear_store(step_graph *g, step_graph_node *n)
{
    outputs(g, n, 0);
    return takes_tiles(g, n, 0);
}

static bool infer_random_load(step_graph *g, step_graph_node *n)
{
    return is_kind(g, n, 0, STEP_ADDRESS, "addresses") && same_shape(g, n, tile_of(g, n));
}

static const step_data *plain_data(step_graph *g, step_kind kind)
{
    step_data *d = ARENA_NEW(g->arena, step_data);
    d->kind = kind;
    return d;
}

static bool infer_random_store(step_graph *g, step_graph_node *n)
{
    return is_kind(g, n, 0, STEP_ADDRESS, "addresses") && takes_tiles(g, n, 1) && same_dims(g, n, n->spec.inputs[0], n->spec.inputs[1], 0) &&
           same_shape(g, n, plain_data(g, STEP_BOOL));
}

/* ---- buffers ---- */

/* [D_a..D_b, D_b-1..D_0] -> [D_a..D_b] of buffers [D_b-1..D_0], which have to be regular. */
static bool infer_bufferize(step_graph *g, step_graph_node *n)
{
    const step_stream *in = n->spec.inputs[0];
    uint32_t b = (uint32_t)n->spec.param[STEP_B];
    if (!rank_at_least(g, n, 0, b, "b"))
        return false;
    for (uint32_t i = 0; i < b; i++)
        if (step_expr_is_ragged(step_dim(in, i)))
            return refuse(g, n, E_STEP_SHAPE, "buffer the dimensions inside of the ragged one only", "dimension D%" PRIu32 " of the buffer, %s, is ragged; buffers are regular", i, text_of(g, step_dim(in, i)));
    step_data *d = ARENA_NEW(g->arena, step_data);
    *d = (step_data){.kind = STEP_BUFFER, .first = in->data, .dims = in->dims + (in->rank + 1 - b), .dim_count = b,
                     .may_be_empty = step_groups_real(g, in, b) != number(g, 1)};
    outputs(g, n, 1);
    step_stream *out = output(g, n, 0, in->rank - b, d);
    step_groups_dims(g, in, in->rank, b, out->dims);
    return true;
}

/* A walk over a buffer stays inside it, where its size is known. */
static bool view_fits(step_graph *g, const step_graph_node *n, const step_data *buffer)
{
    const step_expr *size = number(g, 1);
    int64_t values;
    for (uint32_t i = 0; i < buffer->dim_count; i++)
        size = step_expr_multiply(g->exprs, size, buffer->dims[i]);
    return !size || !step_expr_is_number(size, &values) || walk_fits(g, n, values);
}

/* data [D_b..D_0], ref [D_b..D_0, D'_c-1..D'_0] -> [D_b..D_0, D'_c-1..D'_0, view..]. */
static bool infer_streamify(step_graph *g, step_graph_node *n)
{
    const step_stream *data = n->spec.inputs[0], *ref = n->spec.inputs[1];
    uint32_t c = (uint32_t)n->spec.param[STEP_B];
    if (!is_kind(g, n, 0, STEP_BUFFER, "buffers"))
        return false;
    if (ref->rank != data->rank + c)
        return refuse(g, n, E_STEP_SHAPE, "c counts the innermost dimensions of the reference that repeat one buffer", "the reference has rank %" PRIu32 "; buffers of rank %" PRIu32 " with c = %" PRIu32 " want %" PRIu32, ref->rank,
                      data->rank, c, data->rank + c);
    for (uint32_t i = 0; i <= data->rank; i++)
        if (data->dims[i] != ref->dims[i])
            return refuse(g, n, E_STEP_SHAPE, equal_help, "dimension D%" PRIu32 " of the buffers is %s and of the reference %s", data->rank - i,
                          text_of(g, data->dims[i]), text_of(g, ref->dims[i]));
    uint32_t view = n->spec.walk_count > 0 ? n->spec.walk_count : data->data->dim_count;
    if (!rank_fits(g, n, (int64_t)ref->rank + view))
        return false;
    if (n->spec.walk_count > 0 && !view_fits(g, n, data->data))
        return false;
    outputs(g, n, 1);
    step_stream *out = output(g, n, 0, ref->rank + view, data->data->first);
    memcpy(out->dims, ref->dims, (ref->rank + 1) * sizeof *ref->dims);
    for (uint32_t i = 0; i < view; i++)
        out->dims[ref->rank + 1 + i] = n->spec.walk_count > 0         ? number(g, n->spec.walk_sizes[i])
                                       : data->data->may_be_empty ? step_expr_fresh(g->exprs, "R", true)
                                                                  : data->data->dims[i];
    return true;
}

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
static bool infer_partition(step_graph *g, step_graph_node *n)
{
    const step_stream *data = n->spec.inputs[0], *selector = n->spec.inputs[1];
    uint32_t b = (uint32_t)n->spec.param[STEP_B];
    if (!is_kind(g, n, 1, STEP_SELECTOR, "selectors") || !rank_at_least(g, n, 0, b, "b"))
        return false;
    if (selector->data->width != n->spec.output_count)
        return refuse(g, n, E_STEP_TYPE, "a selector names each output with one bit", "selectors of %" PRId64 " for %" PRIu32 " outputs", selector->data->width, n->spec.output_count);
    if (selector->rank != data->rank - b)
        return refuse(g, n, E_STEP_SHAPE, "one selector routes one chunk", "the selector has rank %" PRIu32 "; data of rank %" PRIu32 " in chunks of b = %" PRIu32 " wants %" PRIu32,
                      selector->rank, data->rank, b, data->rank - b);
    for (uint32_t i = 0; i <= selector->rank; i++)
        if (data->dims[i] != selector->dims[i])
            return refuse(g, n, E_STEP_SHAPE, equal_help, "dimension D%" PRIu32 " of the data is %s where the selector has %s", data->rank - i, text_of(g, data->dims[i]),
                          text_of(g, selector->dims[i]));
    outputs(g, n, n->spec.output_count);
    const step_expr **inside = sizes_inside(g, data, b);
    for (uint32_t o = 0; o < n->output_count; o++) {
        step_stream *out = output(g, n, o, b, data->data);
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
            good = refuse(g, n, E_STEP_SHAPE, "a chunk is b dimensions, and a stream of chunks has one more", "input %" PRIu32 " has rank %" PRIu32 "; all have to have %" PRIu32, k, s->rank, rank);
        for (uint32_t i = 0; i < rank && good; i++)
            if (step_dim(s, i) != step_dim(first, i))
                good = refuse(g, n, E_STEP_SHAPE, equal_help, "dimension D%" PRIu32 " is %s of input 0 and %s of input %" PRIu32, i, text_of(g, step_dim(first, i)),
                              text_of(g, step_dim(s, i)), k);
        const step_data *joined = joined_data(g, data, s->data);
        if (good && !joined)
            good = refuse(g, n, E_STEP_TYPE, "streams that become one carry one type", "input 0 carries %s and input %" PRIu32 " %s", step_data_text(first->data, g->arena), k,
                          step_data_text(s->data, g->arena));
        data = joined;
    }
    return good ? data : NULL;
}

/* n x [_, D_b-1..D_0], selector [T_c..T_0] -> [T_c..T_0, D_sel, D_b-1..D_0]; D_sel is ragged unless every selector names k. */
static bool infer_reassemble(step_graph *g, step_graph_node *n)
{
    uint32_t b = (uint32_t)n->spec.param[STEP_B], count = n->spec.input_count - 1;
    const step_stream *selector = n->spec.inputs[count], *first = n->spec.inputs[0];
    const step_data *data = is_kind(g, n, count, STEP_SELECTOR, "selectors") ? same_chunks(g, n, count, b) : NULL;
    if (!data || !rank_fits(g, n, (int64_t)selector->rank + b + 1))
        return false;
    if (selector->data->width != count)
        return refuse(g, n, E_STEP_TYPE, "a selector names each input with one bit", "selectors of %" PRId64 " for %" PRIu32 " inputs", selector->data->width, count);
    outputs(g, n, 1);
    step_stream *out = output(g, n, 0, selector->rank + b + 1, data);
    memcpy(out->dims, selector->dims, (selector->rank + 1) * sizeof *out->dims);
    out->dims[selector->rank + 1] = selector->data->hot > 0 ? number(g, selector->data->hot) : step_expr_fresh(g->exprs, "S", true);
    for (uint32_t i = 0; i < b; i++)
        out->dims[out->rank - i] = step_dim(first, i);
    return true;
}

/* Tiles of several dynamic sizes in one stream have a size that differs from one to the next. */
static const step_data *merged_data(step_graph *g, const step_graph_node *n, const step_expr *places)
{
    const step_stream *first = n->spec.inputs[0];
    const step_expr *total = number(g, 0);
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
static bool infer_eager_merge(step_graph *g, step_graph_node *n)
{
    const step_stream *first = n->spec.inputs[0];
    const step_data *data = same_chunks(g, n, n->spec.input_count, first->rank);
    if (!data)
        return false;
    const step_expr *sum = number(g, 0);
    for (uint32_t i = 0; i < n->spec.input_count; i++)
        sum = step_expr_add(g->exprs, sum, n->spec.inputs[i]->dims[0]);
    step_data *selector = ARENA_NEW(g->arena, step_data);
    *selector = (step_data){.kind = STEP_SELECTOR, .width = n->spec.input_count, .hot = 1};
    outputs(g, n, 2);
    step_stream *out = output(g, n, 0, first->rank, data);
    memcpy(out->dims, first->dims, (first->rank + 1) * sizeof *out->dims);
    out->dims[0] = absorbed(g, sum, number(g, 1), step_total_of(g, number(g, 1), sum));
    out->data = merged_data(g, n, step_cardinality(g, out));
    output(g, n, 1, 0, selector)->dims[0] = out->dims[0];
    return true;
}

/* Of `chunks` that are dealt out in turn: how many go to one output. */
static const step_expr *share(step_graph *g, const step_expr *chunks, uint32_t outputs, uint32_t output)
{
    int64_t known;
    if (!chunks)
        return NULL;
    if (step_expr_is_number(chunks, &known))
        return number(g, known / outputs + (known % outputs > output));
    const step_expr *even = step_expr_ceil_divide(g->exprs, chunks, outputs);
    if (step_expr_multiply(g->exprs, even, number(g, outputs)) == chunks)
        return even;
    return split_size(g, (step_split){.of = chunks, .outputs = outputs, .output = output}, "P");
}

/* Chunks of b dimensions in turn: n x [D / n, D_b-1..D_0], D the number of chunks. */
static bool infer_parallelize(step_graph *g, step_graph_node *n)
{
    const step_stream *in = n->spec.inputs[0];
    uint32_t b = (uint32_t)n->spec.param[STEP_B];
    if (!rank_at_least(g, n, 0, b, "b"))
        return false;
    const step_expr *chunks = step_groups_count(g, in, b);
    outputs(g, n, n->spec.output_count);
    const step_expr **inside = sizes_inside(g, in, b);
    for (uint32_t o = 0; o < n->output_count; o++) {
        step_stream *out = output(g, n, o, b, in->data);
        out->dims[0] = share(g, chunks, n->output_count, o);
        for (uint32_t i = 0; i < b; i++) /* which of the ragged sizes come here is not known */
            out->dims[1 + i] = step_expr_is_ragged(inside[i]) ? step_expr_fresh(g->exprs, "R", true) : inside[i];
    }
    return true;
}

/* ---- higher-order ---- */

static bool in_step(step_graph *g, const step_graph_node *n)
{
    for (uint32_t i = 1; i < n->spec.input_count; i++)
        if (!same_dims(g, n, n->spec.inputs[0], n->spec.inputs[i], 0))
            return false;
    return true;
}

static const step_data *function_data(step_graph *g, step_graph_node *n, const step_expr *folded)
{
    const char *why = NULL;
    const step_data *d = step_function_type(g, &n->spec, folded, &why);
    if (!d)
        refuse(g, n, E_STEP_TYPE, "docs/step.md has a table of the functions", "%s", why);
    return d;
}

static bool infer_map(step_graph *g, step_graph_node *n)
{
    return in_step(g, n) && same_shape(g, n, function_data(g, n, NULL));
}

/* The number of values that a fold of b dimensions takes. */
static const step_expr *folded_values(step_graph *g, const step_stream *in, uint32_t b)
{
    const step_expr *values = number(g, 1);
    for (uint32_t i = 0; i < b; i++)
        values = step_expr_multiply(g->exprs, values, step_dim(in, i));
    const step_expr *real = step_groups_real(g, in, b), *each = step_expr_multiply(g->exprs, values, real);
    if (!each || !step_expr_is_ragged(each) || (each == values && step_expr_is_symbol(values)))
        return each;
    const step_expr *fresh = step_expr_fresh(g->exprs, "R", true);
    step_total_define(g, fresh, step_groups_count(g, in, b), each == values ? each : fresh, step_cardinality(g, in));
    return fresh;
}

/* [D_a..D_b, D_b-1..D_0] -> [D_a..D_b], as tokens have them. */
static bool infer_accum(step_graph *g, step_graph_node *n)
{
    const step_stream *in = n->spec.inputs[0];
    uint32_t b = (uint32_t)n->spec.param[STEP_B];
    if (!rank_at_least(g, n, 0, b, "b") || !in_step(g, n))
        return false;
    const step_data *d = function_data(g, n, folded_values(g, in, b));
    outputs(g, n, 1);
    step_stream *out = output(g, n, 0, in->rank - b, d);
    step_groups_dims(g, in, in->rank, b, out->dims);
    return d != NULL;
}

static bool infer_scan(step_graph *g, step_graph_node *n)
{
    return rank_at_least(g, n, 0, n->spec.param[STEP_B], "b") && in_step(g, n) && same_shape(g, n, function_data(g, n, step_expr_fresh(g->exprs, "K", true)));
}

/* D_0 streams of `size` values, one behind the other; NULL: of sizes that are not known. */
static const step_expr *concatenated(step_graph *g, const step_stream *in, const step_expr *size)
{
    const step_expr *places = step_total_places(g, in, in->rank);
    if (!size)
        return step_expr_fresh(g->exprs, "F", in->rank > 0);
    const step_expr *all = step_expr_multiply(g->exprs, step_dim(in, 0), size);
    return absorbed(g, all, places, step_total_of(g, step_cardinality(g, in), size));
}

/* [D_a..D_0] -> [D_a..D_1, D'_b..D'_0]: D'_b is ragged unless the function's size is fixed, then D_0 times it (b = 0), or D_0 and it. */
static bool infer_flat_map(step_graph *g, step_graph_node *n)
{
    const step_stream *in = n->spec.inputs[0];
    uint32_t b = (uint32_t)n->spec.param[STEP_B];
    if (!in_step(g, n) || !rank_fits(g, n, (int64_t)in->rank + b))
        return false;
    const step_data *d = function_data(g, n, NULL);
    if (!d)
        return false;
    const step_expr *size = step_function_size(g, &n->spec);
    outputs(g, n, 1);
    step_stream *out = output(g, n, 0, in->rank + b, d);
    memcpy(out->dims, in->dims, (in->rank + 1) * sizeof *out->dims);
    if (b == 0)
        out->dims[in->rank] = concatenated(g, in, size);
    else
        out->dims[in->rank + 1] = size ? size : step_expr_fresh(g->exprs, "F", true);
    return true;
}

/* ---- shape operators ---- */

/* D_max..D_min become their product. */
static bool infer_flatten(step_graph *g, step_graph_node *n)
{
    const step_stream *in = n->spec.inputs[0];
    int64_t min = n->spec.param[STEP_B], max = n->spec.param[STEP_N];
    if (min >= max)
        return refuse(g, n, E_STEP_NUMBER, "dimensions are counted from the innermost one, D0", "min is %" PRId64 " and max %" PRId64 "; min has to be the smaller one", min, max);
    if (!rank_at_least(g, n, 0, max, "max"))
        return false;
    const step_expr *product = number(g, 1), **sizes = ARENA_ARRAY(g->arena, const step_expr *, (size_t)max + 1);
    if (min > 0)
        step_groups_dims(g, in, (uint32_t)max, 0, sizes);
    for (int64_t i = 0; i <= max - min; i++)
        product = step_expr_multiply(g->exprs, product, min > 0 ? sizes[i] : step_dim(in, (uint32_t)(max - i)));
    outputs(g, n, 1);
    step_stream *out = output(g, n, 0, in->rank - (uint32_t)(max - min), in->data);
    const step_expr *outside = step_total_places(g, in, in->rank - (uint32_t)max), *inside = step_groups_inside(g, in, (uint32_t)max, (uint32_t)min);
    const step_expr *joined = absorbed(g, product, outside, inside);
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
static bool infer_reshape(step_graph *g, step_graph_node *n)
{
    const step_stream *in = n->spec.inputs[0];
    uint32_t b = (uint32_t)n->spec.param[STEP_B];
    int64_t chunk = n->spec.param[STEP_N];
    if (!rank_at_least(g, n, 0, b, "b") || !rank_fits(g, n, (int64_t)in->rank + 1))
        return false;
    const step_expr *d = step_dim(in, b), *chunks = step_expr_ceil_divide(g->exprs, d, chunk);
    bool exact = step_expr_multiply(g->exprs, chunks, number(g, chunk)) == d;
    int64_t size;
    if (b > 0 && !exact)
        return refuse(g, n, E_STEP_SHAPE, "choose a chunk that divides the dimension, or `flatten` down to D0 first", "dimension D%" PRIu32 ", %s, is split into chunks of %" PRId64 "; only D0 may leave a rest", b, text_of(g, d), chunk);
    if (!exact && !n->spec.param[STEP_PAD] && step_expr_is_number(d, &size))
        return refuse(g, n, E_STEP_SHAPE, "a third argument of `reshape` is the value of the padding: `.reshape(0, 4, 0)`", "%" PRId64 " values are no whole number of chunks of %" PRId64 ", and nothing says how to pad", size, chunk);
    outputs(g, n, 2);
    const step_data *flags = plain_data(g, STEP_BOOL);
    const step_expr *places = step_total_places(g, in, in->rank - b), *count = absorbed(g, chunks, places, step_total_of(g, places, chunks));
    for (uint32_t o = 0; o < 2; o++) {
        step_stream *out = output(g, n, o, in->rank + 1, o == 0 ? in->data : flags);
        memcpy(out->dims, in->dims, (in->rank - b) * sizeof *out->dims);
        out->dims[in->rank - b] = count;
        out->dims[in->rank - b + 1] = number(g, chunk);
        memcpy(out->dims + (in->rank - b + 2), in->dims + (in->rank - b + 1), b * sizeof *out->dims);
    }
    return true;
}

/* [D_a..D_0] -> [present(D_a), D_a..D_0]. */
static bool infer_promote(step_graph *g, step_graph_node *n)
{
    const step_stream *in = n->spec.inputs[0];
    if (!rank_fits(g, n, (int64_t)in->rank + 1))
        return false;
    outputs(g, n, 1);
    step_stream *out = output(g, n, 0, in->rank + 1, in->data);
    out->dims[0] = step_expr_present(g->exprs, in->dims[0]);
    memcpy(out->dims + 1, in->dims, (in->rank + 1) * sizeof *out->dims);
    return true;
}

/* [D_a..D_b, 1..1], ref [D_a..D_0] -> the reference's shape. */
static bool infer_expand(step_graph *g, step_graph_node *n)
{
    const step_stream *in = n->spec.inputs[0], *ref = n->spec.inputs[1];
    uint32_t b = (uint32_t)n->spec.param[STEP_B];
    if (!rank_at_least(g, n, 0, b, "b") || !same_dims(g, n, in, ref, b))
        return false;
    for (uint32_t i = 0; i < b; i++)
        if (step_dim(in, i) != number(g, 1))
            return refuse(g, n, E_STEP_SHAPE, "`repeat(1)` adds a dimension of 1 that can be expanded", "dimension D%" PRIu32 " is %s; the b = %" PRIu32 " innermost dimensions have to be 1", i,
                          text_of(g, step_dim(in, i)), b);
    outputs(g, n, 1);
    memcpy(output(g, n, 0, ref->rank, in->data)->dims, ref->dims, (ref->rank + 1) * sizeof *ref->dims);
    return true;
}

/* [D_a..D_0] -> [D_a..D_0, N]. */
static bool infer_repeat(step_graph *g, step_graph_node *n)
{
    const step_stream *in = n->spec.inputs[0];
    if (!rank_fits(g, n, (int64_t)in->rank + 1))
        return false;
    outputs(g, n, 1);
    step_stream *out = output(g, n, 0, in->rank + 1, in->data);
    memcpy(out->dims, in->dims, (in->rank + 1) * sizeof *out->dims);
    out->dims[in->rank + 1] = number(g, n->spec.param[STEP_N]);
    return true;
}

static bool infer_zip(step_graph *g, step_graph_node *n)
{
    step_data *d = ARENA_NEW(g->arena, step_data);
    *d = (step_data){.kind = STEP_PAIR, .first = n->spec.inputs[0]->data, .second = n->spec.inputs[1]->data};
    return in_step(g, n) && same_shape(g, n, d);
}

static bool infer(step_graph *g, step_graph_node *n)
{
    switch (n->spec.op) {
    case STEP_SOURCE: return infer_source(g, n);
    case STEP_SINK: outputs(g, n, 0); return true;
    case STEP_ONCE: return infer_once(g, n);
    case STEP_LINEAR_LOAD: return infer_linear_load(g, n);
    case STEP_LINEAR_STORE: return infer_linear_store(g, n);
    case STEP_RANDOM_LOAD: return infer_random_load(g, n);
    case STEP_RANDOM_STORE: return infer_random_store(g, n);
    case STEP_BUFFERIZE: return infer_bufferize(g, n);
    case STEP_STREAMIFY: return infer_streamify(g, n);
    case STEP_PARTITION: return infer_partition(g, n);
    case STEP_REASSEMBLE: return infer_reassemble(g, n);
    case STEP_EAGER_MERGE: return infer_eager_merge(g, n);
    case STEP_PARALLELIZE: return infer_parallelize(g, n);
    case STEP_BROADCAST: return same_shape(g, n, n->spec.inputs[0]->data);
    case STEP_MAP: return infer_map(g, n);
    case STEP_ACCUM: return infer_accum(g, n);
    case STEP_SCAN: return infer_scan(g, n);
    case STEP_FLAT_MAP: return infer_flat_map(g, n);
    case STEP_FLATTEN: return infer_flatten(g, n);
    case STEP_RESHAPE: return infer_reshape(g, n);
    case STEP_PROMOTE: return infer_promote(g, n);
    case STEP_EXPAND: return infer_expand(g, n);
    case STEP_REPEAT: return infer_repeat(g, n);
    case STEP_ZIP: return infer_zip(g, n);
    }
    return false;
}

/* Every size is a number below 2^62 or an expression. */
static bool sizes_fit(step_graph *g, const step_graph_node *n)
{
    for (uint32_t o = 0; o < n->output_count; o++)
        for (uint32_t i = 0; i <= n->outputs[o].rank; i++)
            if (!n->outputs[o].dims[i])
                return refuse(g, n, E_STEP_SHAPE, "use smaller sizes", "dimension D%" PRIu32 " of output %" PRIu32 " would have more than 2^62 values",
                              n->outputs[o].rank - i, o);
    return true;
}

bool step_infer(step_graph *g, step_graph_node *n)
{
    return infer(g, n) && sizes_fit(g, n);
}
