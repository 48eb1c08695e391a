/* Cutting a mapping, or a group inside one, into an outer and an inner part; putting the parts of groups together again. */
#include <string.h>

#include "ir/mapping/mapping_parts.h"
#include "support/integer.h"

mapping_status mapping_split(mapping_context *c, const mapping *m, int64_t n, const mapping **outer, const mapping **inner)
{
    mapping_status status = mapping_stride(c, m, n, outer);
    return status == MAPPING_OK ? mapping_modulo(c, m, n, inner) : status;
}

/* The same at one of the inner factors. n steps of the weight end between two values of it, so that what is outside counts in whole
 * runs of n, and no sum of the two parts carries. Of the factor itself as many values belong to the inner part as divide everything. */
static bool divide_group_at(mapping_context *c, const factor *f, size_t at, const mapping **outer, const mapping **inner)
{
    const factor *e = f->inner->factors, *digit = &e[at];
    size_t count = f->inner->count;
    int64_t inside = factors_size(e + at + 1, count - at - 1), n = inside / gcd(inside, f->weight), step;
    if (n >= f->live || f->live % n || f->extent % n || __builtin_mul_overflow(n, f->weight, &step))
        return false;
    int64_t q = step / inside; /* values of the factor in n steps */
    bool whole = digit->kind == FACTOR_AXIS && (at == 0 || (digit->extent % q == 0 && digit->live == digit->extent));
    if (!whole)
        return false;
    int64_t more = at == 0 ? 1 : gcd(gcd(f->live / n, f->extent / n), digit->extent / q);
    if (n * more < f->live) {
        n *= more;
        q *= more;
    }
    if (n < 2)
        return false;
    factor high = *digit, low = *digit;
    high.weight *= q;
    high.live = ceil_div(high.live, q);
    high.extent = ceil_div(high.extent, q);
    low.live = low.extent = q;
    factor_list l;
    factor_list_init(&l, c);
    factor_list_append_all(&l, e, at);
    factor_list_push(&l, high);
    const factor *kept = factor_list_keep(&l);
    factor_list parts;
    factor_list_init(&parts, c);
    if (l.count > 0)
        factor_list_push_composite(
            &parts, (composite){.f = kept, .count = l.count, .weight = 1, .live = f->live / n, .extent = f->extent / n, .pad = f->pad});
    *outer = factor_list_finish(&parts);
    factor_list_init(&l, c);
    factor_list_push(&l, low);
    factor_list_append_all(&l, e + at + 1, count - at - 1);
    kept = factor_list_keep(&l);
    factor_list_init(&parts, c);
    factor_list_push_composite(&parts, (composite){.f = kept, .count = l.count, .weight = f->weight, .live = n, .extent = n});
    *inner = factor_list_finish(&parts);
    return (*outer)->size == f->extent / n && (*inner)->size == n;
}

bool mapping_divide_group(mapping_context *c, const factor *f, const mapping **outer, const mapping **inner)
{
    for (size_t at = f->inner->count; at-- > 0;)
        if (divide_group_at(c, f, at, outer, inner))
            return true;
    return false;
}

/* ---- all indices, in any order ---- */

static bool is_part_of_same(const factor *f, const factor *g)
{
    return f->inner && g->inner && (mapping_is_front(f->inner, g->inner) || mapping_is_front(g->inner, f->inner));
}

/* Where g belongs among the factors: next to parts of the same group, by descending weight; else after all. */
static size_t place_of(const factor *f, size_t count, const factor *g)
{
    size_t at = count;
    for (size_t i = count; i-- > 0;)
        if (is_part_of_same(&f[i], g) && (at == count || f[i].weight < g->weight))
            at = f[i].weight < g->weight ? i : i + 1;
    return at;
}

const mapping *mapping_gather(mapping_context *c, const mapping *const *parts, size_t count)
{
    size_t factors = 0, kept = 0;
    int64_t size = 1;
    for (size_t i = 0; i < count; i++)
        factors += parts[i]->count;
    factor *f = ARENA_ARRAY(c->arena, factor, factors);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < parts[i]->count; k++) {
            factor g = parts[i]->factors[k];
            size_t at = place_of(f, kept, &g);
            g.extent = g.live;
            if (__builtin_mul_overflow(size, g.extent, &size) || size > MAPPING_MAX_SIZE)
                return NULL;
            memmove(f + at + 1, f + at, (kept++ - at) * sizeof *f);
            f[at] = g;
        }
    factor_list l;
    factor_list_init(&l, c);
    factor_list_append_all(&l, f, kept);
    return factor_list_finish(&l);
}
