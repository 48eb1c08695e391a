/* What is asked of an expression: its kind, its text, its value. */
#include "ir/step/expr_parts.h"

#include <inttypes.h>
#include <string.h>

#include "support/budget.h"
#include "support/integer.h"
#include "support/strbuf.h"

/* ---- kinds ---- */

bool step_expr_is_symbol(const step_expr *e)
{
    return step_expr_is_atom(e) && e->products[0].atoms[0]->kind == ATOM_SYMBOL;
}

const char *step_expr_name(const step_expr *symbol)
{
    return symbol->products[0].atoms[0]->name;
}

bool step_expr_is_flag(const step_expr *e)
{
    if (e->count != 1 || e->products[0].coefficient != 1 || e->products[0].atom_count == 0)
        return false;
    for (uint32_t i = 0; i < e->products[0].atom_count; i++)
        if (!atom_is_flag(e->products[0].atoms[i]))
            return false;
    return true;
}

static bool has_symbol(const step_exprs *c, const char *symbol, bool only_ragged)
{
    enum { ATOMS_OF_STEP = 8 };
    budget_spend(c->arena, 1 + c->atom_count / ATOMS_OF_STEP);
    for (size_t i = 0; i < c->atom_count; i++)
        if (c->atoms[i]->kind == ATOM_SYMBOL && (c->atoms[i]->ragged || !only_ragged) && strcmp(c->atoms[i]->name, symbol) == 0)
            return true;
    return false;
}

bool step_expr_knows(const step_exprs *c, const char *symbol)
{
    return has_symbol(c, symbol, false);
}

const char *const *step_expr_names(const step_exprs *c, arena *a)
{
    const char **names = ARENA_ARRAY(a, const char *, c->atom_count + 1);
    size_t count = 0;
    for (size_t i = 0; i < c->atom_count; i++)
        if (c->atoms[i]->kind == ATOM_SYMBOL)
            names[count++] = c->atoms[i]->name;
    names[count] = NULL;
    return names;
}

bool step_expr_is_ragged_name(const step_exprs *c, const char *symbol)
{
    return has_symbol(c, symbol, true);
}

bool step_expr_is_number(const step_expr *e, int64_t *value)
{
    if (e->count > 1 || (e->count == 1 && e->products[0].atom_count > 0))
        return false;
    *value = e->count == 0 ? 0 : e->products[0].coefficient;
    return true;
}

bool step_expr_is_ragged(const step_expr *e)
{
    return e->ragged;
}

/* ---- sums of symbols ---- */

/* The product that is the symbol and a factor; NULL: there is none. */
static const product *alone(const step_expr *e, const step_expr *symbol)
{
    const atom *wanted = symbol->products[0].atoms[0];
    for (uint32_t i = 0; i < e->count; i++)
        if (e->products[i].atom_count == 1 && e->products[i].atoms[0] == wanted)
            return &e->products[i];
    return NULL;
}

/* The factor that a product keeps. */
static int64_t left_of(const step_expr *e, const product *p, const step_expr *const *symbols, uint32_t count, int64_t taken)
{
    for (uint32_t k = 0; k < count; k++)
        if (alone(e, symbols[k]) == p)
            return p->coefficient - taken;
    return p->coefficient;
}

const step_expr *step_expr_gather(step_exprs *c, const step_expr *e, const step_expr *const *symbols, uint32_t count,
                                  const step_expr *whole)
{
    int64_t least = INT64_MAX;
    for (uint32_t k = 0; k < count && least > 0; k++) {
        const product *p = e && step_expr_is_symbol(symbols[k]) ? alone(e, symbols[k]) : NULL;
        least = !p ? 0 : p->coefficient < least ? p->coefficient : least;
    }
    if (count == 0 || least == 0)
        return e;
    const step_expr *sum = step_expr_multiply(c, step_expr_number(c, least), whole), *plain, *ragged;
    budget_spend(c->arena, (uint64_t)e->count * count * e->count);
    for (uint32_t i = 0; step_expr_part(c, e, i, &plain, &ragged); i++) {
        int64_t left = left_of(e, &e->products[i], symbols, count, least);
        if (left == e->products[i].coefficient)
            sum = step_expr_add(c, sum, step_expr_multiply(c, plain, ragged));
        else if (left > 0)
            for (uint32_t k = 0; k < count; k++)
                if (alone(e, symbols[k]) == &e->products[i])
                    sum = step_expr_add(c, sum, step_expr_multiply(c, step_expr_number(c, left), symbols[k]));
    }
    return sum;
}

/* ---- text ---- */

static void put_expr(strbuf *s, const step_expr *e);

static void put_atom(strbuf *s, const atom *t)
{
    if (t->kind == ATOM_SYMBOL) {
        strbuf_printf(s, "%s%s", t->ragged ? "~" : "", t->name);
        return;
    }
    const step_expr *of = t->kind == ATOM_ABSENT && t->of->products[0].atom_count == 1 ? t->of->products[0].atoms[0]->of
                                                                                       : t->of; /* absent(present(x)) is absent(x) */
    static const char *const names[] = {
        [ATOM_CEIL] = "ceil(", [ATOM_FLOOR] = "floor(", [ATOM_PRESENT] = "present(", [ATOM_ABSENT] = "absent("};
    bool divides = t->kind == ATOM_CEIL || t->kind == ATOM_FLOOR, sum = of->count > 1;
    strbuf_puts(s, names[t->kind]);
    strbuf_puts(s, divides && sum ? "(" : "");
    put_expr(s, of);
    strbuf_puts(s, divides && sum ? ")" : "");
    if (divides)
        strbuf_printf(s, "/%" PRId64, t->divisor);
    strbuf_puts(s, ")");
}

static void put_product(strbuf *s, const product *p)
{
    if (p->coefficient != 1 || p->atom_count == 0)
        strbuf_printf(s, "%" PRId64, p->coefficient);
    for (uint32_t i = 0; i < p->atom_count; i++) {
        strbuf_puts(s, i > 0 || p->coefficient != 1 ? "*" : "");
        put_atom(s, p->atoms[i]);
    }
}

static void put_expr(strbuf *s, const step_expr *e)
{
    if (e->count == 0)
        strbuf_puts(s, "0");
    for (uint32_t i = 0; i < e->count; i++) {
        strbuf_puts(s, i > 0 ? " + " : "");
        put_product(s, &e->products[i]);
    }
}

const char *step_expr_text(const step_expr *e, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    if (e)
        put_expr(&s, e);
    else
        strbuf_puts(&s, "(past 2^62)");
    return s.text;
}

/* ---- value ---- */

typedef struct evaluation {
    step_expr_lookup *lookup;
    void *user;
    const char *missing;
} evaluation;

static bool evaluate(evaluation *v, const step_expr *e, int64_t *value);

static bool evaluate_atom(evaluation *v, const atom *t, int64_t *value)
{
    if (t->kind == ATOM_SYMBOL) {
        v->missing = t->name;
        return v->lookup(v->user, t->name, value);
    }
    if (!evaluate(v, t->of, value))
        return false;
    switch (t->kind) {
    case ATOM_SYMBOL: break;
    case ATOM_CEIL: *value = ceil_div(*value, t->divisor); break;
    case ATOM_FLOOR: *value /= t->divisor; break;
    case ATOM_PRESENT: *value = *value >= 1; break;
    case ATOM_ABSENT: *value = *value == 0; break;
    }
    return true;
}

/* A factor of 0 makes 0 of a product whatever else is not known: where there is no place, nothing says what is there. */
static bool evaluate_product(evaluation *v, const product *p, int64_t *value)
{
    bool known = true, zero = false;
    const char *missing = NULL;
    *value = p->coefficient;
    for (uint32_t k = 0; k < p->atom_count; k++) {
        int64_t factor;
        if (!evaluate_atom(v, p->atoms[k], &factor)) {
            missing = known ? v->missing : missing;
            known = false;
            continue;
        }
        v->missing = NULL;
        zero = zero || factor == 0;
        known = known && !__builtin_mul_overflow(*value, factor, value) && *value <= STEP_EXPR_MAX;
    }
    *value = zero ? 0 : *value;
    v->missing = zero ? NULL : missing;
    return known || zero;
}

static bool evaluate(evaluation *v, const step_expr *e, int64_t *value)
{
    *value = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        int64_t term;
        if (!evaluate_product(v, &e->products[i], &term) || __builtin_add_overflow(*value, term, value) || *value > STEP_EXPR_MAX)
            return false;
    }
    return true;
}

bool step_expr_evaluate(const step_expr *e, step_expr_lookup *lookup, void *user, int64_t *value, const char **missing)
{
    evaluation v = {.lookup = lookup, .user = user};
    bool known = e && evaluate(&v, e, value);
    *missing = known ? NULL : v.missing;
    return known;
}

void step_expr_symbols(const step_expr *e, void (*visit)(void *user, const char *name, bool ragged), void *user)
{
    for (uint32_t i = 0; i < e->count; i++)
        for (uint32_t k = 0; k < e->products[i].atom_count; k++) {
            const atom *t = e->products[i].atoms[k];
            if (t->kind == ATOM_SYMBOL)
                visit(user, t->name, t->ragged);
            else
                step_expr_symbols(t->of, visit, user);
        }
}
