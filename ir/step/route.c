#include "ir/step/route.h"

#include <inttypes.h>

#include "ir/step/total.h"

typedef struct step_split {
    struct step_split *next;
    step_route route;
    uint32_t output;
    const step_expr *of; /* NULL: the number of chunks */
    const step_expr *size;
} step_split;

step_route step_route_by(const step_stream *selector)
{
    while (selector->node->spec.op == STEP_BROADCAST)
        selector = selector->node->spec.inputs[0];
    return (step_route){.by = selector};
}

static bool same_route(const step_split *s, step_route r, uint32_t output)
{
    return s->output == output && s->route.by == r.by && s->route.chunks == r.chunks && s->route.b == r.b && s->route.outputs == r.outputs;
}

void step_route_define(step_graph *g, step_route r, uint32_t output, const step_expr *of, const step_expr *size)
{
    step_split *s = ARENA_NEW(g->arena, step_split);
    *s = (step_split){g->splits, r, output, of, size};
    g->splits = s;
}

static const step_expr *known(const step_graph *g, step_route r, uint32_t output, const step_expr *of)
{
    for (const step_split *s = g->splits; s; s = s->next)
        if (s->of == of && same_route(s, r, output))
            return s->size;
    return NULL;
}

const step_expr *step_route_count(step_graph *g, step_route r, uint32_t output)
{
    const step_expr *count = known(g, r, output, NULL);
    if (count)
        return count;
    count = step_expr_fresh(g->exprs, arena_printf(g->arena, "%s%" PRIu32, r.by->node->name, output), false);
    step_route_define(g, r, output, NULL, count);
    return count;
}

/* The counts of all outputs; false: some are known otherwise, or not asked for. */
static bool all_counts(const step_graph *g, step_route r, const step_expr **counts)
{
    for (uint32_t o = 0; o < r.by->data->width; o++) {
        counts[o] = known(g, r, o, NULL);
        if (!counts[o] || !step_expr_is_symbol(counts[o]))
            return false;
    }
    return true;
}

const step_expr *step_route_gather(step_graph *g, const step_expr *e)
{
    for (const step_split *s = g->splits; s && e; s = s->next) {
        const step_stream *by = s->route.by;
        if (!by || s->of || s->output != 0 || by->data->hot == 0 || by->node->spec.op == STEP_EAGER_MERGE)
            continue;
        const step_expr **counts = ARENA_ARRAY(g->arena, const step_expr *, (size_t)by->data->width + 1);
        const step_expr *whole = step_expr_multiply(g->exprs, step_expr_number(g->exprs, by->data->hot), step_cardinality(g, by));
        if (whole && all_counts(g, s->route, counts))
            e = step_expr_gather(g->exprs, e, counts, (uint32_t)by->data->width, whole);
    }
    return e;
}

/* ---- sizes ---- */

typedef struct routing {
    step_graph *g;
    step_route route;
    uint32_t output;
    bool all; /* every ragged symbol was one of the route's */
} routing;

static const step_expr *route_symbol(void *user, const step_expr *symbol)
{
    const routing *x = user;
    step_graph *g = x->g;
    const step_expr *size = step_expr_is_ragged(symbol) ? NULL : symbol;
    for (const step_expr *s = symbol; !size && s; s = step_total_same(g, s))
        size = known(g, x->route, x->output, s);
    if (size)
        return size;
    const char *whole = step_expr_name(symbol), *who = x->route.by ? x->route.by->node->name : "turn";
    size = step_expr_fresh(g->exprs, arena_printf(g->arena, "%s.%s%" PRIu32, whole, who, x->output), true);
    if (step_total_is_positive(g, symbol))
        step_total_set_positive(g, size);
    step_route_define(g, x->route, x->output, symbol, size);
    return size;
}

const step_expr *step_route_size(step_graph *g, step_route r, uint32_t output, const step_expr *size)
{
    if (!size || !step_expr_is_ragged(size))
        return size;
    return step_expr_replace(g->exprs, size, route_symbol, &(routing){.g = g, .route = r, .output = output});
}

const step_data *step_route_data(step_graph *g, step_route r, uint32_t output, const step_data *data)
{
    if (!data || (data->kind != STEP_TILE && data->kind != STEP_PAIR && data->kind != STEP_BUFFER))
        return data;
    step_data *d = ARENA_NEW(g->arena, step_data);
    *d = *data;
    if (data->kind == STEP_TILE) {
        d->rows = step_route_size(g, r, output, data->rows);
        d->columns = step_route_size(g, r, output, data->columns);
        return d->rows == data->rows && d->columns == data->columns ? data : d;
    }
    d->first = step_route_data(g, r, output, data->first);
    d->second = step_route_data(g, r, output, data->second);
    return d->first == data->first && d->second == data->second ? data : d;
}

static const step_expr *whole_symbol(void *user, const step_expr *symbol)
{
    routing *x = user;
    if (!step_expr_is_ragged(symbol))
        return symbol;
    for (const step_split *s = x->g->splits; s; s = s->next)
        if (s->of && s->size == symbol && same_route(s, x->route, x->output))
            return s->of;
    x->all = false;
    return symbol;
}

const step_expr *step_route_whole(step_graph *g, step_route r, uint32_t output, const step_expr *part)
{
    for (const step_split *s = g->splits; s; s = s->next)
        if (s->of && s->size == part && same_route(s, r, output))
            return s->of;
    routing x = {.g = g, .route = r, .output = output, .all = true};
    const step_expr *whole = part ? step_expr_replace(g->exprs, part, whole_symbol, &x) : NULL;
    return x.all ? whole : NULL;
}
