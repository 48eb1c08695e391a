#include "ir/step_bind.h"

#include <string.h>

#include "ir/step_total.h"

static const step_binding *binding_of(const step_bindings *b, const char *name)
{
    for (size_t i = 0; i < b->count; i++)
        if (strcmp(b->items[i].name, name) == 0)
            return &b->items[i];
    return NULL;
}

/* Sizes at one place. */
typedef struct place {
    const step_bindings *bindings;
    size_t at;
    size_t places; /* of the shortest list that was asked */
} place;

static bool size_at(void *user, const char *symbol, int64_t *value)
{
    place *p = user;
    const step_binding *b = binding_of(p->bindings, symbol);
    if (!b)
        return false;
    p->places = b->count < p->places ? b->count : p->places;
    *value = b->values[p->at < b->count ? p->at : 0];
    return true;
}

/* Over `expected` places, or, when that is negative, as many as there are sizes. */
static bool fold_places(const step_bindings *b, const step_expr *of, bool largest, int64_t expected, int64_t *value)
{
    place p = {.bindings = b, .places = SIZE_MAX};
    const char *missing;
    *value = 0;
    for (; p.at < p.places; p.at++) {
        int64_t size;
        if (!step_expr_evaluate(of, size_at, &p, &size, &missing) || (!largest && __builtin_add_overflow(*value, size, value)))
            return false;
        *value = largest && size > *value ? size : *value;
    }
    return expected < 0 || (uint64_t)expected == p.places;
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
    if (found || !step_total_source(b->graph, symbol, &of, &places))
        return false;
    int64_t expected = -1;
    if (places && step_bind_evaluate(b, places, &expected, &missing) && expected == 0) {
        *value = 0;
        return true;
    }
    return fold_places(b, of, !places, expected, value);
}

bool step_bind_evaluate(const step_bindings *b, const step_expr *e, int64_t *value, const char **missing)
{
    return step_expr_evaluate(e, look_up, (void *)b, value, missing);
}
