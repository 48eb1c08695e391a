#include "ir/step/type.h"

#include <inttypes.h>

#include "ir/step/formula.h"
#include "ir/step/groups.h"

step_data step_data_pair(const step_data *first, const step_data *second)
{
    return (step_data){.kind = STEP_PAIR,
                       .first = first,
                       .second = second,
                       .depth = 1 + (first->depth > second->depth ? first->depth : second->depth),
                       .parts = 1 + first->parts + second->parts};
}

bool step_data_equal(const step_data *a, const step_data *b)
{
    if (a == b)
        return true;
    if (!a || !b || a->kind != b->kind)
        return false;
    switch (a->kind) {
    case STEP_TILE: return a->dtype == b->dtype && a->rows == b->rows && a->columns == b->columns;
    case STEP_SELECTOR: return a->width == b->width && a->hot == b->hot;
    case STEP_PAIR: return step_data_equal(a->first, b->first) && step_data_equal(a->second, b->second);
    case STEP_BUFFER:
        if (a->dim_count != b->dim_count || !step_data_equal(a->first, b->first))
            return false;
        for (uint32_t i = 0; i < a->dim_count; i++)
            if (a->dims[i] != b->dims[i])
                return false;
        return true;
    default: return true;
    }
}

/* What a function is applied to: a pair stands for its two parts. */
enum { OPERANDS_MAX = STEP_MAP_INPUTS };
typedef struct operands {
    const step_data *of[OPERANDS_MAX];
    uint32_t count;
} operands;

static operands operands_of(const step_spec *s)
{
    operands o = {0};
    const step_data *only = s->input_count == 1 ? s->inputs[0]->data : NULL;
    const step_fn_row *row = step_fn_row_of(s->fn);
    int most = row->most_arity - (s->op == STEP_ACCUM || s->op == STEP_SCAN);
    if (only && only->kind == STEP_PAIR && most > 1) {
        o.of[0] = only->first;
        o.of[1] = only->second;
        o.count = 2;
        return o;
    }
    for (; o.count < s->input_count && o.count < OPERANDS_MAX; o.count++)
        o.of[o.count] = s->inputs[o.count]->data;
    return o;
}

const step_data *step_operand(const step_spec *s, uint32_t i)
{
    operands o = operands_of(s);
    return i < o.count ? o.of[i] : NULL;
}

typedef struct typing {
    step_graph *g;
    const step_spec *s;
    operands in;
    const step_expr *folded;
    const char **why;
} typing;

static const step_data *wrong(const typing *t, const char *text)
{
    if (!*t->why)
        *t->why = text;
    return NULL;
}

static const char *data_text(const typing *t, uint32_t i)
{
    return step_data_text(t->in.of[i], t->g->arena);
}

static const step_data *tile(const typing *t, const step_expr *rows, const step_expr *columns)
{
    if (!rows || !columns)
        return wrong(t, "a tile of more than 2^62 elements");
    step_data *d = ARENA_NEW(t->g->arena, step_data);
    dtype type = t->s->has_dtype ? t->s->dtype : t->in.of[0]->dtype;
    *d = (step_data){.kind = STEP_TILE, .dtype = type, .rows = rows, .columns = columns};
    return d;
}

static const step_expr *one(const typing *t)
{
    return step_expr_number(t->g->exprs, 1);
}

static bool are_tiles(const typing *t)
{
    for (uint32_t i = 0; i < t->in.count; i++)
        if (t->in.of[i]->kind != STEP_TILE) {
            wrong(t, arena_printf(t->g->arena, "`%s` takes tiles, not %s", step_fn_row_of(t->s->fn)->name, data_text(t, i)));
            return false;
        }
    return true;
}

/* Equal, or one of them 1: then the other. NULL: neither. */
static const step_expr *joined(const typing *t, const step_expr *a, const step_expr *b)
{
    return a == b || b == one(t) ? a : a == one(t) ? b : NULL;
}

/* Sizes that would have to be equal, of the first tile and of the second; `instead` fits, or is "". */
static const step_data *two_sizes(const typing *t, const step_expr *a, const char *of_a, const step_expr *b, const char *of_b,
                                  const char *instead)
{
    arena *m = t->g->arena;
    return wrong(t, arena_printf(m, "`%s` of %s and %s: %s %s of the first and %s %s of the second%s", step_fn_row_of(t->s->fn)->name,
                                 data_text(t, 0), data_text(t, 1), step_expr_text(a, m), of_a, step_expr_text(b, m), of_b, instead));
}

static const step_data *element_wise(const typing *t)
{
    const step_data *a = t->in.of[0], *b = t->in.of[t->in.count - 1];
    const step_expr *rows = joined(t, a->rows, b->rows), *columns = joined(t, a->columns, b->columns);
    if (!rows)
        return two_sizes(t, a->rows, "rows", b->rows, "rows", "");
    return columns ? tile(t, rows, columns) : two_sizes(t, a->columns, "columns", b->columns, "columns", "");
}

static const step_data *product(const typing *t, bool transposed)
{
    const step_data *a = t->in.of[0], *b = t->in.of[1];
    const step_expr *inner = transposed ? b->columns : b->rows, *other = transposed ? b->rows : b->columns;
    if (a->columns != inner)
        return two_sizes(t, a->columns, "columns", inner, transposed ? "columns" : "rows",
                         a->columns != other ? ""
                         : transposed        ? "; `matmul` multiplies by it as it is"
                                             : "; `matmul_t` multiplies by it transposed");
    return tile(t, a->rows, transposed ? b->rows : b->columns);
}

static const step_data *plain(const typing *t, step_kind kind)
{
    step_data *d = ARENA_NEW(t->g->arena, step_data);
    d->kind = kind;
    return d;
}

static bool is_number(const step_data *d)
{
    return d->kind == STEP_ADDRESS || (d->kind == STEP_SELECTOR && d->hot == 1);
}

static const step_data *addresses(const typing *t)
{
    for (uint32_t i = 0; i < t->in.count; i++)
        if (!is_number(t->in.of[i]))
            return wrong(t, arena_printf(t->g->arena, "`addresses` takes addresses or one-hot selectors, not %s", data_text(t, i)));
    return plain(t, STEP_ADDRESS);
}

static const step_data *one_of_two(const typing *t)
{
    if (!is_number(t->in.of[0]))
        return wrong(t, arena_printf(t->g->arena, "`last` takes addresses, not %s", data_text(t, 0)));
    step_data *d = ARENA_NEW(t->g->arena, step_data);
    *d = (step_data){.kind = STEP_SELECTOR, .width = 2, .hot = 1};
    return d;
}

static const step_data *with_row(const typing *t)
{
    const step_data *a = t->in.of[0], *row = t->in.of[1];
    if (row->rows != one(t))
        return wrong(t, arena_printf(t->g->arena, "`append_row` appends one row, not %s", data_text(t, 1)));
    return row->columns == a->columns ? a : two_sizes(t, a->columns, "columns", row->columns, "columns", "");
}

static const step_data *first_tile_and_number(const typing *t)
{
    if (t->in.of[0]->kind != STEP_TILE || t->in.of[1]->kind != STEP_ADDRESS)
        return wrong(
            t, arena_printf(t->g->arena, "`set_valid_rows` takes a tile and an address, not %s and %s", data_text(t, 0), data_text(t, 1)));
    return t->in.of[0];
}

static const step_data *selectors(const typing *t)
{
    bool number = t->in.of[0]->kind == STEP_ADDRESS || t->in.of[0]->kind == STEP_BOOL;
    if (!number || !t->s->data || t->s->data->kind != STEP_SELECTOR || t->s->data->hot != 1)
        return wrong(
            t, arena_printf(t->g->arena,
                            "`select` makes selectors of one output from addresses or bools, `select::<Selector<4, 1>>(n)`; not from %s",
                            data_text(t, 0)));
    return t->s->data;
}

/* Value i of the function goes to input `port` of the kernel. */
static bool is_kernel_tile(const typing *t, uint32_t i, uint32_t port)
{
    const step_kernel_tile *k = &t->s->kernel->inputs[port];
    const step_data *d = t->in.of[i];
    if (d->kind == STEP_TILE && d->dtype == k->dtype && d->rows == step_expr_number(t->g->exprs, k->rows) &&
        d->columns == step_expr_number(t->g->exprs, k->columns))
        return true;
    wrong(t, arena_printf(t->g->arena, "input %" PRIu32 " of the kernel `%s` is a tile %s %" PRId64 " x %" PRId64 ", not %s", port,
                          t->s->kernel->name, dtype_row_of(k->dtype)->name, k->rows, k->columns, data_text(t, i)));
    return false;
}

/* The tile, or the first one and (the second one and ..). */
static const step_data *kernel_tiles(step_graph *g, const step_kernel *k)
{
    const step_data *made = NULL;
    for (uint32_t i = k->output_count; i-- > 0;) {
        step_data *d = ARENA_NEW(g->arena, step_data), *pair = ARENA_NEW(g->arena, step_data);
        *d = (step_data){.kind = STEP_TILE,
                         .dtype = k->outputs[i].dtype,
                         .rows = step_expr_number(g->exprs, k->outputs[i].rows),
                         .columns = step_expr_number(g->exprs, k->outputs[i].columns)};
        if (made)
            *pair = step_data_pair(d, made);
        made = made ? pair : d;
    }
    return made;
}

static const step_data *kernel_result(const typing *t)
{
    const step_kernel *k = t->s->kernel;
    uint32_t own = t->s->op != STEP_MAP; /* the accumulator */
    if (t->in.count + own != k->input_count)
        return wrong(t, arena_printf(t->g->arena, "the kernel `%s` takes %" PRIu32 " tiles%s, not %" PRIu32, k->name, k->input_count,
                                     own ? ", one of them the accumulator" : "", t->in.count + own));
    for (uint32_t i = 0; i < t->in.count; i++)
        if (!is_kernel_tile(t, i, i + own))
            return NULL;
    const step_kernel_tile *first = &k->outputs[0];
    if (own && k->output_count > 1)
        return wrong(
            t, arena_printf(t->g->arena, "the kernel `%s` makes %" PRIu32 " tiles, and an accumulator is one", k->name, k->output_count));
    if (own && (k->inputs[0].dtype != first->dtype || k->inputs[0].rows != first->rows || k->inputs[0].columns != first->columns))
        return wrong(t, arena_printf(t->g->arena, "the kernel `%s` makes another tile than its first input, the accumulator", k->name));
    for (uint32_t i = 0; t->s->has_dtype && i < k->output_count; i++)
        if (t->s->dtype != k->outputs[i].dtype)
            return wrong(t, arena_printf(t->g->arena, "the kernel `%s` makes %s", k->name, dtype_row_of(k->outputs[i].dtype)->name));
    return kernel_tiles(t->g, k);
}

static const step_data *part_of_pair(const typing *t, bool first)
{
    const step_data *d = t->in.of[0];
    if (d->kind != STEP_PAIR)
        return wrong(t, arena_printf(t->g->arena, "`%s` takes pairs, not %s", step_fn_row_of(t->s->fn)->name, data_text(t, 0)));
    return first ? d->first : d->second;
}

static const step_data *pieces(const typing *t)
{
    const step_data *d = t->s->data;
    int64_t rows, columns, whole_rows, whole_columns;
    if (!d || d->kind != STEP_TILE)
        return wrong(t, "`tiles` has to say how large its pieces are: `tiles::<Tile<f32, 16, 16>>`");
    if (!step_expr_is_number(d->rows, &rows) && d->rows != t->in.of[0]->rows)
        return wrong(t, arena_printf(t->g->arena, "%s have no pieces of %s rows", data_text(t, 0), step_expr_text(d->rows, t->g->arena)));
    if (step_expr_is_number(d->rows, &rows) && step_expr_is_number(d->columns, &columns) &&
        step_expr_is_number(t->in.of[0]->rows, &whole_rows) && step_expr_is_number(t->in.of[0]->columns, &whole_columns) &&
        (rows == 0 || columns == 0 || whole_rows % rows != 0 || whole_columns % columns != 0))
        return wrong(t, arena_printf(t->g->arena, "%s are not made of pieces %" PRId64 " x %" PRId64, data_text(t, 0), rows, columns));
    return d;
}

/* Rows or columns of a tile that is made of those of a group. */
static const step_expr *retiled(const typing *t, const step_expr *each)
{
    if (!each || !step_expr_is_ragged(each))
        return step_expr_multiply(t->g->exprs, each, t->folded);
    return t->s->op == STEP_SCAN ? t->folded : step_groups_joined(t->g, t->s->inputs[0], (uint32_t)t->s->param[STEP_B], each, t->folded);
}

static const step_data *type_of_tiles(const typing *t)
{
    const step_data *a = t->in.of[0];
    step_exprs *e = t->g->exprs;
    switch (t->s->fn) {
    case STEP_FN_MATMUL:
    case STEP_FN_MATMUL_ADD: return product(t, false);
    case STEP_FN_MATMUL_T:
    case STEP_FN_MATMUL_T_ADD: return product(t, true);
    case STEP_FN_ROW_SUM:
    case STEP_FN_ROW_MAX:
    case STEP_FN_ROW_SUM_ADD: return tile(t, a->rows, one(t));
    case STEP_FN_RETILE_ROWS: return tile(t, retiled(t, a->rows), a->columns);
    case STEP_FN_RETILE_COLS: return tile(t, a->rows, retiled(t, a->columns));
    case STEP_FN_ROWS:
    case STEP_FN_VALID_ROWS: return tile(t, one(t), a->columns);
    case STEP_FN_TAKE: return tile(t, step_expr_fresh(e, "V", true), a->columns);
    case STEP_FN_APPEND_ROW: return with_row(t);
    case STEP_FN_TILES: return pieces(t);
    default: return element_wise(t);
    }
}

const char *step_count_text(arena *a, unsigned least, unsigned most, const char *what)
{
    const char *one = least == most ? "" : arena_printf(a, "%u to ", least);
    return arena_printf(a, "%s%u %s%s", one, most, what, most == 1 ? "" : "s");
}

/* Of a fold: besides the accumulator. */
static const char *arity_text(step_graph *g, const step_fn_row *row, bool folds)
{
    return step_count_text(g->arena, row->least_arity - folds, row->most_arity - folds, "value");
}

const step_data *step_function_type(step_graph *g, const step_spec *s, const step_expr *folded, const char **why)
{
    typing t = {.g = g, .s = s, .in = operands_of(s), .folded = folded, .why = why};
    const step_fn_row *row = step_fn_row_of(s->fn);
    int taken = (int)t.in.count + (s->op == STEP_ACCUM || s->op == STEP_SCAN);
    unsigned use = s->op == STEP_MAP ? STEP_USE_MAP : s->op == STEP_FLAT_MAP ? STEP_USE_FLAT : STEP_USE_UPDATE;
    *why = NULL;
    if (!(row->use & use))
        return wrong(&t, arena_printf(g->arena, "`%s` is no function for %s", row->name, step_op_row_of(s->op)->name));
    if (s->fn == STEP_FN_FORMULA)
        return step_formula_type(g, s, why);
    if (taken < row->least_arity || taken > row->most_arity)
        return wrong(&t, arena_printf(g->arena, "`%s` takes %s, not %d", row->name, arity_text(g, row, use == STEP_USE_UPDATE),
                                      taken - (use == STEP_USE_UPDATE)));
    switch (s->fn) {
    case STEP_FN_IDENTITY: return t.in.of[0];
    case STEP_FN_SIGNAL: return plain(&t, STEP_ADDRESS);
    case STEP_FN_ADDRESSES: return addresses(&t);
    case STEP_FN_LAST: return one_of_two(&t);
    case STEP_FN_SET_VALID_ROWS: return first_tile_and_number(&t);
    case STEP_FN_SELECT: return selectors(&t);
    case STEP_FN_KERNEL: return kernel_result(&t);
    case STEP_FN_FIRST: return part_of_pair(&t, true);
    case STEP_FN_SECOND: return part_of_pair(&t, false);
    default: return are_tiles(&t) ? type_of_tiles(&t) : NULL;
    }
}

const step_expr *step_function_size(step_graph *g, const step_spec *s)
{
    const step_data *d = s->inputs[0]->data;
    int64_t rows, columns, whole_rows, whole_columns;
    switch (s->fn) {
    case STEP_FN_ADDRESSES: return s->input_count == 1 && d->kind != STEP_PAIR ? step_expr_number(g->exprs, s->param[STEP_N]) : NULL;
    case STEP_FN_ROWS: return d->rows;
    case STEP_FN_TILES: break;
    default: return NULL;
    }
    bool fixed = step_expr_is_number(s->data->columns, &columns) && columns > 0 && step_expr_is_number(d->columns, &whole_columns);
    if (fixed && s->data->rows == d->rows)
        return step_expr_number(g->exprs, whole_columns / columns);
    fixed = fixed && step_expr_is_number(s->data->rows, &rows) && step_expr_is_number(d->rows, &whole_rows);
    return fixed ? step_expr_number(g->exprs, whole_rows / rows * (whole_columns / columns)) : NULL;
}

static const step_expr *tile_elements(step_graph *g, const step_data *d, int64_t factor)
{
    return step_expr_multiply(g->exprs, step_expr_multiply(g->exprs, d->rows, d->columns), step_expr_number(g->exprs, factor));
}

const step_expr *step_node_flops(step_graph *g, const step_graph_node *n)
{
    const step_expr *none = step_expr_number(g->exprs, 0);
    if (n->spec.fn == STEP_FN_NONE)
        return none;
    operands in = operands_of(&n->spec);
    switch (n->spec.fn) {
    case STEP_FN_MATMUL:
    case STEP_FN_MATMUL_ADD:
    case STEP_FN_MATMUL_T:
    case STEP_FN_MATMUL_T_ADD: return step_expr_multiply(g->exprs, tile_elements(g, n->outputs[0].data, 2), in.of[0]->columns);
    case STEP_FN_KERNEL: return step_expr_number(g->exprs, n->spec.kernel->flops);
    case STEP_FN_FORMULA: return step_formula_flops(g, &n->spec);
    case STEP_FN_SILU: return tile_elements(g, in.of[0], 8);
    case STEP_FN_EXP: return tile_elements(g, in.of[0], 4);
    case STEP_FN_ROW_SUM:
    case STEP_FN_ROW_MAX:
    case STEP_FN_ROW_SUM_ADD: return tile_elements(g, in.of[0], 1);
    case STEP_FN_ADD:
    case STEP_FN_SUB:
    case STEP_FN_MUL:
    case STEP_FN_DIV:
    case STEP_FN_MAX: return tile_elements(g, n->outputs[0].data, 1);
    default: return none;
    }
}
