#include "ir/mapping/tile.h"

#include "support/integer.h"

/* A digit of the index in the mapping: values d of weight `weight` at positions d * stride; `extent` positions, the first
 * `live` of them used. */
typedef struct tile_digit {
    const axis *axis;
    int64_t weight, size, stride, extent, live;
} tile_digit;

/* The factor of that axis with the largest weight up to `weight`; *stride: positions between its digits. */
static const factor *factor_below(const mapping *m, const axis *a, int64_t weight, int64_t *stride)
{
    const factor *best = NULL;
    int64_t position = 1;
    for (size_t i = m->count; i-- > 0;) {
        const factor *f = &m->factors[i];
        if (f->kind == FACTOR_AXIS && f->axis == a && f->weight <= weight && (!best || f->weight > best->weight)) {
            best = f;
            *stride = position;
        }
        position *= f->extent;
    }
    return best;
}

/* The digits of one index factor, innermost first; false when the mapping has them not. */
static bool find_digits(const mapping *m, const factor *f, tile_digit *out, size_t *count)
{
    int64_t weight = f->weight, size = f->live;
    while (size > 1) {
        int64_t stride = 0;
        const factor *in = factor_below(m, f->axis, weight, &stride);
        if (!in || weight % in->weight || *count == TILE_MAX_SHIFTS)
            return false;
        int64_t q = weight / in->weight, live = ceil_div(in->live, q);
        if (live <= 1)
            return false;
        bool top = size >= live; /* the digit goes up to the end of `in` */
        if ((top && in->extent % q) || (!top && (in->live % (q * size) || in->extent % (q * size))))
            return false;
        tile_digit d = {f->axis, weight, top ? live : size, stride * q, top ? in->extent / q : size, top ? in->live / q : size};
        out[(*count)++] = d;
        bool shortened = in->live < ceil_div(f->axis->size, in->weight) && factor_below(m, f->axis, weight * live, &stride) == in;
        if (top && size > live && !shortened && (size % live || in->live % q))
            return false;
        size = top && !shortened ? size / live : 1; /* the rest of the index is not in a window of it */
        weight *= live;
    }
    return true;
}

/* m with the digit's positions replaced by `middle`. False when they are no digits of their own. */
static bool replace(mapping_context *c, const mapping *m, const tile_digit *d, const mapping *middle, const mapping **out)
{
    const mapping *outer, *inner, *all;
    if (mapping_stride(c, m, d->stride * d->extent, &outer) != MAPPING_OK || mapping_modulo(c, m, d->stride, &inner) != MAPPING_OK ||
        mapping_pair(c, outer, middle, &all) != MAPPING_OK || mapping_pair(c, all, inner, &all) != MAPPING_OK)
        return false;
    *out = all;
    return true;
}

static bool stands_alone(mapping_context *c, const mapping *m, const tile_digit *d)
{
    const mapping *middle, *all;
    return mapping_stride(c, m, d->stride, &middle) == MAPPING_OK && mapping_modulo(c, middle, d->extent, &middle) == MAPPING_OK &&
           replace(c, m, d, middle, &all) && mapping_equal(c, all, m);
}

/* `length` values of the digit, or a gap for one, with padding after them. */
static const mapping *window_of(mapping_context *c, const tile_digit *d, int64_t length, pad_kind pad)
{
    factor f = {.kind = length > 1 ? FACTOR_AXIS : FACTOR_BROADCAST,
                .axis = length > 1 ? d->axis : NULL,
                .pad = pad,
                .weight = length > 1 ? d->weight : 0,
                .live = length,
                .extent = d->extent};
    if (length > 1)
        return mapping_of_factor(c, &f);
    const mapping *gap = mapping_identity(c);
    return mapping_pad(c, gap, d->extent, pad, &gap) == MAPPING_OK ? gap : mapping_identity(c);
}

static int64_t shift_of(const tile_window *w, const axis *a)
{
    for (uint32_t i = 0; i < w->shift_count; i++)
        if (w->shifts[i].axis == a)
            return w->shifts[i].offset;
    return 0;
}

static bool add_shift(tile_window *w, const axis *a, int64_t offset)
{
    for (uint32_t i = 0; i < w->shift_count; i++)
        if (w->shifts[i].axis == a) {
            w->shifts[i].offset += offset;
            return true;
        }
    if (w->shift_count == TILE_MAX_SHIFTS)
        return false;
    w->shifts[w->shift_count++] = (tile_shift){a, offset};
    return true;
}

/* Coordinates that digits inside of one of that weight do not reach: they are cut, in this part of the tensor or in another one. */
static int64_t lost_inside(const tile_window *w, const axis *a, int64_t weight)
{
    int64_t lost = 0;
    for (uint32_t i = 0; i < w->cut_count; i++)
        if (w->cuts[i].axis == a && w->cuts[i].weight < weight)
            lost += w->cuts[i].lost;
    return lost;
}

static bool add_cut(tile_window *w, const axis *a, int64_t weight, int64_t lost)
{
    for (uint32_t i = 0; i < w->cut_count; i++)
        if (w->cuts[i].axis == a && w->cuts[i].weight == weight) {
            w->cuts[i].lost += lost;
            return true;
        }
    if (w->cut_count == TILE_MAX_SHIFTS)
        return false;
    w->cuts[w->cut_count++] = (tile_cut){a, weight, lost};
    return true;
}

/* The window [start, start + length) of one digit. */
static tile_status cut_digit(mapping_context *c, const tile_digit *d, int64_t length, int64_t start, const mapping **m,
                             const mapping **guard, tile_window *w)
{
    if (!stands_alone(c, *m, d))
        return TILE_SPLIT;
    if (start + length > d->live)
        return TILE_PADDING;
    if (!add_shift(w, d->axis, start * d->weight))
        return TILE_DEEP;
    int64_t span = length * d->weight - lost_inside(w, d->axis, d->weight);
    if (shift_of(w, d->axis) > d->axis->size - span) /* a last, ragged block */
        return TILE_PADDING;
    w->displacement += start * d->stride;
    if (length == d->live) /* the whole digit, from 0: nothing is cut */
        return TILE_OK;
    if (!add_cut(w, d->axis, d->weight, (d->live - length) * d->weight))
        return TILE_DEEP;
    if (!replace(c, *m, d, window_of(c, d, length, PAD_TOP), m))
        return TILE_SPLIT;
    return !guard || replace(c, *guard, d, window_of(c, d, length, PAD_BOTTOM), guard) ? TILE_OK : TILE_SPLIT;
}

tile_status mapping_tile(mapping_context *c, const mapping *m, const mapping *index, int64_t length, int64_t start, const mapping **out,
                         const mapping **guard, tile_window *window)
{
    tile_digit digits[TILE_MAX_SHIFTS];
    size_t count = 0;
    tile_window w = *window;
    const mapping *guarded = guard ? *guard : m;
    if (length < 1 || start < 0 || start > index->size - length)
        return TILE_RANGE;
    for (size_t i = index->count; i-- > 0;) {
        const factor *f = &index->factors[i];
        if (f->kind != FACTOR_AXIS || !find_digits(m, f, digits, &count))
            return TILE_SPLIT;
        bool padded = f->live != f->extent; /* what an earlier tile left of the digit, with its padding */
        if (padded && (i > 0 || count == 0 || digits[count - 1].live != f->live || digits[count - 1].extent != f->extent))
            return TILE_SPLIT;
    }
    if (length > 1 && count > 1)
        return TILE_TERMS;
    int64_t rest = start;
    for (size_t i = 0; i < count; i++) {
        tile_status status =
            cut_digit(c, &digits[i], length, i + 1 < count ? rest % digits[i].size : rest, &m, guard ? &guarded : NULL, &w);
        if (status != TILE_OK)
            return status;
        rest /= digits[i].size;
    }
    *out = m;
    if (guard)
        *guard = guarded;
    *window = w;
    return TILE_OK;
}
