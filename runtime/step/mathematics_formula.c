#include "runtime/step/mathematics_formula.h"

#include <math.h>

#include "runtime/step/real.h"

static const nested_value *refuse(mathematics *m, const char *why)
{
    m->why = m->why ? m->why : why;
    return NULL;
}

/* ---- tiles ---- */

typedef struct tile {
    int64_t rows, columns, valid;
    real *of;
} tile;

static tile tile_new(mathematics *m, int64_t rows, int64_t columns, int64_t valid)
{
    return (tile){rows, columns, valid, ARENA_ARRAY(m->arena, real, (size_t)(rows * columns) + 1)};
}

static tile tile_filled(mathematics *m, int64_t rows, int64_t columns, double number)
{
    tile t = tile_new(m, rows, columns, rows);
    for (int64_t i = 0; i < rows * columns; i++)
        t.of[i] = real_exact(number);
    return t;
}

/* A bool is 1 or 0. */
static tile tile_taken(mathematics *m, const nested_value *v)
{
    if (v->kind == STEP_BOOL)
        return tile_filled(m, 1, 1, v->flag);
    tile t = tile_new(m, v->tile.rows, v->tile.columns, v->tile.valid);
    for (int64_t i = 0; i < t.rows * t.columns; i++)
        t.of[i] = (real){mathematics_number(v, i), mathematics_error(v, i), mathematics_name(v, i)};
    return t;
}

/* A number of another tile, and not made in this function: names that it gives are odd. */
static bool is_of_tile(real r)
{
    return r.same != 0 && r.same % 2 == 0;
}

static const nested_value *tile_given(mathematics *m, const tile *t)
{
    size_t count = (size_t)(t->rows * t->columns);
    double *x = ARENA_ARRAY(m->arena, double, count + 1), *error = ARENA_ARRAY(m->arena, double, count + 1);
    uint64_t *same = NULL;
    for (size_t i = 0; i < count; i++) {
        x[i] = t->of[i].x;
        error[i] = t->of[i].error;
        if (!is_of_tile(t->of[i]))
            continue;
        same = same ? same : ARENA_ARRAY(m->arena, uint64_t, count + 1);
        same[i] = t->of[i].same;
    }
    nested_value *v = ARENA_NEW(m->arena, nested_value);
    *v = (nested_value){.kind = STEP_TILE, .tile = {t->rows, t->columns, t->valid, NULL, x, error, same}};
    return v;
}

/* One row or one column stands for all. */
static real at(const tile *t, int64_t r, int64_t c)
{
    return t->of[(t->rows > 1 ? r : 0) * t->columns + (t->columns > 1 ? c : 0)];
}

/* ---- pairs ---- */

/* The tiles of a value, from left to right; false: more than fit. */
static bool open_pairs(const nested_value *v, const nested_value **out, uint32_t *count, uint32_t most)
{
    const nested_value *left[2 * STEP_LEAVES_MAX + 1];
    uint32_t waiting = 0;
    left[waiting++] = v;
    while (waiting > 0) {
        const nested_value *one = left[--waiting];
        if (one->kind == STEP_PAIR && waiting + 2 <= 2 * STEP_LEAVES_MAX) {
            left[waiting++] = one->pair.second;
            left[waiting++] = one->pair.first;
        } else if ((one->kind == STEP_TILE || one->kind == STEP_BOOL) && *count < most) {
            out[(*count)++] = one;
        } else {
            return false;
        }
    }
    return true;
}

/* The first and (the second and ..). */
static const nested_value *close_pairs(mathematics *m, const nested_value *const *parts, uint32_t count)
{
    const nested_value *all = parts[count - 1];
    for (uint32_t i = count - 1; i > 0; i--) {
        nested_value *pair = ARENA_NEW(m->arena, nested_value);
        *pair = (nested_value){.kind = STEP_PAIR, .pair = {parts[i - 1], all}};
        all = pair;
    }
    return all;
}

/* ---- instructions ---- */

typedef struct evaluation {
    mathematics *m;
    const tile *in;   /* values, states first */
    const tile *made; /* by instruction */
    uint64_t names;   /* of numbers made here, so far, odd ones (real.h, `same`) */
} evaluation;

static real number_of(step_formula_op op, real a, real b, real c)
{
    switch (op) {
    case FORMULA_ADD: return real_add(a, b);
    case FORMULA_SUB: return real_sub(a, b);
    case FORMULA_MUL: return real_mul(a, b);
    case FORMULA_DIV: return real_div(a, b);
    case FORMULA_MAX: return real_max(a, b);
    case FORMULA_MIN: return real_min(a, b);
    case FORMULA_LT: return real_lt(a, b);
    case FORMULA_LE: return real_le(a, b);
    case FORMULA_EQ: return real_eq(a, b);
    case FORMULA_SELECT: return real_select(a, b, c);
    case FORMULA_NEG: return real_neg(a);
    case FORMULA_EXP: return real_exp(a);
    case FORMULA_LN: return real_ln(a);
    case FORMULA_SQRT: return real_sqrt(a);
    case FORMULA_RSQRT: return real_rsqrt(a);
    case FORMULA_TANH: return real_tanh(a);
    case FORMULA_RELU: return real_relu(a);
    case FORMULA_SILU: return real_silu(a);
    case FORMULA_GELU: return real_gelu(a);
    case FORMULA_VALUE:
    case FORMULA_NUMBER:
    case FORMULA_ROW_SUM:
    case FORMULA_ROW_MAX:
    case FORMULA_COL_SUM:
    case FORMULA_COL_MAX:
    case FORMULA_MATMUL:
    case FORMULA_MATMUL_T: break; /* of whole tiles */
    }
    return real_anything;
}

static bool widen(int64_t *size, int64_t by)
{
    bool fits = *size == by || *size == 1 || by == 1;
    *size = *size == 1 ? by : *size;
    return fits;
}

/* Valid rows are those of the first operand that has as many rows as the result. */
static bool each_number(evaluation *e, const step_instruction *i, unsigned operands, tile *out)
{
    const tile *in[STEP_OPERANDS] = {0};
    int64_t rows = 1, columns = 1, valid = -1;
    for (unsigned k = 0; k < operands; k++) {
        in[k] = &e->made[i->operands[k]];
        if (!widen(&rows, in[k]->rows) || !widen(&columns, in[k]->columns))
            return false;
    }
    for (unsigned k = 0; k < operands && valid < 0; k++)
        valid = in[k]->rows == rows ? in[k]->valid : -1;
    *out = tile_new(e->m, rows, columns, valid);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            real x[STEP_OPERANDS] = {0};
            for (unsigned k = 0; k < operands; k++)
                x[k] = at(in[k], r, c);
            out->of[r * columns + c] = number_of(i->op, x[0], x[1], x[2]);
        }
    return true;
}

static real folded(bool largest, const real *of, int64_t count, int64_t stride)
{
    real most = real_exact(-INFINITY);
    real_sum sum = {0};
    for (int64_t k = 0; k < count; k++) {
        if (largest)
            most = real_max(most, of[k * stride]);
        else
            real_sum_add(&sum, of[k * stride]);
    }
    return largest ? most : real_sum_end(&sum);
}

static void fold_each_row(evaluation *e, const tile *a, bool largest, tile *out)
{
    *out = tile_new(e->m, a->rows, 1, a->valid);
    for (int64_t r = 0; r < a->rows; r++)
        out->of[r] = folded(largest, a->of + r * a->columns, a->columns, 1);
}

static void fold_each_column(evaluation *e, const tile *a, bool largest, tile *out)
{
    *out = tile_new(e->m, 1, a->columns, 1);
    for (int64_t c = 0; c < a->columns; c++)
        out->of[c] = folded(largest, a->of + c, a->rows, a->columns);
}

static bool multiply(evaluation *e, const tile *a, const tile *b, bool turned, tile *out)
{
    int64_t inner = turned ? b->columns : b->rows, columns = turned ? b->rows : b->columns;
    if (a->columns != inner)
        return false;
    *out = tile_new(e->m, a->rows, columns, a->valid);
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            real_sum sum = {0};
            for (int64_t k = 0; k < inner; k++)
                real_sum_add_product(&sum, a->of[r * inner + k], b->of[turned ? c * inner + k : k * columns + c]);
            out->of[r * columns + c] = real_sum_end(&sum);
        }
    return true;
}

/* What is no number that there was is one of its own. */
static void name_numbers(evaluation *e, const tile *t)
{
    for (int64_t i = 0; i < t->rows * t->columns; i++)
        t->of[i].same = t->of[i].same ? t->of[i].same : (e->names += 2);
}

/* False: the tiles do not fit each other. */
static bool instruction(evaluation *e, const step_instruction *i, tile *out)
{
    const step_formula_row *row = step_formula_row_of(i->op);
    const tile *a = row->operands > 0 ? &e->made[i->operands[0]] : NULL, *b = row->operands > 1 ? &e->made[i->operands[1]] : NULL;
    switch (i->op) {
    case FORMULA_VALUE: *out = e->in[i->operands[0]]; return true;
    case FORMULA_NUMBER: *out = tile_filled(e->m, 1, 1, (double)i->number); return true;
    case FORMULA_ROW_SUM:
    case FORMULA_ROW_MAX: fold_each_row(e, a, i->op == FORMULA_ROW_MAX, out); return true;
    case FORMULA_COL_SUM:
    case FORMULA_COL_MAX: fold_each_column(e, a, i->op == FORMULA_COL_MAX, out); return true;
    case FORMULA_MATMUL: return multiply(e, a, b, false, out);
    case FORMULA_MATMUL_T: return multiply(e, a, b, true, out);
    default: return each_number(e, i, row->operands, out);
    }
}

/* ---- the three uses ---- */

const nested_value *mathematics_formula(mathematics *m, const nested_value *state, const nested_value *const *in, uint32_t count)
{
    const step_formula *f = m->node->formula;
    const nested_value *leaves[2 * STEP_LEAVES_MAX], *results[STEP_LEAVES_MAX];
    tile values[2 * STEP_LEAVES_MAX], *made = ARENA_ARRAY(m->arena, tile, f->count);
    evaluation e = {.m = m, .in = values, .made = made, .names = 1};
    uint32_t leaf_count = 0;
    bool opened = f->state_count == 0 || open_pairs(state ? state : mathematics_formula_begin(m), leaves, &leaf_count, f->state_count);
    for (uint32_t i = 0; i < count && opened; i++)
        opened = open_pairs(in[i], leaves, &leaf_count, f->state_count + f->values);
    if (!opened || leaf_count != f->state_count + f->values)
        return refuse(m, "its function takes another number of tiles");
    for (uint32_t i = 0; i < leaf_count; i++)
        values[i] = tile_taken(m, leaves[i]);
    for (uint32_t i = 0; i < f->count; i++) {
        if (!instruction(&e, &f->items[i], &made[i]))
            return refuse(m, "tiles in its function do not fit each other");
        name_numbers(&e, &made[i]);
    }
    for (uint32_t i = 0; i < f->result_count; i++)
        results[i] = tile_given(m, &made[f->results[i]]);
    return close_pairs(m, results, f->result_count);
}

const nested_value *mathematics_formula_begin(mathematics *m)
{
    const step_formula *f = m->node->formula;
    const nested_value *parts[STEP_LEAVES_MAX];
    for (uint32_t i = 0; i < f->state_count; i++) {
        tile t = tile_filled(m, f->states[i].rows, f->states[i].columns, (double)f->states[i].value);
        parts[i] = tile_given(m, &t);
    }
    return close_pairs(m, parts, f->state_count);
}

const nested_value *mathematics_formula_shown(mathematics *m, const nested_value *v)
{
    const nested_value *parts[STEP_LEAVES_MAX];
    const step_type *type = m->type;
    uint32_t count = 0;
    if (!open_pairs(v, parts, &count, STEP_LEAVES_MAX))
        return refuse(m, "its function gives too many tiles");
    for (uint32_t i = 0; i < count; i++) {
        bool pair = type->kind == STEP_PAIR;
        const step_type *part = pair ? &m->types[type->first] : type;
        type = pair ? &m->types[type->second] : type;
        tile t = tile_taken(m, parts[i]);
        for (int64_t k = 0; k < t.rows * t.columns; k++) {
            mathematics_round(part->dtype, &t.of[k].x, &t.of[k].error);
            t.of[k].same = part->dtype == DTYPE_F32 && parts[i]->tile.same ? parts[i]->tile.same[k] : 0; /* f32 changes none */
        }
        parts[i] = tile_given(m, &t);
    }
    return close_pairs(m, parts, count);
}
