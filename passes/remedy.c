/* Which changes are tried for which failure: an order that merges, an axis that is stored whole, padding at the outermost axis of a
 * group instead of the group, a size that two entries can share. */
#include "passes/remedy.h"

typedef struct remedy {
    pass_context *p;
    const op *o;
    const walk_request *walk;
    walk_judge *accepts;
} remedy;

/* ---- mappings made of factors ---- */

static const mapping *of_factors(remedy *r, const factor *f, size_t count)
{
    const mapping **parts = ARENA_ARRAY(r->p->arena, const mapping *, count + 1), *all = NULL;
    for (size_t i = 0; i < count; i++)
        parts[i] = mapping_of_factor(r->p->mappings, &f[i]);
    return mapping_concat(r->p->mappings, parts, count, &all) == MAPPING_OK ? all : NULL;
}

/* The buffer with the whole axis, once, where its innermost digit is; outermost where it has none. */
static const mapping *with_whole_axis(remedy *r, const mapping *buffer, const axis *a)
{
    const factor whole = {.kind = FACTOR_AXIS, .axis = a, .weight = 1, .live = a->size, .extent = a->size};
    factor *f = ARENA_ARRAY(r->p->arena, factor, buffer->count + 1);
    size_t count = 0;
    bool placed = false;
    for (size_t i = buffer->count; i-- > 0;) { /* innermost first, and turned round below */
        bool of_axis = buffer->factors[i].kind == FACTOR_AXIS && buffer->factors[i].axis == a;
        if (buffer->factors[i].kind == FACTOR_COMPOSITE && mapping_mentions(buffer->factors[i].inner, a))
            return NULL;
        if (!of_axis)
            f[count++] = buffer->factors[i];
        else if (!placed)
            f[count++] = whole;
        placed = placed || of_axis;
    }
    if (!placed)
        f[count++] = whole;
    for (size_t i = 0; i < count / 2; i++) {
        factor swap = f[i];
        f[i] = f[count - 1 - i];
        f[count - 1 - i] = swap;
    }
    return of_factors(r, f, count);
}

/* Positions between two values of the digit in `of`; 0: it has none, or no one distance. */
static int64_t factor_stride(remedy *r, const factor *f, const mapping *of)
{
    sequence seq;
    const mapping *term = mapping_of_factor(r->p->mappings, f), *one = mapping_identity(r->p->mappings);
    return sequence_derive(r->p->mappings, of, term, one, SEQUENCE_READ, &seq) && seq.count > 0 ? seq.parts[0].stride : 0;
}

/* The digits of m in the order that they have in `of`; those that it has not are innermost. */
static const mapping *in_order_of(remedy *r, const mapping *m, const mapping *of)
{
    factor *f = ARENA_ARRAY(r->p->arena, factor, m->count + 1);
    int64_t *strides = ARENA_ARRAY(r->p->arena, int64_t, m->count + 1);
    for (size_t i = 0; i < m->count; i++) {
        int64_t stride = factor_stride(r, &m->factors[i], of);
        size_t at = i;
        for (; at > 0 && strides[at - 1] < stride; at--) {
            f[at] = f[at - 1];
            strides[at] = strides[at - 1];
        }
        f[at] = m->factors[i];
        strides[at] = stride;
    }
    return of_factors(r, f, m->count);
}

/* Each padded group with its padding at its outermost axis, rounded up. */
static const mapping *padded_outermost(remedy *r, const mapping *m)
{
    size_t count = 0, most = 1;
    for (size_t i = 0; i < m->count; i++)
        most += m->factors[i].kind == FACTOR_COMPOSITE ? m->factors[i].inner->count : 1;
    factor *f = ARENA_ARRAY(r->p->arena, factor, most);
    for (size_t i = 0; i < m->count; i++) {
        const factor *group = &m->factors[i];
        if (group->kind != FACTOR_COMPOSITE || group->weight != 1) {
            f[count++] = *group;
            continue;
        }
        size_t first = count;
        int64_t inside = group->inner->size / group->inner->factors[0].extent;
        for (size_t k = 0; k < group->inner->count; k++)
            f[count++] = group->inner->factors[k];
        int64_t extent = ceil_div(group->extent, inside);
        f[first].extent = extent > f[first].extent ? extent : f[first].extent;
        f[first].pad = group->pad;
    }
    return of_factors(r, f, count);
}

/* The digit that is too long for an entry, padded to an even size. */
static const mapping *padded_even(remedy *r, const mapping *m, const axis *a)
{
    factor *f = ARENA_ARRAY(r->p->arena, factor, m->count + 1);
    for (size_t i = 0; i < m->count; i++) {
        f[i] = m->factors[i];
        if (f[i].axis == a)
            f[i].extent += f[i].extent % 2;
    }
    return of_factors(r, f, m->count);
}

/* ---- trying ---- */

bool walk_fits(pass_context *p, const op *o, const walk_request *walk)
{
    (void)o;
    sequence seq;
    return sequence_derive_stream(p->mappings, &(sequence_space){walk->buffer, 1}, 1, walk->beside, walk->time, walk->packet, SEQUENCE_READ,
                                  &seq) &&
           sequence_fit(p->mappings, &seq, sequencer_limits(p->target, 1));
}

static bool is_accepted(remedy *r, const walk_request *walk)
{
    return walk->buffer && walk->time && walk->packet && r->accepts(r->p, r->o, walk);
}

static const char *try_buffer(remedy *r, const mapping *buffer)
{
    walk_request walk = *r->walk;
    walk.buffer = buffer;
    return is_accepted(r, &walk) ? arena_printf(r->p->arena, "the buffer %s", pass_text(r->p, buffer)) : NULL;
}

static const char *try_stream(remedy *r, const mapping *time, const mapping *packet)
{
    walk_request walk = *r->walk;
    walk.time = time;
    walk.packet = packet;
    return !walk.stream_given && is_accepted(r, &walk)
               ? arena_printf(r->p->arena, "time %s, packet %s", pass_text(r->p, time), pass_text(r->p, packet))
               : NULL;
}

const char *remedy_find(pass_context *p, const op *o, const sequence *seq, const walk_request *walk, walk_judge *accepts)
{
    remedy r = {p, o, walk, accepts};
    const char *found;
    const mapping *whole = seq->axis ? with_whole_axis(&r, walk->buffer, seq->axis) : NULL, *stream;
    const axis *a = NULL;
    switch (seq->failure) {
    case SEQUENCE_INSUFFICIENT: return try_buffer(&r, whole);
    case SEQUENCE_INCOMPATIBLE:
        found = try_buffer(&r, whole);
        return found ? found : try_stream(&r, in_order_of(&r, walk->time, walk->buffer), walk->packet);
    case SEQUENCE_PADDING: return try_stream(&r, padded_outermost(&r, walk->time), padded_outermost(&r, walk->packet));
    case SEQUENCE_ENTRIES:
        found = try_stream(&r, in_order_of(&r, walk->time, walk->buffer), walk->packet);
        if (found || mapping_pair(p->mappings, walk->time, walk->packet, &stream) != MAPPING_OK)
            return found;
        return try_buffer(&r, in_order_of(&r, walk->buffer, stream));
    case SEQUENCE_ENTRY_SIZE:
        return seq->term && mapping_axes(seq->term, &a, 1) == 1
                   ? try_stream(&r, padded_even(&r, walk->time, a), padded_even(&r, walk->packet, a))
                   : NULL;
    default: return NULL; /* nothing simple: the advice in words has to do */
    }
}
