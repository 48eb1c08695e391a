#include "ir/mapping/digits.h"

#include <string.h>

#include "support/integer.h"

/* ---- composites ---- */

bool group_digits_of(const mapping *inner, group_digits *out)
{
    *out = (group_digits){.count = inner->count};
    for (size_t k = 0; k < inner->count; k++) {
        const factor *f = &inner->factors[k];
        if (k == GROUP_MAX_DIGITS || f->kind == FACTOR_COMPOSITE)
            return false;
        out->items[k] = (group_digit){.factor = f, .extent = f->extent, .live = f->live};
    }
    return true;
}

static bool vector_add(index_vector *v, const axis *a, int64_t weight)
{
    for (unsigned i = 0; i < v->count; i++)
        if (v->at[i].axis == a) {
            v->at[i].weight += weight;
            return true;
        }
    if (v->count == VECTOR_AXES)
        return false;
    v->at[v->count].axis = a;
    v->at[v->count++].weight = weight;
    return true;
}

bool index_vector_equal(const index_vector *x, const index_vector *y)
{
    bool equal = x->count == y->count;
    for (unsigned i = 0; i < x->count && equal; i++) {
        bool found = false;
        for (unsigned k = 0; k < y->count && !found; k++)
            found = x->at[i].axis == y->at[k].axis && x->at[i].weight == y->at[k].weight;
        equal = found;
    }
    return equal;
}

bool group_step_of(const group_digits *g, int64_t weight, group_step *out)
{
    *out = (group_step){.repeats = INT64_MAX, .live = INT64_MAX};
    unsigned touched = 0;
    for (size_t k = g->count; k-- > 0;) {
        const group_digit *x = &g->items[k];
        int64_t digit = k > 0 ? weight % x->extent : weight;
        weight = k > 0 ? weight / x->extent : 0;
        out->digits[k] = digit;
        if (digit == 0)
            continue;
        if (x->linear)
            out->stride += digit * x->stride;
        else if (x->factor->kind == FACTOR_AXIS && !vector_add(&out->vector, x->factor->axis, digit * x->factor->weight))
            return false;
        touched++;
        int64_t repeats = k > 0 ? ceil_div(x->extent, digit) : INT64_MAX, live = ceil_div(x->live, digit);
        out->repeats = repeats < out->repeats ? repeats : out->repeats;
        out->live = live < out->live ? live : out->live;
    }
    if (touched > 1 || out->live > out->repeats)
        out->live = out->repeats;
    return true;
}

void group_add_loop(group_digits *g, const group_step *s, int64_t iterations)
{
    for (size_t k = 0; k < g->count; k++)
        g->reached[k] += s->digits[k] * (iterations - 1);
}

bool group_separates(const group_digits *g)
{
    for (size_t k = 1; k < g->count; k++)
        if (g->reached[k] >= g->items[k].extent)
            return false;
    return true;
}

/* ---- the buffer ---- */

static void push(buffer_digits *b, piece p)
{
    ARENA_PUSH(b->arena, b->items, b->count, b->capacity, p);
}

/* The digits of a whole window's terms. */
static void add_window(buffer_digits *b, const piece *window)
{
    const axis *a = window->axis;
    for (uint32_t i = 0; i < a->term_count; i++) {
        const window_term *t = &a->terms[i];
        push(b, (piece){.axis = t->of,
                        .weight = t->weight,
                        .live = t->extent,
                        .extent = t->extent,
                        .origin = window->origin,
                        .stride = window->stride * t->stride,
                        .window = a,
                        .group = window->group});
    }
}

static void push_vector(buffer_digits *b, const index_vector *v, piece p)
{
    if (v->count == 1) {
        p.axis = v->at[0].axis;
        p.weight = v->at[0].weight;
    } else {
        index_vector *kept = ARENA_NEW(b->arena, index_vector);
        *kept = *v;
        p.diagonal = kept;
    }
    push(b, p);
}

/* Do the loops so far overflow no digit of the group, all at their last iteration? */
static bool separates_live(const group_digits *g)
{
    for (size_t k = 0; k < g->count; k++)
        if (g->reached[k] >= g->items[k].live)
            return false;
    return true;
}

/* A cut composite in digits: each starts where the one inside it overflows. Where its live values are no whole number of these, or where
 * one more digit would overflow another one, only the digits before say what it holds, which is enough to read. */
static void add_cut(buffer_digits *b, const factor *f, int64_t stride)
{
    group_digits g;
    size_t before = b->count;
    int64_t weight = f->weight, live = f->live, extent = f->extent;
    if (!group_digits_of(f->inner, &g))
        return;
    while (live > 1) {
        group_step s;
        if (!group_step_of(&g, weight, &s) || s.vector.count == 0)
            break;
        bool last = live <= s.repeats;
        int64_t size = last ? live : s.repeats;
        bool more = live % size != 0; /* after these digits */
        if (more && !b->fronts)
            break;
        live = more ? size : live;
        group_add_loop(&g, &s, size);
        if (!separates_live(&g))
            break;
        push_vector(
            b, &s.vector,
            (piece){.live = size, .extent = last && !more ? extent : size, .stride = stride, .origin = f, .guarded = f->pad == PAD_BOTTOM});
        live /= size;
        extent /= size;
        stride *= size;
        weight *= size;
    }
    if (live > 1 && !b->fronts)
        b->count = before;
}

static void add_composite(buffer_digits *b, const factor *f, int64_t stride)
{
    size_t before = b->count;
    /* A whole composite is a linear run over its inner mapping, so its digits are digits of the buffer. */
    const mapping *outer, *inner;
    bool front = f->weight == 1 && f->live < f->inner->size;
    const mapping *bare = front && !b->fronts && f->live < f->extent ? mapping_without_padding(b->context, f) : NULL;
    if (bare) { /* what is dead after it is nobody's digit */
        buffer_digits_add(b, bare, stride);
        front = false;
    } else if ((f->weight != 1 || (front && !b->fronts)) && mapping_divide_group(b->context, f, &outer, &inner)) {
        buffer_digits_add(b, inner, stride);
        buffer_digits_add(b, outer, stride * inner->size);
        front = false;
    } else if (f->weight == 1) {
        buffer_digits_add(b, f->inner, stride);
    } else {
        add_cut(b, f, stride);
    }
    push(b, (piece){.front = front,
                    .atom = f->inner,
                    .weight = f->weight,
                    .live = f->live,
                    .extent = f->extent,
                    .stride = stride,
                    .origin = f,
                    .parts = (unsigned)(b->count - before),
                    .guarded = f->pad == PAD_BOTTOM});
}

void buffer_digits_add(buffer_digits *b, const mapping *m, int64_t stride)
{
    for (size_t i = m->count; i-- > 0;) {
        const factor *f = &m->factors[i];
        piece p = {.axis = f->axis,
                   .weight = f->weight,
                   .live = f->live,
                   .extent = f->extent,
                   .stride = stride,
                   .origin = f,
                   .hole = f->kind == FACTOR_BROADCAST && f->live == 1,
                   .guarded = f->pad == PAD_BOTTOM};
        bool window = f->kind == FACTOR_AXIS && f->axis->term_count > 0;
        if (window)
            p.group = ++b->groups;
        if (f->kind == FACTOR_COMPOSITE)
            add_composite(b, f, stride);
        else
            push(b, p);
        if (window && f->weight == 1 && f->live == f->axis->size && (b->borders || !f->axis->bordered))
            add_window(b, &p);
        stride *= f->extent;
    }
}

bool piece_ends_axis(const piece *p)
{
    return p->axis && p->live >= ceil_div(p->axis->size, p->weight);
}

const piece *piece_below(const buffer_digits *b, const axis *a, int64_t weight)
{
    const piece *best = NULL;
    for (size_t i = 0; i < b->count; i++)
        if (b->items[i].axis == a && b->items[i].weight <= weight && (!best || b->items[i].weight > best->weight))
            best = &b->items[i];
    return best;
}

static const piece *piece_above(const buffer_digits *b, const axis *a, int64_t weight)
{
    const piece *best = NULL;
    for (size_t i = 0; i < b->count; i++)
        if (b->items[i].axis == a && b->items[i].weight > weight && (!best || b->items[i].weight < best->weight))
            best = &b->items[i];
    return best;
}

bool buffer_stores_axis(const buffer_digits *b, const axis *a)
{
    int64_t reach = 0; /* coordinates 0 .. reach are stored */
    for (const piece *p = piece_above(b, a, 0); p && p->weight <= reach + 1; p = piece_above(b, a, p->weight))
        reach += (p->live - 1) * p->weight;
    return reach >= a->size - 1;
}

/* ---- steps ---- */

static void take(index_step *s, const piece *p, int64_t digits)
{
    s->stride += digits * p->stride;
    s->items[s->count++] = (digit_step){p, digits};
    if (piece_ends_axis(p))
        return;
    int64_t repeats = ceil_div(p->live, digits);
    s->repeats = repeats < s->repeats ? repeats : s->repeats;
}

static bool add_axis(const buffer_digits *b, const axis *a, int64_t rest, index_step *out)
{
    for (int64_t limit = rest; rest > 0 && out->count < 64;) {
        const piece *p = piece_below(b, a, rest < limit ? rest : limit);
        if (!p)
            return false;
        int64_t digits = rest / p->weight;
        if (digits >= p->live && !piece_ends_axis(p))
            digits = p->live - 1;
        if (digits > 0)
            take(out, p, digits);
        rest -= digits * p->weight;
        limit = p->weight - 1;
    }
    return rest == 0;
}

bool index_step_of_axis(const buffer_digits *b, const axis *a, int64_t weight, index_step *out)
{
    out->stride = 0;
    out->repeats = INT64_MAX;
    out->count = 0;
    return add_axis(b, a, weight, out);
}

/* How often the diagonal digit goes into v. */
static int64_t contained(const index_vector *v, const index_vector *diagonal)
{
    int64_t times = INT64_MAX;
    for (unsigned i = 0; i < diagonal->count; i++) {
        int64_t here = 0;
        for (unsigned k = 0; k < v->count; k++)
            if (v->at[k].axis == diagonal->at[i].axis)
                here = v->at[k].weight / diagonal->at[i].weight;
        times = here < times ? here : times;
    }
    return times;
}

static void subtract(index_vector *v, const index_vector *diagonal, int64_t times)
{
    for (unsigned i = 0; i < diagonal->count; i++)
        for (unsigned k = 0; k < v->count; k++)
            if (v->at[k].axis == diagonal->at[i].axis)
                v->at[k].weight -= times * diagonal->at[i].weight;
}

static int64_t vector_sum(const index_vector *v)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < v->count; i++)
        sum += v->at[i].weight;
    return sum;
}

/* The largest diagonal digit below `limit` that goes into v; NULL: none. */
static const piece *diagonal_below(const buffer_digits *b, const index_vector *v, int64_t limit)
{
    const piece *best = NULL;
    for (size_t i = 0; i < b->count; i++) {
        const piece *p = &b->items[i];
        if (p->diagonal && vector_sum(p->diagonal) < limit && contained(v, p->diagonal) > 0 &&
            (!best || vector_sum(p->diagonal) > vector_sum(best->diagonal)))
            best = p;
    }
    return best;
}

bool index_step_of_vector(const buffer_digits *b, index_vector v, index_step *out)
{
    out->stride = 0;
    out->repeats = INT64_MAX;
    out->count = 0;
    int64_t limit = INT64_MAX;
    for (const piece *p = diagonal_below(b, &v, limit); p && out->count < 64; p = diagonal_below(b, &v, limit)) {
        int64_t times = contained(&v, p->diagonal);
        times = times < p->live ? times : p->live - 1;
        limit = vector_sum(p->diagonal);
        take(out, p, times);
        subtract(&v, p->diagonal, times);
    }
    for (unsigned k = 0; k < v.count; k++)
        if (!add_axis(b, v.at[k].axis, v.at[k].weight, out))
            return false;
    return true;
}
