/* Types of a stream program: what a stream carries, and parameters. */
#include "frontend/step/evaluate.h"

#include <inttypes.h>
#include <string.h>

/* The last segment of a type path, after references; NULL: no path. */
static const ast *segment_of(const ast *type)
{
    while (ast_is(type, AST_TYPE_REF))
        type = type->kids[0];
    return ast_is(type, AST_TYPE_PATH) ? type->kids[type->kid_count - 1] : NULL;
}

static const ast *argument(const ast *segment, uint32_t i)
{
    return ast_kid(ast_kid(segment, 0), i);
}

step_term step_read_argument(step_evaluation *e, const ast *a)
{
    if (ast_is(a, AST_CONST_ARG))
        return step_evaluate(e, a->kids[0]);
    if (ast_is(a, AST_TYPE_PATH) && a->kid_count == 1) {
        const step_name *known = step_lookup(e, a->kids[0]->text);
        if (known)
            return known->value;
        ast *path = ast_new(e->arena, AST_PATH, a->range);
        ast_push(e->arena, path, a->kids[0]);
        return step_evaluate(e, path);
    }
    return step_evaluate(e, a);
}

bool step_read_sizes(step_evaluation *e, src_range range, const step_term *list, const step_expr ***sizes, uint32_t *count)
{
    if (list->kind == TERM_ERROR)
        return false;
    if (list->kind != TERM_LIST || list->count == 0 || list->count > STEP_RANK_MAX + 1) {
        step_refuse(e, range, "a shape is a list of 1 to %d sizes, outermost first: `[B, 4]`", STEP_RANK_MAX + 1);
        return false;
    }
    *count = (uint32_t)list->count;
    *sizes = ARENA_ARRAY(e->arena, const step_expr *, list->count);
    for (size_t i = 0; i < list->count; i++) {
        const step_term *t = &list->items[i];
        if ((t->kind != TERM_INT || t->number < 0) && t->kind != TERM_SIZE) {
            if (t->kind != TERM_ERROR)
                step_refuse(e, range, "size %zu of the shape is %s", i, t->kind == TERM_INT ? "negative" : step_term_text(t));
            return false;
        }
        (*sizes)[i] = t->kind == TERM_SIZE ? t->size : step_expr_number(e->graph->exprs, t->number);
    }
    return true;
}

static const step_expr *read_size(step_evaluation *e, const ast *a)
{
    step_term t = step_read_argument(e, a);
    if (t.kind == TERM_SIZE)
        return t.size;
    if (t.kind == TERM_INT && t.number >= 0)
        return step_expr_number(e->graph->exprs, t.number);
    if (t.kind != TERM_ERROR)
        step_refuse(e, a->range, "a size is wanted here, not %s", step_term_text(&t));
    return NULL;
}

/* Has the type as many arguments as it is written with? */
static bool has_arguments(step_evaluation *e, const ast *segment, uint32_t least, uint32_t most, const char *form)
{
    uint32_t count = ast_kid(segment, 0)->kid_count;
    if (count >= least && count <= most)
        return true;
    step_refuse(e, segment->range, "`%s` with %" PRIu32 " arguments; it is written %s", segment->text, count, form);
    return false;
}

static const step_data *read_tile(step_evaluation *e, const ast *segment)
{
    const ast *type = segment_of(argument(segment, 0));
    step_data d = {.kind = STEP_TILE};
    if (!has_arguments(e, segment, 3, 3, "`Tile<bf16, 16, 256>`"))
        return NULL;
    if (!type || !dtype_by_name(type->text, &d.dtype)) {
        step_refuse(e, segment->range, "a tile is `Tile<dtype, rows, columns>`: `Tile<bf16, 16, 256>`");
        return NULL;
    }
    d.rows = read_size(e, argument(segment, 1));
    d.columns = read_size(e, argument(segment, 2));
    if (!d.rows || !d.columns)
        return NULL;
    step_data *out = ARENA_NEW(e->arena, step_data);
    *out = d;
    return out;
}

static const step_data *read_selector(step_evaluation *e, const ast *segment)
{
    if (!has_arguments(e, segment, 1, 2, "`Selector<8>` or `Selector<8, 2>`"))
        return NULL;
    step_term width = step_read_argument(e, argument(segment, 0));
    const ast *hot_at = argument(segment, 1);
    step_term hot = ast_is(hot_at, AST_NONE) ? (step_term){.kind = TERM_INT} : step_read_argument(e, hot_at);
    if (width.kind != TERM_INT || width.number < 1 || width.number > STEP_NODES_MAX || hot.kind != TERM_INT || hot.number < 0 ||
        hot.number > width.number) {
        step_refuse(e, segment->range, "a selector is `Selector<width>`, or `Selector<width, k>` when it always names k outputs");
        return NULL;
    }
    step_data *d = ARENA_NEW(e->arena, step_data);
    *d = (step_data){.kind = STEP_SELECTOR, .width = width.number, .hot = hot.number};
    return d;
}

const step_data *step_read_data(step_evaluation *e, const ast *type)
{
    const ast *segment = segment_of(type);
    const char *name = segment ? segment->text : "";
    if (strcmp(name, "Tile") == 0)
        return read_tile(e, segment);
    if (strcmp(name, "Selector") == 0)
        return read_selector(e, segment);
    if (strcmp(name, "Address") == 0 || strcmp(name, "bool") == 0) {
        step_data *d = ARENA_NEW(e->arena, step_data);
        d->kind = name[0] == 'A' ? STEP_ADDRESS : STEP_BOOL;
        return d;
    }
    step_refuse(e, type->range, "a stream carries Tile<..>, Selector<..>, Address or bool");
    return NULL;
}

/* ---- parameters ---- */

void step_read_generics(step_evaluation *e, const ast *generics)
{
    for (uint32_t i = 0; i < generics->kid_count; i++) {
        const ast *g = generics->kids[i];
        const ast *kind = ast_is(g, AST_GENERIC_CONST) ? segment_of(g->kids[0]) : NULL;
        bool ragged = kind && strcmp(kind->text, "Ragged") == 0;
        if (ast_is(g, AST_GENERIC_LIFETIME))
            continue;
        if (!kind || (!ragged && strcmp(kind->text, "Dim") != 0)) {
            step_refuse(e, g->range, "a stream program's sizes are `const B: Dim` and `const R: Ragged`");
            continue;
        }
        step_bind(e, g->text, g->name_range, (step_term){.kind = TERM_SIZE, .size = step_expr_symbol(e->graph->exprs, g->text, ragged)},
                  false);
    }
}

static step_term read_stream(step_evaluation *e, const ast *param, const char *name, const ast *segment)
{
    if (!has_arguments(e, segment, 2, 2, "`Stream<Tile<bf16, 16, 256>, {[B, 4]}>`"))
        return step_term_error;
    const step_data *data = step_read_data(e, argument(segment, 0));
    step_term shape = step_read_argument(e, argument(segment, 1));
    step_spec s = {.op = STEP_SOURCE, .name = name, .range = param->range, .data = data};
    uint32_t count;
    if (!step_read_sizes(e, argument(segment, 1)->range, &shape, &s.dims, &count) || !data)
        return step_term_error;
    s.rank = count - 1;
    step_graph_node *n = step_graph_add(e->graph, &s);
    return n ? (step_term){.kind = TERM_STREAM, .stream = &n->outputs[0], .depth = STEP_DEPTH_DEFAULT} : step_term_error;
}

static bool number_of(const step_expr *e, int64_t *out)
{
    return step_expr_is_number(e, out) && *out > 0 && *out <= INT64_C(1) << 31;
}

static step_term read_tensor(step_evaluation *e, const ast *param, const char *name, const ast *segment, bool written)
{
    if (!has_arguments(e, segment, 2, 2, "`Hbm<Tile<bf16, 16, 256>, {[4, 8]}>`"))
        return step_term_error;
    const step_data *data = step_read_data(e, argument(segment, 0));
    step_term shape = step_read_argument(e, argument(segment, 1));
    const step_expr **dims;
    uint32_t count;
    if (!step_read_sizes(e, argument(segment, 1)->range, &shape, &dims, &count) || !data)
        return step_term_error;
    step_graph_tensor t = {.name = name,
                           .range = param->range,
                           .dtype = data->dtype,
                           .dim_count = count,
                           .written = written,
                           .index = (uint32_t)e->graph->tensor_count};
    int64_t *sizes = ARENA_ARRAY(e->arena, int64_t, count), elements = 1;
    bool good = data->kind == STEP_TILE && number_of(data->rows, &t.rows) && number_of(data->columns, &t.columns);
    good = good && t.rows <= STEP_TILE_MAX && t.columns <= STEP_TILE_MAX && !__builtin_mul_overflow(t.rows, t.columns, &elements);
    for (uint32_t i = 0; i < count && good; i++)
        good = number_of(dims[i], &sizes[i]) && !__builtin_mul_overflow(elements, sizes[i], &elements) && elements <= INT64_C(1) << 50;
    if (!good)
        return step_refuse(e, param->range, "off the chip lie tiles of a fixed size, a fixed number of them, at most 2^50 elements");
    t.shape = sizes;
    step_graph_tensor *copy = ARENA_NEW(e->arena, step_graph_tensor);
    *copy = t;
    ARENA_PUSH(e->arena, e->graph->tensors, e->graph->tensor_count, e->graph->tensor_capacity, copy);
    return (step_term){.kind = TERM_TENSOR, .tensor = copy};
}

/* `Stream<..>` or `Hbm<..>` after references. */
static bool is_called(const ast *type, const char *name)
{
    const ast *segment = segment_of(type);
    return segment && strcmp(segment->text, name) == 0;
}

bool step_is_parameter(const ast *param)
{
    return is_called(param->kids[2], "Stream") || is_called(param->kids[2], "Hbm");
}

void step_read_parameter(step_evaluation *e, const ast *param)
{
    const ast *pattern = param->kids[1], *type = param->kids[2], *segment = segment_of(type);
    const char *name = ast_is(pattern, AST_PAT_NAME) ? pattern->text : NULL;
    bool written = ast_is(type, AST_TYPE_REF) && strcmp(type->text, "mut") == 0;
    step_term value = step_term_error;
    if (name && is_called(type, "Stream"))
        value = read_stream(e, param, name, segment);
    else if (name && is_called(type, "Hbm"))
        value = read_tensor(e, param, name, segment, written);
    else
        step_refuse(e, param->range, "a stream program takes `x: Stream<T, {[..]}>`, `w: &Hbm<Tile<..>, {[..]}>` and `y: &mut Hbm<..>`");
    if (name)
        step_bind(e, name, ast_kid(param, 1)->range, value, false);
}
