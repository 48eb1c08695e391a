/* The whole of a derivation: the stream's factors one after the other, then what only all of them show. */
#include "ir/sequence/derivation.h"
#include "support/integer.h"

bool derivation_fail(derivation *d, sequence_failure failure, const mapping *term, const axis *a)
{
    sequence *seq = d->seq;
    if (seq->failure == SEQUENCE_OK) {
        seq->failure = failure;
        seq->term = term;
        seq->axis = a;
    }
    return false;
}

const mapping *derivation_term(derivation *d, const factor *f)
{
    return d->nameless ? NULL : mapping_of_factor(d->context, f);
}

const mapping *derivation_part_term(derivation *d, const factor *f, int64_t weight, int64_t live, int64_t extent)
{
    if (d->nameless)
        return NULL;
    factor part = *f;
    part.weight = weight;
    part.live = live < extent ? live : extent;
    part.extent = extent;
    return mapping_of_factor(d->context, &part);
}

const mapping *derivation_landing_term(derivation *d, const landing *l)
{
    return derivation_part_term(d, l->of, l->weight, l->live, l->extent);
}

const mapping *derivation_piece_term(derivation *d, const piece *p, int64_t extent)
{
    factor f = p->axis ? (factor){.kind = FACTOR_AXIS, .axis = p->axis} : *p->origin;
    return p->axis ? derivation_part_term(d, &f, p->weight, p->live, extent) : derivation_term(d, &f);
}

void derivation_emit(derivation *d, const mapping *term, int64_t size, int64_t live, int64_t stride, int64_t step)
{
    if (size == 1)
        return;
    sequence_part part = {.term = term,
                          .size = size,
                          .stride = stride,
                          .live = live,
                          .position = d->position * step,
                          .segment = d->segment,
                          .digit = d->digit};
    ARENA_PUSH(d->scratch, d->seq->parts, d->seq->count, d->seq->capacity, part);
}

void derivation_land(derivation *d, landing l)
{
    ARENA_PUSH(d->scratch, d->landings, d->landing_count, d->landing_capacity, l);
}

void derivation_take(derivation *d, piece *atom, landing l)
{
    for (piece *p = atom - atom->parts; p <= atom; p++)
        p->taken = true;
    l.piece = atom;
    l.whole = true;
    derivation_land(d, l);
}

void derivation_retreat(derivation *d, size_t landings, size_t loops)
{
    for (; d->landing_count > landings; d->landing_count--) {
        const landing *l = &d->landings[d->landing_count - 1];
        for (size_t i = 0; l->whole && i < d->buffer.count; i++) {
            piece *p = &d->buffer.items[i];
            p->taken = p->taken && (p < l->piece - l->piece->parts || p > l->piece);
        }
    }
    d->seq->count = loops;
}

/* ---- one stream digit ---- */

/* A gap in the stream: dead iterations. A read re-reads anything; a write needs the same gap in the buffer. A copy with its padding has the
 * gap of an axis with one position, which stands for its digit, as it has that of any other size. */
static bool carve_hole(derivation *d, const factor *term)
{
    const mapping *whole = derivation_term(d, term);
    const piece *innermost = d->buffer.count ? &d->buffer.items[0] : NULL;
    if (d->padded == term && innermost && innermost->hole) {
        int64_t shared = smaller(innermost->extent, term->extent);
        derivation_emit(d, derivation_part_term(d, term, 1, 1, shared), shared, shared, innermost->stride, 1);
        return true;
    }
    if (d->access != SEQUENCE_WRITE) {
        derivation_emit(d, whole, d->access == SEQUENCE_COPY ? 1 : term->extent, 1, 0, 1);
        return true;
    }
    for (size_t i = d->buffer.count; i-- > 0;) {
        piece *p = &d->buffer.items[i];
        if (p->hole && !p->taken && !p->guarded && p->extent >= term->extent) {
            p->taken = true;
            derivation_emit(d, whole, term->extent, 1, p->stride, 1);
            return true;
        }
    }
    return derivation_fail(d, SEQUENCE_OUTSIDE, whole, NULL);
}

/* ---- axes that the buffer may not have ---- */

static bool piece_mentions(const piece *p, const axis *a)
{
    return p->axis == a || (p->atom && mapping_mentions(p->atom, a));
}

/* Does the tensor have this axis, if only in a part that does not cut into digits or in another unit? */
bool derivation_mentions(const derivation *d, const axis *a)
{
    for (size_t i = 0; i < d->buffer.count; i++)
        if (piece_mentions(&d->buffer.items[i], a))
            return true;
    return d->beside && mapping_mentions(d->beside, a);
}

bool derivation_may_repeat(derivation *d, const factor *f, const axis *a, int64_t weight, int64_t live)
{
    if (a && !derivation_window_allows(d, f, a, weight, live))
        return false;
    return d->access != SEQUENCE_WRITE || derivation_fail(d, SEQUENCE_BROADCAST, derivation_term(d, f), a);
}

static bool carve_factor(derivation *d, const factor *f)
{
    if (f->kind == FACTOR_COMPOSITE)
        return derivation_carve_group(d, f);
    if (f->kind == FACTOR_BROADCAST && f->live == 1)
        return carve_hole(d, f);
    if (f->kind == FACTOR_AXIS && derivation_mentions(d, f->axis))
        return derivation_carve_axis(d, f);
    if (f->axis && derivation_has_terms_of(d, f->axis))
        return derivation_carve_window(d, f);
    if (!derivation_may_repeat(d, f, f->axis, f->weight, f->live))
        return false;
    derivation_emit(d, derivation_term(d, f), d->access == SEQUENCE_COPY ? f->live : f->extent, f->live, 0, 1);
    return true;
}

bool derivation_walk(derivation *d, const mapping *stream, int64_t scale)
{
    int64_t position = stream->size;
    for (size_t i = 0; i < stream->count; i++) {
        position /= stream->factors[i].extent;
        d->digit++;
        d->position = position * scale;
        size_t group = d->access == SEQUENCE_COPY ? derivation_carve_neighbours(d, &stream->factors[i], stream->count - i) : 0;
        for (size_t k = 1; k < group; k++)
            position /= stream->factors[++i].extent;
        if (group == 0 && !carve_factor(d, &stream->factors[i]))
            return false;
    }
    return true;
}

/* ---- what only the whole stream shows ---- */

/* Two stream digits over the same coordinates would make the axis's digit their sum. */
static bool check_twice(derivation *d)
{
    for (size_t i = 0; i < d->landing_count; i++)
        for (size_t j = 0; j < d->landing_count; j++) {
            const landing *x = &d->landings[i], *y = &d->landings[j];
            const factor *f = x->of, *g = y->of;
            if (x->digit != y->digit && f->axis && f->axis == g->axis && f->weight <= g->weight && g->weight < f->weight * f->live &&
                (f->weight < g->weight || i < j))
                return derivation_fail(d, SEQUENCE_TWICE, derivation_term(d, g), g->axis);
        }
    return true;
}

/* Sums over the loops that land on one buffer digit: no live digit and no position is larger. */
static const landing *landing_reach(const derivation *d, const piece *p, int64_t *live, int64_t *position)
{
    const landing *any = NULL;
    *live = *position = 0;
    for (size_t i = 0; i < d->landing_count; i++)
        if (d->landings[i].piece == p && !d->landings[i].whole) {
            any = &d->landings[i];
            *live += (any->live - 1) * any->digits;
            *position += (any->extent - 1) * any->digits;
        }
    return any;
}

static bool is_part_of(const piece *p, const piece *atom)
{
    return p >= atom - atom->parts && p < atom;
}

/* Does this part of the group begin at the position after the front, next to it? Nothing else of the stream may step through it, and no
 * other front, which would not notice that it is reached, may end in it. */
static bool is_next_part(const derivation *d, const piece *p, const piece *front, const index_vector *behind)
{
    group_digits g;
    group_step s;
    if (!p->atom || p->taken || p->live == 1 || p->stride != front->live * front->stride || !group_digits_of(p->atom, &g) ||
        !group_step_of(&g, p->weight, &s) || !index_vector_equal(&s.vector, behind))
        return false;
    for (size_t i = 0; i < d->landing_count; i++)
        if (is_part_of(d->landings[i].piece, p))
            return false;
    for (size_t i = 0; i < d->buffer.count; i++) {
        const piece *around = &d->buffer.items[i];
        if (around->front && is_part_of(p, around) && !is_part_of(front, around))
            return false;
    }
    return true;
}

/* How many positions of the group are there in one line: those of its front, and where the next part of the group stands after it, as many
 * of that as do not carry into the position at which it begins. Of `[B, C] / 4, [B, C] % 4` with 3 elements of C that is 6: position 4 is
 * B:1, C:1, and the second position after it would be C:3. */
static int64_t front_end(const derivation *d, const piece *front)
{
    group_digits g;
    group_step s;
    if (!group_digits_of(front->atom, &g) || !group_step_of(&g, front->live, &s))
        return front->live;
    int64_t end = front->live, unit = 1;
    for (size_t k = front->atom->count - 1; k > 0 && end == front->live; k--)
        end = round_up(end, unit *= front->atom->factors[k].extent);
    for (size_t i = 0; i < d->buffer.count; i++)
        if (is_next_part(d, &d->buffer.items[i], front, &s.vector))
            return end;
    return front->live;
}

/* Of a group that the buffer has only the front of, the last position that the stream reaches must be there. */
static bool check_front(derivation *d, const piece *atom)
{
    const landing *any = NULL;
    for (size_t i = 0; i < d->landing_count; i++)
        if (is_part_of(d->landings[i].piece, atom))
            any = &d->landings[i];
    return !any || derivation_group_reach(d, atom) < front_end(d, atom) * atom->stride ||
           derivation_fail(d, SEQUENCE_INSUFFICIENT, derivation_term(d, any->of), any->of->axis);
}

/* No sum of live steps may leave the buffer digit that they land on: it would be another digit's coordinate, or one
 * that a window does not store. The axis's end needs no check: beyond it nothing is live. */
static bool check_carry(derivation *d)
{
    for (size_t i = 0; i < d->buffer.count; i++) {
        const piece *p = &d->buffer.items[i];
        int64_t live, position;
        if (p->front && !check_front(d, p))
            return false;
        const landing *l = landing_reach(d, p, &live, &position);
        if (!l)
            continue;
        if (p->taken)
            return derivation_fail(d, SEQUENCE_TWICE, derivation_landing_term(d, l), l->of->axis);
        if (live >= p->live && !piece_ends_axis(p) && derivation_reach(d, p) >= p->live) {
            bool stored = p->axis && buffer_stores_axis(&d->buffer, p->axis);
            return stored ? derivation_fail(d, SEQUENCE_INCOMPATIBLE, derivation_term(d, l->of), p->axis)
                          : derivation_fail(d, SEQUENCE_INSUFFICIENT, derivation_piece_term(d, p, p->live), p->axis);
        }
        if (d->access == SEQUENCE_WRITE && position >= (p->guarded ? p->live : p->extent))
            return derivation_fail(d, SEQUENCE_OUTSIDE, derivation_piece_term(d, p, p->extent), p->axis);
    }
    return true;
}

/* Write: the dead iterations of a loop must lie after the live values of the buffer digit. */
static bool check_dead(derivation *d)
{
    for (size_t i = 0; i < d->landing_count; i++) {
        const landing *l = &d->landings[i];
        if (l->extent > l->live && l->digits > 0 && l->live * l->digits < l->piece->live)
            return derivation_fail(d, SEQUENCE_OUTSIDE, derivation_term(d, l->of), l->piece->axis);
    }
    return true;
}

/* Do the loops along a run of digits reach all of it? */
static bool is_run_covered(const derivation *d, const group_digit *run)
{
    int64_t covered = 1;
    for (bool grew = true; covered < run->live && grew;) {
        grew = false;
        for (size_t i = 0; i < d->landing_count && !grew; i++) {
            const landing *l = &d->landings[i];
            grew = l->run == run && l->run_step == covered * run->stride && l->live > 1;
            covered *= grew ? l->live : 1;
        }
    }
    return covered >= run->live;
}

/* Does the loop step no other digit of the buffer? */
static bool is_alone(const derivation *d, const landing *l)
{
    for (size_t i = 0; i < d->landing_count; i++) {
        const landing *other = &d->landings[i];
        if (other->digit == l->digit && other->weight == l->weight && other->piece != l->piece && !other->run)
            return false;
    }
    return true;
}

/* How many values of a buffer digit, from 0 on, the loops count through without a gap. A loop that steps other digits as well is no
 * help: what it reaches here it does not reach with 0 there. */
static int64_t covered_by_loops(const derivation *d, const piece *p)
{
    int64_t covered = 1;
    for (bool grew = true; covered < p->live && grew;) {
        grew = false;
        for (size_t j = 0; j < d->landing_count && !grew; j++) {
            const landing *l = &d->landings[j];
            if (l->piece == p && l->digits == covered && l->live > 1 && (l->run ? is_run_covered(d, l->run) : is_alone(d, l))) {
                covered *= l->live;
                grew = true;
            }
        }
    }
    return covered;
}

/* Write: every live value of every buffer digit must be reached. A composite that has digits is judged by them. */
static bool check_covered(derivation *d)
{
    for (size_t i = 0; i < d->buffer.count; i++) {
        const piece *p = &d->buffer.items[i];
        bool elsewhere = p->taken || p->window || p->hole || (p->parts > 0 && !p->front);
        if (!elsewhere && covered_by_loops(d, p) < p->live)
            return derivation_fail(d, SEQUENCE_UNWRITTEN, derivation_piece_term(d, p, p->live), p->axis);
    }
    return true;
}

static bool derive(mapping_context *c, arena *scratch, const sequence_space *buffer, size_t buffer_count, const mapping *beside,
                   const sequence_space *stream, size_t stream_count, sequence_access access, sequence *seq)
{
    *seq = (sequence){0};
    derivation d = {.context = c,
                    .arena = mapping_context_arena(c),
                    .scratch = scratch,
                    .access = access & ~(SEQUENCE_NAMELESS | SEQUENCE_BORDERS),
                    .nameless = access & SEQUENCE_NAMELESS,
                    .beside = beside,
                    .seq = seq};
    d.buffer.context = c;
    d.buffer.arena = scratch;
    d.buffer.borders = access & SEQUENCE_BORDERS;
    d.buffer.fronts = d.access != SEQUENCE_WRITE;
    for (size_t i = buffer_count; i-- > 0;)
        buffer_digits_add(&d.buffer, buffer[i].mapping, buffer[i].stride);
    const mapping *innermost = stream_count ? stream[stream_count - 1].mapping : NULL;
    if (access == SEQUENCE_COPY_PADDED) {
        d.access = SEQUENCE_COPY;
        d.padded = innermost && innermost->count ? &innermost->factors[innermost->count - 1] : NULL;
    }
    for (d.segment = 0; d.segment < stream_count; d.segment++)
        if (!derivation_walk(&d, stream[d.segment].mapping, 1))
            return false;
    return check_twice(&d) && derivation_check_windows(&d) && check_carry(&d) &&
           (d.access != SEQUENCE_WRITE || (check_dead(&d) && check_covered(&d)));
}

bool sequence_derive_spaces(mapping_context *c, const sequence_space *buffer, size_t buffer_count, const mapping *beside,
                            const sequence_space *stream, size_t stream_count, sequence_access access, sequence *seq)
{
    arena *scratch = arena_new_inside(mapping_context_arena(c));
    bool done = derive(c, scratch, buffer, buffer_count, beside, stream, stream_count, access, seq);
    seq->parts = arena_grow(mapping_context_arena(c), seq->parts, seq->count, seq->count,
                            sizeof *seq->parts); /* they stay, so no more than there are */
    seq->capacity = seq->count;
    arena_free(scratch);
    return done;
}

/* Puts the time/packet boundary back into loops that were derived over both: the innermost loops whose sizes multiply to
 * the packet belong to it. Where the boundary lies inside a loop there is none to keep: the packet only chunks the walk. */
static void mark_packet(sequence *seq, int64_t packet_elements)
{
    size_t first = seq->count;
    while (first > 0 && packet_elements % seq->parts[first - 1].size == 0) /* no part has size 1 */
        packet_elements /= seq->parts[--first].size;
    for (size_t i = 0; i < seq->count; i++)
        seq->parts[i].packet = packet_elements == 1 && i >= first;
}

bool sequence_derive_stream(mapping_context *c, const sequence_space *buffer, size_t buffer_count, const mapping *beside,
                            const mapping *time, const mapping *packet, sequence_access access, sequence *seq)
{
    sequence_space stream[] = {{time, 0}, {packet, 0}}, both = {NULL, 0};
    if (sequence_derive_spaces(c, buffer, buffer_count, beside, stream, 2, access, seq)) {
        for (size_t i = 0; i < seq->count; i++)
            seq->parts[i].packet = seq->parts[i].segment == 1;
        return true;
    }
    /* Time and packet together may be one digit where each alone is not ("normalise the stream as well"). */
    sequence joint;
    if (mapping_pair(c, time, packet, &both.mapping) == MAPPING_OK &&
        sequence_derive_spaces(c, buffer, buffer_count, beside, &both, 1, access, &joint)) {
        *seq = joint;
        mark_packet(seq, packet->size);
        return true;
    }
    return false;
}

bool sequence_derive(mapping_context *c, const mapping *buffer, const mapping *time, const mapping *packet, sequence_access access,
                     sequence *seq)
{
    return sequence_derive_stream(c, &(sequence_space){buffer, 1}, 1, NULL, time, packet, access, seq);
}
