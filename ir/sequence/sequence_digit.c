/* Rule of one stream digit: the digit asks for what weight * i counts to, i < extent, the first `live` of them real. Written in buffer
 * digits a step of weight is a step of so many positions, for as many iterations c as no buffer digit overflows: that is a loop. Where c is
 * below live, the walk leaves the straight line at i = c in every nest, so the next loop begins there, with weight * c, and the number of
 * positions must be a multiple of c. Where it is not, or where the digits of several loops together overflow, no nest exists. */
#include "ir/sequence/derivation.h"
#include "support/integer.h"

void loop_list_add(derivation *d, loop_list *l, const factor *f, const index_step *s, int64_t repeats, int64_t live)
{
    bool last = l->live <= repeats;
    int64_t size = last ? l->live : repeats;
    live = live < size ? live : size;
    l->items[l->count++] = (loop){size, s->stride, live, l->weight, d->landing_count};
    for (size_t i = 0; i < s->count; i++) {
        landing here = {.piece = s->items[i].piece,
                        .of = f,
                        .digit = d->digit,
                        .digits = s->items[i].digits,
                        .weight = l->weight,
                        .live = live,
                        .extent = size};
        derivation_land(d, here);
    }
    l->live = last ? 1 : ceil_div(l->live, size);
    if (!last)
        l->weight *= size;
}

static bool axis_loops(derivation *d, const factor *f, loop_list *l)
{
    while (l->live > 1) {
        index_step s;
        if (!index_step_of_axis(&d->buffer, f->axis, l->weight, &s))
            return derivation_fail(d, SEQUENCE_INSUFFICIENT, derivation_term(d, f), f->axis);
        loop_list_add(d, l, f, &s, s.repeats, INT64_MAX);
    }
    return true;
}

/* Neighbours that one loop runs through become one. */
static void merge_loops(loop_list *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->count; i++) {
        loop *inner = kept ? &l->items[kept - 1] : NULL;
        if (inner && l->items[i].stride == inner->stride * inner->size) {
            inner->size *= l->items[i].size;
            inner->live = inner->size;
        } else {
            l->items[kept++] = l->items[i];
        }
    }
    l->count = kept;
}

static int64_t inner_size(const loop_list *l)
{
    int64_t size = 1;
    for (size_t i = 0; i + 1 < l->count; i++)
        size *= l->items[i].size;
    return size;
}

bool loop_list_spread(derivation *d, const factor *f, int64_t extent, loop_list *l)
{
    if (d->access == SEQUENCE_READ && extent % inner_size(l))
        merge_loops(l);
    int64_t inside = inner_size(l);
    if (extent % inside && d->access != SEQUENCE_COPY) /* a copy takes several commands */
        return derivation_fail(d, f->live == f->extent ? SEQUENCE_INCOMPATIBLE : SEQUENCE_PADDING, derivation_term(d, f), f->axis);
    loop *outermost = &l->items[l->count - 1];
    outermost->size = ceil_div(extent, inside);
    for (size_t i = outermost->landings; i < d->landing_count; i++)
        d->landings[i].extent = outermost->size;
    return true;
}

void loop_list_emit(derivation *d, const factor *f, int64_t live, const loop_list *l)
{
    int64_t steps[MAX_LOOPS] = {1};
    for (size_t i = 1; i < l->count; i++)
        steps[i] = steps[i - 1] * l->items[i - 1].size;
    for (size_t i = l->count; i-- > 0;)
        derivation_emit(d, derivation_part_term(d, f, l->items[i].weight, l->items[i].live, l->items[i].size), l->items[i].size, live,
                        l->items[i].stride, steps[i]);
}

/* The positions of the stream digit: where it is one digit of the buffer, with what of its padding is there as well. */
static int64_t shared_positions(const derivation *d, const factor *term)
{
    const piece *p = piece_below(&d->buffer, term->axis, term->weight);
    return p && p->weight == term->weight && p->live >= term->live ? smaller(p->extent, term->extent) : term->live;
}

/* Write: where the live values end inside a turn of the inner loops, what is dead of that turn goes where the digit's next values are. */
static bool ends_inside_turn(const derivation *d, const factor *f, const loop_list *l)
{
    return d->access == SEQUENCE_WRITE && f->live % inner_size(l) && f->live < ceil_div(f->axis->size, f->weight);
}

bool derivation_carve_axis(derivation *d, const factor *f)
{
    int64_t shared = d->padded == f ? shared_positions(d, f) : f->live;
    int64_t extent = d->access == SEQUENCE_COPY ? shared : f->extent;
    loop_list l;
    l.count = 0;
    l.weight = f->weight;
    l.live = f->live;
    if (!axis_loops(d, f, &l) || !loop_list_spread(d, f, extent, &l))
        return false;
    if (ends_inside_turn(d, f, &l))
        return derivation_fail(d, SEQUENCE_OUTSIDE, derivation_term(d, f), f->axis);
    loop_list_emit(d, f, shared, &l);
    return true;
}
