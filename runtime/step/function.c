#include "runtime/step/function.h"

#include "runtime/step/formula.h"
#include "runtime/step/kernel.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

step_value *step_fail(step_fault *f, const char *format, ...)
{
    if (f->set)
        return NULL;
    va_list args;
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
    f->set = true;
    return NULL;
}

static int64_t elements_of(const step_value *v)
{
    return v->tile.rows * v->tile.columns;
}

/* A new tile with `valid` real rows. */
static step_value *tile(const step_call *c, int64_t rows, int64_t columns, int64_t valid)
{
    step_value *v = step_tile_new(c->pool, rows, columns);
    v->tile.valid = valid;
    return v;
}

static step_value *rounded(const step_call *c, step_value *v)
{
    if (v && v->kind == STEP_TILE && v->tile.elements && c->type->dtype != DTYPE_F32)
        for (int64_t i = 0; i < elements_of(v); i++)
            v->tile.elements[i] = step_round(c->type->dtype, v->tile.elements[i]);
    return v;
}

static step_value *wrong_sizes(const step_call *c, const step_value *a, const step_value *b)
{
    return step_fail(c->fault, "%s takes no tile of %" PRId64 " x %" PRId64 " with one of %" PRId64 " x %" PRId64,
                     step_fn_row_of(c->fn)->name, a->tile.rows, a->tile.columns, b->tile.rows, b->tile.columns);
}

/* ---- element by element ---- */

static float apply_1(step_fn fn, float x)
{
    switch (fn) {
    case STEP_FN_SILU: return x / (1 + expf(-x));
    case STEP_FN_EXP: return expf(x);
    default: return x;
    }
}

static float apply_2(step_fn fn, float x, float y)
{
    switch (fn) {
    case STEP_FN_ADD: return x + y;
    case STEP_FN_SUB: return x - y;
    case STEP_FN_MUL: return x * y;
    case STEP_FN_DIV: return x / y;
    default: return x > y || x != x ? x : y;
    }
}

static int64_t flops_1(step_fn fn)
{
    return fn == STEP_FN_SILU ? 8 : fn == STEP_FN_EXP ? 4 : 0;
}

static step_value *map_1(const step_call *c, const step_value *a, step_cost *cost)
{
    step_value *v = tile(c, a->tile.rows, a->tile.columns, a->tile.valid);
    cost->flops = flops_1(c->fn) * elements_of(a);
    if (v->tile.elements)
        for (int64_t i = 0; i < elements_of(a); i++)
            v->tile.elements[i] = apply_1(c->fn, a->tile.elements[i]);
    return v;
}

/* Is `extent` that of the result, or 1 and so repeated? */
static bool fits(int64_t extent, int64_t result)
{
    return extent == result || extent == 1;
}

static step_value *map_2(const step_call *c, const step_value *a, const step_value *b, step_cost *cost)
{
    int64_t rows = a->tile.rows == 1 ? b->tile.rows : a->tile.rows;
    int64_t columns = a->tile.columns == 1 ? b->tile.columns : a->tile.columns;
    if (!fits(a->tile.rows, rows) || !fits(b->tile.rows, rows) || !fits(a->tile.columns, columns) || !fits(b->tile.columns, columns))
        return wrong_sizes(c, a, b);
    step_value *v = tile(c, rows, columns, a->tile.rows == rows ? a->tile.valid : b->tile.valid);
    cost->flops = rows * columns;
    if (!v->tile.elements)
        return v;
    int64_t row_a = a->tile.rows == 1 ? 0 : a->tile.columns, column_a = a->tile.columns != 1;
    int64_t row_b = b->tile.rows == 1 ? 0 : b->tile.columns, column_b = b->tile.columns != 1;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < columns; k++)
            v->tile.elements[r * columns + k] =
                apply_2(c->fn, a->tile.elements[r * row_a + k * column_a], b->tile.elements[r * row_b + k * column_b]);
    return v;
}

/* ---- rows and products ---- */

static step_value *fold_rows(const step_call *c, const step_value *a, step_cost *cost)
{
    step_value *v = tile(c, a->tile.rows, 1, a->tile.valid);
    cost->flops = elements_of(a);
    if (!v->tile.elements)
        return v;
    for (int64_t r = 0; r < a->tile.rows; r++) {
        float fold = c->fn == STEP_FN_ROW_MAX ? -INFINITY : 0;
        for (int64_t k = 0; k < a->tile.columns; k++)
            fold = apply_2(c->fn == STEP_FN_ROW_MAX ? STEP_FN_MAX : STEP_FN_ADD, fold, a->tile.elements[r * a->tile.columns + k]);
        v->tile.elements[r] = fold;
    }
    return v;
}

/* sum += A x B, or A x B transposed. */
static void add_product(step_value *sum, const step_value *a, const step_value *b, bool transposed)
{
    int64_t rows = a->tile.rows, inner = a->tile.columns, columns = sum->tile.columns;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < inner; k++) {
            float x = a->tile.elements[r * inner + k];
            const float *y = transposed ? b->tile.elements + k : b->tile.elements + k * columns;
            int64_t step = transposed ? inner : 1;
            for (int64_t n = 0; n < columns; n++)
                sum->tile.elements[r * columns + n] += x * y[n * step];
        }
}

static step_value *product(const step_call *c, step_value *sum, const step_value *a, const step_value *b, bool transposed, step_cost *cost)
{
    int64_t inner = transposed ? b->tile.columns : b->tile.rows, columns = transposed ? b->tile.rows : b->tile.columns;
    if (a->tile.columns != inner)
        return wrong_sizes(c, a, b);
    if (!sum)
        sum = tile(c, a->tile.rows, columns, a->tile.valid);
    else if (sum->tile.rows != a->tile.rows || sum->tile.columns != columns)
        return wrong_sizes(c, sum, a);
    cost->flops = 2 * a->tile.rows * inner * columns;
    if (sum->tile.elements)
        add_product(sum, a, b, transposed);
    return sum;
}

/* ---- padding and rows that are real ---- */

static step_value *set_valid_rows(const step_call *c, const step_value *a, const step_value *count, step_cost *cost)
{
    int64_t valid = count->kind == STEP_ADDRESS ? count->address : -1;
    if (valid < 0 || valid > a->tile.rows)
        return step_fail(c->fault, "%" PRId64 " valid rows in a tile of %" PRId64, valid, a->tile.rows);
    step_cost none;
    step_value *v = map_1(c, a, &none);
    v->tile.valid = valid;
    cost->cycles = 1;
    return v;
}

static step_value *append_row(const step_call *c, const step_value *a, const step_value *row, step_cost *cost)
{
    if (row->tile.rows != 1 || row->tile.columns != a->tile.columns)
        return wrong_sizes(c, a, row);
    if (a->tile.valid >= a->tile.rows)
        return step_fail(c->fault, "a row is appended to a tile whose %" PRId64 " rows are all real", a->tile.rows);
    step_cost none;
    step_value *v = map_1(c, a, &none);
    if (v->tile.elements)
        memcpy(v->tile.elements + a->tile.valid * a->tile.columns, row->tile.elements, (size_t)a->tile.columns * sizeof(float));
    v->tile.valid = a->tile.valid + 1;
    cost->cycles = 1;
    return v;
}

/* Rows begin .. begin + rows of a tile. */
static step_value *cut_rows(const step_call *c, const step_value *a, int64_t begin, int64_t rows)
{
    step_value *v = tile(c, rows, a->tile.columns, rows);
    if (v->tile.elements && rows > 0)
        memcpy(v->tile.elements, a->tile.elements + begin * a->tile.columns, (size_t)elements_of(v) * sizeof(float));
    return v;
}

/* ---- retile: tiles below or adjacent ---- */

static step_value *stack_rows(const step_call *c, const step_value *above, const step_value *below)
{
    int64_t columns = below->tile.columns;
    if (above && above->tile.columns != columns)
        return wrong_sizes(c, above, below);
    int64_t rows = above ? above->tile.rows : 0;
    bool whole = !above || above->tile.valid == rows;
    step_value *v = tile(c, rows + below->tile.rows, columns, whole ? rows + below->tile.valid : above->tile.valid);
    if (v->tile.elements && above)
        memcpy(v->tile.elements, above->tile.elements, (size_t)elements_of(above) * sizeof(float));
    if (v->tile.elements)
        memcpy(v->tile.elements + rows * columns, below->tile.elements, (size_t)elements_of(below) * sizeof(float));
    return v;
}

static step_value *stack_columns(const step_call *c, const step_value *left, const step_value *right)
{
    int64_t rows = right->tile.rows, before = left ? left->tile.columns : 0, columns = before + right->tile.columns;
    if (left && left->tile.rows != rows)
        return wrong_sizes(c, left, right);
    step_value *v = tile(c, rows, columns, right->tile.valid);
    for (int64_t r = 0; v->tile.elements && r < rows; r++) {
        if (before > 0)
            memcpy(v->tile.elements + r * columns, left->tile.elements + r * before, (size_t)before * sizeof(float));
        memcpy(v->tile.elements + r * columns + before, right->tile.elements + r * right->tile.columns,
               (size_t)right->tile.columns * sizeof(float));
    }
    return v;
}

/* The output that a number names: n numbers each, the last output all others. */
static step_value *selector_of(const step_call *c, const step_value *v)
{
    int64_t number = v->kind == STEP_BOOL ? v->flag : v->address;
    int64_t output = number / (c->n > 0 ? c->n : 1), last = c->type->width - 1;
    if (number < 0)
        return step_fail(c->fault, "the address %" PRId64 " names no output", number);
    uint32_t pick = (uint32_t)(output < last ? output : last);
    return step_selector_new(c->pool, &pick, 1);
}

/* ---- the three uses ---- */

static step_value *map_any(const step_call *c, step_value *const *in, uint32_t count, step_cost *cost)
{
    switch (c->fn) {
    case STEP_FN_IDENTITY: return step_value_keep(in[0]);
    case STEP_FN_FIRST: return step_value_keep(in[0]->pair[0]);
    case STEP_FN_SECOND: return step_value_keep(in[0]->pair[1]);
    case STEP_FN_SIGNAL: cost->cycles = 1; return step_address_new(c->pool, 0);
    case STEP_FN_SELECT: return selector_of(c, in[0]);
    case STEP_FN_KERNEL: *cost = (step_cost){.flops = c->n}; return step_kernel_apply(c->kernel, c, in, count);
    case STEP_FN_ROW_SUM:
    case STEP_FN_ROW_MAX: return rounded(c, fold_rows(c, in[0], cost));
    case STEP_FN_MATMUL: return rounded(c, product(c, NULL, in[0], in[1], false, cost));
    case STEP_FN_MATMUL_T: return rounded(c, product(c, NULL, in[0], in[1], true, cost));
    case STEP_FN_SET_VALID_ROWS: return set_valid_rows(c, in[0], in[1], cost);
    case STEP_FN_APPEND_ROW: return append_row(c, in[0], in[1], cost);
    case STEP_FN_TAKE: return cut_rows(c, in[0], 0, in[0]->tile.valid);
    default: return rounded(c, count == 1 ? map_1(c, in[0], cost) : map_2(c, in[0], in[1], cost));
    }
}

/* A pair stands for its two parts where a function takes two values. */
static uint32_t open_pairs(step_value *const *in, uint32_t count, step_value **parts, uint32_t most)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < count && n < most; i++)
        if (in[i]->kind == STEP_PAIR && count == 1 && most > 1)
            n = open_pairs(in[i]->pair, 2, parts, most);
        else
            parts[n++] = in[i];
    return n;
}

enum { ARITY_MAX = STEP_MAP_INPUTS };

step_value *step_map(const step_call *c, step_value *const *in, uint32_t count, step_cost *cost)
{
    step_value *parts[ARITY_MAX];
    if (c->fn == STEP_FN_FORMULA)
        return step_formula_map(c, in, count, cost);
    *cost = (step_cost){0};
    count = open_pairs(in, count, parts, (uint32_t)step_fn_row_of(c->fn)->most_arity);
    return map_any(c, parts, count, cost);
}

static step_value *neutral(const step_call *c);

/* The accumulator is the kernel's first input, zeros at first. */
static step_value *update_by_kernel(const step_call *c, step_value *accumulator, step_value *const *in, uint32_t count, step_cost *cost)
{
    step_value *first = accumulator ? step_value_keep(accumulator) : neutral(c), *all[ARITY_MAX] = {first};
    for (uint32_t i = 0; i < count && i + 1 < ARITY_MAX; i++)
        all[i + 1] = in[i];
    *cost = (step_cost){.flops = c->n};
    step_value *v = step_kernel_apply(c->kernel, c, all, count + 1);
    step_value_drop(c->pool, first);
    return v;
}

static step_value *update_any(const step_call *c, step_value *accumulator, step_value *const *in, uint32_t count, step_cost *cost)
{
    switch (c->fn) {
    case STEP_FN_MATMUL_ADD: return product(c, accumulator, in[0], in[1], false, cost);
    case STEP_FN_MATMUL_T_ADD: return product(c, accumulator, in[0], in[1], true, cost);
    case STEP_FN_RETILE_ROWS: return stack_rows(c, accumulator, in[0]);
    case STEP_FN_RETILE_COLS: return stack_columns(c, accumulator, in[0]);
    case STEP_FN_KERNEL: return update_by_kernel(c, accumulator, in, count, cost);
    default: break;
    }
    if (c->fn == STEP_FN_SIGNAL) {
        cost->cycles = 1;
        return accumulator ? accumulator : step_address_new(c->pool, 0);
    }
    if (c->fn == STEP_FN_ROW_SUM_ADD) {
        step_call sum = *c;
        sum.fn = STEP_FN_ADD;
        step_value *row = fold_rows(c, in[0], cost);
        step_value *v = accumulator ? map_2(&sum, accumulator, row, &(step_cost){0}) : step_value_keep(row);
        step_value_drop(c->pool, row);
        return v;
    }
    if (!accumulator) {
        cost->flops = elements_of(in[0]);
        return step_value_keep(in[0]);
    }
    return map_2(c, accumulator, in[0], cost);
}

step_value *step_update(const step_call *c, step_value *accumulator, step_value *const *in, uint32_t count, step_cost *cost)
{
    step_value *parts[ARITY_MAX];
    *cost = (step_cost){0};
    uint32_t opened = open_pairs(in, count, parts, (uint32_t)step_fn_row_of(c->fn)->most_arity - 1);
    step_value *next =
        c->fn == STEP_FN_FORMULA ? step_formula_update(c, accumulator, in, count, cost) : update_any(c, accumulator, parts, opened, cost);
    if (next != accumulator)
        step_value_drop(c->pool, accumulator);
    return next;
}

/* What a fold begins with, and an empty group gives: the value that changes nothing. */
static step_value *neutral(const step_call *c)
{
    step_value *v = step_tile_new(c->pool, c->type->rows < 0 ? 0 : c->type->rows, c->type->columns < 0 ? 0 : c->type->columns);
    float x = c->fn == STEP_FN_MUL ? 1.0f : c->fn == STEP_FN_MAX ? -INFINITY : 0.0f;
    for (int64_t i = 0; v->tile.elements && x != 0.0f && i < v->tile.rows * v->tile.columns; i++)
        v->tile.elements[i] = step_round(c->type->dtype, x);
    return v;
}

step_value *step_shown(const step_call *c, const step_value *accumulator)
{
    if (c->fn == STEP_FN_FORMULA)
        return step_formula_shown(c, accumulator);
    if (c->type->kind == STEP_ADDRESS)
        return step_address_new(c->pool, accumulator ? accumulator->address : 0);
    if (!accumulator)
        return neutral(c);
    step_call copy = *c;
    copy.fn = STEP_FN_IDENTITY;
    return rounded(c, map_1(&copy, accumulator, &(step_cost){0}));
}

/* The piece that is number i of a tile cut into pieces of the output's size, row by row; where that leaves the rows open, of all of them.
 * Rows of padding stay that. */
static step_value *piece(const step_call *c, const step_value *a, int64_t i)
{
    bool all_rows = c->type->rows < 0;
    int64_t rows = all_rows ? a->tile.rows : c->type->rows, columns = c->type->columns;
    if ((!all_rows && (rows == 0 || a->tile.rows % rows != 0)) || columns <= 0 || a->tile.columns % columns != 0)
        return step_fail(c->fault, "a tile of %" PRId64 " x %" PRId64 " is not made of pieces of %" PRId64 " x %" PRId64, a->tile.rows,
                         a->tile.columns, rows, columns);
    int64_t across = a->tile.columns / columns, down = all_rows ? 1 : a->tile.rows / rows, first = i / across * rows;
    if (i >= down * across)
        return NULL;
    int64_t valid = a->tile.valid - first;
    step_value *v = tile(c, rows, columns, valid < 0 ? 0 : valid < rows ? valid : rows);
    for (int64_t r = 0; v->tile.elements && r < rows; r++)
        memcpy(v->tile.elements + r * columns, a->tile.elements + (first + r) * a->tile.columns + i % across * columns,
               (size_t)columns * sizeof(float));
    return v;
}

/* What a value says when a number is wanted: an address itself, a selector its only pick. */
static int64_t number_of(const step_call *c, const step_value *v)
{
    if (v->kind == STEP_ADDRESS)
        return v->address;
    if (v->selector.count == 1)
        return v->selector.picks[0];
    step_fail(c->fault, "a selector of %u picks is no number", v->selector.count);
    return 0;
}

static step_value *address(const step_call *c, const step_value *v, const step_value *count, int64_t i, step_cost *cost)
{
    int64_t base = number_of(c, v), n = count ? number_of(c, count) : c->n, first;
    cost->cycles = 0;
    if (__builtin_mul_overflow(base, c->n, &first) || __builtin_add_overflow(first, i, &first) ||
        __builtin_add_overflow(first, c->first, &first))
        return step_fail(c->fault, "address %" PRId64 " x %" PRId64 " is past 2^63", base, c->n);
    return i < n && !c->fault->set ? step_address_new(c->pool, first) : NULL;
}

/* Selector number i of as many as the value says. */
static step_value *last(const step_call *c, const step_value *v, int64_t i, step_cost *cost)
{
    int64_t n = number_of(c, v);
    uint32_t pick = i == n - 1;
    cost->cycles = 0;
    return i < n && !c->fault->set ? step_selector_new(c->pool, &pick, 1) : NULL;
}

step_value *step_flat(const step_call *c, step_value *const *in, uint32_t count, int64_t i, step_cost *cost)
{
    step_value *parts[2] = {0};
    *cost = (step_cost){0};
    count = open_pairs(in, count, parts, (uint32_t)step_fn_row_of(c->fn)->most_arity);
    const step_value *v = parts[0];
    switch (c->fn) {
    case STEP_FN_ADDRESSES: return address(c, v, count == 2 ? parts[1] : NULL, i, cost);
    case STEP_FN_LAST: return last(c, v, i, cost);
    case STEP_FN_TILES: return piece(c, v, i);
    default: return i < (c->fn == STEP_FN_ROWS ? v->tile.rows : v->tile.valid) ? cut_rows(c, v, i, 1) : NULL;
    }
}
