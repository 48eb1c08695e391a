#include "ir/mapping/mapping_without.h"

/* Are the digits a run of m whose values are `stride` positions apart? *left: m without it. */
static bool is_run(mapping_context *c, const mapping *m, const mapping *run, int64_t stride, const mapping **left)
{
    const mapping *outer, *inner, *all;
    return stride <= m->size / run->size && m->size % (stride * run->size) == 0 &&
           mapping_stride(c, m, stride * run->size, &outer) == MAPPING_OK && mapping_modulo(c, m, stride, &inner) == MAPPING_OK &&
           mapping_pair(c, outer, run, &all) == MAPPING_OK && mapping_pair(c, all, inner, &all) == MAPPING_OK && mapping_equal(c, all, m) &&
           mapping_pair(c, outer, inner, left) == MAPPING_OK;
}

const mapping *mapping_without(mapping_context *c, const mapping *m, const mapping *run, int64_t *stride)
{
    const factor *digit = run->count ? &run->factors[run->count - 1] : NULL;
    const mapping *left;
    int64_t position = 1;
    *stride = m->size;
    if (!digit)
        return m;
    for (size_t i = m->count; i-- > 0;) {
        const factor *f = &m->factors[i];
        bool same = f->kind == digit->kind && f->axis == digit->axis && f->inner == digit->inner;
        *stride = same && f->weight > 0 && digit->weight % f->weight == 0 ? position * (digit->weight / f->weight) : position;
        if (same && is_run(c, m, run, *stride, &left))
            return left;
        position *= f->extent;
    }
    return NULL;
}
