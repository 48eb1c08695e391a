/* Hierarchical tiling (the paper's appendix A.2, Fig. 12): a product of large tiles becomes products of small ones.
 *
 * Both operands are cut into pieces, each tile's pieces lie in a buffer, and the buffers are read as the three loops (rows, columns, inner)
 * want them: a piece of the left one for every column of pieces, one of the right one for every row. The small products are added up over
 * the inner loop and put together again. Sums over the inner dimension are taken piece by piece, in the order of the loop. Legal when
 * pieces divide the tiles; pieces keep which of their rows are valid. A tile whose rows are only known when the program runs keeps them in
 * one piece. A size that nobody asked for is the largest one that divides the tile and is not past 16; without names that holds for what is
 * asked, too, and every product whose sizes are fixed is cut. Where groups of tiles may be empty, tiles are cut as one row and come back
 * into their groups by a selector for each: an empty group would have a buffer. Products of what comes into a function of tiles are
 * computed outside of it (passes/step/product.h). */
#include <inttypes.h>
#include <string.h>

#include "ir/step/formula.h"
#include "ir/step/groups.h"
#include "ir/step/total.h"
#include "passes/step/named.h"
#include "passes/step/product.h"
#include "passes/step/rewrite.h"

/* After a queue of this many values a reference can wait for its buffer, whose last stop comes with the next value. */
enum { REFERENCE_DEPTH = 4, DEFAULT_PIECE = 16 };

typedef struct pieces {
    int64_t rows, inner, columns;                 /* of a piece, in elements; rows 0: all of the tile */
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

typedef struct cutting {
    pieces asked, made; /* made: of the node that is looked at; asked: 0 where nothing is */
    bool everywhere;    /* no names were given */
    const char *why;    /* the last one cannot be cut */
    const char *help;
} cutting;

static bool cannot(step_rewrite *r, const char *help, const char *why)
{
    cutting *c = r->user;
    c->why = why;
    c->help = help;
    return false;
}

static bool divides(step_rewrite *r, const step_graph_node *n, const step_expr *size, int64_t asked, const char *what, int64_t *piece,
                    int64_t *count)
{
    const cutting *c = r->user;
    arena *a = r->from->arena;
    int64_t whole;
    if (!step_expr_is_number(size, &whole))
        return cannot(r, "tile before sizes become dynamic",
                      arena_printf(a, "`%s` has %s %s, which is no fixed number", n->name, step_expr_text(size, a), what));
    for (*piece = asked > 0 ? asked : DEFAULT_PIECE; (c->everywhere || asked == 0) && *piece > 1 && whole % *piece != 0;)
        --*piece;
    *count = whole / *piece;
    return whole % *piece == 0 ||
           cannot(r, arena_printf(a, "choose a divisor of %" PRId64, whole),
                  arena_printf(a, "`%s` has %" PRId64 " %s, no whole number of pieces of %" PRId64, n->name, whole, what, *piece));
}

/* Fills c->made. */
static bool is_legal(step_rewrite *r, const step_graph_node *n)
{
    cutting *c = r->user;
    pieces *p = &c->made;
    int64_t known;
    if (n->spec.input_count != 2)
        return cannot(r, "give the operands as two streams", arena_printf(r->from->arena, "`%s` takes pairs", n->name));
    const step_data *a = n->spec.inputs[0]->data, *b = n->spec.inputs[1]->data;
    *p = (pieces){.row_count = 1};
    if (step_expr_is_number(a->rows, &known) && !divides(r, n, a->rows, c->asked.rows, "rows", &p->rows, &p->row_count))
        return false;
    if (!divides(r, n, a->columns, c->asked.inner, "inner elements", &p->inner, &p->inner_count) ||
        !divides(r, n, is_transposed(n) ? b->rows : b->columns, c->asked.columns, "columns", &p->columns, &p->column_count))
        return false;
    return n->spec.inputs[0]->rank + 3 <= STEP_RANK_MAX ||
           cannot(r, "flatten what need not be apart",
                  arena_printf(r->from->arena, "`%s` has too many dimensions for three more", n->name));
}

/* ---- making it ---- */

/* May a group of the stream's tiles be empty, which pieces inside of tiles would turn into a group with one empty tile? */
static bool has_empty_groups(step_rewrite *r, const step_stream *s)
{
    step_stream inner = *s; /* with pieces as one dimension more */
    inner.rank = s->rank + 1;
    inner.dims = ARENA_ARRAY(r->to->arena, const step_expr *, inner.rank + 1);
    memcpy(inner.dims, s->dims, (s->rank + 1) * sizeof *s->dims);
    inner.dims[inner.rank] = step_expr_number(r->to->exprs, 1);
    return step_groups_count(r->to, &inner, 1) != step_cardinality(r->to, s);
}

/* The tiles as one row, as many as there are in `like`, if it is there. */
static const step_stream *in_one_row(step_rewrite *r, const step_graph_node *n, const step_stream *tiles, const char *suffix,
                                     const step_stream *like)
{
    const step_stream *in[] = {tiles};
    step_graph_node *row = step_rewrite_add(r, n, arena_printf(r->to->arena, "_%s_row", suffix),
                                            (step_spec){.op = STEP_FLATTEN, .param = {0, in[0]->rank}, .inputs = in, .input_count = 1});
    if (row && like)
        step_total_assume(r->to, &row->outputs[0], like->dims);
    return row ? &row->outputs[0] : NULL;
}

/* The row of results in the groups of what came in. */
static step_graph_node *in_groups(step_rewrite *r, const step_graph_node *n, const step_stream *like, const step_stream *results)
{
    const step_stream *in[] = {like, NULL};
    step_data *one = ARENA_NEW(r->to->arena, step_data);
    *one = (step_data){.kind = STEP_SELECTOR, .width = 1, .hot = 1};
    step_graph_node *made =
        step_rewrite_add(r, n, "_signal", (step_spec){.op = STEP_MAP, .fn = STEP_FN_SIGNAL, .inputs = in, .input_count = 1});
    in[0] = made ? &made->outputs[0] : NULL;
    made = made ? step_rewrite_add(
                      r, n, "_select",
                      (step_spec){.op = STEP_MAP, .fn = STEP_FN_SELECT, .param = {0, 1}, .inputs = in, .input_count = 1, .data = one})
                : NULL;
    in[0] = results;
    in[1] = made ? &made->outputs[0] : NULL;
    made = made ? step_rewrite_add(r, n, "_grouped", (step_spec){.op = STEP_REASSEMBLE, .inputs = in, .input_count = 2}) : NULL;
    if (!made)
        return NULL;
    made->depths[1] = 0; /* selectors wait for their results */
    in[0] = &made->outputs[0];
    made = step_rewrite_add(r, n, "_tiles", (step_spec){.op = STEP_FLATTEN, .param = {0, 1}, .inputs = in, .input_count = 1});
    if (made)
        step_total_assume(r->to, &made->outputs[0], like->dims);
    return made;
}

static step_stream *cut(step_rewrite *r, const step_graph_node *n, const step_stream *tiles, uint32_t input, const char *suffix,
                        int64_t rows, int64_t columns, const int64_t *strides, const pieces *p)
{
    arena *a = r->to->arena;
    step_exprs *x = r->to->exprs;
    const step_stream *in[] = {tiles, NULL};
    if (!tiles)
        return NULL;
    step_data *piece = ARENA_NEW(a, step_data);
    *piece = (step_data){.kind = STEP_TILE,
                         .dtype = in[0]->data->dtype,
                         .rows = rows > 0 ? step_expr_number(x, rows) : in[0]->data->rows,
                         .columns = step_expr_number(x, columns)};
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

/* An `accum`, or a `scan`. */
static step_graph_node *fold_as(step_op op, step_rewrite *r, const step_graph_node *n, const char *suffix, step_fn fn, int64_t b,
                                const step_stream *x, const step_stream *y, dtype type)
{
    const step_stream *in[] = {x, y};
    if (!x || (fn == STEP_FN_MATMUL_ADD || fn == STEP_FN_MATMUL_T_ADD ? !y : false))
        return NULL;
    return step_rewrite_add(
        r, n, suffix,
        (step_spec){.op = op, .fn = fn, .param = {b}, .has_dtype = true, .dtype = type, .inputs = in, .input_count = y ? 2 : 1});
}

static step_graph_node *fold(step_rewrite *r, const step_graph_node *n, const char *suffix, step_fn fn, int64_t b, const step_stream *x,
                             const step_stream *y, dtype type)
{
    return fold_as(STEP_ACCUM, r, n, suffix, fn, b, x, y, type);
}

/* The node that makes what `n` does of these streams; NULL: refused. */
static step_graph_node *make(step_rewrite *r, const step_graph_node *n, const step_stream *first, const step_stream *second, dtype result)
{
    const pieces *p = &((const cutting *)r->user)->made;
    bool transposed = is_transposed(n), folds = n->spec.op != STEP_MAP; /* or scans: sums of the products then */
    dtype part = folds ? DTYPE_F32 : result;                            /* sums are rounded once, at their end */
    const int64_t left[] = {p->inner_count, 0, 1}, right[] = {0, 1, p->column_count}, right_t[] = {0, p->inner_count, 1};
    const step_stream *tiles[] = {first, second};
    bool grouped = has_empty_groups(r, tiles[0]);
    if (grouped) {
        tiles[0] = in_one_row(r, n, first, "left", NULL);
        tiles[1] = in_one_row(r, n, second, "right", tiles[0]);
    }
    const step_stream *a = cut(r, n, tiles[0], 0, "left", p->rows, p->inner, left, p);
    const step_stream *b = transposed ? cut(r, n, tiles[1], 1, "right", p->columns, p->inner, right_t, p)
                                      : cut(r, n, tiles[1], 1, "right", p->inner, p->columns, right, p);
    step_graph_node *small = fold(r, n, "_small", transposed ? STEP_FN_MATMUL_T_ADD : STEP_FN_MATMUL_ADD, 1, a, b, part);
    step_graph_node *wide = fold(r, n, "_wide", STEP_FN_RETILE_COLS, 1, small ? &small->outputs[0] : NULL, NULL, part);
    step_graph_node *last =
        fold(r, n, folds || grouped ? "_tile" : "", STEP_FN_RETILE_ROWS, 1, wide ? &wide->outputs[0] : NULL, NULL, part);
    if (last && grouped)
        last = in_groups(r, n, first, &last->outputs[0]);
    if (last && folds)
        last = fold_as(n->spec.op, r, n, "", STEP_FN_ADD, n->spec.param[STEP_B], &last->outputs[0], NULL, result);
    if (last)
        small->flops_per_cycle = n->flops_per_cycle;
    return last;
}

/* ---- products in functions ---- */

/* Tiles of a value of that type. */
static uint32_t tiles_in(const step_data *d)
{
    const step_data *leaves[STEP_LEAVES_MAX];
    const step_stream one = {.data = d}, *in[] = {&one};
    uint32_t count = 0;
    step_formula_leaves(in, 1, leaves, &count);
    return count;
}

/* The stream of one tile of the function, taken out of pairs. */
static const step_stream *stream_of_tile(step_rewrite *r, const step_graph_node *n, uint32_t tile)
{
    uint32_t input = 0;
    for (; tile >= tiles_in(n->spec.inputs[input]->data); input++)
        tile -= tiles_in(n->spec.inputs[input]->data);
    const step_stream *s = step_rewrite_stream(r, n->spec.inputs[input]);
    while (s && s->data->kind == STEP_PAIR) {
        uint32_t first = tiles_in(s->data->first);
        const step_stream *in[] = {s};
        step_spec take = {.op = STEP_MAP, .fn = tile < first ? STEP_FN_FIRST : STEP_FN_SECOND, .inputs = in, .input_count = 1};
        step_graph_node *part = step_rewrite_add(r, n, "_part", take);
        tile -= tile < first ? 0 : first;
        s = part ? &part->outputs[0] : NULL;
    }
    return s;
}

/* A product as the `map` that it could have been, of streams that have what comes in as tiles alone. */
static step_graph_node as_map(step_rewrite *r, const step_graph_node *n, const step_product *p)
{
    arena *a = r->to->arena;
    const step_data *tiles[STEP_LEAVES_MAX];
    uint32_t count;
    step_stream *like = ARENA_ARRAY(a, step_stream, 2);
    const step_stream **inputs = ARENA_ARRAY(a, const step_stream *, 2);
    step_formula_leaves(n->spec.inputs, n->spec.input_count, tiles, &count);
    step_graph_node product = *n;
    product.name = arena_printf(a, "%s_product", n->name);
    product.depths = ARENA_ARRAY(a, int64_t, 2);
    for (int i = 0; i < 2; i++) {
        like[i] = *n->spec.inputs[0];
        like[i].data = tiles[p->leaves[i]];
        inputs[i] = &like[i];
        product.depths[i] = r->to->default_depth;
    }
    product.spec = (step_spec){.op = STEP_MAP,
                               .fn = p->transposed ? STEP_FN_MATMUL_T : STEP_FN_MATMUL,
                               .range = n->spec.range,
                               .inputs = inputs,
                               .input_count = 2};
    return product;
}

/* A bool is no tile that has pieces. */
static bool has_tiles(const step_graph_node *n, const step_product *p)
{
    const step_data *tiles[STEP_LEAVES_MAX];
    uint32_t count;
    step_formula_leaves(n->spec.inputs, n->spec.input_count, tiles, &count);
    return tiles[p->leaves[0]]->kind == STEP_TILE && tiles[p->leaves[1]]->kind == STEP_TILE;
}

/* Streams that a function can take; more come as pairs. */
static uint32_t most_streams(const step_graph_node *n)
{
    return n->spec.op == STEP_MAP ? 3 : 2;
}

/* What the function is given: the streams of which it needs a tile, with deeper queues, as products come later, and the products. */
static bool add_function(step_rewrite *r, const step_graph_node *n, const step_product *products, uint32_t count,
                         const step_stream *const *made)
{
    arena *a = r->to->arena;
    const step_formula *f = n->spec.formula;
    const bool *needs = step_product_needs(f, products, count, a);
    bool *kept = ARENA_ARRAY(a, bool, f->values + 1);
    const step_stream **inputs = ARENA_ARRAY(a, const step_stream *, n->spec.input_count + count + 1);
    int64_t *depths = ARENA_ARRAY(a, int64_t, n->spec.input_count + count + 1);
    uint32_t input_count = 0, tile = 0;
    for (uint32_t i = 0; i < n->spec.input_count; i++) {
        uint32_t tiles = tiles_in(n->spec.inputs[i]->data);
        bool some = false;
        for (uint32_t k = 0; k < tiles; k++)
            some = some || needs[tile + k];
        for (uint32_t k = 0; k < tiles; k++)
            kept[tile++] = some;
        depths[input_count] = n->depths[i] == STEP_DEPTH_DEFAULT ? r->to->default_depth : n->depths[i];
        depths[input_count] += depths[input_count] > 0 ? REFERENCE_DEPTH : 0;
        inputs[input_count] = step_rewrite_stream(r, n->spec.inputs[i]);
        input_count += some;
    }
    for (uint32_t i = 0; i < count; i++) {
        depths[input_count] = r->to->default_depth;
        inputs[input_count++] = made[i];
    }
    for (; input_count > most_streams(n); input_count--) {
        const step_stream *last[] = {inputs[input_count - 2], inputs[input_count - 1]};
        step_graph_node *pair = step_rewrite_add(r, n, "_pair", (step_spec){.op = STEP_ZIP, .inputs = last, .input_count = 2});
        if (!pair)
            return false;
        pair->depths[0] = depths[input_count - 2];
        pair->depths[1] = depths[input_count - 1];
        depths[input_count - 2] = r->to->default_depth;
        inputs[input_count - 2] = &pair->outputs[0];
    }
    step_spec spec = n->spec;
    const step_data *type = n->outputs[0].data;
    spec.inputs = inputs;
    spec.input_count = input_count;
    spec.formula = step_product_without(f, products, count, kept, a);
    spec.has_dtype = true;
    spec.dtype = type->kind == STEP_PAIR ? type->first->dtype : type->dtype;
    step_graph_node *node = step_rewrite_add(r, n, "", spec);
    if (!node)
        return false;
    for (uint32_t i = 0; i < input_count; i++)
        node->depths[i] = depths[i];
    node->flops_per_cycle = n->flops_per_cycle;
    node->writes_back = n->writes_back;
    step_rewrite_become(r, &n->outputs[0], &node->outputs[0]);
    return true;
}

/* Cuts each product of the function that can be cut, outside of it. False: refused. */
static bool cut_function(step_rewrite *r, const step_graph_node *n)
{
    arena *a = r->to->arena;
    const cutting *c = r->user;
    const step_product *all;
    uint32_t found = step_products_of(n->spec.formula, &all, a), count = 0, room = STEP_LEAVES_MAX - n->spec.formula->values;
    step_product *products = ARENA_ARRAY(a, step_product, found + 1);
    const step_stream **made = ARENA_ARRAY(a, const step_stream *, found + 1);
    for (uint32_t i = 0; i < found; i++) {
        if (!has_tiles(n, &all[i]))
            continue;
        step_graph_node product = as_map(r, n, &all[i]);
        bool has_room = count < room || cannot(r, "make some of them in a `map` of their own",
                                               arena_printf(a, "`%s` takes tiles and products of them, and a function takes %d at most",
                                                            n->name, STEP_LEAVES_MAX));
        if (!has_room || !is_legal(r, &product)) {
            if (!c->everywhere)
                return step_rewrite_refuse(r, n, c->help, "%s", c->why) != NULL;
            continue;
        }
        const step_stream *first = stream_of_tile(r, n, all[i].leaves[0]), *second = stream_of_tile(r, n, all[i].leaves[1]);
        step_graph_node *node = first && second ? make(r, &product, first, second, DTYPE_F32) : NULL;
        if (!node)
            return false;
        products[count] = all[i];
        made[count++] = &node->outputs[0];
    }
    return count > 0 ? add_function(r, n, products, count, made) : step_rewrite_copy(r, n) != NULL;
}

/* Is there a product in it that the pass looks at? */
static bool has_product(step_rewrite *r, const step_graph_node *n)
{
    const step_product *all;
    uint32_t found = n->spec.formula ? step_products_of(n->spec.formula, &all, r->to->arena) : 0;
    for (uint32_t i = 0; i < found; i++)
        if (has_tiles(n, &all[i]))
            return true;
    return !n->spec.formula && is_product(n);
}

static bool visit(step_rewrite *r, const step_graph_node *n)
{
    const cutting *c = r->user;
    if (n->spec.formula && step_is_wanted(r, n))
        return cut_function(r, n);
    if (!is_product(n) || !step_is_wanted(r, n))
        return step_rewrite_copy(r, n) != NULL;
    if (!is_legal(r, n))
        return c->everywhere ? step_rewrite_copy(r, n) != NULL : step_rewrite_refuse(r, n, c->help, "%s", c->why) != NULL;
    step_graph_node *last =
        make(r, n, step_rewrite_stream(r, n->spec.inputs[0]), step_rewrite_stream(r, n->spec.inputs[1]), n->outputs[0].data->dtype);
    if (!last)
        return false;
    last->writes_back = n->writes_back;
    step_rewrite_become(r, &n->outputs[0], &last->outputs[0]);
    return true;
}

void step_pass_hierarchical_tiling(step_rewrite *r)
{
    cutting c = {.asked = {.rows = step_rewrite_number(r, "rows", 0),
                           .inner = step_rewrite_number(r, "inner", 0),
                           .columns = step_rewrite_number(r, "columns", 0)},
                 .everywhere = !step_rewrite_text(r, "node", NULL)};
    r->user = &c;
    if (!step_wanted_exist(r, &(step_wanted){has_product, "product", "products"}))
        return;
    step_rewrite_all(r, visit);
    if (r->changes == 0)
        step_rewrite_refuse(r, NULL, c.help ? c.help : "it looks for products of what comes into `map`, `accum` and `scan`",
                            "no product can be cut%s%s", c.why ? ": " : "", c.why ? c.why : "");
}
