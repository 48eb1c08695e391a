#include "passes/order.h"

#include <string.h>

#include "support/budget.h"
#include "support/integer.h"

enum {
    MOST_WORKS = 4096, /* more are left as they are: who reaches whom is a matrix of bits */
    CONTEXTS = CONTEXT_DMA + 1,
    NOBODY = -1,
};

typedef struct edges {
    uint32_t *items;
    size_t count, capacity;
} edges;

struct order_graph {
    arena *arena;
    const work *works;
    size_t count;
    bool by_address; /* all memories as they lie now; else those that visac places share nothing */
    edges *before;   /* of each, those that must be complete */
    edges *behind;   /* and those that it must be complete for */
};

size_t order_work_count(const order_graph *g)
{
    return g->count;
}

const op *order_work(const order_graph *g, size_t i)
{
    return g->works[i].last;
}

const uint32_t *order_before(const order_graph *g, size_t i, size_t *count)
{
    *count = g->before[i].count;
    return g->before[i].items;
}

/* ---- what depends on what ---- */

/* What was done to a memory, in the order of the text. */
typedef struct touched {
    uint32_t work;
    int64_t begin, end;
    bool write;
} touched;
typedef struct history {
    touched *items;
    size_t count, capacity;
} history;

typedef struct histories {
    history given[TENSOR_KIND_COUNT]; /* memories whose addresses the source gives may share bytes */
    history *chosen;                  /* the others do not; by the index of their operation */
    history streams;
} histories;

static void add_edge(order_graph *g, uint32_t from, uint32_t to)
{
    edges *e = &g->before[to];
    if (from == to || (e->count > 0 && e->items[e->count - 1] == from))
        return;
    ARENA_PUSH(g->arena, e->items, e->count, e->capacity, from);
}

/* Backwards, up to a write of all these bytes: what is before it is before us through it. */
static void follow(order_graph *g, history *h, const touched *x)
{
    for (size_t i = h->count; i-- > 0;) {
        const touched *y = &h->items[i];
        budget_spend(g->arena, 1);
        if (y->work == x->work || x->begin >= y->end || y->begin >= x->end || !(x->write || y->write))
            continue;
        add_edge(g, y->work, x->work);
        if (y->write && y->begin <= x->begin && x->end <= y->end)
            break;
    }
}

static void follow_access(order_graph *g, histories *all, const memory_access *a, uint32_t number, bool records)
{
    history *h = a->memory->unplaced && !g->by_address ? &all->chosen[a->memory->index] : &all->given[a->kind];
    touched x = {number, a->begin, a->end, a->write};
    if (records)
        ARENA_PUSH(g->arena, h->items, h->count, h->capacity, x);
    else
        follow(g, h, &x);
}

static bool is_stream_port(const op *o)
{
    return op_kind_is(o->kind, IS_PORT) && tensor_kind_is_stream(o->out.kind);
}

/* The number of the work that ends with `o`, before this one; NOBODY: none. */
static int64_t work_ended_by(const order_graph *g, const op *o, uint32_t before)
{
    for (uint32_t i = before; o && i-- > 0;)
        if (g->works[i].last == o)
            return i;
    return NOBODY;
}

static void make_edges(order_graph *g, const kernel *k, arena *scratch)
{
    histories all = {.chosen = ARENA_ARRAY(scratch, history, k->op_count + 1)};
    for (uint32_t i = 0; i < g->count; i++) {
        const work *w = &g->works[i];
        for (int records = 0; records < 2; records++)
            for (size_t j = 0; j < w->access_count; j++)
                follow_access(g, &all, &w->accesses[j], i, records);
        if (is_stream_port(w->first) || is_stream_port(w->last)) {
            touched x = {i, 0, 1, true};
            follow(g, &all.streams, &x);
            ARENA_PUSH(g->arena, all.streams.items, all.streams.count, all.streams.capacity, x);
        }
        int64_t pinned = work_ended_by(g, work_pin(w), i);
        if (pinned != NOBODY)
            add_edge(g, (uint32_t)pinned, i);
    }
}

static void make_behind(order_graph *g)
{
    size_t *count = ARENA_ARRAY(g->arena, size_t, g->count + 1), edge_count = 0;
    g->behind = ARENA_ARRAY(g->arena, edges, g->count + 1);
    for (size_t i = 0; i < g->count; i++)
        for (size_t j = 0; j < g->before[i].count; j++, edge_count++)
            count[g->before[i].items[j]]++;
    uint32_t *all = ARENA_ARRAY(g->arena, uint32_t, edge_count + 1);
    for (size_t i = 0; i < g->count; all += count[i++])
        g->behind[i].items = all;
    for (uint32_t i = 0; i < g->count; i++)
        for (size_t j = 0; j < g->before[i].count; j++) {
            edges *e = &g->behind[g->before[i].items[j]];
            e->items[e->count++] = i;
        }
}

/* Is every piece of work of a context after the one before it in that context? Then nothing can be moved. */
static bool is_forced(const order_graph *g, arena *scratch)
{
    size_t words = (g->count + 63) / 64;
    uint64_t *reached = ARENA_ARRAY(scratch, uint64_t, words * g->count + 1); /* by whom it is reached, row by row */
    int64_t last[CONTEXTS] = {NOBODY, NOBODY, NOBODY};
    for (size_t i = 0; i < g->count; i++) {
        uint64_t *row = &reached[i * words];
        for (size_t j = 0; j < g->before[i].count; j++) {
            uint32_t from = g->before[i].items[j];
            row[from / 64] |= (uint64_t)1 << from % 64;
            for (size_t w = 0; w <= from / 64; w++)
                row[w] |= reached[from * words + w];
        }
        budget_spend(scratch, 1 + words * g->before[i].count);
        int64_t before = last[g->works[i].context];
        if (before != NOBODY && !(row[before / 64] >> before % 64 & 1))
            return false;
        last[g->works[i].context] = (int64_t)i;
    }
    return true;
}

static order_graph *new_graph(const kernel *k, const work_list *works, bool by_address, arena *a)
{
    order_graph *g = ARENA_NEW(a, order_graph);
    *g = (order_graph){.arena = a, .works = works->items, .count = works->count, .by_address = by_address};
    if (g->count > MOST_WORKS)
        return NULL;
    g->before = ARENA_ARRAY(a, edges, g->count + 1);
    make_edges(g, k, a);
    make_behind(g);
    return g;
}

order_graph *order_graph_make(const kernel *k, const work_list *works, arena *a)
{
    order_graph *g = new_graph(k, works, false, a);
    return g && g->count > 1 && !is_forced(g, a) ? g : NULL;
}

/* ---- the list scheduler ---- */

typedef struct candidate {
    int64_t tail;     /* cycles from the beginning of it to the end of all that is after it */
    int64_t ready;    /* when all before it is complete */
    uint32_t missing; /* how many before it are not chosen yet */
    bool is_chosen;
} candidate;

typedef struct chooser {
    const order_graph *graph;
    order_rule rule;
    candidate *works;
    int64_t free_from[CONTEXTS]; /* when the context has done what it has */
} chooser;

static candidate *candidates(const order_graph *g, const int64_t *cycles, arena *a)
{
    candidate *all = ARENA_ARRAY(a, candidate, g->count);
    for (size_t i = g->count; i-- > 0;) {
        all[i].missing = (uint32_t)g->before[i].count;
        all[i].tail += cycles[g->works[i].last->index];
        for (size_t j = 0; j < g->before[i].count; j++) {
            int64_t *before = &all[g->before[i].items[j]].tail;
            *before = all[i].tail > *before ? all[i].tail : *before;
        }
    }
    return all;
}

int64_t order_least(const order_graph *g, const int64_t *cycles, arena *a)
{
    arena *scratch = arena_new_inside(a);
    const candidate *all = candidates(g, cycles, scratch);
    int64_t least = 0, busy[CONTEXTS] = {0};
    for (size_t i = 0; i < g->count; i++) {
        busy[g->works[i].context] += cycles[g->works[i].last->index];
        least = larger(least, larger(all[i].tail, busy[g->works[i].context]));
    }
    arena_free(scratch);
    return least;
}

static int64_t start_of(const chooser *c, size_t i)
{
    int64_t free_from = c->free_from[c->graph->works[i].context];
    return c->works[i].ready > free_from ? c->works[i].ready : free_from;
}

/* Of two with the same merit the one stays in front that is first in the text. */
static bool is_better(const chooser *c, size_t i, size_t best)
{
    int64_t start = start_of(c, i), other = start_of(c, best);
    if (c->rule != ORDER_LONGEST && start != other)
        return start < other;
    return c->rule != ORDER_READY && c->works[i].tail > c->works[best].tail;
}

int64_t order_choose(const order_graph *g, const int64_t *cycles, order_rule rule, size_t window, arena *a, const op **issue)
{
    arena *scratch = arena_new_inside(a);
    chooser c = {.graph = g, .rule = rule, .works = candidates(g, cycles, scratch)};
    int64_t end = 0;
    for (size_t done = 0, first = 0; done < g->count; done++) {
        while (c.works[first].is_chosen)
            first++;
        size_t best = first,
               last = rule == ORDER_TEXT || window >= g->count - first ? rule == ORDER_TEXT ? first : g->count - 1 : first + window;
        for (size_t i = first + 1; i <= last; i++)
            if (!c.works[i].is_chosen && c.works[i].missing == 0 && is_better(&c, i, best))
                best = i;
        budget_spend(scratch, last - first + 1);
        int64_t finished = start_of(&c, best) + cycles[g->works[best].last->index];
        c.works[best].is_chosen = true;
        c.free_from[g->works[best].context] = finished;
        end = finished > end ? finished : end;
        issue[done] = g->works[best].last;
        for (size_t j = 0; j < g->behind[best].count; j++) {
            candidate *next = &c.works[g->behind[best].items[j]];
            next->missing--;
            next->ready = finished > next->ready ? finished : next->ready;
        }
    }
    arena_free(scratch);
    return end;
}

int64_t order_length(const kernel *k, const work_list *works, const int64_t *cycles, arena *a)
{
    arena *scratch = arena_new_inside(a);
    const order_graph *g = new_graph(k, works, true, scratch);
    int64_t length = g ? order_choose(g, cycles, ORDER_TEXT, 0, scratch, ARENA_ARRAY(scratch, const op *, g->count + 1)) : INT64_MAX;
    arena_free(scratch);
    return length;
}
