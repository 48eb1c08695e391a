/* A group that does not cut into digits ("[A, B, C] # 32" over 30 cells, "[A, B] / 12"): the same group in the buffer, or loops that
 * step several axes at once; the outermost of them, or all where they are one run, continue into its padding. */
#include "ir/sequence/derivation.h"
#include "support/integer.h"

/* Is neither the group nor a group inside it somebody's already? */
static bool is_free(const piece *atom)
{
    for (const piece *p = atom - atom->parts; p <= atom; p++)
        if (p->taken)
            return false;
    return true;
}

/* The same composite in the buffer, as a whole; with `front` also one that it is a front of, and of which a read takes every `step`th
 * value:
 * `[A, B] / 4` is every second value of `[A, B] / 2`. NULL: none that is free. */
static piece *find_composite(const derivation *d, const factor *f, bool front, int64_t *step)
{
    for (size_t i = 0; i < d->buffer.count; i++) {
        piece *p = &d->buffer.items[i];
        bool same = p->atom && (p->atom == f->inner || (front && mapping_is_front(f->inner, p->atom)));
        if (!same || !is_free(p) || f->weight % p->weight)
            continue;
        *step = f->weight / p->weight;
        bool held = (f->live - 1) <= (p->live - 1) / *step;
        bool taken_whole = *step == 1 && p->live == f->live && p->extent >= f->extent;
        if (held && (*step == 1 || (front && d->access == SEQUENCE_READ)) && (d->access != SEQUENCE_WRITE || taken_whole))
            return p;
    }
    return NULL;
}

static bool take_composite(derivation *d, const factor *f, bool front)
{
    int64_t step;
    piece *atom = find_composite(d, f, front, &step);
    if (!atom)
        return false;
    derivation_take(d, atom,
                    (landing){.of = f, .digit = d->digit, .digits = step, .weight = f->weight, .live = f->live, .extent = f->extent});
    derivation_emit(d, derivation_term(d, f), d->access == SEQUENCE_COPY ? f->live : f->extent, f->live, atom->stride * step, 1);
    return true;
}

/* Where the buffer has the digit in one run of strides; false: it has not, or may not have. */
static bool find_run(derivation *d, group_digit *g)
{
    const factor *f = g->factor;
    index_step s;
    if (f->kind != FACTOR_AXIS || !derivation_mentions(d, f->axis))
        return true;
    if (!index_step_of_axis(&d->buffer, f->axis, f->weight, &s) || s.repeats < f->live)
        return false;
    g->stride = s.stride;
    for (size_t i = 0; i < s.count; i++) {
        const piece *p = s.items[i].piece;
        g->low = !g->low || p < g->low ? p : g->low;
        g->high = !g->high || p > g->high ? p : g->high;
    }
    return true;
}

static void extend_run(group_digit *inner, const group_digit *outer)
{
    inner->factor = NULL;
    inner->live = outer->live * inner->extent;
    inner->extent *= outer->extent;
    inner->low = !inner->low || (outer->low && outer->low < inner->low) ? outer->low : inner->low;
    inner->high = !inner->high || (outer->high && outer->high > inner->high) ? outer->high : inner->high;
}

/* The group's digits; with `runs` neighbours that the buffer has in one run as one. */
static bool group_open(derivation *d, const factor *f, bool runs, group_digits *g)
{
    if (!group_digits_of(f->inner, g))
        return derivation_fail(d, SEQUENCE_PADDING, derivation_term(d, f), NULL);
    for (size_t k = 0; k < g->count; k++) {
        const factor *digit = g->items[k].factor;
        if (digit->axis && !derivation_mentions(d, digit->axis) && !derivation_may_repeat(d, f, digit->axis, digit->weight, digit->live))
            return false;
        g->items[k].linear = (digit->axis && !derivation_mentions(d, digit->axis)) || (runs && find_run(d, &g->items[k]));
    }
    size_t kept = g->count; /* digits kept .. are the result */
    for (size_t k = g->count; k-- > 0;) {
        group_digit x = g->items[k], *inner = kept < g->count ? &g->items[kept] : NULL;
        if (inner && x.linear && inner->linear && x.stride == inner->stride * inner->extent)
            extend_run(inner, &x);
        else
            g->items[--kept] = x;
    }
    g->count -= kept;
    for (size_t k = 0; k < g->count; k++)
        g->items[k] = g->items[k + kept];
    return true;
}

/* Linear digits are counted through as a whole, however many loops it takes: no other part of the stream may land there. */
static void land_linear(derivation *d, const factor *f, const group_digits *g)
{
    int64_t position = f->inner->size;
    size_t k = 0;
    int64_t end = position / (g->count ? g->items[0].extent : 1); /* positions where digit k begins */
    for (size_t i = 0; i < f->inner->count; i++) {
        const factor *digit = &f->inner->factors[i];
        index_step s;
        position /= digit->extent;
        if (g->items[k].linear && digit->axis && index_step_of_axis(&d->buffer, digit->axis, digit->weight, &s))
            for (size_t n = 0; n < s.count; n++) {
                landing here = {.piece = s.items[n].piece,
                                .of = f,
                                .digit = d->digit,
                                .digits = s.items[n].digits,
                                .weight = digit->weight,
                                .live = digit->live,
                                .extent = digit->live,
                                .run = &g->items[k]};
                derivation_land(d, here);
            }
        if (position == end && k + 1 < g->count)
            end /= g->items[++k].extent;
    }
}

/* The latest loop along runs of the group. */
static void land_along(derivation *d, const factor *f, const group_digits *g, const group_step *s, const loop *along)
{
    for (size_t k = 0; k < g->count; k++) {
        const group_digit *run = &g->items[k];
        if (run->low && s->digits[k] > 0)
            derivation_land(d, (landing){.piece = run->low,
                                         .of = f,
                                         .digit = d->digit,
                                         .weight = along->weight,
                                         .live = along->live,
                                         .extent = along->size,
                                         .run = run,
                                         .run_step = s->digits[k] * run->stride});
    }
}

static bool composite_loops(derivation *d, const factor *f, bool runs, loop_list *l)
{
    group_digits *g = ARENA_NEW(d->scratch, group_digits);
    if (!group_open(d, f, runs, g))
        return false;
    land_linear(d, f, g);
    while (l->live > 1) {
        group_step inside;
        index_step s;
        if (!group_step_of(g, l->weight, &inside))
            return derivation_fail(d, SEQUENCE_PADDING, derivation_term(d, f), NULL);
        const axis *first = inside.vector.count ? inside.vector.at[0].axis : NULL;
        if (!index_step_of_vector(&d->buffer, inside.vector, &s))
            return derivation_fail(d, SEQUENCE_INSUFFICIENT, derivation_term(d, f), first);
        s.stride += inside.stride;
        bool dead = s.repeats >= inside.live; /* where the buffer's digit ends, the composite has padding */
        loop_list_add(d, l, f, &s, dead || inside.repeats < s.repeats ? inside.repeats : s.repeats, inside.live);
        group_add_loop(g, &inside, l->items[l->count - 1].size);
        land_along(d, f, g, &inside, &l->items[l->count - 1]);
    }
    return group_separates(g) ||
           derivation_fail(d, f->live == f->extent ? SEQUENCE_INCOMPATIBLE : SEQUENCE_PADDING, derivation_term(d, f), NULL);
}

/* Loops through the group's digits one by one, or with its runs as one digit. */
static bool composite_by(derivation *d, const factor *f, bool runs)
{
    size_t landings = d->landing_count;
    loop_list l = {.weight = f->weight, .live = f->live};
    d->seq->failure = SEQUENCE_OK;
    if (composite_loops(d, f, runs, &l) && d->access == SEQUENCE_WRITE && f->live < f->extent)
        derivation_fail(d, SEQUENCE_PADDING, derivation_term(d, f), NULL);
    if (d->seq->failure == SEQUENCE_OK && loop_list_spread(d, f, d->access == SEQUENCE_COPY ? f->live : f->extent, &l)) {
        loop_list_emit(d, f, f->live, &l);
        return true;
    }
    derivation_retreat(d, landings, d->seq->count);
    return false;
}

/* The group as two digits that do not carry into each other. */
static bool by_digits(derivation *d, const factor *f)
{
    const mapping *outer, *inner;
    size_t landings = d->landing_count, loops = d->seq->count;
    int64_t position = d->position;
    if (!mapping_divide_group(d->context, f, &outer, &inner))
        return false;
    if (derivation_walk(d, outer, position * inner->size) && derivation_walk(d, inner, position))
        return true;
    derivation_retreat(d, landings, loops);
    d->position = position;
    return false;
}

/* ---- a group of which the buffer has parts ---- */

/* A free part of the group that begins with this weight and has at most `live` values; NULL: none. */
static piece *find_part(const derivation *d, const factor *f, int64_t weight, int64_t live)
{
    for (size_t i = 0; i < d->buffer.count; i++) {
        piece *p = &d->buffer.items[i];
        if (p->atom && is_free(p) && p->weight == weight && p->live <= live &&
            (mapping_is_front(p->atom, f->inner) || mapping_is_front(f->inner, p->atom)))
            return p;
    }
    return NULL;
}

/* Do the parts adjacent, outermost first, mean the group? */
static bool parts_are_group(derivation *d, const factor *f, piece *const *parts, size_t count, int64_t extent)
{
    const mapping *all = mapping_identity(d->context), *one;
    for (size_t i = 0; i < count; i++) {
        factor part = {.kind = FACTOR_COMPOSITE,
                       .inner = parts[i]->atom,
                       .weight = parts[i]->weight,
                       .live = parts[i]->live,
                       .extent = parts[i]->live};
        one = mapping_of_factor(d->context, &part);
        if (mapping_pair(d->context, all, one, &all) != MAPPING_OK)
            return false;
    }
    factor whole = *f;
    whole.extent = extent;
    whole.pad = PAD_TOP;
    return all == mapping_of_factor(d->context, &whole);
}

/* Each part is a loop, the outermost may end in padding: `[A, B] # 16` over `[A, B] # 16 / 8` and `[A, B] # 16 % 8`, wherever they stand.
 */
static bool by_parts(derivation *d, const factor *f)
{
    piece *parts[MAX_LOOPS];
    size_t first = MAX_LOOPS;
    int64_t inside = 1, weight = f->weight, live = f->live;
    while (live > 1 && first > 0) {
        piece *p = find_part(d, f, weight, live);
        if (!p)
            return false;
        parts[--first] = p;
        live = ceil_div(live, p->live);
        if (live > 1 && __builtin_mul_overflow(weight, p->live, &weight))
            return false;
        inside *= live > 1 ? p->live : 1;
    }
    size_t count = MAX_LOOPS - first;
    int64_t outermost = count > 0 ? parts[first]->live : 1, extent = d->access == SEQUENCE_COPY ? outermost * inside : f->extent;
    if (count < 2 || extent % inside || !parts_are_group(d, f, parts + first, count, outermost * inside))
        return false;
    if (d->access == SEQUENCE_WRITE && extent / inside > parts[first]->extent)
        return false;
    for (size_t i = first; i < MAX_LOOPS; i++) {
        bool outer = i == first;
        factor part = {.kind = FACTOR_COMPOSITE,
                       .inner = parts[i]->atom,
                       .weight = parts[i]->weight,
                       .live = parts[i]->live,
                       .extent = outer ? extent / inside : parts[i]->live};
        derivation_take(
            d, parts[i],
            (landing){.of = f, .digit = d->digit, .digits = 1, .weight = part.weight, .live = part.live, .extent = part.extent});
        derivation_emit(d, derivation_term(d, &part), part.extent, f->live, parts[i]->stride, outer ? inside : (inside /= parts[i]->live));
    }
    return true;
}

size_t derivation_carve_neighbours(derivation *d, const factor *f, size_t count)
{
    int64_t position = d->position;
    for (size_t i = 0; i < d->buffer.count; i++) {
        const piece *p = &d->buffer.items[i];
        if (!p->front || p->taken || p->atom->count > count)
            continue;
        const mapping *group = mapping_of_factors(d->context, f, p->atom->count);
        factor *whole = ARENA_NEW(d->scratch, factor); /* what lands notes it */
        *whole = (factor){.kind = FACTOR_COMPOSITE, .inner = group, .weight = 1, .live = group->size, .extent = group->size};
        d->position = position / (group->size / f->extent);
        if (group->count == p->atom->count && mapping_is_front(p->atom, group) && by_parts(d, whole))
            return p->atom->count;
    }
    d->position = position;
    return 0;
}

bool derivation_carve_group(derivation *d, const factor *f)
{
    if (take_composite(d, f, false))
        return true;
    if (by_parts(d, f))
        return true;
    if (d->access == SEQUENCE_COPY && f->weight == 1 && f->live < f->extent) { /* nothing of the padding is copied */
        const mapping *bare = mapping_without_padding(d->context, f);
        if (bare->count > 1)
            return derivation_walk(d, bare, d->position);
    }
    bool copy = d->access == SEQUENCE_COPY; /* which takes another command where the last loop is cut short: whole loops first */
    if (copy && by_digits(d, f))
        return true;
    d->seq->failure = SEQUENCE_OK;
    if (composite_by(d, f, copy) || composite_by(d, f, !copy))
        return true;
    sequence first = *d->seq; /* why not, if nothing else helps */
    d->seq->failure = SEQUENCE_OK;
    if (take_composite(d, f, true) || by_digits(d, f))
        return true;
    d->seq->failure = first.failure;
    d->seq->term = first.term;
    d->seq->axis = first.axis;
    return false;
}
