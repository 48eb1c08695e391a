/* The constructors of the language, the meaning of what they make, and questions about it. */
#include <string.h>

#include "ir/mapping/mapping_parts.h"

const mapping *mapping_identity(mapping_context *c)
{
    return mapping_intern(c, NULL, 0);
}

const mapping *mapping_symbol(mapping_context *c, const axis *a)
{
    factor_list l;
    factor_list_init(&l, c);
    factor_list_push(&l, (factor){.kind = FACTOR_AXIS, .axis = a, .weight = 1, .live = a->size, .extent = a->size});
    return factor_list_finish(&l);
}

mapping_status mapping_broadcast(mapping_context *c, int64_t n, const mapping **out)
{
    if (n <= 0)
        return MAPPING_ZERO;
    if (n > MAPPING_MAX_SIZE)
        return MAPPING_TOO_LARGE;
    factor_list l;
    factor_list_init(&l, c);
    if (n > 1)
        factor_list_push(&l, (factor){.kind = FACTOR_BROADCAST, .live = n, .extent = n});
    *out = factor_list_finish(&l);
    return MAPPING_OK;
}

mapping_status mapping_pair(mapping_context *c, const mapping *outer, const mapping *inner, const mapping **out)
{
    int64_t size;
    if (__builtin_mul_overflow(outer->size, inner->size, &size) || size > MAPPING_MAX_SIZE)
        return MAPPING_TOO_LARGE;
    if (outer->count == 0 || inner->count == 0) {
        *out = outer->count == 0 ? inner : outer;
        return MAPPING_OK;
    }
    factor_list l;
    factor_list_init(&l, c);
    factor_list_append_all(&l, outer->factors, outer->count);
    factor_list_append_all(&l, inner->factors, inner->count);
    *out = factor_list_finish(&l);
    return MAPPING_OK;
}

mapping_status mapping_concat(mapping_context *c, const mapping *const *parts, size_t count, const mapping **out)
{
    int64_t size = 1;
    factor_list l;
    factor_list_init(&l, c);
    for (size_t i = 0; i < count; i++) {
        if (__builtin_mul_overflow(size, parts[i]->size, &size) || size > MAPPING_MAX_SIZE)
            return MAPPING_TOO_LARGE;
        factor_list_append_all(&l, parts[i]->factors, parts[i]->count);
    }
    *out = factor_list_finish(&l);
    return MAPPING_OK;
}

static mapping_status check_divisor(const mapping *m, int64_t n)
{
    if (n <= 0)
        return MAPPING_ZERO;
    return m->size % n == 0 ? MAPPING_OK : MAPPING_NOT_DIVISIBLE;
}

mapping_status mapping_stride(mapping_context *c, const mapping *m, int64_t n, const mapping **out)
{
    mapping_status status = check_divisor(m, n);
    if (status != MAPPING_OK)
        return status;
    size_t kept = m->count;
    while (kept > 0 && n % m->factors[kept - 1].extent == 0)
        n /= m->factors[--kept].extent;
    factor_list l;
    factor_list_init(&l, c);
    if (kept == 0 || n == 1) {
        factor_list_append_all(&l, m->factors, kept);
    } else if (m->factors[kept - 1].extent % n == 0) {
        factor_list_append_all(&l, m->factors, kept - 1);
        factor f = m->factors[kept - 1];
        f.weight *= n;
        f.live = ceil_div(f.live, n);
        f.extent /= n;
        factor_list_push(&l, f);
    } else {
        int64_t extent = factors_size(m->factors, kept) / n;
        factor_list_push_composite(&l, (composite){.f = m->factors, .count = kept, .weight = n, .live = extent, .extent = extent});
    }
    *out = factor_list_finish(&l);
    return MAPPING_OK;
}

/* The first n positions, 0 < n <= SIZE: `% n` and `= n` are this one function. */
static const mapping *mapping_take(mapping_context *c, const mapping *m, int64_t n)
{
    size_t kept = m->count; /* factors kept .. count-1 are whole */
    while (kept > 0 && n % m->factors[kept - 1].extent == 0)
        n /= m->factors[--kept].extent;
    factor_list l;
    factor_list_init(&l, c);
    if (n > 1 && n < m->factors[kept - 1].extent) {
        factor f = m->factors[--kept];
        f.extent = n;
        f.live = f.live < n ? f.live : n;
        factor_list_push(&l, f);
        kept++;
    } else if (n > 1) {
        factor_list_push_composite(&l, (composite){.f = m->factors, .count = kept, .weight = 1, .live = n, .extent = n});
    }
    factor_list_append_all(&l, m->factors + kept, m->count - kept);
    return factor_list_finish(&l);
}

mapping_status mapping_modulo(mapping_context *c, const mapping *m, int64_t n, const mapping **out)
{
    mapping_status status = check_divisor(m, n);
    if (status == MAPPING_OK)
        *out = mapping_take(c, m, n);
    return status;
}

mapping_status mapping_resize(mapping_context *c, const mapping *m, int64_t n, const mapping **out)
{
    if (n <= 0)
        return MAPPING_ZERO;
    if (n > m->size)
        return MAPPING_GROWS;
    *out = mapping_take(c, m, n);
    return MAPPING_OK;
}

mapping_status mapping_pad(mapping_context *c, const mapping *m, int64_t n, pad_kind kind, const mapping **out)
{
    if (n <= 0)
        return MAPPING_ZERO;
    if (n > MAPPING_MAX_SIZE)
        return MAPPING_TOO_LARGE;
    if (n < m->size)
        return MAPPING_SHRINKS;
    factor_list l;
    factor_list_init(&l, c);
    if (n == m->size) {
        *out = m;
        return MAPPING_OK;
    }
    if (n % m->size == 0) { /* a hole outside: merges, or stays where the kinds differ */
        factor_list_push(&l, (factor){.kind = FACTOR_BROADCAST, .pad = kind, .live = 1, .extent = n / m->size});
        factor_list_append_all(&l, m->factors, m->count);
    } else {
        const factor *f = &m->factors[0];
        int64_t inner = m->size / f->extent;
        if (n % inner == 0 && (f->live == f->extent || f->pad == kind)) {
            factor g = *f;
            g.extent = n / inner;
            g.pad = kind;
            factor_list_push(&l, g);
            factor_list_append_all(&l, m->factors + 1, m->count - 1);
        } else {
            factor_list_push_composite(
                &l, (composite){.f = m->factors, .count = m->count, .weight = 1, .live = m->size, .extent = n, .pad = kind});
        }
    }
    *out = factor_list_finish(&l);
    return MAPPING_OK;
}

/* ---- meaning ---- */

static bool map_add(const mapping *m, int64_t i, int64_t *coords)
{
    if (i < 0 || i >= m->size)
        return false;
    for (size_t k = m->count; k-- > 0;) {
        const factor *f = &m->factors[k];
        int64_t digit = i % f->extent;
        i /= f->extent;
        if (digit >= f->live)
            return false;
        if (f->kind == FACTOR_COMPOSITE && !map_add(f->inner, digit * f->weight, coords))
            return false;
        if (f->kind != FACTOR_AXIS)
            continue;
        int64_t *x = &coords[f->axis->number];
        *x += digit * f->weight; /* both below 2^62 */
        if (*x >= f->axis->size)
            return false;
    }
    return true;
}

bool mapping_map(const mapping *m, int64_t i, int64_t *coords)
{
    return map_add(m, i, coords);
}

const mapping *mapping_strip_padding(mapping_context *c, const mapping *m)
{
    while (m->count > 0 && m->factors[0].live < m->factors[0].extent) {
        factor_list l;
        factor_list_init(&l, c);
        factor f = m->factors[0];
        f.extent = f.live;
        factor_list_push(&l, f);
        factor_list_append_all(&l, m->factors + 1, m->count - 1);
        m = factor_list_finish(&l);
    }
    return m;
}

const mapping *mapping_of_factors(mapping_context *c, const factor *f, size_t count)
{
    factor_list l;
    factor_list_init(&l, c);
    factor_list_append_all(&l, f, count);
    return factor_list_finish(&l);
}

const mapping *mapping_of_factor(mapping_context *c, const factor *f)
{
    return mapping_of_factors(c, f, 1);
}

const mapping *mapping_without_padding(mapping_context *c, const factor *f)
{
    factor bare = *f;
    bare.extent = f->live;
    return mapping_of_factor(c, &bare);
}

/* ---- questions ---- */

bool mapping_mentions(const mapping *m, const axis *a)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->factors[i].axis == a || (m->factors[i].inner && mapping_mentions(m->factors[i].inner, a)))
            return true;
    return false;
}

void mapping_axis_is_local(const axis *a)
{
    ((axis *)a)->local = true; /* the context's, which nobody else may change */
}

static bool axis_is_local(const axis *a)
{
    bool local = a->local;
    for (uint32_t i = 0; i < a->term_count; i++)
        local = local || a->terms[i].of->local;
    return local;
}

bool mapping_is_local(const mapping *m)
{
    for (size_t i = 0; i < m->count; i++)
        if ((m->factors[i].axis && axis_is_local(m->factors[i].axis)) || (m->factors[i].inner && mapping_is_local(m->factors[i].inner)))
            return true;
    return false;
}

/* May the coordinates of one axis add up to its size? A composite is taken to reach its axis's end. */
static bool overshoots(const mapping *m, const axis *a)
{
    int64_t reach = 0;
    bool seen = false, seen_inside = false;
    for (size_t i = 0; i < m->count && reach < a->size; i++) {
        const factor *f = &m->factors[i];
        bool inside = f->inner && mapping_mentions(f->inner, a);
        if (seen && (inside || (seen_inside && f->axis == a)))
            return true;
        seen_inside = seen_inside || inside;
        seen = seen || inside || f->axis == a;
        if (f->axis == a)
            reach += (f->live - 1) * f->weight;
    }
    return reach >= a->size;
}

bool mapping_is_full(const mapping *m)
{
    const axis *axes[64];
    uint32_t axis_count = mapping_axes(m, axes, 64);
    for (uint32_t i = 0; i < axis_count; i++)
        if (overshoots(m, axes[i]))
            return false;
    for (size_t i = 0; i < m->count; i++)
        if (m->factors[i].live < m->factors[i].extent || (m->factors[i].inner && !mapping_is_full(m->factors[i].inner)))
            return false;
    return axis_count < 64;
}

bool mapping_is_front(const mapping *front, const mapping *m)
{
    if (front == m || front->count != m->count || front->factors[0].live > m->factors[0].live)
        return front == m;
    for (size_t k = 0; k < m->count; k++) {
        const factor *f = &front->factors[k], *g = &m->factors[k];
        if (f->kind != g->kind || f->axis != g->axis || f->inner != g->inner || f->weight != g->weight ||
            (k > 0 && (f->live != g->live || f->extent != g->extent)))
            return false;
    }
    return true;
}

bool mapping_has_gap(const mapping *m)
{
    for (uint32_t i = 0; i < m->count; i++) {
        const factor *f = &m->factors[i];
        if ((f->pad == PAD_BOTTOM && f->live < f->extent) || (f->kind == FACTOR_COMPOSITE && mapping_has_gap(f->inner)))
            return true;
    }
    return false;
}

bool mapping_is_hole(const mapping *m)
{
    return m->count == 0 || (m->count == 1 && m->factors[0].kind == FACTOR_BROADCAST && m->factors[0].live == 1);
}

/* Adds those of the mapping to the `count` that are there. */
static uint32_t add_axes(const mapping *m, const axis **out, uint32_t count, uint32_t capacity)
{
    for (size_t i = 0; i < m->count; i++) {
        const axis *a = m->factors[i].axis;
        bool known = a == NULL;
        for (uint32_t k = 0; k < count && !known; k++)
            known = out[k] == a;
        if (!known && count < capacity)
            out[count++] = a;
        if (m->factors[i].inner)
            count = add_axes(m->factors[i].inner, out, count, capacity);
    }
    return count;
}

uint32_t mapping_axes(const mapping *m, const axis **out, uint32_t capacity)
{
    return add_axes(m, out, 0, capacity);
}
