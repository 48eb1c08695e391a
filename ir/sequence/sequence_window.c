/* Sliding windows. Rule: a window in the buffer is read by all of its terms or as itself, never written through, and no other part of the
 * buffer may need the same digits. */
#include "ir/sequence/derivation.h"

/* The window, if any, of which the digit is a term, but that the buffer stores in parts only. */
static const axis *in_cut_window(const derivation *d, const axis *a, int64_t weight, int64_t live)
{
    for (size_t i = 0; i < d->buffer.count; i++) {
        const axis *window = d->buffer.items[i].axis;
        for (uint32_t k = 0; window && k < window->term_count; k++)
            if (window_term_meets(&window->terms[k], a, weight, live))
                return window;
    }
    return NULL;
}

bool derivation_has_terms_of(const derivation *d, const axis *window)
{
    for (size_t i = 0; i < d->buffer.count; i++) {
        const piece *p = &d->buffer.items[i];
        for (uint32_t k = 0; k < window->term_count && p->axis; k++)
            if (window_term_meets(&window->terms[k], p->axis, p->weight, p->live))
                return true;
    }
    return false;
}

bool derivation_window_allows(derivation *d, const factor *f, const axis *a, int64_t weight, int64_t live)
{
    const axis *window = in_cut_window(d, a, weight, live);
    if (derivation_has_terms_of(d, a))
        return derivation_fail(d, SEQUENCE_WINDOW_MISSING, derivation_term(d, f), a);
    if (!window)
        return true;
    return window->bordered ? derivation_fail(d, SEQUENCE_WINDOW_BORDER, derivation_term(d, f), window)
                            : derivation_fail(d, SEQUENCE_INSUFFICIENT, derivation_term(d, f), a);
}

/* The term of window number `group` of the buffer that holds the digit of another one; NULL: none. */
static const piece *term_holding(const derivation *d, unsigned group, const window_term *t)
{
    for (size_t i = 0; i < d->buffer.count; i++) {
        const piece *p = &d->buffer.items[i];
        if (p->window && p->group == group && p->axis == t->of && t->weight % p->weight == 0 &&
            (t->extent - 1) * (t->weight / p->weight) < p->live)
            return p;
    }
    return NULL;
}

/* Elements of the buffer between neighbouring places of the window `a`, whose terms are digits of one window's there; 0: they are not. */
static int64_t place_stride(const derivation *d, unsigned group, const axis *a)
{
    int64_t stride = 0;
    for (uint32_t k = 0; k < a->term_count; k++) {
        const piece *p = term_holding(d, group, &a->terms[k]);
        int64_t step = p ? p->stride * (a->terms[k].weight / p->weight) : 0;
        if (!p || step % a->terms[k].stride || (stride && step / a->terms[k].stride != stride))
            return 0;
        stride = step / a->terms[k].stride;
    }
    return stride;
}

static void land_term(derivation *d, unsigned group, const window_term *t)
{
    const piece *p = term_holding(d, group, t);
    factor *digit = ARENA_NEW(d->arena, factor);
    *digit = (factor){.kind = FACTOR_AXIS, .axis = t->of, .weight = t->weight, .live = t->extent, .extent = t->extent};
    derivation_land(d, (landing){.piece = p,
                                 .of = digit,
                                 .digit = d->digit,
                                 .digits = t->weight / p->weight,
                                 .weight = t->weight,
                                 .live = t->extent,
                                 .extent = t->extent});
}

/* Rule ("Sliding window", a window in a window): a part of a window whose terms are digits of its own, in the same proportion, is a run
 * of its places; where the run begins is stated by the digits that are left. So a tile of an image is read with its halo. */
bool derivation_carve_window(derivation *d, const factor *f)
{
    const mapping *whole = derivation_term(d, f);
    for (unsigned group = 1; group <= d->buffer.groups && !f->axis->bordered; group++) {
        int64_t stride = place_stride(d, group, f->axis);
        if (stride == 0)
            continue;
        derivation_emit(d, whole, d->access == SEQUENCE_COPY ? f->live : f->extent, f->live, stride * f->weight, 1);
        for (uint32_t k = 0; k < f->axis->term_count && f->weight == 1; k++)
            land_term(d, group, &f->axis->terms[k]);
        return true;
    }
    return derivation_fail(d, SEQUENCE_WINDOW_MISSING, whole, f->axis);
}

static bool has_landing(const derivation *d, const piece *p)
{
    for (size_t i = 0; i < d->landing_count; i++)
        if (d->landings[i].piece == p && d->landings[i].live > 1)
            return true;
    return false;
}

/* A window is read by all of its terms or as itself, and no other part of the buffer may need the same digits. */
static bool check_window(derivation *d, const landing *l)
{
    const piece *p = l->piece;
    if (d->access == SEQUENCE_WRITE)
        return derivation_fail(d, SEQUENCE_WINDOW_WRITE, derivation_landing_term(d, l), p->window);
    for (size_t i = 0; i < d->buffer.count; i++) {
        const piece *q = &d->buffer.items[i];
        bool term_of_it = q->window && q->group == p->group;
        if ((term_of_it && q != p && !has_landing(d, q)) || (!q->window && q->group == p->group && has_landing(d, q)))
            return derivation_fail(d, SEQUENCE_WINDOW_TERMS, derivation_piece_term(d, q, q->live), p->window);
    }
    return true;
}

bool derivation_check_windows(derivation *d)
{
    for (size_t i = 0; i < d->landing_count && d->buffer.groups > 0; i++) {
        const landing *l = &d->landings[i];
        if (l->live == 1 || l->digits == 0 || !l->piece->axis)
            continue;
        if (l->piece->window && !check_window(d, l))
            return false;
        for (size_t j = 0; j < d->buffer.count; j++) {
            const piece *q = &d->buffer.items[j];
            window_term digit = {q->axis, q->weight, q->live, 1};
            if (q != l->piece && (q->window || l->piece->window) && q->axis &&
                window_term_meets(&digit, l->piece->axis, l->digits * l->piece->weight, l->live))
                return derivation_fail(d, SEQUENCE_WINDOW_SHARED, derivation_landing_term(d, l), q->window ? q->window : l->piece->window);
        }
    }
    return true;
}
