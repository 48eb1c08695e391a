/* Sliding windows: an axis made of digits of others, whose places several indices share. The digits are brought into one order, so that
 * one window has one name. */
#include <string.h>

#include "ir/mapping/mapping_parts.h"

/* Every product is below 2^63: a digit ends less than its weight after its axis. */
bool window_term_meets(const window_term *t, const axis *of, int64_t weight, int64_t live)
{
    return t->of == of && t->extent > 1 && live > 1 && weight < t->weight * t->extent && t->weight < weight * live;
}

int64_t window_place(const axis *window, const int64_t *coords)
{
    int64_t place = -window->first;
    for (uint32_t i = 0; i < window->term_count; i++) {
        const window_term *t = &window->terms[i];
        place += coords[t->of->number] / t->weight % t->extent * t->stride;
    }
    return place;
}

#define WHOLE_WINDOW INT64_MAX

typedef struct window_list {
    window_term items[WINDOW_MAX_TERMS];
    uint32_t count;
} window_list;

/* Two terms of which the outer counts on where the inner ends, in coordinates and in places, are one. */
static bool window_merge(window_term *t, const window_term *n)
{
    const window_term *inner = t->weight < n->weight ? t : n, *outer = inner == t ? n : t;
    int64_t weight, stride;
    if (t->of != n->of || __builtin_mul_overflow(inner->weight, inner->extent, &weight) || weight != outer->weight ||
        __builtin_mul_overflow(inner->stride, inner->extent, &stride) || stride != outer->stride)
        return false;
    *t = (window_term){t->of, inner->weight, inner->extent * outer->extent, inner->stride};
    return true;
}

static mapping_status window_push(window_list *l, window_term n)
{
    if (n.extent == 1)
        return MAPPING_OK;
    for (uint32_t i = 0; i < l->count; i++)
        if (window_term_meets(&l->items[i], n.of, n.weight, n.extent))
            return MAPPING_WINDOW_TWICE;
    for (uint32_t i = 0; i < l->count; i++)
        if (window_merge(&l->items[i], &n)) {
            n = l->items[i];
            l->items[i] = l->items[--l->count];
            bool inside = (n.extent - 1) * n.weight < n.of->size;    /* `R # 16 / 4` next to `R # 16 % 4` is not */
            return inside ? window_push(l, n) : MAPPING_WINDOW_TERM; /* it may now meet another */
        }
    if (l->count == WINDOW_MAX_TERMS)
        return MAPPING_WINDOW_TERMS;
    l->items[l->count++] = n;
    return MAPPING_OK;
}

/* Adds the digits of one part; a whole window among them gives its terms. */
static mapping_status window_push_part(window_list *l, const window_part *part)
{
    int64_t stride = part->stride, sub;
    for (size_t i = part->mapping->count; i-- > 0;) {
        const factor *f = &part->mapping->factors[i];
        const axis *a = f->axis;
        if (f->kind != FACTOR_AXIS || f->live != f->extent || (f->live - 1) * f->weight >= a->size ||
            (a->term_count > 0 && (f->weight > 1 || f->live != a->size || a->bordered)))
            return MAPPING_WINDOW_TERM;
        mapping_status status = a->term_count ? MAPPING_OK : window_push(l, (window_term){a, f->weight, f->extent, stride});
        for (uint32_t k = 0; k < a->term_count && status == MAPPING_OK; k++) {
            window_term t = a->terms[k];
            status = __builtin_mul_overflow(t.stride, stride, &sub) ? MAPPING_TOO_LARGE
                                                                    : window_push(l, (window_term){t.of, t.weight, t.extent, sub});
        }
        if (status != MAPPING_OK)
            return status;
        if (__builtin_mul_overflow(stride, f->extent, &stride) && i > 0)
            return MAPPING_TOO_LARGE;
    }
    return MAPPING_OK;
}

static bool window_before(const window_term *a, const window_term *b)
{
    if (a->stride != b->stride)
        return a->stride > b->stride;
    return a->of->number != b->of->number ? a->of->number < b->of->number : a->weight > b->weight;
}

static void window_sort(window_list *l)
{
    for (uint32_t i = 1; i < l->count; i++)
        for (uint32_t k = i; k > 0 && window_before(&l->items[k], &l->items[k - 1]); k--) {
            window_term t = l->items[k];
            l->items[k] = l->items[k - 1];
            l->items[k - 1] = t;
        }
}

static factor window_digit(const window_term *t)
{
    return (factor){.kind = FACTOR_AXIS, .axis = t->of, .weight = t->weight, .live = t->extent, .extent = t->extent};
}

/* Which places of a window are held. */
typedef struct window_hold {
    int64_t from, to, places;
} window_hold;

static const char *window_name(mapping_context *c, const window_list *l, window_hold h)
{
    strbuf s;
    strbuf_init(&s, c->arena);
    for (uint32_t i = 0; i < l->count; i++) {
        factor f = window_digit(&l->items[i]);
        strbuf_puts(&s, i ? ", " : "$(");
        mapping_print_factor(&f, &s);
        strbuf_printf(&s, ":%lld", (long long)l->items[i].stride);
    }
    if (h.to - h.from < h.places)
        strbuf_printf(&s, " | %lld..%lld", (long long)h.from, (long long)h.to);
    strbuf_puts(&s, ")");
    return s.text;
}

static const axis *window_axis(mapping_context *c, const window_list *l, window_hold h)
{
    axis a = {.size = h.to - h.from, .term_count = l->count, .terms = l->items, .first = h.from, .bordered = h.to - h.from < h.places};
    const axis *known = axis_find(c, &a);
    if (known)
        return known;
    window_term *terms = ARENA_ARRAY(c->arena, window_term, l->count);
    memcpy(terms, l->items, l->count * sizeof *terms);
    a.name = window_name(c, l, h);
    a.terms = terms;
    return axis_add(c, a);
}

/* Each place holds exactly one index: the strides are those of a mixed-radix number. */
static bool window_is_pair(const window_list *l)
{
    int64_t next = 1;
    for (uint32_t i = l->count; i-- > 0; next *= l->items[i].extent)
        if (l->items[i].stride != next)
            return false;
    return true;
}

mapping_status mapping_window(mapping_context *c, const window_part *parts, size_t count, const mapping **out)
{
    return mapping_window_held(c, parts, count, 0, WHOLE_WINDOW, out);
}

mapping_status mapping_window_held(mapping_context *c, const window_part *parts, size_t count, int64_t from, int64_t to,
                                   const mapping **out)
{
    window_list l = {.count = 0};
    for (size_t i = 0; i < count; i++) {
        mapping_status status = parts[i].stride < 1 ? MAPPING_ZERO : window_push_part(&l, &parts[i]);
        if (status != MAPPING_OK)
            return status;
    }
    window_sort(&l);
    int64_t size = 1, reach;
    for (uint32_t i = 0; i < l.count; i++)
        if (__builtin_mul_overflow(l.items[i].extent - 1, l.items[i].stride, &reach) || __builtin_add_overflow(size, reach, &size) ||
            size > MAPPING_MAX_SIZE)
            return MAPPING_TOO_LARGE;
    window_hold h = {from, to == WHOLE_WINDOW ? size : to, size};
    if (h.from < 0 || h.to <= h.from || h.to > size)
        return MAPPING_WINDOW_RANGE;
    if (!window_is_pair(&l) || h.to - h.from < size) {
        *out = mapping_symbol(c, window_axis(c, &l, h));
        return MAPPING_OK;
    }
    factor_list all;
    factor_list_init(&all, c);
    for (uint32_t i = 0; i < l.count; i++)
        factor_list_push(&all, window_digit(&l.items[i]));
    *out = factor_list_finish(&all);
    return MAPPING_OK;
}
