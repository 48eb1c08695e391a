/* Hierarchical tiling (the paper's appendix A.2, Fig. 12): a product of large tiles becomes products of small ones.
 *
 * Both operands are cut into pieces, each tile's pieces lie in a buffer, and the buffers are read as the three loops (rows, columns, inner)
 * want them: a piece of the left one for every column of pieces, one of the right one for every row. The small products are added up over
 * the inner loop and put together again. Sums over the inner dimension are taken piece by piece, in the order of the loop. Legal when
 * pieces divide the tiles and nobody after asks which rows are valid, because pieces do not know. */
#include <inttypes.h>

#include "passes/step/rewrite.h"

/* After a queue of this many values a reference can wait for its buffer, whose last stop comes with the next value. */
enum { REFERENCE_DEPTH = 4 };

typedef struct pieces {
    int64_t rows, inner, columns;                 /* of a piece, in elements */
    int64_t row_count, inner_count, column_count; /* of pieces in a tile */
} pieces;

static bool is_product(const step_graph_node *n)
{
    step_fn fn = n->spec.fn;
    return fn == STEP_FN_MATMUL || fn == STEP_FN_MATMUL_T || fn == STEP_FN_MATMUL_ADD || fn == STEP_FN_MATMUL_T_ADD;
}

static bool is_transposed(const step_graph_node *n)
{
    return n->spec.fn == STEP_FN_MATMUL_T || n->spec.fn == STEP_FN_MATMUL_T_ADD;
}

/* ---- legality ---- */

static bool divides(step_rewrite *r, const step_graph_node *n, const step_expr *size, int64_t piece, const char *what, int64_t *count)
{
    int64_t whole;
    if (!step_expr_is_number(size, &whole))
        return step_rewrite_refuse(r, n, "tile before sizes become dynamic", "`%s` has %s %s, which is no fixed number", n->name,
                                   step_expr_text(size, r->from->arena), what);
    *count = whole / piece;
    return whole % piece == 0 ||
           step_rewrite_refuse(r, n, arena_printf(r->from->arena, "choose a divisor of %" PRId64, whole),
                               "`%s` has %" PRId64 " %s, no whole number of pieces of %" PRId64, n->name, whole, what, piece);
}

/* Does somebody after the stream ask which rows are valid? */
static bool asks_for_rows(step_rewrite *r, const step_stream *s, bool *seen)
{
    const step_stream **left = NULL;
    size_t left_count = 0, capacity = 0, count;
    ARENA_PUSH(r->from->arena, left, left_count, capacity, s);
    while (left_count > 0) {
        step_consumer *to = step_rewrite_consumers(r, left[--left_count], &count);
        for (size_t i = 0; i < count; i++) {
            const step_graph_node *n = to[i].node;
            if (n->spec.fn == STEP_FN_VALID_ROWS || n->spec.fn == STEP_FN_TAKE || n->spec.fn == STEP_FN_APPEND_ROW)
                return true;
            for (uint32_t o = 0; o < n->output_count && !seen[n->index]; o++)
                ARENA_PUSH(r->from->arena, left, left_count, capacity, (const step_stream *)&n->outputs[o]);
            seen[n->index] = true;
        }
    }
    return false;
}

static bool is_legal(step_rewrite *r, const step_graph_node *n, pieces *p)
{
    if (n->spec.input_count != 2)
        return step_rewrite_refuse(r, n, "give the operands as two streams", "`%s` takes pairs", n->name);
    const step_data *a = n->spec.inputs[0]->data, *b = n->spec.inputs[1]->data;
    if (!divides(r, n, a->rows, p->rows, "rows", &p->row_count) ||
        !divides(r, n, a->columns, p->inner, "inner elements", &p->inner_count) ||
        !divides(r, n, is_transposed(n) ? b->rows : b->columns, p->columns, "columns", &p->column_count))
        return false;
    if (n->spec.inputs[0]->rank + 3 > STEP_RANK_MAX)
        return step_rewrite_refuse(r, n, "flatten what need not be apart", "`%s` has too many dimensions for three more", n->name);
    bool *seen = ARENA_ARRAY(r->from->arena, bool, r->from->node_count + 1);
    return !asks_for_rows(r, &n->outputs[0], seen) ||
           step_rewrite_refuse(r, n, "tile a product whose tiles are whole",
                               "after `%s` something asks which rows are valid, and pieces do not know", n->name);
}

/* ---- making it ---- */

static step_stream *cut(step_rewrite *r, const step_graph_node *n, uint32_t input, const char *suffix, int64_t rows, int64_t columns,
                        const int64_t *strides, const pieces *p)
{
    arena *a = r->to->arena;
    step_exprs *x = r->to->exprs;
    const step_stream *in[] = {step_rewrite_stream(r, n->spec.inputs[input]), NULL};
    step_data *piece = ARENA_NEW(a, step_data);
    *piece = (step_data){
        .kind = STEP_TILE, .dtype = in[0]->data->dtype, .rows = step_expr_number(x, rows), .columns = step_expr_number(x, columns)};
    step_graph_node *cuts = step_rewrite_add(
        r, n, arena_printf(a, "_%s_pieces", suffix),
        (step_spec){.op = STEP_FLAT_MAP, .fn = STEP_FN_TILES, .data = piece, .param = {1}, .inputs = in, .input_count = 1});
    if (!cuts)
        return NULL;
    cuts->depths[0] = n->depths[input];
    const step_stream *all[] = {&cuts->outputs[0]};
    step_graph_node *buffer = step_rewrite_add(r, n, arena_printf(a, "_%s_buffer", suffix),
                                               (step_spec){.op = STEP_BUFFERIZE, .param = {1}, .inputs = all, .input_count = 1});
    if (!buffer)
        return NULL;
    int64_t *sizes = ARENA_ARRAY(a, int64_t, 3), *steps = ARENA_ARRAY(a, int64_t, 3);
    for (int i = 0; i < 3; i++) {
        sizes[i] = (int64_t[]){p->row_count, p->column_count, p->inner_count}[i];
        steps[i] = strides[i];
    }
    const step_stream *read[] = {&buffer->outputs[0], in[0]};
    step_graph_node *walk = step_rewrite_add(
        r, n, arena_printf(a, "_%s", suffix),
        (step_spec){.op = STEP_STREAMIFY, .inputs = read, .input_count = 2, .walk_sizes = sizes, .walk_strides = steps, .walk_count = 3});
    if (walk)
        walk->depths[1] = REFERENCE_DEPTH;
    return walk ? &walk->outputs[0] : NULL;
}

static step_graph_node *fold(step_rewrite *r, const step_graph_node *n, const char *suffix, step_fn fn, int64_t b, const step_stream *x,
                             const step_stream *y, dtype type)
{
    const step_stream *in[] = {x, y};
    if (!x || (fn == STEP_FN_MATMUL_ADD || fn == STEP_FN_MATMUL_T_ADD ? !y : false))
        return NULL;
    return step_rewrite_add(
        r, n, suffix,
        (step_spec){.op = STEP_ACCUM, .fn = fn, .param = {b}, .has_dtype = true, .dtype = type, .inputs = in, .input_count = y ? 2 : 1});
}

static bool make(step_rewrite *r, const step_graph_node *n)
{
    const pieces *p = r->user;
    bool transposed = is_transposed(n), folds = n->spec.op == STEP_ACCUM;
    dtype result = n->outputs[0].data->dtype, part = folds ? DTYPE_F32 : result; /* sums are rounded once, at their end */
    const int64_t left[] = {p->inner_count, 0, 1}, right[] = {0, 1, p->column_count}, right_t[] = {0, p->inner_count, 1};
    const step_stream *a = cut(r, n, 0, "left", p->rows, p->inner, left, p);
    const step_stream *b =
        transposed ? cut(r, n, 1, "right", p->columns, p->inner, right_t, p) : cut(r, n, 1, "right", p->inner, p->columns, right, p);
    step_graph_node *small = fold(r, n, "_small", transposed ? STEP_FN_MATMUL_T_ADD : STEP_FN_MATMUL_ADD, 1, a, b, part);
    step_graph_node *wide = fold(r, n, "_wide", STEP_FN_RETILE_COLS, 1, small ? &small->outputs[0] : NULL, NULL, part);
    step_graph_node *last = fold(r, n, folds ? "_tile" : "", STEP_FN_RETILE_ROWS, 1, wide ? &wide->outputs[0] : NULL, NULL, part);
    if (last && folds)
        last = fold(r, n, "", STEP_FN_ADD, n->spec.param[STEP_B], &last->outputs[0], NULL, result);
    if (!last)
        return false;
    small->flops_per_cycle = n->flops_per_cycle;
    last->writes_back = n->writes_back;
    step_rewrite_become(r, &n->outputs[0], &last->outputs[0]);
    return true;
}

static bool visit(step_rewrite *r, const step_graph_node *n)
{
    pieces *p = r->user;
    if (!is_product(n) || !step_rewrite_is_named(n, step_rewrite_text(r, "node", "")))
        return step_rewrite_copy(r, n) != NULL;
    return is_legal(r, n, p) && make(r, n);
}

void step_pass_hierarchical_tiling(step_rewrite *r)
{
    pieces p = {.rows = step_rewrite_number(r, "rows", 16),
                .inner = step_rewrite_number(r, "inner", 16),
                .columns = step_rewrite_number(r, "columns", 16)};
    r->user = &p;
    if (!step_rewrite_text(r, "node", NULL))
        step_rewrite_refuse(r, NULL, "node=NAME says which `map` or `accum` of a product", "no node is named");
    step_rewrite_all(r, visit);
    if (r->changes == 0)
        step_rewrite_refuse(r, NULL, "the name is that of a `let`, or as --emit=ir shows it", "no product is called `%s`",
                            step_rewrite_text(r, "node", ""));
}
