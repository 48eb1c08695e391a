#include "passes/storage.h"

#include <stdlib.h>
#include <string.h>

#include "support/budget.h"
#include "support/order.h"

enum {
    SEARCHED_ITEMS = 16,    /* more are not searched through: 16! orders, few of which differ */
    SEARCH_STEPS = 1 << 20, /* of the search, each as many comparisons as there are items */
    RAISES = 64,            /* times at most that what lies highest is put down earlier */
};

typedef struct packer {
    arena *arena;
    storage_item *items; /* those that move, first; after them the fixed ones */
    size_t free_count, count;
    uint32_t *order;            /* of the free ones */
    uint32_t *placed;           /* by offset */
    int64_t fixed_peak, enough; /* bytes */
    int64_t *best;              /* offsets of the free ones in the best packing so far */
    storage_result result;
} packer;

static bool live_together(const storage_item *a, const storage_item *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static int64_t align_up(int64_t n, int64_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

/* ---- the bound ---- */

typedef struct edge {
    int64_t step, bytes; /* before the step: what begins there adds its bytes, what has ended takes them */
} edge;

/* Of one step, what has ended comes first: a load in between is never more than one of a step. */
static int by_step(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    return order_then(ORDER(x->step, y->step), ORDER(x->bytes, y->bytes));
}

static int64_t largest_fixed_at(const packer *p, int64_t step)
{
    int64_t most = 0;
    for (size_t i = p->free_count; i < p->count; i++)
        if (p->items[i].first <= step && step <= p->items[i].last && p->items[i].bytes > most)
            most = p->items[i].bytes;
    budget_spend(p->arena, p->count - p->free_count);
    return most;
}

/* Of the packings, none has a lower peak than the most bytes that are live in one step, or than what is fixed. Loads rise only where an
 * item begins. Several that are fixed may overlap each other, which no packing can help: of those only the largest counts. */
static int64_t least_peak(const packer *p)
{
    edge *edges = arena_alloc_unset(p->arena, 2 * p->count * sizeof *edges);
    size_t count = 0;
    for (size_t i = 0; i < p->count; i++) {
        const storage_item *x = &p->items[i];
        edges[count++] = (edge){x->first, x->fixed ? 0 : x->bytes};
        if (!x->fixed)
            edges[count++] = (edge){x->last + 1, -x->bytes};
    }
    order_sort(edges, count, sizeof *edges, by_step);
    budget_spend(p->arena, 2 * count);
    int64_t most = p->fixed_peak, load = 0;
    for (size_t i = 0; i < count; i++) {
        load += edges[i].bytes;
        if (i + 1 < count && edges[i + 1].step == edges[i].step)
            continue;
        int64_t all = load + largest_fixed_at(p, edges[i].step);
        most = all > most ? all : most;
    }
    return most;
}

/* ---- one order ---- */

/* The lowest offset from `from` on at which the item meets none of these that is live at the same time. They stand in the order of their
 * offsets.
 */
static int64_t lowest_offset(const packer *p, const storage_item *item, int64_t from, const uint32_t *placed, size_t count)
{
    int64_t at = align_up(from, item->alignment);
    for (size_t i = 0; i < count; i++) {
        const storage_item *other = &p->items[placed[i]];
        if (live_together(item, other) && at < other->offset + other->bytes && other->offset < at + item->bytes)
            at = align_up(other->offset + other->bytes, item->alignment);
    }
    return at;
}

static void keep_if_lower(packer *p, int64_t peak)
{
    if (peak >= p->result.peak)
        return;
    p->result.peak = peak;
    for (size_t i = 0; i < p->free_count; i++)
        p->best[i] = p->items[i].offset;
}

/* Among `count` that stand in the order of their offsets. */
static void insert(const packer *p, uint32_t *placed, size_t count, uint32_t item)
{
    size_t at = count;
    for (; at > 0 && p->items[placed[at - 1]].offset > p->items[item].offset; at--)
        placed[at] = placed[at - 1];
    placed[at] = item;
}

/* Puts the items down in p->order, each as low as it goes; returns the place in the order of one that lies highest. */
static size_t put_down(packer *p)
{
    int64_t peak = p->fixed_peak;
    size_t highest = 0;
    for (size_t i = p->free_count; i < p->count; i++)
        insert(p, p->placed, i - p->free_count, (uint32_t)i);
    for (size_t i = 0; i < p->free_count; i++) {
        storage_item *item = &p->items[p->order[i]];
        size_t before = i + p->count - p->free_count;
        budget_spend(p->arena, before + 1);
        item->offset = lowest_offset(p, item, 0, p->placed, before);
        insert(p, p->placed, before, p->order[i]);
        if (item->offset + item->bytes > peak) {
            peak = item->offset + item->bytes;
            highest = i;
        }
    }
    keep_if_lower(p, peak);
    return highest;
}

/* ---- some orders ---- */

typedef enum rule { BY_BYTES, BY_AREA, BY_LENGTH, BY_FIRST, BY_LAST, RULES } rule;

/* Less is put down first. Areas are compared in units that do not overflow: 2^40 bytes x 2^22 steps. */
static int64_t rank(const storage_item *x, rule r)
{
    int64_t length = x->last - x->first + 1;
    switch (r) {
    case BY_BYTES: return -x->bytes;
    case BY_AREA: return -(x->bytes >> 8) * (length < 1 << 22 ? length : 1 << 22) - (x->bytes & 255);
    case BY_LENGTH: return -length;
    case BY_FIRST: return x->first;
    default: return -x->last;
    }
}

typedef struct ranked {
    int64_t rank, bytes;
    uint32_t item;
} ranked;

static int by_rank(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return order_then(ORDER(x->rank, y->rank), order_then(ORDER(y->bytes, x->bytes), ORDER(x->item, y->item)));
}

static void order_by(packer *p, rule r)
{
    ranked *all = arena_alloc_unset(p->arena, p->free_count * sizeof *all);
    for (size_t i = 0; i < p->free_count; i++)
        all[i] = (ranked){rank(&p->items[i], r), p->items[i].bytes, (uint32_t)i};
    order_sort(all, p->free_count, sizeof *all, by_rank);
    for (size_t i = 0; i < p->free_count; i++)
        p->order[i] = all[i].item;
}

static bool is_done(const packer *p)
{
    return p->result.peak <= p->result.bound || p->result.peak <= p->enough;
}

static void try_orders(packer *p)
{
    size_t raises = SEARCH_STEPS / (p->free_count * p->free_count + 1);
    raises = raises < RAISES ? raises + 1 : RAISES;
    for (rule r = 0; r < RULES && !is_done(p); r++) {
        order_by(p, r);
        for (size_t raise = 0; raise < raises && !is_done(p); raise++) { /* what ended up highest goes first the next time */
            size_t highest = put_down(p);
            if (highest == 0)
                break;
            uint32_t item = p->order[highest];
            memmove(&p->order[1], &p->order[0], highest * sizeof *p->order);
            p->order[0] = item;
        }
    }
}

/* ---- all orders ---- */

typedef struct search {
    packer *packer;
    uint32_t placed[SEARCHED_ITEMS];
    bool is_placed[SEARCHED_ITEMS];
    int64_t steps_left;
} search;

/* One past the highest byte of what is placed or fixed and live at a step, at least `from`. */
static int64_t top_at(const search *s, size_t depth, int64_t step, int64_t from)
{
    const packer *p = s->packer;
    for (size_t i = 0; i < depth; i++) {
        const storage_item *x = &p->items[s->placed[i]];
        if (x->first <= step && step <= x->last && x->offset + x->bytes > from)
            from = x->offset + x->bytes;
    }
    return from;
}

/* Offsets do not fall from here on, so what is left lies on what is placed, in every step: can that stay below the best peak? */
static bool can_be_lower(const search *s, size_t depth, int64_t from)
{
    const packer *p = s->packer;
    for (size_t i = 0; i < p->free_count; i++) {
        if (s->is_placed[i])
            continue;
        int64_t step = p->items[i].first, top = top_at(s, depth, step, from);
        for (size_t j = 0; j < p->free_count; j++)
            if (!s->is_placed[j] && p->items[j].first <= step && step <= p->items[j].last)
                top += p->items[j].bytes;
        if (top >= p->result.peak)
            return false;
    }
    return true;
}

/* Items in the order of their offsets, and where those are equal of their numbers: every packing that cannot be pushed lower is met once.
 * No deeper than SEARCHED_ITEMS. */
static void search_from(search *s, size_t depth, int64_t peak)
{
    packer *p = s->packer;
    if (depth == p->free_count) {
        keep_if_lower(p, peak);
        return;
    }
    const storage_item *last = depth ? &p->items[s->placed[depth - 1]] : NULL;
    int64_t from = last ? last->offset : 0;
    if (!can_be_lower(s, depth, from))
        return;
    for (uint32_t i = 0; i < p->free_count && !is_done(p); i++) {
        storage_item *item = &p->items[i];
        if (s->is_placed[i] || s->steps_left-- <= 0)
            continue;
        int64_t bottom = 0;
        for (size_t k = 0; k < depth; k++) {
            const storage_item *below = &p->items[s->placed[k]];
            if (live_together(item, below) && below->offset + below->bytes > bottom)
                bottom = below->offset + below->bytes;
        }
        item->offset = lowest_offset(p, item, bottom, p->placed, p->count - p->free_count);
        if (item->offset < from || (last && item->offset == from && i < s->placed[depth - 1]))
            continue;
        int64_t end = item->offset + item->bytes;
        if (end >= p->result.peak)
            continue;
        s->placed[depth] = i;
        s->is_placed[i] = true;
        search_from(s, depth + 1, end > peak ? end : peak);
        s->is_placed[i] = false;
    }
}

/* True when nothing was left out. */
static bool search_all(packer *p)
{
    if (p->free_count > SEARCHED_ITEMS)
        return false;
    search s = {.packer = p, .steps_left = SEARCH_STEPS};
    for (size_t i = p->free_count; i < p->count; i++)
        insert(p, p->placed, i - p->free_count, (uint32_t)i);
    search_from(&s, 0, p->fixed_peak);
    return s.steps_left > 0;
}

/* ---- all ---- */

storage_result storage_pack(storage_item *items, size_t count, int64_t enough, arena *a)
{
    arena *scratch = arena_new_inside(a);
    packer p = {.arena = scratch,
                .count = count,
                .enough = enough,
                .items = arena_alloc_unset(scratch, count * sizeof *items),
                .order = arena_alloc_unset(scratch, count * sizeof(uint32_t)),
                .placed = arena_alloc_unset(scratch, count * sizeof(uint32_t)),
                .best = arena_alloc_unset(scratch, count * sizeof(int64_t)),
                .result = {.peak = INT64_MAX}};
    size_t *place = arena_alloc_unset(scratch, count * sizeof *place), fixed = 0;
    for (size_t i = 0; i < count; i++)
        if (!items[i].fixed) {
            place[p.free_count] = i;
            p.items[p.free_count++] = items[i];
        }
    for (size_t i = 0; i < count; i++)
        if (items[i].fixed)
            p.items[p.free_count + fixed++] = items[i];
    for (size_t i = p.free_count; i < count; i++) {
        int64_t end = p.items[i].offset + p.items[i].bytes;
        p.fixed_peak = end > p.fixed_peak ? end : p.fixed_peak;
    }
    p.result.bound = least_peak(&p);
    try_orders(&p);
    if (p.free_count == 0)
        put_down(&p);
    bool searched = !is_done(&p) && search_all(&p);
    p.result.is_least = p.result.peak <= p.result.bound || (searched && p.result.peak > enough);
    for (size_t i = 0; i < p.free_count; i++)
        items[place[i]].offset = p.best[i];
    storage_result result = p.result;
    arena_free(scratch);
    return result;
}
