/* Cutting a mapping, or a group inside one, into an outer and an inner part. */
#include "ir/mapping_parts.h"
#include "support/integer.h"

mapping_status mapping_split(mapping_context *c, const mapping *m, int64_t n, const mapping **outer,
                             const mapping **inner)
{
    mapping_status status = mapping_stride(c, m, n, outer);
    return status == MAPPING_OK ? mapping_modulo(c, m, n, inner) : status;
}

/* The same at one of the inner factors. n steps of the weight end between two values of it, so that what is outside counts in whole
 * runs of n, and no sum of the two parts carries. */
static bool divide_group_at(mapping_context *c, const factor *f, size_t at, const mapping **outer, const mapping **inner)
{
    const factor *e = f->inner->factors, *digit = &e[at];
    size_t count = f->inner->count;
    int64_t inside = factors_size(e + at + 1, count - at - 1), n = inside / gcd(inside, f->weight), step;
    if (n < 2 || n >= f->live || f->live % n || f->extent % n || __builtin_mul_overflow(n, f->weight, &step))
        return false;
    int64_t q = step / inside; /* values of the factor in n steps */
    bool whole = digit->kind == FACTOR_AXIS && (at == 0 || (digit->extent % q == 0 && digit->live == digit->extent));
    if (!whole)
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
        factor_list_push_composite(&parts, (composite){.f = kept, .count = l.count, .weight = 1, .live = f->live / n, .extent = f->extent / n, .pad = f->pad});
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
