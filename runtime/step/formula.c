#include "runtime/step/formula.h"

#include <inttypes.h>
#include <math.h>

typedef struct working {
    const step_call *call;
    const step_formula *f;
    const step_value *leaves[2 * STEP_LEAVES_MAX];
    uint32_t leaf_count;
    step_value **made; /* by instruction */
    step_cost *cost;
} working;

/* A fault past 2^62. */
static void spend(working *w, int64_t flops)
{
    if (w->cost->flops > (INT64_C(1) << 62) - flops)
        step_fail(w->call->fault, "a function of more than 2^62 FLOPs");
    else
        w->cost->flops += flops;
}

static float apply(step_formula_op op, float a, float b, float c)
{
    switch (op) {
    case FORMULA_ADD: return a + b;
    case FORMULA_SUB: return a - b;
    case FORMULA_MUL: return a * b;
    case FORMULA_DIV: return a / b;
    case FORMULA_MAX: return a > b || a != a ? a : b;
    case FORMULA_MIN: return a < b || a != a ? a : b;
    case FORMULA_LT: return a < b ? 1.0f : 0.0f;
    case FORMULA_LE: return a <= b ? 1.0f : 0.0f;
    case FORMULA_EQ: return a >= b && a <= b ? 1.0f : 0.0f;
    case FORMULA_SELECT: return a > 0 || a < 0 || a != a ? b : c;
    case FORMULA_NEG: return -a;
    case FORMULA_EXP: return expf(a);
    case FORMULA_LN: return logf(a);
    case FORMULA_SQRT: return sqrtf(a);
    case FORMULA_RSQRT: return 1 / sqrtf(a);
    case FORMULA_TANH: return tanhf(a);
    case FORMULA_RELU: return a > 0 || a != a ? a : 0;
    case FORMULA_SILU: return a / (1 + expf(-a));
    case FORMULA_GELU: return a / 2 * (1 + tanhf(0.7978845608f * (a + 0.044715f * a * a * a)));
    default: return a;
    }
}

static step_value *misfit(const working *w, const step_formula_row *row, const step_value *a, const step_value *b)
{
    return step_fail(w->call->fault, "%s takes no tile of %" PRId64 " x %" PRId64 " with one of %" PRId64 " x %" PRId64, row->name,
                     a->tile.rows, a->tile.columns, b->tile.rows, b->tile.columns);
}

static step_value *tile(const working *w, int64_t rows, int64_t columns, int64_t valid)
{
    step_value *v = step_tile_new(w->call->pool, rows, columns);
    v->tile.valid = valid;
    return v;
}

/* The element of an operand that is repeated where it has one row or one column. */
static float element(const step_value *v, int64_t r, int64_t k)
{
    return v->tile.elements[(v->tile.rows == 1 ? 0 : r) * v->tile.columns + (v->tile.columns == 1 ? 0 : k)];
}

static step_value *each(working *w, const step_formula_row *row, const step_value *const *in)
{
    int64_t rows = in[0]->tile.rows, columns = in[0]->tile.columns, valid = in[0]->tile.valid;
    for (unsigned i = 1; i < row->operands; i++) {
        int64_t r = in[i]->tile.rows, k = in[i]->tile.columns;
        if ((r != rows && r != 1 && rows != 1) || (k != columns && k != 1 && columns != 1))
            return misfit(w, row, in[0], in[i]);
        valid = rows == 1 && r != 1 ? in[i]->tile.valid : valid;
        rows = rows == 1 ? r : rows;
        columns = columns == 1 ? k : columns;
    }
    step_value *v = tile(w, rows, columns, valid);
    spend(w, row->flops * rows * columns);
    const step_value *b = in[row->operands > 1], *c = in[row->operands > 2 ? 2 : 0];
    for (int64_t r = 0; v->tile.elements && r < rows; r++)
        for (int64_t k = 0; k < columns; k++)
            v->tile.elements[r * columns + k] = apply(row->op, element(in[0], r, k), element(b, r, k), element(c, r, k));
    return v;
}

static step_value *reduce(working *w, const step_formula_row *row, const step_value *a)
{
    bool along_rows = row->rule == STEP_ROWS, largest = row->op == FORMULA_ROW_MAX || row->op == FORMULA_COL_MAX;
    int64_t rows = a->tile.rows, columns = a->tile.columns;
    step_value *v = along_rows ? tile(w, rows, 1, a->tile.valid) : tile(w, 1, columns, 1);
    spend(w, row->flops * rows * columns);
    int64_t results = along_rows ? rows : columns, count = along_rows ? columns : rows;
    for (int64_t i = 0; v->tile.elements && i < results; i++) {
        float fold = largest ? -INFINITY : 0;
        for (int64_t k = 0; k < count; k++) {
            float x = a->tile.elements[along_rows ? i * columns + k : k * columns + i];
            fold = largest ? apply(FORMULA_MAX, fold, x, 0) : fold + x;
        }
        v->tile.elements[i] = fold;
    }
    return v;
}

static step_value *product(working *w, const step_formula_row *row, const step_value *a, const step_value *b)
{
    bool transposed = row->rule == STEP_PRODUCT_T;
    int64_t inner = transposed ? b->tile.columns : b->tile.rows, columns = transposed ? b->tile.rows : b->tile.columns;
    if (a->tile.columns != inner)
        return misfit(w, row, a, b);
    step_value *v = tile(w, a->tile.rows, columns, a->tile.valid);
    spend(w, row->flops * a->tile.rows * inner * columns);
    for (int64_t r = 0; v->tile.elements && r < a->tile.rows; r++)
        for (int64_t k = 0; k < inner; k++)
            for (int64_t n = 0; n < columns; n++)
                v->tile.elements[r * columns + n] +=
                    a->tile.elements[r * inner + k] * b->tile.elements[transposed ? n * inner + k : k * columns + n];
    return v;
}

/* NULL with a fault. */
static step_value *one(working *w, const step_instruction *i)
{
    const step_formula_row *row = step_formula_row_of(i->op);
    const step_value *in[STEP_OPERANDS] = {0};
    for (unsigned k = 0; k < row->operands; k++)
        in[k] = w->made[i->operands[k]];
    const step_value *leaf = i->op == FORMULA_VALUE ? w->leaves[i->operands[0]] : NULL;
    switch (row->rule) {
    case STEP_LEAF:
        if (leaf && leaf->kind != STEP_BOOL)
            return step_value_keep((step_value *)leaf);
        step_value *v = tile(w, 1, 1, 1);
        if (v->tile.elements)
            v->tile.elements[0] = leaf ? leaf->flag : i->number;
        return v;
    case STEP_EACH: return each(w, row, in);
    case STEP_ROWS:
    case STEP_COLUMNS: return reduce(w, row, in[0]);
    default: return product(w, row, in[0], in[1]);
    }
}

/* A copy whose elements are those of the type. */
static step_value *rounded(const step_call *c, const step_value *v, dtype type)
{
    step_value *copy = step_tile_new(c->pool, v->tile.rows, v->tile.columns);
    copy->tile.valid = v->tile.valid;
    for (int64_t i = 0; copy->tile.elements && i < v->tile.rows * v->tile.columns; i++)
        copy->tile.elements[i] = step_round(type, v->tile.elements[i]);
    return copy;
}

/* All parts have one element type: that of the last. */
static dtype type_of_parts(const step_call *c)
{
    const step_type *t = c->type;
    while (t->kind == STEP_PAIR)
        t = &c->types[t->second];
    return t->dtype;
}

static step_value *joined(const step_call *c, step_value **parts, uint32_t count)
{
    step_value *all = parts[count - 1];
    for (uint32_t i = count - 1; i-- > 0;)
        all = step_pair_new(c->pool, parts[i], all);
    return all;
}

static void add_leaves(working *w, const step_value *v)
{
    for (; v->kind == STEP_PAIR; v = v->pair[1])
        add_leaves(w, v->pair[0]);
    if (w->leaf_count < 2 * STEP_LEAVES_MAX)
        w->leaves[w->leaf_count++] = v;
}

static step_value *initial(const step_call *c, uint32_t i)
{
    const step_initial *s = &c->formula->states[i];
    step_value *v = step_tile_new(c->pool, s->rows, s->columns);
    for (int64_t k = 0; v->tile.elements && k < s->rows * s->columns; k++)
        v->tile.elements[k] = s->value;
    return v;
}

/* The results joined, or NULL with a fault. */
static step_value *run(working *w, bool rounds)
{
    const step_formula *f = w->f;
    step_value *made[STEP_FORMULA_MAX], *results[STEP_LEAVES_MAX];
    uint32_t count = 0;
    bool good = w->leaf_count == f->state_count + f->values;
    if (!good)
        step_fail(w->call->fault, "a function of %" PRIu32 " tiles was given %" PRIu32, f->state_count + f->values, w->leaf_count);
    w->made = made;
    for (; good && count < f->count; count++) {
        made[count] = one(w, &f->items[count]);
        if (!made[count] || w->call->fault->set) {
            count += made[count] != NULL;
            good = false;
            break;
        }
    }
    good = good && count == f->count;
    for (uint32_t i = 0; good && i < f->result_count; i++) {
        step_value *v = made[f->results[i]];
        results[i] = rounds ? rounded(w->call, v, type_of_parts(w->call)) : step_value_keep(v);
    }
    for (uint32_t i = 0; i < count; i++)
        step_value_drop(w->call->pool, made[i]);
    w->made = NULL;
    return good ? joined(w->call, results, f->result_count) : NULL;
}

step_value *step_formula_map(const step_call *c, step_value *const *in, uint32_t count, step_cost *cost)
{
    working w = {.call = c, .f = c->formula, .cost = cost};
    *cost = (step_cost){0};
    for (uint32_t i = 0; i < count; i++)
        add_leaves(&w, in[i]);
    return run(&w, true);
}

static step_value *begin(const step_call *c)
{
    step_value *parts[STEP_LEAVES_MAX];
    for (uint32_t i = 0; i < c->formula->state_count; i++)
        parts[i] = initial(c, i);
    return joined(c, parts, c->formula->state_count);
}

step_value *step_formula_update(const step_call *c, const step_value *state, step_value *const *in, uint32_t count, step_cost *cost)
{
    working w = {.call = c, .f = c->formula, .cost = cost};
    step_value *first = state ? NULL : begin(c);
    *cost = (step_cost){0};
    add_leaves(&w, state ? state : first);
    for (uint32_t i = 0; i < count; i++)
        add_leaves(&w, in[i]);
    step_value *next = run(&w, false);
    step_value_drop(c->pool, first);
    return next;
}

step_value *step_formula_shown(const step_call *c, const step_value *state)
{
    working w = {.call = c, .f = c->formula};
    step_value *first = state ? NULL : begin(c), *parts[STEP_LEAVES_MAX];
    add_leaves(&w, state ? state : first);
    for (uint32_t i = 0; i < w.leaf_count && i < STEP_LEAVES_MAX; i++)
        parts[i] = rounded(c, w.leaves[i], type_of_parts(c));
    step_value_drop(c->pool, first);
    return joined(c, parts, w.leaf_count);
}
