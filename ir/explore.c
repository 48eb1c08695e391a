#include "ir/explore.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ir/explore_front.h"

/* Products of an interface's parameters. */
typedef struct extents {
    int64_t of[EXPLORE_INTERFACES_MAX];
} extents;

typedef struct walk {
    explore *x;
    extents most[EXPLORE_PARAMETERS_MAX + 1]; /* from that parameter on, all at their largest */
    int64_t below[EXPLORE_PARAMETERS_MAX + 1]; /* points from that parameter on */
    int64_t choice[EXPLORE_PARAMETERS_MAX];
    size_t split; /* pieces of the space are told apart by the parameters before it */
    int64_t done, said;
} walk;

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void find_divisors(explore *x, explore_parameter *p, int64_t n)
{
    size_t capacity = 0;
    for (int64_t d = 1; d <= n / d; d++) {
        if (n % d != 0)
            continue;
        ARENA_PUSH(x->arena, p->divisors, p->count, capacity, d);
        if (d != n / d)
            ARENA_PUSH(x->arena, p->divisors, p->count, capacity, n / d);
    }
    qsort(p->divisors, p->count, sizeof *p->divisors, by_size);
}

static bool refuse(const dataflow_model *m, diag_list *diags, const char *what, const char *help)
{
    diag_help(diags, diag_add(diags, E_DATAFLOW_EXPLORE, m->range, "`%s` %s", m->name, what), "%s", help);
    return false;
}

bool explore_open(explore *x, const dataflow_model *m, arena *a, diag_list *diags)
{
    *x = (explore){.model = m, .arena = a, .parts = 1, .points = 1};
    x->parameters = ARENA_ARRAY(a, explore_parameter, EXPLORE_PARAMETERS_MAX);
    for (int k = 0; k < DATAFLOW_INTERVALS; k++)
        if (m->intervals[k])
            return refuse(m, diags, "says its intervals itself", "take cii, eii and latency away: the formulas say how they change");
    size_t streams = 0;
    for (int kind = DATAFLOW_INPUT; kind <= DATAFLOW_WEIGHT; kind++)
        for (size_t i = 0; i < m->count; i++) {
            const dataflow_interface *face = &m->interfaces[i];
            if (face->kind != (dataflow_kind)kind)
                continue;
            if (i >= EXPLORE_INTERFACES_MAX || ++streams > EXPLORE_INTERFACES_MAX)
                return refuse(m, diags, "has too many interfaces to explore", arena_printf(a, "inputs and weights are among the first %d", EXPLORE_INTERFACES_MAX));
            for (uint32_t d = 0; d < face->rank; d++) {
                int64_t n = kind == DATAFLOW_INPUT ? face->block[d] : dataflow_blocks(face, d);
                explore_parameter p = {.interface = i, .dimension = d};
                if (n == 1)
                    continue;
                if (n > INT64_C(1) << 48 || x->parameter_count == EXPLORE_PARAMETERS_MAX)
                    return refuse(m, diags, "has a dimension above 2^48, or too many of them", arena_printf(a, "at most %d dimensions may be chosen", EXPLORE_PARAMETERS_MAX));
                find_divisors(x, &p, n);
                if (__builtin_mul_overflow(x->points, (int64_t)p.count, &x->points))
                    return refuse(m, diags, "has more than 2^63 points", "explore a part of its interfaces");
                x->parameters[x->parameter_count++] = p;
            }
        }
    return true;
}

/* ---- what a point costs ---- */

static int64_t saturated(__int128 n)
{
    return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

/* Elements of a weight's stream, whole ones: max over inputs of wPar x iPar x block_W / block_I. */
static __int128 weight_stream(const dataflow_model *m, const dataflow_interface *w, int64_t together, const extents *e)
{
    __int128 most = 0, block = dataflow_block_elements(w);
    for (size_t i = 0; i < m->count; i++) {
        if (m->interfaces[i].kind != DATAFLOW_INPUT)
            continue;
        int64_t input = dataflow_block_elements(&m->interfaces[i]);
        __int128 per = saturated((__int128)e->of[i] * together), s = (per * block + input - 1) / input;
        most = s > most ? s : most;
    }
    return most;
}

/* `e` holds iPar and wPar of each interface. */
static explore_cost cost_of(const dataflow_model *m, const extents *e)
{
    explore_cost c = {0};
    __int128 inputs = 0, weights = 0, weight_bits = 0;
    int64_t groups = 1;
    for (size_t i = 0; i < m->count; i++) {
        const dataflow_interface *w = &m->interfaces[i];
        if (w->kind != DATAFLOW_WEIGHT)
            continue;
        weights += e->of[i];
        c.rows = e->of[i] > c.rows ? e->of[i] : c.rows;
        groups = w->num_blocks / e->of[i] > groups ? w->num_blocks / e->of[i] : groups;
        weight_bits += weight_stream(m, w, e->of[i], e) * w->bits;
        int64_t word = saturated(weight_stream(m, w, 1, e) * w->bits);
        c.block_bits = word > c.block_bits ? word : c.block_bits;
    }
    for (size_t i = 0; i < m->count; i++) {
        const dataflow_interface *in = &m->interfaces[i];
        if (in->kind != DATAFLOW_INPUT)
            continue;
        inputs += e->of[i];
        int64_t latency = saturated((__int128)(dataflow_block_elements(in) / e->of[i]) * groups * in->num_blocks);
        int64_t bits = saturated((__int128)e->of[i] * in->bits * m->batch);
        c.latency = latency > c.latency ? latency : c.latency;
        c.input_bits = bits > c.input_bits ? bits : c.input_bits;
    }
    c.multipliers = saturated(inputs * (weights ? weights : 1));
    c.weight_bits = saturated(weight_bits);
    return c;
}

static bool over(int64_t limit, int64_t value)
{
    return limit != 0 && value > limit;
}

/* Of the smallest corner: a larger one breaks them too. */
static bool breaks_widths(const explore_limits *l, const explore_cost *c)
{
    return over(l->multipliers, c->multipliers) || over(l->weight_bits, c->weight_bits) || over(l->input_bits, c->input_bits) || over(l->block_bits, c->block_bits) ||
           over(l->rows, c->rows);
}

/* ---- the walk ---- */

static extents times(const extents *a, const extents *b)
{
    extents e;
    for (int i = 0; i < EXPLORE_INTERFACES_MAX; i++)
        e.of[i] = a->of[i] * b->of[i];
    return e;
}

static void say_progress(walk *w)
{
    enum { EVERY = 1 << 20 };
    if (w->x->progress && w->done - w->said >= EVERY) {
        w->said = w->done;
        w->x->progress(w->x->user, w->done, w->x->points);
    }
}

/* Everything below parameter `at`, with the ones before it chosen: `chosen`. False: larger values break a limit too. */
static bool descend(walk *w, size_t at, const extents *chosen, int64_t piece)
{
    explore *x = w->x;
    const explore_parameter *p = &x->parameters[at];
    bool whole = at >= w->split;
    if (at == w->split && piece % x->parts != x->part)
        return true;
    explore_cost least = cost_of(x->model, chosen);
    if (breaks_widths(&x->limits, &least))
        return false;
    if (at == x->parameter_count) {
        w->done++;
        say_progress(w);
        if (over(x->limits.cycles, least.latency))
            return true;
        x->legal++;
        explore_add(x, least.latency, least.multipliers, w->choice);
        return true;
    }
    if (whole) {
        extents all = times(chosen, &w->most[at]);
        explore_cost most = cost_of(x->model, &all);
        if (over(x->limits.cycles, most.latency))
            return true;
        bool counted = !breaks_widths(&x->limits, &most) && !over(x->limits.cycles, least.latency);
        if (counted && explore_dominated(x, most.latency, least.multipliers)) {
            x->legal += w->below[at];
            w->done += w->below[at];
            say_progress(w);
            return true;
        }
    }
    for (size_t k = 0; k < p->count; k++) {
        extents next = *chosen;
        next.of[p->interface] *= p->divisors[k];
        w->choice[at] = (int64_t)k;
        if (!descend(w, at + 1, &next, at < w->split ? piece * (int64_t)p->count + (int64_t)k : piece))
            break;
    }
    return true;
}

void explore_run(explore *x)
{
    enum { PIECES = 64 };
    walk w = {.x = x};
    extents one;
    for (int i = 0; i < EXPLORE_INTERFACES_MAX; i++)
        one.of[i] = 1;
    w.most[x->parameter_count] = one;
    w.below[x->parameter_count] = 1;
    for (size_t i = x->parameter_count; i-- > 0;) {
        const explore_parameter *p = &x->parameters[i];
        w.most[i] = w.most[i + 1];
        w.most[i].of[p->interface] *= p->divisors[p->count - 1];
        w.below[i] = w.below[i + 1] * (int64_t)p->count;
    }
    for (int64_t pieces = 1; x->parts > 1 && w.split < x->parameter_count && pieces < PIECES * x->parts; w.split++)
        pieces *= (int64_t)x->parameters[w.split].count;
    descend(&w, 0, &one, 0);
}

/* ---- FINN's folding ---- */

static extents extents_of(const explore *x, const int64_t *choice)
{
    extents e;
    for (int i = 0; i < EXPLORE_INTERFACES_MAX; i++)
        e.of[i] = 1;
    for (size_t i = 0; i < x->parameter_count; i++)
        e.of[x->parameters[i].interface] *= x->parameters[i].divisors[choice[i]];
    return e;
}

explore_cost explore_cost_of(const explore *x, const int64_t *choice)
{
    extents e = extents_of(x, choice);
    return cost_of(x->model, &e);
}

void explore_fold(explore *x, int64_t cycles)
{
    int64_t choice[EXPLORE_PARAMETERS_MAX] = {0};
    explore_cost cost = {0};
    bool met = false;
    for (size_t i = 0; i < x->parameter_count && !met; i++) {
        bool input = x->model->interfaces[x->parameters[i].interface].kind == DATAFLOW_INPUT;
        for (size_t k = 0; k < x->parameters[i].count && !met; k++) {
            choice[i] = (int64_t)k;
            cost = explore_cost_of(x, choice);
            met = cost.latency < cycles;
            if (met || !input || k == 0 || !over(x->limits.block_bits, cost.block_bits))
                continue;
            choice[i]--;
            break;
        }
    }
    cost = explore_cost_of(x, choice);
    x->legal = 1;
    explore_add(x, cost.latency, cost.multipliers, choice);
}

dataflow_model *explore_model(const explore *x, const int64_t *choice, diag_list *diags)
{
    dataflow_model *m = ARENA_NEW(x->arena, dataflow_model);
    *m = *x->model;
    m->interfaces = ARENA_ARRAY(x->arena, dataflow_interface, m->count);
    memcpy(m->interfaces, x->model->interfaces, m->count * sizeof *m->interfaces);
    for (size_t i = 0; i < m->count; i++)
        for (uint32_t d = 0; d < m->interfaces[i].rank && m->interfaces[i].kind < DATAFLOW_OUTPUT; d++)
            m->interfaces[i].parallel[d] = 1;
    for (size_t i = 0; i < x->parameter_count; i++)
        m->interfaces[x->parameters[i].interface].parallel[x->parameters[i].dimension] = x->parameters[i].divisors[choice[i]];
    return dataflow_evaluate(m, diags) ? m : NULL;
}
