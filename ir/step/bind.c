#include "ir/step/bind.h"

#include <stdio.h>
#include <string.h>

#include "ir/step/total.h"

enum { STEP_NAME_BYTES = 512 };

static const step_binding *binding_of(const step_bindings *b, const char *name)
{
    for (size_t i = 0; i < b->count; i++)
        if ((!b->items[i].graph || b->items[i].graph == b->graph) && strcmp(b->items[i].name, name) == 0)
            return &b->items[i];
    return NULL;
}

/* Sizes at one place of several. */
typedef struct place {
    const step_bindings *bindings;
    size_t at, places;
    enum { SIZES_HERE, SIZES_COUNTED, SIZES_ZERO } ask; /* counted: only how many places there are; zero: all are 0 */
    bool all_zero;
} place;

/* A symbol of fewer places has the same size at several, one after the other: those of the dimensions inside of its own. */
static bool size_at(void *user, const char *symbol, int64_t *value)
{
    place *p = user;
    const step_binding *b = binding_of(p->bindings, symbol);
    *value = 0;
    if (!b)
        return false;
    if (p->ask == SIZES_COUNTED)
        p->places = b->count > p->places ? b->count : p->places;
    if (p->ask != SIZES_HERE)
        return true;
    if (b->count == 0 || p->places % b->count != 0)
        return false;
    *value = b->values[p->at / (p->places / b->count)];
    p->all_zero = p->all_zero && *value == 0;
    return true;
}

static bool value_at(place *p, const step_expr *of, int64_t *value)
{
    const char *missing;
    return step_expr_evaluate(of, size_at, p, value, &missing);
}

/* Over `expected` places, or, when that is negative, as many as there are sizes. A list that was read off tokens also has the groups that
 * stand for none (ir/step/groups.h), which are empty: they are taken off again. */
static bool fold_places(const step_bindings *b, const step_expr *of, bool largest, int64_t expected, int64_t *value)
{
    place p = {.bindings = b, .ask = SIZES_COUNTED};
    int64_t size, zero, excess = 0, empty = 0;
    if (!value_at(&p, of, &size))
        return false;
    if (expected >= 0 && p.places > (uint64_t)expected)
        excess = (int64_t)p.places - expected;
    else if (expected >= 0)
        p.places = (size_t)expected;
    p.ask = SIZES_ZERO;
    value_at(&p, of, &zero);
    p.ask = SIZES_HERE;
    *value = 0;
    for (; p.at < p.places; p.at++) {
        p.all_zero = true;
        if (!value_at(&p, of, &size) || (!largest && __builtin_add_overflow(*value, size, value)))
            return false;
        *value = largest && size > *value ? size : *value;
        empty += p.all_zero;
    }
    *value -= excess * zero;
    return excess <= empty;
}

/* The largest of the parts that are there. */
static bool largest_part(const step_bindings *b, const step_total_part *parts, uint32_t count, int64_t *value)
{
    const char *missing;
    *value = 0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t places, size;
        if (!step_bind_evaluate(b, parts[i].places, &places, &missing) ||
            (places > 0 && !step_bind_evaluate(b, parts[i].each, &size, &missing)))
            return false;
        *value = places > 0 && size > *value ? size : *value;
    }
    return true;
}

/* Is a size asked for that has no place? */
typedef struct nowhere {
    const step_bindings *bindings;
    bool found;
} nowhere;

static void look_for_places(void *user, const char *symbol, bool ragged)
{
    nowhere *x = user;
    char sum[STEP_NAME_BYTES];
    const step_expr *of, *places;
    const char *missing;
    int64_t count;
    if (ragged && snprintf(sum, sizeof sum, "sum(~%s)", symbol) < (int)sizeof sum &&
        step_total_source(x->bindings->graph, sum, &of, &places) && places && step_bind_evaluate(x->bindings, places, &count, &missing))
        x->found = x->found || count == 0;
}

static bool look_up(void *user, const char *symbol, int64_t *value)
{
    const step_bindings *b = user;
    const step_binding *found = binding_of(b, symbol);
    const step_expr *of, *places;
    const char *missing;
    if (found && found->count == 1) {
        *value = found->values[0];
        return true;
    }
    uint32_t count;
    const step_total_part *parts = found ? NULL : step_total_largest_parts(b->graph, symbol, &count);
    if (parts && largest_part(b, parts, count, value))
        return true;
    if (found || !step_total_source(b->graph, symbol, &of, &places))
        return false;
    int64_t expected;
    nowhere none = {.bindings = b};
    if (!places)
        step_expr_symbols(of, look_for_places, &none);
    if (none.found) {
        *value = 0;
        return true;
    }
    bool is_known = places && step_bind_evaluate(b, places, &expected, &missing);
    if (is_known && expected == 0) {
        *value = 0;
        return true;
    }
    return of && fold_places(b, of, !places, is_known ? expected : -1, value);
}

bool step_bind_evaluate(const step_bindings *b, const step_expr *e, int64_t *value, const char **missing)
{
    return step_expr_evaluate(e, look_up, (void *)b, value, missing);
}

bool step_bind_fits(const step_bindings *b, const step_binding *sizes, int64_t *places)
{
    char sum[STEP_NAME_BYTES];
    const step_expr *of, *expected;
    const char *missing;
    int64_t total;
    *places = -1;
    if (sizes->count < 2 || !step_expr_knows(b->graph->exprs, sizes->name))
        return true;
    if (snprintf(sum, sizeof sum, "sum(~%s)", sizes->name) >= (int)sizeof sum || !step_total_source(b->graph, sum, &of, &expected))
        return step_expr_is_ragged_name(b->graph->exprs, sizes->name);
    return !expected || !step_bind_evaluate(b, expected, places, &missing) || look_up((void *)b, sum, &total);
}
