#include "ir/mapping/division.h"

#include "ir/sequence/sequence.h"
#include "support/order.h"

/* m with positions [stride, stride * size) of its numbering replaced by a gap. */
static const mapping *cut_out(mapping_context *c, const mapping *m, int64_t stride, int64_t size)
{
    const mapping *outer, *inner, *gap = mapping_identity(c), *out = m;
    if (mapping_stride(c, m, stride * size, &outer) != MAPPING_OK || mapping_modulo(c, m, stride, &inner) != MAPPING_OK ||
        mapping_pad(c, gap, size, PAD_TOP, &gap) != MAPPING_OK || mapping_pair(c, outer, gap, &out) != MAPPING_OK ||
        mapping_pair(c, out, inner, &out) != MAPPING_OK)
        return m;
    return out;
}

/* Are positions [stride, stride * size) digits of their own in m, and are they exactly `term`? */
static bool stands_alone(mapping_context *c, const mapping *m, int64_t stride, int64_t size, const mapping *term)
{
    const mapping *outer, *rest, *middle, *inner, *all;
    return mapping_stride(c, m, stride * size, &outer) == MAPPING_OK && mapping_stride(c, m, stride, &rest) == MAPPING_OK &&
           mapping_modulo(c, rest, size, &middle) == MAPPING_OK && mapping_modulo(c, m, stride, &inner) == MAPPING_OK &&
           mapping_pair(c, outer, middle, &all) == MAPPING_OK && mapping_pair(c, all, inner, &all) == MAPPING_OK &&
           mapping_equal(c, all, m) && mapping_equal(c, mapping_strip_padding(c, middle), mapping_strip_padding(c, term));
}

static int by_dividend_stride(const void *a, const void *b)
{
    const division_match *x = a, *y = b;
    return ORDER(y->dividend_stride, x->dividend_stride);
}

/* One divisor factor, `position` its stride in the divisor; false when the dividend does not have it. */
static bool divide_factor(mapping_context *c, const mapping *dividend, const factor *f, int64_t position, division *out)
{
    sequence seq;
    const mapping *one = mapping_of_factor(c, f);
    if (!sequence_derive(c, dividend, one, mapping_identity(c), SEQUENCE_READ, &seq))
        return false;
    for (size_t i = 0; i < seq.count; i++)
        if (seq.parts[i].stride == 0 || !stands_alone(c, dividend, seq.parts[i].stride, seq.parts[i].size, seq.parts[i].term))
            return false;
    int64_t stride = position;
    for (size_t i = seq.count; i-- > 0;) {
        division_match m = {seq.parts[i].term, seq.parts[i].size, seq.parts[i].stride, stride};
        ARENA_PUSH(mapping_context_arena(c), out->matches, out->count, out->capacity, m);
        stride *= seq.parts[i].size;
        out->dividend_rest = cut_out(c, out->dividend_rest, m.dividend_stride, m.size);
    }
    out->divisor_rest = cut_out(c, out->divisor_rest, position, f->extent);
    return true;
}

void mapping_divide(mapping_context *c, const mapping *dividend, const mapping *divisor, division *out)
{
    *out = (division){.exact = true, .dividend_rest = dividend, .divisor_rest = divisor};
    int64_t position = divisor->size;
    for (size_t i = 0; i < divisor->count; i++) {
        const factor *f = &divisor->factors[i];
        position /= f->extent;
        bool hole = f->kind == FACTOR_BROADCAST && f->live == 1;
        if (!hole && !divide_factor(c, dividend, f, position, out))
            out->exact = false;
    }
    order_sort(out->matches, out->count, sizeof *out->matches, by_dividend_stride);
}

/* ---- refinement ---- */

static void add_cut(int64_t *cuts, size_t *count, size_t capacity, int64_t cut)
{
    size_t i = *count;
    for (size_t k = 0; k < *count; k++)
        if (cuts[k] == cut)
            return;
    if (*count == capacity)
        return;
    for (; i > 0 && cuts[i - 1] > cut; i--)
        cuts[i] = cuts[i - 1];
    cuts[i] = cut;
    ++*count;
}

static void add_cuts(const mapping *m, const axis *of, int64_t *cuts, size_t *count, size_t capacity)
{
    for (size_t i = 0; i < m->count; i++) {
        const factor *f = &m->factors[i];
        if (f->inner)
            add_cuts(f->inner, of, cuts, count, capacity);
        if (f->axis != of)
            continue;
        add_cut(cuts, count, capacity, f->weight);
        if (f->live < (of->size + f->weight - 1) / f->weight) /* above the last digit there is nothing to cut */
            add_cut(cuts, count, capacity, f->weight * f->live);
    }
}

bool mapping_refine(const mapping *a, const mapping *b, const axis *of, refined_digit *out, size_t capacity, size_t *count)
{
    int64_t cuts[128];
    size_t cut_count = 0;
    *count = 0;
    add_cuts(a, of, cuts, &cut_count, 128);
    add_cuts(b, of, cuts, &cut_count, 128);
    for (size_t i = 0; i < cut_count; i++) {
        bool last = i + 1 == cut_count;
        if ((!last && cuts[i + 1] % cuts[i]) || *count == capacity)
            return false;
        int64_t size = last ? (of->size + cuts[i] - 1) / cuts[i] : cuts[i + 1] / cuts[i];
        if (size > 1)
            out[(*count)++] = (refined_digit){cuts[i], size};
    }
    return true;
}
