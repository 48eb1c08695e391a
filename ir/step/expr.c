#include "ir/step/expr_parts.h"
#include "support/budget.h"

#include <inttypes.h>
#include <string.h>

#include "support/integer.h"

step_exprs *step_exprs_new(arena *a)
{
    step_exprs *c = ARENA_NEW(a, step_exprs);
    c->arena = a;
    return c;
}

/* ---- order and interning ---- */

/* By degree from the highest down, then by atoms: the plain number comes last. */
static int compare_products(const product *a, const product *b)
{
    if (a->atom_count != b->atom_count)
        return a->atom_count > b->atom_count ? -1 : 1;
    for (uint32_t i = 0; i < a->atom_count; i++)
        if (a->atoms[i] != b->atoms[i])
            return a->atoms[i]->number < b->atoms[i]->number ? -1 : 1;
    return 0;
}

static bool same_expr(const step_expr *e, const product *products, uint32_t count)
{
    if (e->count != count)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (e->products[i].coefficient != products[i].coefficient || compare_products(&e->products[i], &products[i]) != 0)
            return false;
    return true;
}

static size_t hash_of(const product *products, uint32_t count)
{
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; i++) {
        hash = (hash ^ (uint64_t)products[i].coefficient) * UINT64_C(0x9e3779b97f4a7c15);
        for (uint32_t k = 0; k < products[i].atom_count; k++)
            hash = (hash ^ products[i].atoms[k]->number) * UINT64_C(0x9e3779b97f4a7c15);
    }
    return (size_t)(hash ^ hash >> 32);
}

/* The slot of the expression, or the free one where it belongs. */
static const step_expr **slot_of(const step_exprs *c, const product *products, uint32_t count)
{
    size_t at = hash_of(products, count) & (c->slots - 1);
    while (c->table[at] && !same_expr(c->table[at], products, count))
        at = (at + 1) & (c->slots - 1);
    return &c->table[at];
}

static void grow_table(step_exprs *c)
{
    const step_expr **old = c->table;
    size_t old_slots = c->slots;
    c->slots = old_slots ? 2 * old_slots : 64;
    c->table = ARENA_ARRAY(c->arena, const step_expr *, c->slots);
    for (size_t i = 0; i < old_slots; i++)
        if (old[i])
            *slot_of(c, old[i]->products, old[i]->count) = old[i];
}

/* The one expression with these products, which are in order and without repetition. */
static const step_expr *intern(step_exprs *c, const product *products, uint32_t count)
{
    if (2 * c->expr_count >= c->slots)
        grow_table(c);
    const step_expr **slot = slot_of(c, products, count);
    if (*slot)
        return *slot;
    step_expr *e = ARENA_NEW(c->arena, step_expr);
    product *copy = ARENA_ARRAY(c->arena, product, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        copy[i] = products[i];
        for (uint32_t k = 0; k < products[i].atom_count; k++) {
            const step_expr *of = products[i].atoms[k]->of;
            e->ragged = e->ragged || products[i].atoms[k]->ragged;
            if (of)
                budget_hold(&e->depth, &e->parts, of->depth, of->parts);
        }
    }
    if (e->depth > 0)
        budget_nested(c->arena, e->depth, e->parts);
    e->count = count;
    e->products = copy;
    c->expr_count++;
    *slot = e;
    return e;
}

static const atom *intern_atom(step_exprs *c, atom wanted)
{
    enum { ATOMS_OF_STEP = 8 };
    budget_spend(c->arena, 1 + c->atom_count / ATOMS_OF_STEP);
    for (size_t i = 0; i < c->atom_count; i++) {
        const atom *a = c->atoms[i];
        if (a->kind != wanted.kind || a->of != wanted.of || a->divisor != wanted.divisor)
            continue;
        if (a->kind != ATOM_SYMBOL || strcmp(a->name, wanted.name) == 0)
            return a;
    }
    atom *a = ARENA_NEW(c->arena, atom);
    *a = wanted;
    a->number = (uint32_t)c->atom_count;
    a->name = wanted.name ? arena_strdup(c->arena, wanted.name) : NULL;
    ARENA_PUSH(c->arena, c->atoms, c->atom_count, c->atom_capacity, a);
    return a;
}

static const step_expr *of_atom(step_exprs *c, const atom *a)
{
    const atom **atoms = ARENA_ARRAY(c->arena, const atom *, 1);
    atoms[0] = a;
    return intern(c, &(product){.coefficient = 1, .atom_count = 1, .atoms = atoms}, 1);
}

const step_expr *step_expr_number(step_exprs *c, int64_t value)
{
    return intern(c, &(product){.coefficient = value}, value > 0);
}

const step_expr *step_expr_symbol(step_exprs *c, const char *name, bool ragged)
{
    return of_atom(c, intern_atom(c, (atom){.kind = ATOM_SYMBOL, .name = name, .ragged = ragged}));
}

const step_expr *step_expr_fresh(step_exprs *c, const char *stem, bool ragged)
{
    const char *name = stem;
    for (uint32_t i = 2; step_expr_knows(c, name); i++)
        name = arena_printf(c->arena, "%s.%" PRIu32, stem, i);
    return step_expr_symbol(c, name, ragged);
}

/* ---- sums and products ---- */

static bool too_large(int64_t value)
{
    return value > STEP_EXPR_MAX;
}

/* The product without one of its atoms, once. */
static const step_expr *without(step_exprs *c, const product *p, uint32_t left_out)
{
    const atom **atoms = ARENA_ARRAY(c->arena, const atom *, p->atom_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->atom_count; i++)
        if (i != left_out)
            atoms[count++] = p->atoms[i];
    return intern(c, &(product){.coefficient = 1, .atom_count = count, .atoms = atoms}, 1);
}

/* Of a sum with m present(x) at `i` and m absent(x) at `k`: m, and what is left of both. */
static const step_expr *one_of_both(step_exprs *c, product *sum, uint32_t count, uint32_t i, uint32_t k, const step_expr *m)
{
    int64_t times = sum[i].coefficient < sum[k].coefficient ? sum[i].coefficient : sum[k].coefficient;
    uint32_t kept = 0;
    sum[i].coefficient -= times;
    sum[k].coefficient -= times;
    for (uint32_t j = 0; j < count; j++)
        if (sum[j].coefficient > 0)
            sum[kept++] = sum[j];
    return step_expr_add(c, intern(c, sum, kept), step_expr_multiply(c, m, step_expr_number(c, times)));
}

/* m present(x) + m absent(x) = m. */
static const step_expr *join_alternatives(step_exprs *c, product *sum, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t a = 0; a < sum[i].atom_count; a++) {
            if (sum[i].atoms[a]->kind != ATOM_ABSENT)
                continue;
            const step_expr *m = without(c, &sum[i], a), *other = step_expr_multiply(c, m, sum[i].atoms[a]->of);
            for (uint32_t k = 0; other && other->count == 1 && k < count; k++)
                if (k != i && compare_products(&sum[k], &other->products[0]) == 0)
                    return one_of_both(c, sum, count, i, k, m);
        }
    return intern(c, sum, count);
}

const step_expr *step_expr_add(step_exprs *c, const step_expr *a, const step_expr *b)
{
    if (!a || !b)
        return NULL;
    product *sum = ARENA_ARRAY(c->arena, product, a->count + b->count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0, k = 0; i < a->count || k < b->count;) {
        int order = i == a->count ? 1 : k == b->count ? -1 : compare_products(&a->products[i], &b->products[k]);
        sum[count] = order <= 0 ? a->products[i] : b->products[k];
        if (order == 0)
            sum[count].coefficient += b->products[k].coefficient;
        if (too_large(sum[count++].coefficient))
            return NULL;
        i += order <= 0;
        k += order >= 0;
    }
    return join_alternatives(c, sum, count);
}

/* The x of ceil(x/n) when it is one atom; NULL when it is more. */
static const atom *symbol_of(const atom *ceil)
{
    const step_expr *of = ceil->of;
    return of->count == 1 && of->products[0].atom_count == 1 ? of->products[0].atoms[0] : NULL;
}

/* Is it x itself, where the atom is present(x)? */
static bool is_presence_of(const atom *presence, const atom *x)
{
    const step_expr *of = presence->of;
    return presence->kind == ATOM_PRESENT && of->count == 1 && of->products[0].atom_count == 1 && of->products[0].atoms[0] == x;
}

/* present(x) * x = x. */
static uint32_t drop_presences(const atom **atoms, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool implied = false;
        for (uint32_t k = 0; k < count; k++)
            implied = implied || is_presence_of(atoms[i], atoms[k]) ||
                      (atoms[k]->kind == ATOM_CEIL && is_presence_of(atoms[i], symbol_of(atoms[k])));
        if (!implied)
            atoms[kept++] = atoms[i];
    }
    return kept;
}

/* absent(x) * x = 0. */
static bool contradicts(const atom *const *atoms, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const product *p = atoms[i]->kind == ATOM_ABSENT ? &atoms[i]->of->products[0] : NULL;
        for (uint32_t k = 0; p && p->atom_count == 1 && k < count; k++)
            if (atoms[k] == p->atoms[0] || is_presence_of(p->atoms[0], atoms[k]))
                return true;
    }
    return false;
}

/* present(x) * present(x) = present(x): the atoms of both, in order. A product of coefficient 0 is none. */
static bool multiply_products(step_exprs *c, const product *a, const product *b, product *out)
{
    const atom **atoms = ARENA_ARRAY(c->arena, const atom *, a->atom_count + b->atom_count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0, k = 0; i < a->atom_count || k < b->atom_count;) {
        bool from_a = k == b->atom_count || (i < a->atom_count && a->atoms[i]->number <= b->atoms[k]->number);
        const atom *next = from_a ? a->atoms[i++] : b->atoms[k++];
        if (count == 0 || atoms[count - 1] != next || !atom_is_flag(next))
            atoms[count++] = next;
    }
    if (contradicts(atoms, count)) {
        *out = (product){0};
        return true;
    }
    *out = (product){.atom_count = drop_presences(atoms, count), .atoms = atoms};
    return !__builtin_mul_overflow(a->coefficient, b->coefficient, &out->coefficient) && !too_large(out->coefficient);
}

const step_expr *step_expr_multiply(step_exprs *c, const step_expr *a, const step_expr *b)
{
    if (!a || !b)
        return NULL;
    const step_expr *sum = step_expr_number(c, 0);
    for (uint32_t i = 0; sum && i < a->count; i++)
        for (uint32_t k = 0; sum && k < b->count; k++) {
            product p;
            if (!multiply_products(c, &a->products[i], &b->products[k], &p))
                return NULL;
            sum = step_expr_add(c, sum, intern(c, &p, p.coefficient > 0));
        }
    return sum;
}

/* ---- ceil and present ---- */

/* ceil(A/m) alone: then ceil(ceil(A/m)/n) = ceil(A/(m n)). */
static const atom *lone_ceil(const step_expr *e)
{
    return step_expr_is_atom(e) && e->products[0].atoms[0]->kind == ATOM_CEIL ? e->products[0].atoms[0] : NULL;
}

static bool has_flag(const product *p)
{
    for (uint32_t i = 0; i < p->atom_count; i++)
        if (atom_is_flag(p->atoms[i]))
            return true;
    return false;
}

/* ceil(present(x) A / n) = present(x) ceil(A / n). */
static const step_expr *divide_behind_flags(step_exprs *c, const product *p, int64_t divisor)
{
    const step_expr *rest = step_expr_number(c, p->coefficient), *flags = step_expr_number(c, 1);
    for (uint32_t i = 0; i < p->atom_count; i++)
        if (atom_is_flag(p->atoms[i]))
            flags = step_expr_multiply(c, flags, of_atom(c, p->atoms[i]));
        else
            rest = step_expr_multiply(c, rest, of_atom(c, p->atoms[i]));
    return step_expr_multiply(c, flags, step_expr_ceil_divide(c, rest, divisor));
}

/* a = divisor * even + odd: products that the number divides, and the others. */
static const step_expr *divide_evenly(step_exprs *c, const step_expr *a, int64_t divisor, const step_expr **odd)
{
    product *whole = ARENA_ARRAY(c->arena, product, a->count + 1), *rest = ARENA_ARRAY(c->arena, product, a->count + 1);
    uint32_t whole_count = 0, rest_count = 0;
    for (uint32_t i = 0; i < a->count; i++) {
        const product *p = &a->products[i];
        if (p->coefficient % divisor == 0) {
            whole[whole_count] = *p;
            whole[whole_count++].coefficient /= divisor;
        } else {
            rest[rest_count++] = *p;
        }
    }
    *odd = intern(c, rest, rest_count);
    return intern(c, whole, whole_count);
}

const step_expr *step_expr_ceil_divide(step_exprs *c, const step_expr *a, int64_t divisor)
{
    if (!a || divisor == 1)
        return a;
    if (a->count == 1 && has_flag(&a->products[0]))
        return divide_behind_flags(c, &a->products[0], divisor);
    const atom *inner = lone_ceil(a);
    int64_t joint;
    if (inner && !__builtin_mul_overflow(inner->divisor, divisor, &joint))
        return step_expr_ceil_divide(c, inner->of, joint);
    const step_expr *odd, *even = divide_evenly(c, a, divisor, &odd);
    int64_t number;
    if (step_expr_is_number(odd, &number))
        return step_expr_add(c, even, step_expr_number(c, ceil_div(number, divisor)));
    return step_expr_add(c, even,
                         of_atom(c, intern_atom(c, (atom){.kind = ATOM_CEIL, .of = odd, .divisor = divisor, .ragged = odd->ragged})));
}

/* floor(A/m) alone: then floor(floor(A/m)/n) = floor(A/(m n)). */
static const atom *lone_floor(const step_expr *e)
{
    return step_expr_is_atom(e) && e->products[0].atoms[0]->kind == ATOM_FLOOR ? e->products[0].atoms[0] : NULL;
}

const step_expr *step_expr_floor_divide(step_exprs *c, const step_expr *a, int64_t divisor)
{
    if (!a || divisor == 1)
        return a;
    const atom *inner = lone_floor(a);
    int64_t joint, number;
    if (inner && !__builtin_mul_overflow(inner->divisor, divisor, &joint))
        return step_expr_floor_divide(c, inner->of, joint);
    const step_expr *odd, *even = divide_evenly(c, a, divisor, &odd);
    if (step_expr_is_number(odd, &number))
        return step_expr_add(c, even, step_expr_number(c, number / divisor));
    return step_expr_add(c, even,
                         of_atom(c, intern_atom(c, (atom){.kind = ATOM_FLOOR, .of = odd, .divisor = divisor, .ragged = odd->ragged})));
}

/* Is it x + absent(x)? */
static bool is_one_or_other(step_exprs *c, const step_expr *a)
{
    for (uint32_t i = 0; i < a->count; i++) {
        const product *p = &a->products[i];
        if (p->atom_count != 1 || p->atoms[0]->kind != ATOM_ABSENT)
            continue;
        product *rest = ARENA_ARRAY(c->arena, product, a->count + 1);
        memcpy(rest, a->products, i * sizeof *rest);
        memcpy(rest + i, p + 1, (a->count - 1 - i) * sizeof *rest);
        return step_expr_present(c, intern(c, rest, a->count - 1)) == p->atoms[0]->of;
    }
    return false;
}

const step_expr *step_expr_present(step_exprs *c, const step_expr *a)
{
    if (!a)
        return NULL;
    if (a->count == 0)
        return a;
    if (a->products[a->count - 1].atom_count == 0)
        return step_expr_number(c, 1);
    if (is_one_or_other(c, a))
        return step_expr_number(c, 1);
    if (a->count > 1)
        return of_atom(c, intern_atom(c, (atom){.kind = ATOM_PRESENT, .of = a, .ragged = a->ragged}));
    /* A product is present when each of its atoms is; ceil(A/n) when A is. */
    const step_expr *all = step_expr_number(c, 1);
    for (uint32_t i = 0; i < a->products[0].atom_count; i++) {
        const atom *t = a->products[0].atoms[i];
        const step_expr *one = atom_is_flag(t) ? of_atom(c, t)
                               : t->kind == ATOM_CEIL
                                   ? step_expr_present(c, t->of)
                                   : of_atom(c, intern_atom(c, (atom){.kind = ATOM_PRESENT, .of = of_atom(c, t), .ragged = t->ragged}));
        all = step_expr_multiply(c, all, one);
    }
    return all;
}

const step_expr *step_expr_absent(step_exprs *c, const step_expr *a)
{
    const step_expr *present = step_expr_present(c, a);
    int64_t known;
    if (!present || step_expr_is_number(present, &known))
        return present ? step_expr_number(c, !known) : NULL;
    return of_atom(c, intern_atom(c, (atom){.kind = ATOM_ABSENT, .of = present, .ragged = present->ragged}));
}

/* ---- parts and quotients ---- */

bool step_expr_part(step_exprs *c, const step_expr *e, uint32_t i, const step_expr **plain, const step_expr **ragged)
{
    if (i >= e->count)
        return false;
    const product *p = &e->products[i];
    const atom **kept = ARENA_ARRAY(c->arena, const atom *, 2 * p->atom_count + 1), **uneven = kept + p->atom_count;
    uint32_t plain_count = 0, ragged_count = 0;
    for (uint32_t k = 0; k < p->atom_count; k++)
        if (p->atoms[k]->ragged)
            uneven[ragged_count++] = p->atoms[k];
        else
            kept[plain_count++] = p->atoms[k];
    *plain = intern(c, &(product){.coefficient = p->coefficient, .atom_count = plain_count, .atoms = kept}, 1);
    *ragged = intern(c, &(product){.coefficient = 1, .atom_count = ragged_count, .atoms = uneven}, 1);
    return true;
}

static bool divide_product(step_exprs *c, const product *a, const product *b, product *out)
{
    const atom **atoms = ARENA_ARRAY(c->arena, const atom *, a->atom_count + 1);
    uint32_t count = 0, k = 0;
    for (uint32_t i = 0; i < a->atom_count; i++)
        if (k < b->atom_count && a->atoms[i] == b->atoms[k])
            k++;
        else
            atoms[count++] = a->atoms[i];
    *out = (product){.coefficient = a->coefficient / b->coefficient, .atom_count = count, .atoms = atoms};
    return k == b->atom_count && a->coefficient % b->coefficient == 0;
}

/* By a sum: the product that makes a of it, if there is one. */
static const step_expr *divide_by_sum(step_exprs *c, const step_expr *a, const step_expr *b)
{
    product quotient;
    if (a->count != b->count || !divide_product(c, &a->products[0], &b->products[0], &quotient))
        return NULL;
    const step_expr *q = intern(c, &quotient, 1);
    return step_expr_multiply(c, q, b) == a ? q : NULL;
}

const step_expr *step_expr_divide(step_exprs *c, const step_expr *a, const step_expr *b)
{
    if (b->count != 1)
        return b->count > 0 ? divide_by_sum(c, a, b) : NULL;
    product *quotient = ARENA_ARRAY(c->arena, product, a->count + 1);
    for (uint32_t i = 0; i < a->count; i++)
        if (!divide_product(c, &a->products[i], &b->products[0], &quotient[i]))
            return NULL;
    return intern(c, quotient, a->count);
}

static const step_expr *replace_atom(step_exprs *c, const atom *t, const step_expr *(*replace)(void *, const step_expr *), void *user)
{
    if (t->kind == ATOM_SYMBOL)
        return replace(user, of_atom(c, t));
    const step_expr *of = step_expr_replace(c, t->of, replace, user);
    switch (t->kind) {
    case ATOM_CEIL: return step_expr_ceil_divide(c, of, t->divisor);
    case ATOM_FLOOR: return step_expr_floor_divide(c, of, t->divisor);
    case ATOM_PRESENT: return step_expr_present(c, of);
    default: return step_expr_absent(c, of);
    }
}

const step_expr *step_expr_replace(step_exprs *c, const step_expr *e, const step_expr *(*replace)(void *user, const step_expr *symbol),
                                   void *user)
{
    const step_expr *sum = step_expr_number(c, 0);
    for (uint32_t i = 0; i < e->count; i++) {
        const step_expr *term = step_expr_number(c, e->products[i].coefficient);
        for (uint32_t k = 0; k < e->products[i].atom_count; k++)
            term = step_expr_multiply(c, term, replace_atom(c, e->products[i].atoms[k], replace, user));
        sum = step_expr_add(c, sum, term);
    }
    return sum;
}
