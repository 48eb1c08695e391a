#include "ir/explore_front.h"

#include <string.h>

/* ---- the front ---- */

/* The first point with at least so many multipliers. */
static size_t place_of(const explore *x, int64_t multipliers)
{
    size_t low = 0, high = x->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (x->front[middle].multipliers < multipliers)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool explore_dominated(const explore *x, int64_t latency, int64_t multipliers)
{
    size_t at = place_of(x, multipliers);
    if (at > 0 && x->front[at - 1].latency <= latency)
        return true;
    return at < x->count && x->front[at].multipliers == multipliers && x->front[at].latency < latency;
}

static void add_choice(const explore *x, explore_point *p, const int64_t *choice)
{
    if (p->choice_count == EXPLORE_WAYS_MAX)
        return;
    if (p->choice_count == p->choice_capacity) {
        size_t capacity = p->choice_capacity ? 2 * p->choice_capacity : 4;
        int64_t *grown = ARENA_ARRAY(x->arena, int64_t, capacity * (x->parameter_count + 1));
        if (p->choice_count)
            memcpy(grown, p->choices, p->choice_count * x->parameter_count * sizeof *grown);
        p->choices = grown;
        p->choice_capacity = capacity;
    }
    if (x->parameter_count)
        memcpy(p->choices + p->choice_count * x->parameter_count, choice, x->parameter_count * sizeof *choice);
    p->choice_count++;
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

void explore_add(explore *x, int64_t latency, int64_t multipliers, const int64_t *choice)
{
    explore_point *p = point_for(x, latency, multipliers);
    if (!p)
        return;
    p->ways++;
    add_choice(x, p, choice);
}

/* ---- carrying it elsewhere ---- */

/* Numbers: the points of the space, those within the limits; of each point of the front latency, multipliers, ways, how many choices, and
 * these. */
enum { SPACE_NUMBERS = 2, POINT_NUMBERS = 4 };

size_t explore_save(const explore *x, int64_t **out)
{
    size_t count = SPACE_NUMBERS, at = SPACE_NUMBERS;
    for (size_t i = 0; i < x->count; i++)
        count += POINT_NUMBERS + x->front[i].choice_count * x->parameter_count;
    int64_t *numbers = *out = ARENA_ARRAY(x->arena, int64_t, count);
    numbers[0] = x->points;
    numbers[1] = x->legal;
    for (size_t i = 0; i < x->count; i++) {
        const explore_point *p = &x->front[i];
        size_t choices = p->choice_count * x->parameter_count;
        const int64_t head[POINT_NUMBERS] = {p->latency, p->multipliers, p->ways, (int64_t)p->choice_count};
        memcpy(&numbers[at], head, sizeof head);
        if (choices)
            memcpy(&numbers[at + POINT_NUMBERS], p->choices, choices * sizeof *numbers);
        at += POINT_NUMBERS + choices;
    }
    return count;
}

static int compare_choices(const explore *x, const int64_t *a, const int64_t *b)
{
    for (size_t i = 0; i < x->parameter_count; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* Both lists are in order. */
static void merge_choices(const explore *x, explore_point *p, const int64_t *others, size_t count)
{
    explore_point mine = *p;
    p->choices = NULL;
    p->choice_count = p->choice_capacity = 0;
    for (size_t i = 0, k = 0; i < mine.choice_count || k < count;) {
        const int64_t *a = mine.choices + i * x->parameter_count, *b = others + k * x->parameter_count;
        bool first = k == count || (i < mine.choice_count && compare_choices(x, a, b) < 0);
        add_choice(x, p, first ? a : b);
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
        size_t choices = (size_t)numbers[at + 3];
        explore_point *p = point_for(x, latency, multipliers);
        at += POINT_NUMBERS;
        if (p) {
            p->ways += ways;
            merge_choices(x, p, &numbers[at], choices);
        }
        at += choices * x->parameter_count;
    }
    return true;
}
