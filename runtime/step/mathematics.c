#include "runtime/step/mathematics.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "runtime/step/mathematics_formula.h"
#include "runtime/step/real.h"
#include "runtime/tensor/numeric.h"

static const double f32_function = 0x1p-21; /* of expf and what is made of it, relative: a few of the last place */
static const double f32_least = 0x1p-126;   /* below it steps no longer shrink */
static const double f32_exp_most = 88;      /* e to the power of more may be infinite in f32 */

static const nested_value *says_nothing(mathematics *m, const char *why)
{
    m->why = m->why ? m->why : why;
    return NULL;
}

/* ---- tiles ---- */

double mathematics_number(const nested_value *t, int64_t i)
{
    return t->tile.exact ? (double)t->tile.exact[i] : t->tile.x[i];
}

double mathematics_error(const nested_value *t, int64_t i)
{
    return t->tile.exact ? 0 : t->tile.error[i];
}

/* Where it was first written. */
uint64_t mathematics_name(const nested_value *t, int64_t i)
{
    const void *own = t->tile.exact ? (const void *)&t->tile.exact[i] : (const void *)&t->tile.x[i];
    return t->tile.same && t->tile.same[i] ? t->tile.same[i] : (uint64_t)(uintptr_t)own;
}

const nested_value *mathematics_exact(const float *numbers, int64_t rows, int64_t columns, int64_t valid, arena *a)
{
    nested_value *v = ARENA_NEW(a, nested_value);
    *v = (nested_value){.kind = STEP_TILE, .tile = {rows, columns, valid, numbers, NULL, NULL}};
    return v;
}

/* A tile whose numbers are still to be written. */
typedef struct draft {
    nested_value *value;
    double *x, *error;
} draft;

static draft new_tile(mathematics *m, int64_t rows, int64_t columns, int64_t valid)
{
    draft d = {.value = ARENA_NEW(m->arena, nested_value),
               .x = ARENA_ARRAY(m->arena, double, (size_t)(rows * columns) + 1),
               .error = ARENA_ARRAY(m->arena, double, (size_t)(rows * columns) + 1)};
    *d.value = (nested_value){.kind = STEP_TILE, .tile = {rows, columns, valid, NULL, d.x, d.error}};
    return d;
}

/* Names for its numbers, which are those of other tiles. */
static uint64_t *name_them(mathematics *m, draft *d)
{
    uint64_t *same = ARENA_ARRAY(m->arena, uint64_t, (size_t)(d->value->tile.rows * d->value->tile.columns) + 1);
    d->value->tile.same = same;
    return same;
}

static double nearest(dtype t, double x)
{
    unsigned char bits[8] = {0};
    numeric_from_double(t, bits, 0, x);
    return numeric_to_double(t, bits, 0);
}

void mathematics_round(dtype t, double *x, double *error)
{
    if (isnan(*x) || isinf(*x))
        return;
    double middle = nearest(t, *x), low = nearest(t, *x - *error), high = nearest(t, *x + *error);
    *error = fmax(middle - low, high - middle);
    *x = middle;
    if (isnan(*error))
        *error = INFINITY;
}

static const nested_value *rounded(mathematics *m, const nested_value *v)
{
    draft d = new_tile(m, v->tile.rows, v->tile.columns, v->tile.valid);
    for (int64_t i = 0; i < v->tile.rows * v->tile.columns; i++) {
        d.x[i] = mathematics_number(v, i);
        d.error[i] = mathematics_error(v, i);
        mathematics_round(m->type->dtype, &d.x[i], &d.error[i]);
    }
    if (m->type->dtype == DTYPE_F32) /* that changes none */
        d.value->tile.same = v->tile.same;
    return d.value;
}

/* Of a result of f32, before it is rounded to anything else. */
static double with_f32(double x, double error, double relative)
{
    return error + (fabs(x) + error) * relative + (x != 0 && fabs(x) < f32_least ? f32_least : 0);
}

/* ---- numbers ---- */

static void apply_1(step_fn fn, double x, double e, double *y, double *error)
{
    switch (fn) {
    case STEP_FN_SILU:
        *y = x / (1 + exp(-x));
        *error = with_f32(*y, 1.1 * e, f32_function) + f32_least;
        if (x - e < -f32_exp_most) /* exp(-x) is infinite in f32, and the quotient 0 */
            *error += fabs(*y);
        break;
    case STEP_FN_EXP:
        *y = exp(x);
        *error = with_f32(*y, *y * expm1(e), f32_function) + f32_least;
        break;
    default:
        *y = x;
        *error = e;
        break;
    }
}

static real apply_2(step_fn fn, real x, real y)
{
    switch (fn) {
    case STEP_FN_ADD: return real_add(x, y);
    case STEP_FN_SUB: return real_sub(x, y);
    case STEP_FN_MUL: return real_mul(x, y);
    case STEP_FN_DIV: return real_div(x, y);
    default: return real_max(x, y);
    }
}

/* ---- tiles to tiles ---- */

static real taken(const nested_value *v, int64_t i)
{
    return (real){mathematics_number(v, i), mathematics_error(v, i), mathematics_name(v, i)};
}

static const nested_value *each(mathematics *m, const nested_value *a)
{
    draft d = new_tile(m, a->tile.rows, a->tile.columns, a->tile.valid);
    for (int64_t i = 0; i < a->tile.rows * a->tile.columns; i++)
        apply_1(m->node->fn, mathematics_number(a, i), mathematics_error(a, i), &d.x[i], &d.error[i]);
    return d.value;
}

/* One row or one column stands for all. */
static const nested_value *pairwise(mathematics *m, step_fn fn, const nested_value *a, const nested_value *b)
{
    int64_t rows = a->tile.rows == 1 ? b->tile.rows : a->tile.rows, columns = a->tile.columns == 1 ? b->tile.columns : a->tile.columns;
    draft d = new_tile(m, rows, columns, a->tile.rows == rows ? a->tile.valid : b->tile.valid);
    uint64_t *same = fn == STEP_FN_MAX ? name_them(m, &d) : NULL;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < columns; k++) {
            int64_t i = (a->tile.rows == 1 ? 0 : r) * a->tile.columns + (a->tile.columns == 1 ? 0 : k),
                    j = (b->tile.rows == 1 ? 0 : r) * b->tile.columns + (b->tile.columns == 1 ? 0 : k), o = r * columns + k;
            real made = apply_2(fn, taken(a, i), taken(b, j));
            d.x[o] = made.x;
            d.error[o] = made.error;
            if (same)
                same[o] = made.same;
        }
    return d.value;
}

static const nested_value *fold_rows(mathematics *m, const nested_value *a)
{
    bool largest = m->node->fn == STEP_FN_ROW_MAX;
    draft d = new_tile(m, a->tile.rows, 1, a->tile.valid);
    uint64_t *same = name_them(m, &d);
    for (int64_t r = 0; r < a->tile.rows; r++) {
        real most = real_exact(-INFINITY);
        real_sum sum = {0};
        for (int64_t k = 0; k < a->tile.columns; k++) {
            real x = taken(a, r * a->tile.columns + k);
            if (largest)
                most = real_max(most, x);
            else
                real_sum_add(&sum, x);
        }
        real made = largest ? most : real_sum_end(&sum);
        d.x[r] = made.x;
        d.error[r] = made.error;
        same[r] = made.same;
    }
    return d.value;
}

/* sum_k a(r, k) b(k, c), to what was there before. */
static const nested_value *product(mathematics *m, const nested_value *before, const nested_value *a, const nested_value *b, bool turned)
{
    int64_t inner = a->tile.columns, columns = turned ? b->tile.rows : b->tile.columns;
    draft d = new_tile(m, a->tile.rows, columns, before ? before->tile.valid : a->tile.valid);
    for (int64_t r = 0; r < a->tile.rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            int64_t o = r * columns + c;
            real_sum sum = {0};
            if (before)
                real_sum_add(&sum, taken(before, o));
            for (int64_t k = 0; k < inner; k++)
                real_sum_add_product(&sum, taken(a, r * inner + k), taken(b, turned ? c * inner + k : k * columns + c));
            real made = real_sum_end(&sum);
            d.x[o] = made.x;
            d.error[o] = made.error;
        }
    return d.value;
}

/* Rows first .. first + rows, columns left .. left + columns. */
static const nested_value *cut(mathematics *m, const nested_value *a, int64_t first, int64_t rows, int64_t left, int64_t columns)
{
    int64_t valid = a->tile.valid - first;
    draft d = new_tile(m, rows, columns, valid < 0 ? 0 : valid < rows ? valid : rows);
    uint64_t *same = name_them(m, &d);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < columns; k++) {
            d.x[r * columns + k] = mathematics_number(a, (first + r) * a->tile.columns + left + k);
            d.error[r * columns + k] = mathematics_error(a, (first + r) * a->tile.columns + left + k);
            same[r * columns + k] = mathematics_name(a, (first + r) * a->tile.columns + left + k);
        }
    return d.value;
}

/* `b` at the given place of a tile that has `a` at its beginning. */
static const nested_value *joined(mathematics *m, const nested_value *a, const nested_value *b, int64_t row, int64_t column, int64_t rows,
                                  int64_t columns, int64_t valid)
{
    draft d = new_tile(m, rows, columns, valid);
    uint64_t *same = name_them(m, &d);
    const nested_value *part[] = {a, b};
    for (int p = 0; p < 2; p++)
        for (int64_t r = 0; part[p] && r < part[p]->tile.rows; r++)
            for (int64_t k = 0; k < part[p]->tile.columns; k++) {
                int64_t o = (r + (p ? row : 0)) * columns + k + (p ? column : 0);
                d.x[o] = mathematics_number(part[p], r * part[p]->tile.columns + k);
                d.error[o] = mathematics_error(part[p], r * part[p]->tile.columns + k);
                same[o] = mathematics_name(part[p], r * part[p]->tile.columns + k);
            }
    return d.value;
}

static const nested_value *below(mathematics *m, const nested_value *a, const nested_value *b)
{
    int64_t rows = a ? a->tile.rows : 0;
    bool whole = !a || a->tile.valid == rows;
    return joined(m, a, b, rows, 0, rows + b->tile.rows, b->tile.columns, whole ? rows + b->tile.valid : a->tile.valid);
}

static const nested_value *beside(mathematics *m, const nested_value *a, const nested_value *b)
{
    int64_t columns = a ? a->tile.columns : 0;
    return joined(m, a, b, 0, columns, b->tile.rows, columns + b->tile.columns, b->tile.valid);
}

static const nested_value *with_valid(mathematics *m, const nested_value *a, int64_t valid)
{
    nested_value *v = ARENA_NEW(m->arena, nested_value);
    *v = *a;
    v->tile.valid = valid;
    return v;
}

/* ---- plain values ---- */

static const nested_value *plain(mathematics *m, nested_value v)
{
    nested_value *out = ARENA_NEW(m->arena, nested_value);
    *out = v;
    return out;
}

static const nested_value *address(mathematics *m, int64_t a)
{
    return plain(m, (nested_value){.kind = STEP_ADDRESS, .address = a});
}

static const nested_value *selector(mathematics *m, int64_t output)
{
    uint32_t *pick = ARENA_NEW(m->arena, uint32_t);
    *pick = (uint32_t)output;
    return plain(m, (nested_value){.kind = STEP_SELECTOR, .selector = {1, pick}});
}

static int64_t number_of(const nested_value *v)
{
    return v->kind == STEP_ADDRESS ? v->address : v->selector.picks[0];
}

/* ---- the three uses ---- */

enum { OPERANDS = STEP_MAP_INPUTS };

/* A pair stands for its two parts where a function takes two. */
static uint32_t operands(const mathematics *m, const nested_value *const *in, uint32_t count, int own, const nested_value **out)
{
    bool opens = count == 1 && in[0]->kind == STEP_PAIR && step_fn_row_of(m->node->fn)->most_arity - own > 1;
    if (opens) {
        out[0] = in[0]->pair.first;
        out[1] = in[0]->pair.second;
        return 2;
    }
    for (uint32_t i = 0; i < count && i < OPERANDS; i++)
        out[i] = in[i];
    return count;
}

const nested_value *mathematics_map(mathematics *m, const nested_value *const *in, uint32_t count)
{
    const nested_value *v[OPERANDS];
    if (m->node->fn == STEP_FN_FORMULA) {
        const nested_value *results = mathematics_formula(m, NULL, in, count);
        return results ? mathematics_formula_shown(m, results) : NULL;
    }
    count = operands(m, in, count, 0, v);
    switch (m->node->fn) {
    case STEP_FN_IDENTITY: return v[0];
    case STEP_FN_FIRST: return v[0]->pair.first;
    case STEP_FN_SECOND: return v[0]->pair.second;
    case STEP_FN_SIGNAL: return address(m, 0);
    case STEP_FN_SELECT: {
        int64_t output = v[0]->address / m->node->param[STEP_N], last = m->type->width - 1;
        return selector(m, output < last ? output : last);
    }
    case STEP_FN_SET_VALID_ROWS: return with_valid(m, v[0], v[1]->address);
    case STEP_FN_APPEND_ROW: return joined(m, v[0], v[1], v[0]->tile.valid, 0, v[0]->tile.rows, v[0]->tile.columns, v[0]->tile.valid + 1);
    case STEP_FN_TAKE: return cut(m, v[0], 0, v[0]->tile.valid, 0, v[0]->tile.columns);
    case STEP_FN_MATMUL: return rounded(m, product(m, NULL, v[0], v[1], false));
    case STEP_FN_MATMUL_T: return rounded(m, product(m, NULL, v[0], v[1], true));
    case STEP_FN_ROW_SUM:
    case STEP_FN_ROW_MAX: return rounded(m, fold_rows(m, v[0]));
    case STEP_FN_SILU:
    case STEP_FN_EXP:
    case STEP_FN_CAST: return rounded(m, each(m, v[0]));
    case STEP_FN_ADD:
    case STEP_FN_SUB:
    case STEP_FN_MUL:
    case STEP_FN_DIV:
    case STEP_FN_MAX: return rounded(m, pairwise(m, m->node->fn, v[0], v[1]));
    default: return says_nothing(m, "its function has no mathematics here");
    }
}

const nested_value *mathematics_fold(mathematics *m, const nested_value *accumulator, const nested_value *const *in, uint32_t count)
{
    const nested_value *v[OPERANDS], *a = accumulator;
    if (m->node->fn == STEP_FN_FORMULA)
        return mathematics_formula(m, a, in, count);
    operands(m, in, count, 1, v);
    switch (m->node->fn) {
    case STEP_FN_SIGNAL: return address(m, 0);
    case STEP_FN_MATMUL_ADD: return product(m, a, v[0], v[1], false);
    case STEP_FN_MATMUL_T_ADD: return product(m, a, v[0], v[1], true);
    case STEP_FN_RETILE_ROWS: return below(m, a, v[0]);
    case STEP_FN_RETILE_COLS: return beside(m, a, v[0]);
    case STEP_FN_ROW_SUM_ADD: {
        const nested_value *sums = fold_rows(m, v[0]);
        return a ? pairwise(m, STEP_FN_ADD, a, sums) : sums;
    }
    case STEP_FN_ADD:
    case STEP_FN_MUL:
    case STEP_FN_MAX: return a ? pairwise(m, m->node->fn, a, v[0]) : v[0];
    default: return says_nothing(m, "its function has no mathematics here");
    }
}

const nested_value *mathematics_shown(mathematics *m, const nested_value *accumulator)
{
    if (m->node->fn == STEP_FN_FORMULA)
        return mathematics_formula_shown(m, accumulator ? accumulator : mathematics_formula_begin(m));
    if (m->type->kind == STEP_ADDRESS)
        return accumulator ? accumulator : address(m, 0);
    if (accumulator)
        return rounded(m, accumulator);
    int64_t rows = m->type->rows < 0 ? 0 : m->type->rows, columns = m->type->columns < 0 ? 0 : m->type->columns;
    draft d = new_tile(m, rows, columns, rows);
    for (int64_t i = 0; i < rows * columns; i++)
        d.x[i] = m->node->fn == STEP_FN_MUL ? 1 : m->node->fn == STEP_FN_MAX ? -INFINITY : 0;
    return d.value;
}

static void push_pieces(mathematics *m, const nested_value *a, int64_t rows, int64_t columns, nested *to)
{
    for (int64_t r = 0; r < a->tile.rows || (r == 0 && rows == 0); r += rows > 0 ? rows : 1)
        for (int64_t c = 0; c < a->tile.columns; c += columns)
            nested_push(to, cut(m, a, r, rows, c, columns));
}

bool mathematics_flat(mathematics *m, const nested_value *const *in, uint32_t count, nested *to, int64_t *values)
{
    const nested_value *v[OPERANDS];
    size_t before = to->count;
    count = operands(m, in, count, 0, v);
    switch (m->node->fn) {
    case STEP_FN_ROWS:
    case STEP_FN_VALID_ROWS:
        for (int64_t r = 0; r < (m->node->fn == STEP_FN_ROWS ? v[0]->tile.rows : v[0]->tile.valid); r++)
            nested_push(to, with_valid(m, cut(m, v[0], r, 1, 0, v[0]->tile.columns), 1));
        break;
    case STEP_FN_TILES: push_pieces(m, v[0], m->type->rows < 0 ? v[0]->tile.rows : m->type->rows, m->type->columns, to); break;
    case STEP_FN_ADDRESSES:
        for (int64_t i = 0; i < (count == 2 ? number_of(v[1]) : m->node->param[STEP_N]); i++)
            nested_push(to, address(m, m->node->param[STEP_FIRST] + number_of(v[0]) * m->node->param[STEP_N] + i));
        break;
    case STEP_FN_LAST:
        for (int64_t i = 0; i < number_of(v[0]); i++)
            nested_push(to, selector(m, i + 1 == number_of(v[0])));
        break;
    default: return says_nothing(m, "its function has no mathematics here") != NULL;
    }
    *values = (int64_t)(to->count - before);
    return true;
}
