#include "ir/sequence.h"

#include <string.h>

/* A digit of the buffer: coordinates w*d of `axis`, d < live, at positions stride*d; positions d < extent exist. */
typedef struct piece {
    const axis *axis;
    const mapping *atom; /* a composite that is matched whole: axis is NULL */
    int64_t weight, live, extent, stride;
    const axis *window; /* the digit is a term of this window; else NULL */
    unsigned group;     /* number of that window in the buffer */
    bool hole, taken;
    bool guarded; /* its dead positions must not be written */
} piece;

/* A digit of the stream on one buffer digit, for the checks that need all of an axis together. */
typedef struct landing {
    const piece *piece;
    const mapping *term;
    int64_t weight, live, extent; /* in coordinates of the axis */
} landing;

typedef struct derivation {
    mapping_context *context;
    arena *arena;
    sequence_access access;
    bool nameless, borders;
    piece *pieces;
    size_t piece_count, piece_capacity;
    landing *landings;
    size_t landing_count, landing_capacity;
    const mapping *beside; /* mentions axes that other units hold; NULL: none */
    unsigned segment, digit, groups;
    const factor *padded; /* the stream digit that a copy walks with its padding; NULL: none */
    int64_t position; /* of the stream digit at hand in its segment */
    sequence *seq;
} derivation;

static bool fail(sequence *seq, sequence_failure failure, const mapping *term, const axis *a)
{
    if (seq->failure == SEQUENCE_OK) {
        seq->failure = failure;
        seq->term = term;
        seq->axis = a;
    }
    return false;
}

/* The stream's factor as readers see it. */
static const mapping *term_of(derivation *d, const factor *f)
{
    return d->nameless ? NULL : mapping_of_factor(d->context, f);
}

static void emit_step(derivation *d, const mapping *term, int64_t size, int64_t live, int64_t stride, int64_t step)
{
    if (size == 1)
        return;
    sequence_part part = {.term = term, .size = size, .stride = stride, .live = live, .position = d->position * step,
                          .segment = d->segment, .digit = d->digit};
    ARENA_PUSH(d->arena, d->seq->parts, d->seq->count, d->seq->capacity, part);
}

static void emit(derivation *d, const mapping *term, int64_t size, int64_t live, int64_t stride)
{
    emit_step(d, term, size, live, stride, 1);
}

/* ---- the buffer ---- */

/* The digits of a whole window's terms. */
static void window_open(derivation *d, const piece *window)
{
    for (uint32_t i = 0; i < window->axis->term_count; i++) {
        const window_term *t = &window->axis->terms[i];
        piece p = {.axis = t->of, .weight = t->weight, .live = t->extent, .extent = t->extent,
                   .stride = window->stride * t->stride, .window = window->axis, .group = window->group};
        ARENA_PUSH(d->arena, d->pieces, d->piece_count, d->piece_capacity, p);
    }
}

/* Lists the digits of `m`, whose positions are `stride` elements apart. */
static void buffer_open(derivation *d, const mapping *m, int64_t stride)
{
    for (size_t i = m->count; i-- > 0;) {
        const factor *f = &m->factors[i];
        piece p = {.axis = f->axis, .weight = f->weight, .live = f->live, .extent = f->extent, .stride = stride,
                   .hole = f->kind == FACTOR_BROADCAST && f->live == 1, .guarded = f->pad == PAD_BOTTOM};
        if (f->kind == FACTOR_COMPOSITE) {
            p.atom = f->inner;
            /* A whole composite is a linear run over its inner mapping, so its digits are digits of the buffer. */
            if (f->weight == 1 && f->live == f->inner->size)
                buffer_open(d, f->inner, stride);
        }
        if (f->kind == FACTOR_AXIS && f->axis->term_count > 0)
            p.group = ++d->groups;
        ARENA_PUSH(d->arena, d->pieces, d->piece_count, d->piece_capacity, p);
        if (p.group > 0 && f->weight == 1 && f->live == f->axis->size && (d->borders || !f->axis->bordered))
            window_open(d, &p);
        stride *= f->extent;
    }
}

/* The digit of the axis with the largest weight up to `weight`; NULL: none. */
static const piece *piece_below(const derivation *d, const axis *a, int64_t weight)
{
    const piece *best = NULL;
    for (size_t i = 0; i < d->piece_count; i++)
        if (d->pieces[i].axis == a && d->pieces[i].weight <= weight && (!best || d->pieces[i].weight > best->weight))
            best = &d->pieces[i];
    return best;
}

static const piece *piece_above(const derivation *d, const axis *a, int64_t weight)
{
    const piece *best = NULL;
    for (size_t i = 0; i < d->piece_count; i++)
        if (d->pieces[i].axis == a && d->pieces[i].weight > weight && (!best || d->pieces[i].weight < best->weight))
            best = &d->pieces[i];
    return best;
}

/* ---- one stream term ---- */

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static const mapping *digit_term(derivation *d, const axis *a, int64_t weight, int64_t live, int64_t extent)
{
    factor f = {.kind = FACTOR_AXIS, .axis = a, .weight = weight, .live = live < extent ? live : extent, .extent = extent};
    return term_of(d, &f);
}

/* Is the stream digit one digit of the buffer with at least the same padding? */
static bool shares_padding(const derivation *d, const factor *term)
{
    const piece *p = piece_below(d, term->axis, term->weight);
    return p && p->weight == term->weight && p->live >= term->live && p->extent >= term->extent;
}

/* Rule ("Sequencer, term by term"): the term asks for coordinates weight*i of its axis, i < extent, the first
 * `live` of them real. Find the buffer digit p that starts at or below weight; weight must be a multiple q of
 * p's. If p holds all live values, one loop of stride q*stride(p) runs through them and through the padding.
 * Otherwise the term must reach the next digit p' exactly: t = weight(p')/weight iterations in p, and the rest
 * of the term goes on in p' with weight(p'). */
static bool carve(derivation *d, const factor *term)
{
    struct { int64_t size, stride, weight, live; const piece *p; } loops[64];
    size_t count = 0;
    const mapping *whole = term_of(d, term);
    bool padded = d->padded == term && shares_padding(d, term);
    int64_t weight = term->weight, live = term->live, extent = d->access == SEQUENCE_COPY && !padded ? term->live : term->extent;
    int64_t walked = extent;
    for (;;) {
        const piece *p = piece_below(d, term->axis, weight), *next = piece_above(d, term->axis, weight);
        if (!p)
            return fail(d->seq, SEQUENCE_INSUFFICIENT, whole, term->axis);
        if (weight % p->weight != 0)
            return fail(d->seq, next || p->live > 1 ? SEQUENCE_INCOMPATIBLE : SEQUENCE_INSUFFICIENT, whole, term->axis);
        int64_t q = weight / p->weight;
        int64_t stored = ceil_div(p->live, q); /* values i with weight*i inside p */
        if (q >= p->live)
            return fail(d->seq, SEQUENCE_INSUFFICIENT, whole, term->axis);
        bool last = live <= stored;
        int64_t size = extent;
        if (!last) {
            if (!next)
                return fail(d->seq, SEQUENCE_INSUFFICIENT, whole, term->axis);
            if (next->weight % weight != 0)
                return fail(d->seq, SEQUENCE_INCOMPATIBLE, whole, term->axis);
            size = next->weight / weight;
            if (size > stored)
                return fail(d->seq, SEQUENCE_INSUFFICIENT, whole, term->axis);
            if ((extent % size != 0 && d->access != SEQUENCE_COPY) || count == 63)
                return fail(d->seq, live == extent ? SEQUENCE_INCOMPATIBLE : SEQUENCE_PADDING, whole, term->axis);
        }
        loops[count].size = size;
        loops[count].stride = q * p->stride;
        loops[count].weight = weight;
        loops[count].live = live < size ? live : size;
        loops[count++].p = p;
        if (last)
            break;
        weight = next->weight;
        live = ceil_div(live, size);
        extent = ceil_div(extent, size);
    }
    int64_t steps[64] = {1};
    for (size_t i = 1; i < count; i++)
        steps[i] = steps[i - 1] * loops[i - 1].size;
    while (count-- > 0) {
        const mapping *part = digit_term(d, term->axis, loops[count].weight, loops[count].live, loops[count].size);
        emit_step(d, part, loops[count].size, padded ? walked : term->live, loops[count].stride, steps[count]);
        landing l = {loops[count].p, part, loops[count].weight, loops[count].live, loops[count].size};
        ARENA_PUSH(d->arena, d->landings, d->landing_count, d->landing_capacity, l);
    }
    return true;
}

/* A gap in the stream: dead iterations. A read re-reads anything; a write needs the same gap in the buffer. */
static bool carve_hole(derivation *d, const factor *term)
{
    const mapping *whole = term_of(d, term);
    if (d->access != SEQUENCE_WRITE) {
        emit(d, whole, d->access == SEQUENCE_COPY ? 1 : term->extent, 1, 0);
        return true;
    }
    for (size_t i = d->piece_count; i-- > 0;)
        if (d->pieces[i].hole && !d->pieces[i].taken && !d->pieces[i].guarded && d->pieces[i].extent >= term->extent) {
            d->pieces[i].taken = true;
            emit(d, whole, term->extent, 1, d->pieces[i].stride);
            return true;
        }
    return fail(d->seq, SEQUENCE_OUTSIDE, whole, NULL);
}

static bool carve_factors(derivation *d, const mapping *stream, int64_t scale);

/* Does the tensor have this axis, if only in a part that does not cut into digits or in another unit? */
static bool buffer_mentions(const derivation *d, const axis *a)
{
    for (size_t i = 0; i < d->piece_count; i++)
        if (d->pieces[i].axis == a || (d->pieces[i].atom && mapping_mentions(d->pieces[i].atom, a)))
            return true;
    return d->beside && mapping_mentions(d->beside, a);
}

/* A padded group that does not cut into digits ("[A, B, C] # 32" over 30 cells): the same group in the buffer, or
 * a group whose loops are one run, so that the padding continues it. */
static bool carve_composite(derivation *d, const factor *term)
{
    const mapping *whole = term_of(d, term);
    for (size_t i = 0; i < d->piece_count; i++) {
        const piece *p = &d->pieces[i];
        if (p->atom == term->inner && p->weight == term->weight && p->live >= term->live &&
            (d->access != SEQUENCE_WRITE || p->extent >= term->extent)) {
            emit(d, whole, d->access == SEQUENCE_COPY ? term->live : term->extent, term->live, p->stride);
            return true;
        }
    }
    if (d->access == SEQUENCE_COPY && term->weight == 1 && term->live == term->inner->size)
        return carve_factors(d, term->inner, d->position); /* padded on the outside only: nothing there is copied */
    sequence inner = {0}, *outer = d->seq;
    int64_t position = d->position;
    sequence_access access = d->access;
    d->seq = &inner;
    d->access = access == SEQUENCE_WRITE ? SEQUENCE_WRITE : SEQUENCE_READ; /* gaps inside count as loops */
    bool ok = carve_factors(d, term->inner, 1);
    d->seq = outer;
    d->position = position;
    d->access = access;
    if (!ok)
        return fail(outer, inner.failure, inner.term, inner.axis);
    sequence_merge(d->context, &inner, true);
    bool one_run = inner.count == 0 || (inner.count == 1 && inner.parts[0].size == term->inner->size);
    if (!one_run || access == SEQUENCE_WRITE)
        return fail(outer, SEQUENCE_PADDING, whole, NULL);
    emit(d, whole, access == SEQUENCE_COPY ? term->live : term->extent, term->live, inner.count ? inner.parts[0].stride * term->weight : 0);
    return true;
}

/* The window, if any, of which the digit is a term, but that the buffer stores in parts only. */
static const axis *in_cut_window(const derivation *d, const factor *f)
{
    for (size_t i = 0; i < d->piece_count; i++) {
        const axis *window = d->pieces[i].axis;
        for (uint32_t k = 0; window && k < window->term_count; k++)
            if (window_term_meets(&window->terms[k], f->axis, f->weight, f->live))
                return window;
    }
    return NULL;
}

/* The term of window number `group` of the buffer that holds the digit of another one; NULL: none. */
static const piece *term_holding(const derivation *d, unsigned group, const window_term *t)
{
    for (size_t i = 0; i < d->piece_count; i++) {
        const piece *p = &d->pieces[i];
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

/* Rule ("Sliding window", a window in a window): a part of a window whose terms are digits of its own, in the same proportion, is a run
 * of its places; where the run begins is said by the digits that are left. So a tile of an image is read with its halo. */
static bool carve_window(derivation *d, const factor *f)
{
    const mapping *whole = term_of(d, f);
    for (unsigned group = 1; group <= d->groups && !f->axis->bordered; group++) {
        int64_t stride = place_stride(d, group, f->axis);
        if (stride == 0)
            continue;
        emit(d, whole, d->access == SEQUENCE_COPY ? f->live : f->extent, f->live, stride * f->weight);
        for (uint32_t k = 0; k < f->axis->term_count && f->weight == 1; k++) {
            const window_term *t = &f->axis->terms[k];
            landing l = {term_holding(d, group, t), digit_term(d, t->of, t->weight, t->extent, t->extent), t->weight, t->extent, t->extent};
            ARENA_PUSH(d->arena, d->landings, d->landing_count, d->landing_capacity, l);
        }
        return true;
    }
    return fail(d->seq, SEQUENCE_WINDOW_MISSING, whole, f->axis);
}

static bool has_terms_of(const derivation *d, const axis *window)
{
    for (size_t i = 0; i < d->piece_count; i++)
        for (uint32_t k = 0; k < window->term_count; k++)
            if (window_term_meets(&window->terms[k], d->pieces[i].axis, d->pieces[i].weight, d->pieces[i].live))
                return true;
    return false;
}

static bool carve_factors(derivation *d, const mapping *stream, int64_t scale)
{
    int64_t position = stream->size;
    for (size_t i = 0; i < stream->count; i++) {
        const factor *f = &stream->factors[i];
        bool ok = true;
        position /= f->extent;
        d->digit++;
        d->position = position * scale;
        if (f->kind == FACTOR_COMPOSITE) {
            ok = carve_composite(d, f);
        } else if (f->kind == FACTOR_BROADCAST && f->live == 1) {
            ok = carve_hole(d, f);
        } else if (f->kind == FACTOR_BROADCAST || !buffer_mentions(d, f->axis)) {
            const mapping *whole = term_of(d, f);
            if (f->axis && has_terms_of(d, f->axis))
                ok = carve_window(d, f);
            else if (in_cut_window(d, f))
                ok = in_cut_window(d, f)->bordered ? fail(d->seq, SEQUENCE_WINDOW_BORDER, whole, in_cut_window(d, f))
                                                   : fail(d->seq, SEQUENCE_INSUFFICIENT, whole, f->axis);
            else if (d->access == SEQUENCE_WRITE)
                ok = fail(d->seq, SEQUENCE_BROADCAST, whole, f->axis);
            else
                emit(d, whole, d->access == SEQUENCE_COPY ? f->live : f->extent, f->live, 0);
        } else {
            ok = carve(d, f);
        }
        if (!ok)
            return false;
    }
    return true;
}

/* ---- what only the whole stream shows ---- */

/* Two terms over the same coordinates would make the axis's digit their sum. */
static bool check_twice(derivation *d)
{
    for (size_t i = 0; i < d->landing_count; i++)
        for (size_t j = 0; j < d->landing_count; j++) {
            const landing *x = &d->landings[i], *y = &d->landings[j];
            if (i != j && x->piece->axis == y->piece->axis && x->live > 1 && y->live > 1 && x->weight <= y->weight &&
                y->weight < x->weight * x->live && (x->weight < y->weight || i < j))
                return fail(d->seq, SEQUENCE_TWICE, y->term, y->piece->axis);
        }
    return true;
}

static bool has_landing(const derivation *d, const piece *p)
{
    for (size_t i = 0; i < d->landing_count; i++)
        if (d->landings[i].piece == p && d->landings[i].live > 1)
            return true;
    return false;
}

/* A window is read by all of its terms or as itself, and no other part of the buffer may need the same digits. */
static bool check_window(derivation *d, const piece *p, const mapping *term)
{
    if (d->access == SEQUENCE_WRITE)
        return fail(d->seq, SEQUENCE_WINDOW_WRITE, term, p->window);
    for (size_t i = 0; i < d->piece_count; i++) {
        const piece *q = &d->pieces[i];
        bool term_of_it = q->window && q->group == p->group;
        if ((term_of_it && q != p && !has_landing(d, q)) || (!q->window && q->group == p->group && has_landing(d, q)))
            return fail(d->seq, SEQUENCE_WINDOW_TERMS, digit_term(d, q->axis, q->weight, q->live, q->live), p->window);
    }
    return true;
}

static bool check_windows(derivation *d)
{
    for (size_t i = 0; i < d->landing_count && d->groups > 0; i++) {
        const landing *l = &d->landings[i];
        if (l->live == 1)
            continue;
        if (l->piece->window && !check_window(d, l->piece, l->term))
            return false;
        for (size_t j = 0; j < d->piece_count; j++) {
            const piece *q = &d->pieces[j];
            window_term digit = {q->axis, q->weight, q->live, 1};
            if (q != l->piece && (q->window || l->piece->window) && q->axis &&
                window_term_meets(&digit, l->piece->axis, l->weight, l->live))
                return fail(d->seq, SEQUENCE_WINDOW_SHARED, l->term, q->window ? q->window : l->piece->window);
        }
    }
    return true;
}

/* Sums over the terms that land on one buffer digit: the largest live coordinate and the largest position. */
static void landing_reach(const derivation *d, const piece *p, int64_t *live, int64_t *position)
{
    *live = *position = 0;
    for (size_t i = 0; i < d->landing_count; i++)
        if (d->landings[i].piece == p) {
            *live += (d->landings[i].live - 1) * (d->landings[i].weight / p->weight);
            *position += (d->landings[i].extent - 1) * (d->landings[i].weight / p->weight);
        }
}

/* No sum of live digits may leave the buffer digit that they land on: it would be another digit's coordinate, or one
 * that a window does not store. The axis's end needs no check: beyond it nothing is live. */
static bool check_carry(derivation *d)
{
    for (size_t i = 0; i < d->piece_count; i++) {
        const piece *p = &d->pieces[i];
        if (!p->axis)
            continue;
        int64_t live, position;
        landing_reach(d, p, &live, &position);
        bool to_the_end = p->live >= ceil_div(p->axis->size, p->weight);
        if (live >= p->live && !to_the_end)
            return fail(d->seq, SEQUENCE_INSUFFICIENT, digit_term(d, p->axis, p->weight, p->live, p->live), p->axis);
        if (d->access == SEQUENCE_WRITE && position >= (p->guarded ? p->live : p->extent))
            return fail(d->seq, SEQUENCE_OUTSIDE, digit_term(d, p->axis, p->weight, p->live, p->extent), p->axis);
    }
    return true;
}

/* Write: the terms on a buffer digit must count through all of its live values without a gap. */
static bool check_covered(derivation *d)
{
    for (size_t i = 0; i < d->piece_count; i++) {
        const piece *p = &d->pieces[i];
        if (!p->axis || p->window)
            continue;
        int64_t covered = 1; /* values 0 .. covered-1 are reached */
        bool grew = true;
        while (covered < p->live && grew) {
            grew = false;
            for (size_t j = 0; j < d->landing_count && !grew; j++) {
                const landing *l = &d->landings[j];
                if (l->piece == p && l->weight / p->weight == covered && l->live > 1) {
                    covered *= l->live;
                    grew = true;
                }
            }
        }
        if (covered < p->live)
            return fail(d->seq, SEQUENCE_UNWRITTEN, digit_term(d, p->axis, p->weight, p->live, p->live), p->axis);
    }
    return true;
}

bool sequence_derive_spaces(mapping_context *c, const sequence_space *buffer, size_t buffer_count, const mapping *beside,
                            const sequence_space *stream, size_t stream_count, sequence_access access, sequence *seq)
{
    *seq = (sequence){0};
    derivation d = {.context = c, .arena = mapping_context_arena(c), .access = access & ~(SEQUENCE_NAMELESS | SEQUENCE_BORDERS),
                    .borders = access & SEQUENCE_BORDERS, .nameless = access & SEQUENCE_NAMELESS, .beside = beside, .seq = seq};
    for (size_t i = buffer_count; i-- > 0;)
        buffer_open(&d, buffer[i].mapping, buffer[i].stride);
    const mapping *innermost = stream_count ? stream[stream_count - 1].mapping : NULL;
    if (access == SEQUENCE_COPY_PADDED) {
        d.access = SEQUENCE_COPY;
        d.padded = innermost && innermost->count ? &innermost->factors[innermost->count - 1] : NULL;
    }
    for (d.segment = 0; d.segment < stream_count; d.segment++)
        if (!carve_factors(&d, stream[d.segment].mapping, 1))
            return false;
    return check_twice(&d) && check_windows(&d) && check_carry(&d) && (d.access != SEQUENCE_WRITE || check_covered(&d));
}

/* Puts the time/packet boundary back into loops that were derived over both: the innermost loops whose sizes multiply to
 * the packet belong to it. Where the boundary lies inside a loop there is none to keep: the packet only chunks the walk. */
static void mark_packet(sequence *seq, int64_t packet_elements)
{
    size_t first = seq->count;
    while (first > 0 && packet_elements > 1 && packet_elements % seq->parts[first - 1].size == 0)
        packet_elements /= seq->parts[--first].size;
    for (size_t i = 0; i < seq->count; i++)
        seq->parts[i].packet = packet_elements == 1 && i >= first;
}

bool sequence_derive_beside(mapping_context *c, const mapping *buffer, const mapping *beside, const mapping *time,
                            const mapping *packet, sequence_access access, sequence *seq)
{
    sequence_space memory = {buffer, 1}, stream[] = {{time, 0}, {packet, 0}}, both = {NULL, 0};
    if (sequence_derive_spaces(c, &memory, 1, beside, stream, 2, access, seq)) {
        for (size_t i = 0; i < seq->count; i++)
            seq->parts[i].packet = seq->parts[i].segment == 1;
        return true;
    }
    /* Time and packet together may be one digit where each alone is not ("normalise the stream as well"). */
    sequence joint;
    if (mapping_pair(c, time, packet, &both.mapping) == MAPPING_OK &&
        sequence_derive_spaces(c, &memory, 1, beside, &both, 1, access, &joint)) {
        *seq = joint;
        mark_packet(seq, packet->size);
        return true;
    }
    return false;
}

bool sequence_derive(mapping_context *c, const mapping *buffer, const mapping *time, const mapping *packet,
                     sequence_access access, sequence *seq)
{
    return sequence_derive_beside(c, buffer, NULL, time, packet, access, seq);
}

/* ---- fitting the table ---- */

/* What several neighbours run through together. */
static const mapping *join_terms(mapping_context *c, const mapping *const *terms, size_t count)
{
    const mapping *all;
    return terms[0] && mapping_concat(c, terms, count, &all) == MAPPING_OK ? all : terms[0];
}

void sequence_merge(mapping_context *c, sequence *seq, bool across_packet)
{
    arena *a = mapping_context_arena(c);
    const mapping **terms = ARENA_ARRAY(a, const mapping *, seq->count);
    size_t *first = ARENA_ARRAY(a, size_t, seq->count + 1); /* of the terms that part k is made of */
    size_t kept = 0;
    for (size_t i = 0; i < seq->count; i++) {
        sequence_part inner = seq->parts[i];
        terms[i] = inner.term;
        first[kept] = i;
        while (kept > 0) {
            sequence_part *outer = &seq->parts[kept - 1];
            if (outer->stride != inner.size * inner.stride || (!across_packet && outer->packet != inner.packet))
                break;
            inner.size *= outer->size;
            inner.packet = inner.packet && outer->packet;
            kept--;
        }
        seq->parts[kept++] = inner;
    }
    first[kept] = seq->count;
    for (size_t k = 0; k < kept; k++)
        if (first[k + 1] - first[k] > 1)
            seq->parts[k].term = join_terms(c, &terms[first[k]], first[k + 1] - first[k]);
    seq->count = kept;
}

/* The largest divisor of n that is at most `limit`; 1 when n has none (a prime). */
static int64_t largest_divisor(int64_t n, int64_t limit)
{
    for (int64_t d = limit; d > 1; d--)
        if (n % d == 0)
            return d;
    return 1;
}

static bool split_large(mapping_context *c, sequence *seq, sequence_limits limits)
{
    arena *a = mapping_context_arena(c);
    for (size_t i = 0; i < seq->count; i++) {
        sequence_part part = seq->parts[i];
        if (part.size <= limits.entry_size)
            continue;
        int64_t inner = largest_divisor(part.size, limits.entry_size);
        if (inner == 1) {
            seq->measure = part.size;
            seq->limit = limits.entry_size;
            return fail(seq, SEQUENCE_ENTRY_SIZE, part.term, NULL);
        }
        ARENA_PUSH(a, seq->parts, seq->count, seq->capacity, part); /* room for one more */
        memmove(&seq->parts[i + 1], &seq->parts[i], (seq->count - 1 - i) * sizeof part);
        seq->parts[i].size = part.size / inner;
        seq->parts[i].stride = part.stride * inner;
        seq->parts[i + 1].size = inner;
        i--; /* the outer part may still be too large */
    }
    return true;
}

bool sequence_fit(mapping_context *c, sequence *seq, sequence_limits limits)
{
    sequence_merge(c, seq, false);
    if ((int64_t)seq->count > limits.entries)
        sequence_merge(c, seq, true);
    if (!split_large(c, seq, limits))
        return false;
    if ((int64_t)seq->count > limits.entries) {
        seq->measure = (int64_t)seq->count;
        seq->limit = limits.entries;
        return fail(seq, SEQUENCE_ENTRIES, NULL, NULL);
    }
    for (size_t i = 0; i < seq->count; i++) {
        int64_t stride;
        if (__builtin_mul_overflow(seq->parts[i].stride, limits.scale, &stride) || stride < limits.stride_min ||
            stride > limits.stride_max) {
            seq->measure = seq->parts[i].stride;
            seq->limit = seq->parts[i].stride < 0 ? limits.stride_min : limits.stride_max;
            return fail(seq, SEQUENCE_STRIDE, seq->parts[i].term, NULL);
        }
    }
    if (seq->count == 0) {
        sequence_part one = {.term = mapping_identity(c), .size = 1, .live = 1};
        ARENA_PUSH(mapping_context_arena(c), seq->parts, seq->count, seq->capacity, one);
    }
    return true;
}

int64_t sequence_run(const sequence *seq)
{
    if (seq->count == 0)
        return 1;
    const sequence_part *inner = &seq->parts[seq->count - 1];
    if (inner->size == 1)
        return 1;
    if (inner->stride != 0 && inner->stride != 1)
        return 1;
    int64_t run = inner->size;
    for (size_t i = seq->count - 1; i-- > 0 && seq->parts[i].stride == run * inner->stride;)
        run *= seq->parts[i].size;
    return run;
}

void sequence_reach(const sequence *seq, int64_t *lowest, int64_t *highest)
{
    *lowest = *highest = 0;
    for (size_t i = 0; i < seq->count; i++) {
        int64_t span = (seq->parts[i].size - 1) * seq->parts[i].stride;
        *(span < 0 ? lowest : highest) += span;
    }
}
