/* Do two mappings mean the same? By their factors where that decides; groups that do not cut into digits by comparing stretches of
 * positions.
 *
 * The one idea: a mapping repeats itself for long stretches. From any position on there are a period P and a window W such that position
 * i + P holds the index of position i plus a constant, the drift, as long as both are in the window: P is how many positions bring a digit
 * further and leave those inside it as they were, W ends where the digit does. Two mappings that agree on one common multiple of their
 * periods, and at one live position after it, have the same drift and agree on the smaller of the two windows. Inside that multiple,
 * digits further in repeat; what does not is looked at position by position. So the cost is in how digits and steps lie to each other, not
 * in the sizes of axes. */
#include <string.h>

#include "ir/mapping/mapping_parts.h"

typedef struct stretch_list {
    int64_t *above; /* by axis: the sum of the digits outside the one at hand at this position */
    mapping_stretch items[MAPPING_MAX_STRETCHES];
    size_t count;
} stretch_list;

/* The digits inside the one at hand: those of a mapping from `first` on, and then those after it. */
typedef struct below {
    const mapping *m;
    size_t first;
    const struct below *next;
} below;

/* ---- the stretches at a position ---- */

static int64_t add(int64_t x, int64_t y)
{
    return x < MAPPING_MAX_SIZE - y ? x + y : MAPPING_MAX_SIZE;
}

/* A bound on their sum for the axis. */
static int64_t reach_below(const below *b, const axis *a)
{
    int64_t reach = 0;
    for (; b; b = b->next)
        for (size_t i = b->first; i < b->m->count; i++) {
            const factor *f = &b->m->factors[i];
            if (f->kind == FACTOR_COMPOSITE)
                reach = add(reach, reach_below(&(below){f->inner, 0, NULL}, a));
            else if (f->kind == FACTOR_AXIS && f->axis == a)
                reach = add(reach, (f->live - 1) * f->weight);
        }
    return reach;
}

/* From a coordinate on in steps, with up to `more` added to it: how many until the axis's end changes what is live? */
static int64_t steps_on_axis(const axis *a, int64_t at, int64_t step, int64_t more)
{
    if (at >= a->size)
        return INT64_MAX; /* dead, and stays it */
    return at + more < a->size ? ceil_div(a->size - more - at, step) : 0;
}

/* Values until the digit, or the axis's end, changes what is live. */
static int64_t steps_of_digit(const stretch_list *l, const factor *f, int64_t value, const below *inside)
{
    if (value >= f->live || f->kind != FACTOR_AXIS)
        return (value >= f->live ? f->extent : f->live) - value;
    int64_t steps = steps_on_axis(f->axis, add(l->above[f->axis->number], value * f->weight), f->weight, reach_below(inside, f->axis));
    return steps == INT64_MAX ? f->extent - value : steps < f->live - value ? steps : f->live - value;
}

static void add_stretch(stretch_list *l, int64_t period, int64_t window)
{
    if (l->count < MAPPING_MAX_STRETCHES && window > period)
        l->items[l->count++] = (mapping_stretch){period, window};
}

/* The digits of position `at` of a group, and how far they go in a step of `weight`. */
typedef struct group_value {
    int64_t value, step;
} group_value;

static group_value group_digit_at(const mapping *group, size_t k, int64_t inside, int64_t at, int64_t weight)
{
    group_value v = {at / inside, weight / inside};
    if (k > 0)
        v = (group_value){v.value % group->factors[k].extent, v.step % group->factors[k].extent};
    return v;
}

/* The group's part of an axis's index at this position, and its change per step in which no group inside it moves. */
static group_value group_on_axis(const mapping *group, const axis *a, int64_t at, int64_t weight)
{
    group_value sum = {0, 0};
    int64_t inside = 1;
    for (size_t k = group->count; k-- > 0; inside *= group->factors[k].extent) {
        const factor *f = &group->factors[k];
        group_value v = group_digit_at(group, k, inside, at, weight);
        if (f->kind == FACTOR_COMPOSITE && v.value < f->live)
            sum.value = add(sum.value, group_on_axis(f->inner, a, v.value * f->weight, 0).value);
        else if (f->axis == a)
            sum = (group_value){add(sum.value, v.value * f->weight), add(sum.step, v.step * f->weight)};
    }
    return sum;
}

/* Steps of the group's counter, which stands at c, until one of its digits ends; 0: not known. */
static int64_t steps_without_carry(const stretch_list *l, const factor *group, int64_t c, const below *inner)
{
    const mapping *e = group->inner;
    int64_t inside = 1, steps = group->live - c, at = c * group->weight;
    for (size_t k = e->count; k-- > 0; inside *= e->factors[k].extent) {
        const factor *f = &e->factors[k];
        group_value v = group_digit_at(e, k, inside, at, group->weight);
        if (v.step == 0)
            continue;
        if (f->kind == FACTOR_COMPOSITE)
            return 0;
        int64_t here = ceil_div((v.value < f->live ? f->live : f->extent) - v.value, v.step);
        steps = here < steps ? here : steps;
        if (f->kind != FACTOR_AXIS)
            continue;
        group_value all = group_on_axis(e, f->axis, at, group->weight);
        here = steps_on_axis(f->axis, add(l->above[f->axis->number], all.value), all.step, reach_below(inner, f->axis));
        steps = here < steps ? here : steps;
    }
    return steps;
}

static void list_stretches(stretch_list *l, const mapping *part, int64_t i, const below *inner);

/* The stretches of the group's positions, counted in steps of its weight. */
static void list_steps(stretch_list *l, const factor *group, int64_t c, const below *inner)
{
    int64_t at = c * group->weight;
    add_stretch(l, 1, steps_without_carry(l, group, c, inner));
    size_t first = l->count, kept = first;
    list_stretches(l, group->inner, at, inner);
    for (size_t i = first; i < l->count; i++) {
        int64_t period = l->items[i].period / gcd(l->items[i].period, group->weight),
                last = ceil_div(at + l->items[i].window, group->weight);
        l->items[kept] = (mapping_stretch){period, (last < group->live ? last : group->live) - c};
        kept += l->items[kept].window > period;
    }
    l->count = kept;
}

/* Those of a part of the mapping, at its position i. */
static void list_stretches(stretch_list *l, const mapping *part, int64_t i, const below *inner)
{
    int64_t unit = part->size;
    for (size_t k = 0; k < part->count; k++) {
        const factor *f = &part->factors[k];
        unit /= f->extent;
        int64_t value = i / unit % f->extent, passed = i % unit;
        size_t first = l->count, kept = first;
        const below inside = {part, k + 1, inner};
        if (f->kind == FACTOR_COMPOSITE && value < f->live)
            list_steps(l, f, value, &inside);
        else
            add_stretch(l, 1, steps_of_digit(l, f, value, &inside));
        for (size_t n = first; n < l->count; n++) { /* in positions */
            l->items[kept] = (mapping_stretch){l->items[n].period * unit, l->items[n].window * unit - passed};
            kept += l->items[kept].window > l->items[kept].period;
        }
        l->count = kept;
        if (f->kind == FACTOR_AXIS)
            l->above[f->axis->number] = add(l->above[f->axis->number], value * f->weight);
    }
}

/* ---- the comparison ---- */

typedef struct comparison {
    const mapping *m[2];
    size_t axis_count;
    int64_t *coords[2], *above;
    int64_t steps;   /* that are left */
    int64_t live_at; /* the first live position of those looked at; -1: none */
} comparison;

static bool agree_at(comparison *k, int64_t i)
{
    bool live[2];
    for (int s = 0; s < 2; s++) {
        memset(k->coords[s], 0, k->axis_count * sizeof *k->coords[s]);
        live[s] = mapping_map(k->m[s], i, k->coords[s]);
    }
    k->live_at = k->live_at < 0 && live[0] ? i : k->live_at;
    return live[0] == live[1] && (!live[0] || memcmp(k->coords[0], k->coords[1], k->axis_count * sizeof *k->coords[0]) == 0);
}

/* The longest way for the shortest look: what both have in common over at least two periods. */
static bool find_common(const comparison *k, int64_t from, int64_t count, mapping_stretch *best)
{
    stretch_list x, y, *both[2] = {&x, &y};
    for (int s = 0; s < 2; s++) {
        both[s]->above = k->above;
        both[s]->count = 0;
        memset(k->above, 0, k->axis_count * sizeof *k->above);
        list_stretches(both[s], k->m[s], from, NULL);
    }
    *best = (mapping_stretch){0};
    for (size_t i = 0; i < x.count; i++)
        for (size_t j = 0; j < y.count; j++) {
            const mapping_stretch *a = &x.items[i], *b = &y.items[j];
            int64_t period, window = a->window < b->window ? a->window : b->window;
            window = window < count ? window : count;
            bool fits = !__builtin_mul_overflow(a->period / gcd(a->period, b->period), b->period, &period) && period <= window / 2;
            if (fits && (best->period == 0 || window / period > best->window / best->period))
                *best = (mapping_stretch){period, window};
        }
    return best->period > 0;
}

static bool agree(comparison *k, int64_t from, int64_t count);

static bool agree_on(comparison *k, int64_t from, mapping_stretch s)
{
    int64_t before = k->live_at;
    k->live_at = -1;
    if (!agree(k, from, s.period) || (k->live_at >= 0 && !agree_at(k, k->live_at + s.period)))
        return false;
    k->live_at = before >= 0 ? before : k->live_at;
    return true;
}

static bool agree(comparison *k, int64_t from, int64_t count)
{
    for (mapping_stretch s; count > 0; from += s.window, count -= s.window) {
        if (k->steps-- <= 0)
            return false;
        if (count == 1 || !find_common(k, from, count, &s))
            s = (mapping_stretch){0, 1};
        if (s.period == 0 ? !agree_at(k, from) : !agree_on(k, from, s))
            return false;
    }
    return true;
}

static bool has_composite(const mapping *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->factors[i].kind == FACTOR_COMPOSITE)
            return true;
    return false;
}

size_t mapping_stretches(mapping_context *c, const mapping *m, int64_t i, mapping_stretch *out)
{
    stretch_list l = {.above = ARENA_ARRAY(c->arena, int64_t, c->axis_count)};
    memset(l.above, 0, c->axis_count * sizeof *l.above);
    list_stretches(&l, m, i, NULL);
    memcpy(out, l.items, l.count * sizeof *out);
    return l.count;
}

bool mapping_agree(mapping_context *c, const mapping *a, const mapping *b, int64_t *steps)
{
    comparison k = {.m = {a, b}, .axis_count = c->axis_count, .steps = *steps, .live_at = -1};
    k.coords[0] = ARENA_ARRAY(c->arena, int64_t, 3 * c->axis_count);
    k.coords[1] = k.coords[0] + c->axis_count;
    k.above = k.coords[1] + c->axis_count;
    bool same = a->size == b->size && agree(&k, 0, a->size);
    *steps = k.steps;
    return same;
}

static bool has_kinds(const mapping *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->factors[i].pad != PAD_TOP || (m->factors[i].kind == FACTOR_COMPOSITE && has_kinds(m->factors[i].inner)))
            return true;
    return false;
}

const mapping *mapping_plain_padding(mapping_context *c, const mapping *m)
{
    if (!has_kinds(m))
        return m;
    factor_list l;
    factor_list_init(&l, c);
    for (size_t i = 0; i < m->count; i++) {
        factor f = m->factors[i];
        f.pad = PAD_TOP;
        if (f.kind == FACTOR_COMPOSITE)
            f.inner = mapping_plain_padding(c, f.inner);
        factor_list_push(&l, f);
    }
    return factor_list_finish(&l);
}

bool mapping_equal(mapping_context *c, const mapping *a, const mapping *b)
{
    int64_t steps = MAPPING_EQUAL_STEPS;
    if (a == b)
        return true;
    a = mapping_plain_padding(c, a);
    b = mapping_plain_padding(c, b);
    if (a == b || a->size != b->size || !(has_composite(a) || has_composite(b)))
        return a == b;
    return mapping_agree(c, a, b, &steps);
}
