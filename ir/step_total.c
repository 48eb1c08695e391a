#include "ir/step_total.h"

#include <string.h>

typedef struct step_total {
    struct step_total *next;
    const step_expr *of;     /* a product of ragged atoms */
    const step_expr *places; /* sum: how many */
    bool largest;
    bool elsewhere; /* over other places than those where it first occurs: no list of its sizes says it */
    bool positive; /* of a symbol that is never 0 */
    const char *name; /* of the symbol that stands for it; NULL: a rule knew the value */
    const step_expr *value;
    const step_expr *each; /* of a symbol that a rule made: what it is at each place; NULL: more than that */
} step_total;

static step_total *add(step_graph *g, step_total wanted)
{
    step_total *t = ARENA_NEW(g->arena, step_total), **end = &g->totals;
    *t = wanted;
    while (*end)
        end = &(*end)->next;
    *end = t;
    return t;
}

/* The sum over the same places, or over places that these are a multiple of (*times). */
static const step_total *known_sum(step_graph *g, const step_expr *places, const step_expr *of, const step_expr **times)
{
    const step_total *found = NULL;
    *times = step_expr_number(g->exprs, 1);
    for (const step_total *t = g->totals; t; t = t->next)
        if (!t->largest && t->of == of && t->places == places)
            return t;
    for (const step_total *t = g->totals; t && !found; t = t->next) {
        const step_expr *quotient = !t->largest && t->of == of ? step_expr_divide(g->exprs, places, t->places) : NULL;
        found = quotient ? t : NULL;
        *times = quotient ? quotient : *times;
    }
    return found;
}

static bool occurs(const step_graph *g, const step_expr *of, bool largest)
{
    for (const step_total *t = g->totals; t; t = t->next)
        if (t->of == of && t->largest == largest)
            return true;
    return false;
}

static const step_total *new_symbol(step_graph *g, const step_expr *places, const step_expr *of, bool largest)
{
    const char *text = step_expr_text(of, g->arena);
    const char *name = arena_printf(g->arena, largest ? "max(%s)" : "sum(%s)", text);
    bool elsewhere = !largest && occurs(g, of, false);
    if (elsewhere)
        name = arena_printf(g->arena, "sum(%s over %s)", text, step_expr_text(places, g->arena));
    return add(g, (step_total){.of = of, .places = places, .largest = largest, .elsewhere = elsewhere, .name = name, .value = step_expr_symbol(g->exprs, name, false)});
}

/* What a size is at each place; at a single place it is its own sum. */
typedef struct expansion {
    step_graph *g;
    bool one_place;
} expansion;

static const step_expr *expand_symbol(void *user, const step_expr *symbol)
{
    const expansion *x = user;
    for (const step_total *t = x->g->totals; t; t = t->next)
        if (t->of == symbol && t->each)
            return t->each;
    return x->one_place && step_expr_is_ragged(symbol) ? step_total_of(x->g, step_expr_number(x->g->exprs, 1), symbol) : symbol;
}

static const step_expr *sum_of(step_graph *g, const step_expr *places, const step_expr *ragged)
{
    const step_expr *times;
    const step_total *t = known_sum(g, places, ragged, &times);
    if (t)
        return step_expr_multiply(g->exprs, times, t->value);
    const step_expr *one = step_expr_number(g->exprs, 1);
    if (step_expr_is_flag(places)) /* one place or none */
        return step_expr_multiply(g->exprs, places, step_total_of(g, one, ragged));
    bool one_place = places == one && !step_expr_is_symbol(ragged);
    const step_expr *expanded = step_expr_replace(g->exprs, ragged, expand_symbol, &(expansion){g, one_place});
    return expanded != ragged ? step_total_of(g, places, expanded) : new_symbol(g, places, ragged, false)->value;
}

static const step_expr *largest_of(step_graph *g, const step_expr *ragged)
{
    for (const step_total *t = g->totals; t; t = t->next)
        if (t->largest && t->of == ragged)
            return t->value;
    return new_symbol(g, NULL, ragged, true)->value;
}

/* Product by product: what is plain in each is a factor of the sum. */
static const step_expr *by_products(step_graph *g, const step_expr *places, const step_expr *each, bool largest)
{
    const step_expr *plain, *ragged, *total = step_expr_number(g->exprs, 0), *one = step_expr_number(g->exprs, 1);
    if (!each || !places)
        return NULL;
    for (uint32_t i = 0; step_expr_part(g->exprs, each, i, &plain, &ragged); i++) {
        const step_expr *factor = ragged == one ? places : largest ? largest_of(g, ragged) : sum_of(g, places, ragged);
        total = step_expr_add(g->exprs, total, step_expr_multiply(g->exprs, plain, factor));
    }
    return total;
}

const step_expr *step_total_of(step_graph *g, const step_expr *places, const step_expr *each)
{
    return by_products(g, places, each, false);
}

const step_expr *step_total_largest(step_graph *g, const step_expr *each)
{
    return by_products(g, step_expr_number(g->exprs, 1), each, true);
}

void step_total_define(step_graph *g, const step_expr *symbol, const step_expr *places, const step_expr *each, const step_expr *total)
{
    if (places && total)
        add(g, (step_total){.of = symbol, .places = places, .value = total,
                            .each = each != symbol && step_total_of(g, places, each) == total ? each : NULL});
}

void step_total_set_positive(step_graph *g, const step_expr *symbol)
{
    for (step_total *t = g->totals; t; t = t->next)
        t->positive = t->positive || t->of == symbol;
}

bool step_total_is_positive(const step_graph *g, const step_expr *symbol)
{
    for (const step_total *t = g->totals; t; t = t->next)
        if (t->of == symbol && t->positive)
            return true;
    return false;
}

const step_expr *step_total_places(step_graph *g, const step_stream *s, uint32_t count)
{
    const step_expr *places = step_expr_number(g->exprs, 1);
    for (uint32_t i = 0; i < count; i++)
        places = step_total_of(g, places, s->dims[i]);
    return places;
}

const step_expr *step_cardinality(step_graph *g, const step_stream *s)
{
    return step_total_places(g, s, s->rank + 1);
}

bool step_total_source(const step_graph *g, const char *symbol, const step_expr **of, const step_expr **places)
{
    for (const step_total *t = g->totals; t; t = t->next)
        if (t->name && !t->elsewhere && strcmp(t->name, symbol) == 0) {
            *of = t->of;
            *places = t->largest ? NULL : t->places;
            return true;
        }
    return false;
}
