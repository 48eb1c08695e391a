#include "ir/step/total.h"

#include <string.h>

#include "support/budget.h"

typedef struct step_total {
    struct step_total *next;
    const step_expr *of;     /* a product of ragged atoms */
    const step_expr *places; /* sum: how many */
    bool largest;
    bool elsewhere;              /* over other places than those where it first occurs: no list of its sizes gives it */
    bool positive;               /* of a symbol that is never 0; it is no sum */
    const step_expr *largest_of; /* of a symbol that is at most this; it is no sum */
    const char *name;            /* of the symbol that stands for it; NULL: a rule knew the value */
    const step_expr *value;
    const step_expr *each;        /* of a symbol that a rule made: what it is at each place; NULL: more than that */
    const step_total_part *parts; /* of a symbol that has the sizes of several: those */
    uint32_t part_count;
    const step_stream *by; /* in which they come together */
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

/* The sum over the same places, or over places that these are a multiple of (*times). Of a size that has one place or none, the sum over
 * one place is asked where that one is there. */
static const step_total *known_sum(step_graph *g, const step_expr *places, const step_expr *of, const step_expr **times)
{
    const step_total *found = NULL;
    const step_expr *one = step_expr_number(g->exprs, 1);
    *times = one;
    for (const step_total *t = g->totals; t; t = t->next)
        if (t->value && !t->largest && t->of == of && t->places == places)
            return t;
    for (const step_total *t = g->totals; t && places == one; t = t->next)
        if (t->value && !t->largest && t->of == of && step_expr_is_flag(t->places))
            return t;
    for (const step_total *t = g->totals; t && !found; t = t->next) {
        const step_expr *quotient =
            t->value && !t->largest && !t->elsewhere && t->of == of ? step_expr_divide(g->exprs, places, t->places) : NULL;
        found = quotient ? t : NULL;
        *times = quotient ? quotient : *times;
    }
    return found;
}

/* A number of places, or a ragged symbol, that is another one. */
typedef struct step_alias {
    struct step_alias *next;
    const step_expr *of, *same;
} step_alias;

static void add_alias(step_graph *g, const step_expr *of, const step_expr *same)
{
    step_alias *a = ARENA_NEW(g->arena, step_alias);
    *a = (step_alias){g->aliases, of, same};
    g->aliases = a;
}

const step_expr *step_total_same(const step_graph *g, const step_expr *symbol)
{
    for (const step_alias *a = g->aliases; a; a = a->next)
        if (a->of == symbol)
            return a->same;
    return NULL;
}

/* The same number of places, or one that the writer knows to be it. */
static const step_total *known_sum_by_any_name(step_graph *g, const step_expr *places, const step_expr *of, const step_expr **times)
{
    const step_total *t = known_sum(g, places, of, times);
    for (const step_alias *a = g->aliases; a && !t; a = a->next) {
        const step_expr *quotient = step_expr_divide(g->exprs, places, a->of);
        places = quotient ? step_expr_multiply(g->exprs, quotient, a->same) : places;
        t = quotient && places ? known_sum(g, places, of, times) : NULL;
    }
    return t;
}

static bool occurs(const step_graph *g, const step_expr *of, bool largest)
{
    for (const step_total *t = g->totals; t; t = t->next)
        if (t->value && t->of == of && t->largest == largest)
            return true;
    return false;
}

const step_expr *step_total_home(const step_graph *g, const step_expr *size)
{
    for (const step_total *t = g->totals; t; t = t->next)
        if (t->value && t->of == size && !t->largest)
            return t->places;
    return NULL;
}

static step_total *new_symbol(step_graph *g, const step_expr *places, const step_expr *of, bool largest)
{
    const char *text = step_expr_text(of, g->arena);
    const char *name = arena_printf(g->arena, largest ? "max(%s)" : "sum(%s)", text);
    bool elsewhere = !largest && occurs(g, of, false);
    if (elsewhere)
        name = arena_printf(g->arena, "sum(%s over %s)", text, step_expr_text(places, g->arena));
    return add(g, (step_total){.of = of,
                               .places = places,
                               .largest = largest,
                               .elsewhere = elsewhere,
                               .name = name,
                               .value = step_expr_symbol(g->exprs, name, false)});
}

/* What a size is at each place; at a single place it is its own sum. */
typedef struct expansion {
    step_graph *g;
    bool one_place;
    bool largest; /* what is only asked for its largest */
} expansion;

static const step_expr *expand_symbol(void *user, const step_expr *symbol)
{
    const expansion *x = user;
    for (const step_total *t = x->g->totals; t; t = t->next)
        if (t->of == symbol && (t->each || (x->largest && t->largest_of)))
            return t->each ? t->each : t->largest_of;
    return x->one_place && step_expr_is_ragged(symbol) ? step_total_of(x->g, step_expr_number(x->g->exprs, 1), symbol) : symbol;
}

static const step_total *union_of(const step_graph *g, const step_expr *symbol)
{
    for (const step_total *t = g->totals; t; t = t->next)
        if (t->of == symbol && t->parts && !t->largest)
            return t;
    return NULL;
}

/* Do the parts of the one and of the other come in pairs? */
static bool are_paired(const step_total *a, const step_total *b)
{
    return a == b || (a->by == b->by && a->places == b->places);
}

/* Of an expression: its union, and whether that and those paired with it are the only ragged things in it. */
typedef struct union_search {
    const step_graph *g;
    const step_total *found;
    bool others;
    uint32_t part;
} union_search;

static const step_expr *find_union(void *user, const step_expr *symbol)
{
    union_search *u = user;
    const step_total *t = union_of(u->g, symbol);
    u->others = u->others || (t ? u->found && !are_paired(u->found, t) : step_expr_is_ragged(symbol));
    u->found = t ? t : u->found;
    return symbol;
}

static const step_expr *take_part(void *user, const step_expr *symbol)
{
    const union_search *u = user;
    const step_total *t = union_of(u->g, symbol);
    return t ? t->parts[u->part].each : symbol;
}

/* Part by part. NULL: it is not made of one union. */
static const step_expr *sum_of_parts(step_graph *g, const step_expr *places, const step_expr *ragged)
{
    union_search u = {.g = g};
    step_expr_replace(g->exprs, ragged, find_union, &u);
    const step_expr *times = u.found && !u.others ? step_expr_divide(g->exprs, places, u.found->places) : NULL,
                    *sum = step_expr_number(g->exprs, 0);
    for (; times && u.part < u.found->part_count; u.part++)
        sum = step_expr_add(g->exprs, sum,
                            step_total_of(g, u.found->parts[u.part].places, step_expr_replace(g->exprs, ragged, take_part, &u)));
    return times ? step_expr_multiply(g->exprs, times, sum) : NULL;
}

static const step_expr *sum_of(step_graph *g, const step_expr *places, const step_expr *ragged)
{
    const step_expr *times;
    const step_total *t = known_sum_by_any_name(g, places, ragged, &times);
    if (t)
        return step_expr_multiply(g->exprs, times, t->value);
    const step_expr *one = step_expr_number(g->exprs, 1);
    if (step_expr_is_flag(places)) /* one place or none */
        return step_expr_multiply(g->exprs, places, step_total_of(g, one, ragged));
    const step_expr *parts = sum_of_parts(g, places, ragged);
    if (parts)
        return parts;
    bool one_place = places == one && !step_expr_is_symbol(ragged);
    const step_expr *expanded = step_expr_replace(g->exprs, ragged, expand_symbol, &(expansion){.g = g, .one_place = one_place});
    return expanded != ragged ? step_total_of(g, places, expanded) : new_symbol(g, places, ragged, false)->value;
}

/* The largest of each part. */
static void set_largest_parts(step_graph *g, step_total *t)
{
    union_search u = {.g = g};
    step_expr_replace(g->exprs, t->of, find_union, &u);
    if (!u.found || u.others)
        return;
    t->part_count = u.found->part_count;
    step_total_part *parts = ARENA_ARRAY(g->arena, step_total_part, t->part_count + 1);
    for (; u.part < t->part_count; u.part++)
        parts[u.part] =
            (step_total_part){step_total_largest(g, step_expr_replace(g->exprs, t->of, take_part, &u)), u.found->parts[u.part].places};
    t->parts = parts;
}

static const step_expr *largest_of(step_graph *g, const step_expr *ragged)
{
    for (const step_total *t = g->totals; t; t = t->next)
        if (t->largest && t->of == ragged)
            return t->value;
    for (const step_total *t = g->totals; t; t = t->next)
        if (t->of == ragged && t->largest_of)
            return step_total_largest(g, t->largest_of);
    const step_expr *expanded = step_expr_replace(g->exprs, ragged, expand_symbol, &(expansion){.g = g, .largest = true});
    if (expanded != ragged)
        return step_total_largest(g, expanded);
    step_total *made = new_symbol(g, NULL, ragged, true);
    set_largest_parts(g, made);
    return made->value;
}

/* Product by product: what is plain in each is a factor of the sum. */
const step_expr *step_total_of(step_graph *g, const step_expr *places, const step_expr *each)
{
    const step_expr *plain, *ragged, *total = step_expr_number(g->exprs, 0), *one = step_expr_number(g->exprs, 1);
    if (!each || !places)
        return NULL;
    budget_enter(g->arena);
    for (uint32_t i = 0; step_expr_part(g->exprs, each, i, &plain, &ragged); i++)
        total = step_expr_add(g->exprs, total, step_expr_multiply(g->exprs, plain, ragged == one ? places : sum_of(g, places, ragged)));
    budget_leave(g->arena);
    return total;
}

/* What is plain stands next to it. Two sizes that differ need not be largest at one place. */
const step_expr *step_total_largest(step_graph *g, const step_expr *each)
{
    const step_expr *plain, *ragged, *none = step_expr_number(g->exprs, 0), *even = none, *uneven = none, *lone = NULL,
                                     *one = step_expr_number(g->exprs, 1);
    if (!each)
        return NULL;
    budget_enter(g->arena);
    for (uint32_t i = 0; step_expr_part(g->exprs, each, i, &plain, &ragged); i++) {
        const step_expr *both = step_expr_multiply(g->exprs, plain, ragged);
        lone = ragged == one ? lone : uneven == none ? step_expr_multiply(g->exprs, plain, largest_of(g, ragged)) : NULL;
        even = ragged == one ? step_expr_add(g->exprs, even, both) : even;
        uneven = ragged == one ? uneven : step_expr_add(g->exprs, uneven, both);
    }
    const step_expr *largest = uneven == none ? even : step_expr_add(g->exprs, even, lone ? lone : largest_of(g, uneven));
    budget_leave(g->arena);
    return largest;
}

void step_total_define(step_graph *g, const step_expr *symbol, const step_expr *places, const step_expr *each, const step_expr *total)
{
    if (places && total)
        add(g, (step_total){.of = symbol,
                            .places = places,
                            .value = total,
                            .each = each != symbol && step_total_of(g, places, each) == total ? each : NULL});
}

void step_total_define_largest(step_graph *g, const step_expr *symbol, const step_expr *each)
{
    add(g, (step_total){.of = symbol, .largest_of = each});
}

const step_expr *step_total_where_any(step_graph *g, const step_stream *s, const step_expr *size)
{
    int64_t known;
    bool may_be_none = size && step_expr_is_ragged(size) &&
                       !step_expr_is_number(step_expr_present(g->exprs, size), &known); /* then sizes that differ have no place */
    return may_be_none ? size : step_expr_multiply(g->exprs, size, step_expr_present(g->exprs, step_cardinality(g, s)));
}

void step_total_define_union(step_graph *g, const step_expr *symbol, const step_stream *by, const step_expr *places,
                             const step_total_part *parts, uint32_t count)
{
    step_total_part *copy = ARENA_ARRAY(g->arena, step_total_part, count + 1);
    const step_expr *total = step_expr_number(g->exprs, 0);
    for (uint32_t i = 0; i < count; i++) {
        copy[i] = parts[i];
        total = step_expr_add(g->exprs, total, step_total_of(g, parts[i].places, parts[i].each));
    }
    if (places && total)
        add(g, (step_total){.of = symbol, .places = places, .value = total, .parts = copy, .part_count = count, .by = by});
}

void step_total_set_positive(step_graph *g, const step_expr *symbol)
{
    if (step_expr_is_ragged(symbol) && !step_total_is_positive(g, symbol))
        add(g, (step_total){.of = symbol, .positive = true});
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

static void settle_data(step_graph *g, const step_data *d, const step_expr *places)
{
    if (d && d->kind == STEP_PAIR) {
        settle_data(g, d->first, places);
        settle_data(g, d->second, places);
    } else if (d && d->kind == STEP_TILE) {
        step_total_of(g, places, d->rows);
        step_total_of(g, places, d->columns);
    }
}

void step_total_settle(step_graph *g, const step_stream *s)
{
    settle_data(g, s->data, step_cardinality(g, s));
}

void step_total_assume(step_graph *g, step_stream *s, const step_expr **dims)
{
    const step_expr *before = step_cardinality(g, s), **old = s->dims;
    for (uint32_t i = 0; i <= s->rank; i++) /* not of a symbol of which more is known already */
        if (step_expr_is_symbol(dims[i]) && step_total_is_positive(g, old[i]) && !occurs(g, dims[i], false))
            step_total_set_positive(g, dims[i]);
    s->dims = dims;
    s->assumed = true;
    const step_expr *now = step_cardinality(g, s);
    int64_t number;
    if (before && now && before != now && !step_expr_is_number(now, &number))
        add_alias(g, now, before);
    for (uint32_t i = 0; i <= s->rank; i++)
        if (dims[i] != old[i] && step_expr_is_symbol(dims[i]) && step_expr_is_ragged(dims[i]) && step_expr_is_ragged(old[i]))
            add_alias(g, dims[i], old[i]);
    step_total_settle(g, s);
}

const step_total_part *step_total_largest_parts(const step_graph *g, const char *symbol, uint32_t *count)
{
    for (const step_total *t = g->totals; t; t = t->next)
        if (t->largest && t->parts && strcmp(t->name, symbol) == 0) {
            *count = t->part_count;
            return t->parts;
        }
    return NULL;
}

bool step_total_source(const step_graph *g, const char *symbol, const step_expr **of, const step_expr **places)
{
    for (const step_total *t = g->totals; t; t = t->next)
        if (t->name && strcmp(t->name, symbol) == 0) {
            *of = t->elsewhere ? NULL : t->of;
            *places = t->largest ? NULL : t->places;
            return true;
        }
    return false;
}
