#include "ir/dataflow/explore_front.h"

#include <string.h>

#include "ir/dataflow/dataflow_shape.h"
#include "support/budget.h"
#include "support/order.h"

/* The first point with at least so many multipliers. */
static size_t place_of(const explore *x, int64_t multipliers)
{
    size_t low;
    ORDER_FIRST(&low, x->count, i, x->front[i].multipliers < multipliers);
    return low;
}

bool explore_dominated(const explore *x, int64_t latency, int64_t multipliers)
{
    size_t at = place_of(x, multipliers);
    if (at > 0 && x->front[at - 1].latency <= latency)
        return true;
    return at < x->count && x->front[at].multipliers == multipliers && x->front[at].latency < latency;
}

/* ---- ways ---- */

int64_t explore_product(const explore *x, const explore_point *p, size_t combination, size_t face)
{
    return x->faces[face].levels[p->levels[combination * x->face_count + face]].product;
}

typedef struct listing {
    const explore *x;
    int64_t left[EXPLORE_FACES_MAX]; /* of each face's product, what the parameters so far have left */
    int64_t choice[EXPLORE_PARAMETERS_MAX];
    int64_t *choices; /* NULL: they are counted only */
    int64_t count;
} listing;

/* Do all streams tile their blocks with this choice? */
static bool tiles(const explore *x, const int64_t *choice)
{
    budget_spend(x->arena, 1);
    for (size_t k = 0; k < x->parameter_count; k++) {
        const explore_parameter *p = &x->parameters[k];
        x->trial->interfaces[p->interface].parallel[p->dimension] = p->divisors[choice[k]];
    }
    return dataflow_streams_tile(x->trial);
}

/* A rest that divides what the parameters after are at most has divisors of them as its factors: no choice leads nowhere. */
static void list_ways(listing *l, size_t at)
{
    const explore *x = l->x;
    if (l->choices && l->count == EXPLORE_WAYS_MAX)
        return;
    if (at == x->parameter_count) {
        if (x->trial && !tiles(x, l->choice))
            return;
        if (at > 0 && l->choices)
            memcpy(l->choices + l->count * (int64_t)at, l->choice, at * sizeof *l->choice);
        l->count++;
        return;
    }
    const explore_parameter *p = &x->parameters[at];
    int64_t left = l->left[p->face];
    for (size_t k = 0; k < p->count && p->divisors[k] <= left; k++) {
        if (left % p->divisors[k] != 0 || p->behind % (left / p->divisors[k]) != 0)
            continue;
        l->choice[at] = (int64_t)k;
        l->left[p->face] = left / p->divisors[k];
        list_ways(l, at + 1);
    }
    l->left[p->face] = left;
}

/* The choices of these levels whose streams tile. */
static int64_t ways_of(const explore *x, const int64_t *levels)
{
    listing l = {.x = x};
    int64_t ways = 1;
    for (size_t f = 0; f < x->face_count; f++) {
        ways *= x->faces[f].levels[levels[f]].ways;
        l.left[f] = x->faces[f].levels[levels[f]].product;
    }
    if (!x->trial)
        return ways;
    list_ways(&l, 0);
    return l.count;
}

/* ---- the front ---- */

static void keep_levels(const explore *x, explore_point *p, const int64_t *levels, int64_t ways)
{
    if (p->ways_kept >= EXPLORE_WAYS_MAX)
        return;
    if (p->count == p->capacity) {
        size_t capacity = p->capacity ? 2 * p->capacity : 2;
        p->levels = arena_grow(x->arena, p->levels, p->count * x->face_count, capacity * x->face_count, sizeof *levels);
        p->capacity = capacity;
    }
    memcpy(p->levels + p->count * x->face_count, levels, x->face_count * sizeof *levels);
    p->count++;
    p->ways_kept += ways;
}

/* The point of these, added in its place without what it dominates; NULL: it is dominated itself. */
static explore_point *point_for(explore *x, int64_t latency, int64_t multipliers)
{
    if (explore_dominated(x, latency, multipliers))
        return NULL;
    size_t at = place_of(x, multipliers), end = at;
    if (at < x->count && x->front[at].multipliers == multipliers && x->front[at].latency == latency)
        return &x->front[at];
    while (end < x->count && x->front[end].latency >= latency)
        end++;
    explore_point p = {.latency = latency, .multipliers = multipliers};
    if (end == at)
        ARENA_PUSH(x->arena, x->front, x->count, x->capacity, p);
    size_t behind = end == at ? x->count - 1 - at : x->count - end;
    memmove(&x->front[at + 1], &x->front[end], behind * sizeof p);
    x->count = at + 1 + behind;
    x->front[at] = p;
    return &x->front[at];
}

void explore_add(explore *x, int64_t latency, int64_t multipliers, const int64_t *levels, int64_t ways)
{
    if (explore_dominated(x, latency, multipliers))
        return;
    int64_t tiling = x->trial && !x->folded ? ways_of(x, levels) : ways;
    if (tiling == 0)
        return;
    explore_point *p = point_for(x, latency, multipliers);
    p->ways += tiling;
    keep_levels(x, p, levels, tiling);
}

size_t explore_ways(const explore *x, const explore_point *p, int64_t **choices)
{
    size_t most = p->ways < EXPLORE_WAYS_MAX ? (size_t)p->ways : EXPLORE_WAYS_MAX;
    listing l = {.x = x, .choices = ARENA_ARRAY(x->arena, int64_t, most * x->parameter_count + 1)};
    *choices = l.choices;
    if (x->folded) {
        memcpy(l.choices, x->folded, x->parameter_count * sizeof *l.choices);
        return 1;
    }
    for (size_t i = 0; i < p->count; i++) {
        for (size_t f = 0; f < x->face_count; f++)
            l.left[f] = explore_product(x, p, i, f);
        list_ways(&l, 0);
    }
    return (size_t)l.count;
}

/* ---- carrying it elsewhere ---- */

/* Numbers: the points of the space, those within the limits; of each point of the front latency, multipliers, ways, how many combinations,
 * and these. */
enum { SPACE_NUMBERS = 2, POINT_NUMBERS = 4 };

size_t explore_save(const explore *x, int64_t **out)
{
    size_t count = SPACE_NUMBERS, at = SPACE_NUMBERS;
    for (size_t i = 0; i < x->count; i++)
        count += POINT_NUMBERS + x->front[i].count * x->face_count;
    int64_t *numbers = *out = ARENA_ARRAY(x->arena, int64_t, count);
    numbers[0] = x->points;
    numbers[1] = x->legal;
    for (size_t i = 0; i < x->count; i++) {
        const explore_point *p = &x->front[i];
        size_t levels = p->count * x->face_count;
        const int64_t head[POINT_NUMBERS] = {p->latency, p->multipliers, p->ways, (int64_t)p->count};
        memcpy(&numbers[at], head, sizeof head);
        memcpy(&numbers[at + POINT_NUMBERS], p->levels, levels * sizeof *numbers);
        at += POINT_NUMBERS + levels;
    }
    return count;
}

static int compare_levels(const explore *x, const int64_t *a, const int64_t *b)
{
    for (size_t i = 0; i < x->face_count; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* Both lists are in order. */
static void merge_levels(const explore *x, explore_point *p, const int64_t *others, size_t count)
{
    explore_point mine = *p;
    p->levels = NULL;
    p->count = p->capacity = 0;
    p->ways_kept = 0;
    for (size_t i = 0, k = 0; i < mine.count || k < count;) {
        const int64_t *a = mine.levels + i * x->face_count, *b = others + k * x->face_count;
        bool first = k == count || (i < mine.count && compare_levels(x, a, b) < 0);
        keep_levels(x, p, first ? a : b, ways_of(x, first ? a : b));
        i += first;
        k += !first;
    }
}

bool explore_merge(explore *x, const int64_t *numbers, size_t count)
{
    if (count < SPACE_NUMBERS || numbers[0] != x->points)
        return false;
    x->legal += numbers[1];
    for (size_t at = SPACE_NUMBERS; at < count;) {
        int64_t latency = numbers[at], multipliers = numbers[at + 1], ways = numbers[at + 2];
        size_t combinations = (size_t)numbers[at + 3];
        explore_point *p = point_for(x, latency, multipliers);
        at += POINT_NUMBERS;
        if (p) {
            p->ways += ways;
            merge_levels(x, p, &numbers[at], combinations);
        }
        at += combinations * x->face_count;
    }
    return true;
}
