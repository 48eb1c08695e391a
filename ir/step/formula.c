#include "ir/step/formula.h"

#include "ir/step/type.h"

typedef struct extent {
    const step_expr *rows, *columns;
} extent;

typedef struct sizing {
    step_graph *g;
    const step_formula *f;
    extent *of; /* each instruction's tile */
    const step_expr *flops;
    const char *why;
} sizing;

static bool add_leaves(const step_data *d, const step_data **leaves, uint32_t *count)
{
    if (d->kind == STEP_PAIR) /* pairs in pairs: as deep as the source that made them */
        return add_leaves(d->first, leaves, count) && add_leaves(d->second, leaves, count);
    if ((d->kind != STEP_TILE && d->kind != STEP_BOOL) || *count == STEP_LEAVES_MAX)
        return false;
    leaves[(*count)++] = d;
    return true;
}

bool step_formula_leaves(const step_stream *const *inputs, uint32_t input_count, const step_data **leaves, uint32_t *count)
{
    *count = 0;
    for (uint32_t i = 0; i < input_count; i++)
        if (inputs[i]->data->depth > STEP_LEAVES_MAX || !add_leaves(inputs[i]->data, leaves, count))
            return false;
    return true;
}

static bool wrong(sizing *s, const step_formula_row *row, extent a, extent b)
{
    arena *m = s->g->arena;
    if (!s->why)
        s->why = arena_printf(m, "`%s` of a tile %s x %s and one of %s x %s", row->name, step_expr_text(a.rows, m),
                              step_expr_text(a.columns, m), step_expr_text(b.rows, m), step_expr_text(b.columns, m));
    return false;
}

/* Equal, or one of them 1: then the other. NULL: neither. */
static const step_expr *joined(const sizing *s, const step_expr *a, const step_expr *b)
{
    const step_expr *one = step_expr_number(s->g->exprs, 1);
    return a == b || b == one ? a : a == one ? b : NULL;
}

static void add_flops(sizing *s, extent e, int64_t each)
{
    step_exprs *x = s->g->exprs;
    const step_expr *all = step_expr_multiply(x, step_expr_multiply(x, e.rows, e.columns), step_expr_number(x, each));
    s->flops = step_expr_add(x, s->flops, all);
}

static bool size_each(sizing *s, const step_formula_row *row, const step_instruction *i, extent *out)
{
    *out = s->of[i->operands[0]];
    for (unsigned k = 1; k < row->operands; k++) {
        extent a = *out, b = s->of[i->operands[k]];
        *out = (extent){joined(s, a.rows, b.rows), joined(s, a.columns, b.columns)};
        if (!out->rows || !out->columns)
            return wrong(s, row, a, b);
    }
    add_flops(s, *out, row->flops);
    return true;
}

static bool size_product(sizing *s, const step_formula_row *row, const step_instruction *i, extent *out)
{
    extent a = s->of[i->operands[0]], b = s->of[i->operands[1]];
    bool transposed = row->rule == STEP_PRODUCT_T;
    if (a.columns != (transposed ? b.columns : b.rows))
        return wrong(s, row, a, b);
    *out = (extent){a.rows, transposed ? b.rows : b.columns};
    add_flops(s, (extent){step_expr_multiply(s->g->exprs, a.rows, a.columns), out->columns}, row->flops);
    return true;
}

static bool size_one(sizing *s, const step_instruction *i, const extent *leaves, extent *out)
{
    const step_formula_row *row = step_formula_row_of(i->op);
    const step_expr *one = step_expr_number(s->g->exprs, 1);
    extent a = row->operands > 0 ? s->of[i->operands[0]] : (extent){one, one};
    switch (row->rule) {
    case STEP_LEAF: *out = i->op == FORMULA_VALUE ? leaves[i->operands[0]] : a; return true;
    case STEP_EACH: return size_each(s, row, i, out);
    case STEP_ROWS: *out = (extent){a.rows, one}; break;
    case STEP_COLUMNS: *out = (extent){one, a.columns}; break;
    default: return size_product(s, row, i, out);
    }
    add_flops(s, a, row->flops);
    return true;
}

/* Every instruction's tile, and FLOPs. False: they do not fit. */
static bool size_all(sizing *s, const step_spec *spec)
{
    const step_data *data[STEP_LEAVES_MAX];
    extent leaves[2 * STEP_LEAVES_MAX];
    uint32_t count;
    s->f = spec->formula;
    s->of = ARENA_ARRAY(s->g->arena, extent, s->f->count + 1);
    s->flops = step_expr_number(s->g->exprs, 0);
    if (!step_formula_leaves(spec->inputs, spec->input_count, data, &count) || count != s->f->values) {
        s->why = "a function of your own takes tiles, bools, and pairs of them";
        return false;
    }
    for (uint32_t i = 0; i < s->f->state_count; i++)
        leaves[i] = (extent){step_expr_number(s->g->exprs, s->f->states[i].rows), step_expr_number(s->g->exprs, s->f->states[i].columns)};
    const step_expr *one = step_expr_number(s->g->exprs, 1);
    for (uint32_t i = 0; i < count; i++) {
        bool is_tile = data[i]->kind == STEP_TILE; /* a bool is a number */
        leaves[s->f->state_count + i] = (extent){is_tile ? data[i]->rows : one, is_tile ? data[i]->columns : one};
    }
    for (uint32_t i = 0; i < s->f->count; i++)
        if (!size_one(s, &s->f->items[i], leaves, &s->of[i]))
            return false;
    for (uint32_t i = 0; i < s->f->state_count; i++) {
        extent made = s->of[s->f->results[i]];
        if (made.rows != leaves[i].rows || made.columns != leaves[i].columns) {
            arena *m = s->g->arena;
            s->why = arena_printf(m, "the state is a tile %s x %s and the function makes one of %s x %s", step_expr_text(leaves[i].rows, m),
                                  step_expr_text(leaves[i].columns, m), step_expr_text(made.rows, m), step_expr_text(made.columns, m));
            return false;
        }
    }
    return true;
}

const step_data *step_formula_type(step_graph *g, const step_spec *spec, const char **why)
{
    sizing s = {.g = g};
    const step_data *leaves[STEP_LEAVES_MAX], *made = NULL;
    uint32_t count;
    if (!size_all(&s, spec)) {
        *why = s.why;
        return NULL;
    }
    step_formula_leaves(spec->inputs, spec->input_count, leaves, &count);
    dtype type = DTYPE_F32; /* of states, and where no tile comes in */
    for (uint32_t i = count; i-- > 0 && s.f->state_count == 0;)
        type = leaves[i]->kind == STEP_TILE ? leaves[i]->dtype : type;
    type = spec->has_dtype ? spec->dtype : type;
    for (uint32_t i = s.f->result_count; i-- > 0;) {
        step_data *d = ARENA_NEW(g->arena, step_data), *pair = ARENA_NEW(g->arena, step_data);
        extent e = s.of[s.f->results[i]];
        *d = (step_data){.kind = STEP_TILE, .dtype = type, .rows = e.rows, .columns = e.columns};
        if (made)
            *pair = step_data_pair(d, made);
        made = made ? pair : d;
    }
    return made;
}

const step_expr *step_formula_flops(step_graph *g, const step_spec *spec)
{
    sizing s = {.g = g};
    return size_all(&s, spec) ? s.flops : step_expr_number(g->exprs, 0);
}
