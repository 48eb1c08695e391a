#include "ir/mapping.h"

#include <assert.h>
#include <string.h>

/* Factors under construction, outermost first. */
enum { LOCAL_FACTORS = 16 };

typedef struct factor_list {
    mapping_context *context;
    factor *items; /* `local`, until there are more than it holds */
    size_t count, capacity;
    factor local[LOCAL_FACTORS];
} factor_list;

enum { FIRST_BUCKETS = 32 };

struct interned {
    struct interned *next;
    uint64_t hash;
    mapping *mapping;
};

struct mapping_context {
    arena *arena;
    const axis **axes;
    size_t axis_count, axis_capacity;
    struct interned **buckets; /* `first`, until there are more mappings than it has buckets */
    size_t bucket_count, mapping_count;
    struct interned *first[FIRST_BUCKETS];
};

static void no_mappings(mapping_context *c)
{
    memset(c->first, 0, sizeof c->first);
    c->buckets = c->first;
    c->bucket_count = FIRST_BUCKETS;
    c->mapping_count = 0;
}

mapping_context *mapping_context_new(arena *a)
{
    mapping_context *c = ARENA_NEW(a, mapping_context);
    c->arena = a;
    no_mappings(c);
    return c;
}

mapping_mark mapping_context_mark(mapping_context *c)
{
    return (mapping_mark){arena_mark_here(c->arena), c->axes, c->axis_count, c->axis_capacity};
}

void mapping_context_rewind(mapping_context *c, mapping_mark mark)
{
    arena_rewind(c->arena, mark.arena);
    c->axes = mark.axes;
    c->axis_count = mark.axis_count;
    c->axis_capacity = mark.axis_capacity;
    no_mappings(c);
}

arena *mapping_context_arena(mapping_context *c)
{
    return c->arena;
}

const axis *mapping_axis(mapping_context *c, const char *name, int64_t size)
{
    assert(size >= 1);
    for (size_t i = 0; i < c->axis_count; i++)
        if (c->axes[i]->size == size && c->axes[i]->term_count == 0 && strcmp(c->axes[i]->name, name) == 0)
            return c->axes[i];
    axis *a = ARENA_NEW(c->arena, axis);
    *a = (axis){.name = arena_strdup(c->arena, name), .size = size, .number = (uint32_t)c->axis_count};
    ARENA_PUSH(c->arena, c->axes, c->axis_count, c->axis_capacity, a);
    return a;
}

/* ---- interning ---- */

static uint64_t hash_mix(uint64_t h, uint64_t value)
{
    h ^= value;
    h *= 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static uint64_t factors_hash(const factor *f, size_t count)
{
    uint64_t h = count;
    for (size_t i = 0; i < count; i++) {
        h = hash_mix(h, (uint64_t)f[i].kind << 8 | (uint64_t)f[i].pad);
        h = hash_mix(h, (uint64_t)(uintptr_t)f[i].axis);
        h = hash_mix(h, (uint64_t)(uintptr_t)f[i].inner);
        h = hash_mix(h, (uint64_t)f[i].weight);
        h = hash_mix(h, (uint64_t)f[i].live);
        h = hash_mix(h, (uint64_t)f[i].extent);
    }
    return h;
}

static bool factor_equal(const factor *a, const factor *b)
{
    return a->kind == b->kind && a->pad == b->pad && a->axis == b->axis && a->inner == b->inner &&
           a->weight == b->weight && a->live == b->live && a->extent == b->extent;
}

static bool factors_equal(const factor *a, const factor *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!factor_equal(&a[i], &b[i]))
            return false;
    return true;
}

static void buckets_grow(mapping_context *c)
{
    size_t count = 4 * c->bucket_count;
    struct interned **grown = ARENA_ARRAY(c->arena, struct interned *, count);
    for (size_t b = 0; b < c->bucket_count; b++)
        for (struct interned *i = c->buckets[b], *next; i; i = next) {
            next = i->next;
            i->next = grown[i->hash & (count - 1)];
            grown[i->hash & (count - 1)] = i;
        }
    c->buckets = grown;
    c->bucket_count = count;
}

/* The sizes have been checked: the product of the extents is at most MAPPING_MAX_SIZE. */
static const mapping *intern(mapping_context *c, const factor *f, size_t count)
{
    if (c->mapping_count == c->bucket_count)
        buckets_grow(c);
    uint64_t hash = factors_hash(f, count);
    struct interned **bucket = &c->buckets[hash & (c->bucket_count - 1)];
    for (struct interned *i = *bucket; i; i = i->next)
        if (i->hash == hash && i->mapping->count == count && factors_equal(i->mapping->factors, f, count))
            return i->mapping;
    struct interned *entry = arena_alloc(c->arena, sizeof *entry + sizeof(mapping) + count * sizeof *f);
    mapping *m = (mapping *)(entry + 1);
    m->size = 1;
    m->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        m->factors[i] = f[i];
        m->size *= f[i].extent;
    }
    *entry = (struct interned){*bucket, hash, m};
    *bucket = entry;
    c->mapping_count++;
    return m;
}

/* ---- normal form ----
 *
 * Rules, each keeping map(): a digit that is always 0 when live is a hole; digits of an axis stop where the
 * axis does; a hole outside a factor is padding of that factor; two adjacent factors that count through the
 * same thing without a gap are one; a factor of extent 1 is nothing. */

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static bool is_hole(const factor *f)
{
    return f->kind == FACTOR_BROADCAST && f->live == 1;
}

static void factor_normalise(factor *f)
{
    if (f->kind == FACTOR_AXIS && f->live > ceil_div(f->axis->size, f->weight))
        f->live = ceil_div(f->axis->size, f->weight);
    if (f->live == 1) /* digit 0 is position 0 of whatever this is: the empty index */
        *f = (factor){.kind = FACTOR_BROADCAST, .pad = f->pad, .live = 1, .extent = f->extent};
    if (f->live == f->extent)
        f->pad = PAD_TOP;
}

/* Merges o, which stands directly outside f, into f. */
static bool factor_merge(const factor *o, factor *f)
{
    bool dead = f->live < f->extent;
    if (is_hole(o)) {
        if (dead && f->pad != o->pad)
            return false;
        f->pad = o->pad;
        f->extent *= o->extent;
        return true;
    }
    if (dead || o->kind != f->kind || o->axis != f->axis || f->kind == FACTOR_COMPOSITE)
        return false;
    int64_t next_weight;
    if (f->kind == FACTOR_AXIS &&
        (__builtin_mul_overflow(f->weight, f->extent, &next_weight) || o->weight != next_weight))
        return false;
    f->live = o->live * f->extent;
    f->extent *= o->extent;
    f->pad = o->pad;
    factor_normalise(f);
    return true;
}

static void list_push(factor_list *l, factor f);

/* Appends on the inner side, merging with what is there. */
static void list_append(factor_list *l, factor f)
{
    if (f.kind != FACTOR_COMPOSITE)
        factor_normalise(&f);
    if (f.extent == 1)
        return;
    if (l->count > 0 && factor_merge(&l->items[l->count - 1], &f)) {
        l->count--;
        list_push(l, f); /* it may now meet its next outer neighbour, and a composite may dissolve */
        return;
    }
    ARENA_PUSH(l->context->arena, l->items, l->count, l->capacity, f);
}

static void list_init(factor_list *l, mapping_context *c)
{
    l->context = c;
    l->items = l->local;
    l->count = 0;
    l->capacity = LOCAL_FACTORS;
}

static void list_append_all(factor_list *l, const factor *f, size_t count)
{
    for (size_t i = 0; i < count; i++)
        list_push(l, f[i]);
}

static int64_t factors_size(const factor *f, size_t count)
{
    int64_t size = 1;
    for (size_t i = 0; i < count; i++)
        size *= f[i].extent;
    return size;
}

/* The factors where they outlive the list. */
static const factor *list_keep(const factor_list *l)
{
    factor *kept = ARENA_ARRAY(l->context->arena, factor, l->count);
    memcpy(kept, l->items, l->count * sizeof *kept);
    return kept;
}

/* Composites. A composite stands for positions 0, w, 2w, ... of E where E's digits do not divide the cut. What can
 * be said in digits is taken out, so that composites that mean the same are the same:
 * - E keeps only what positions up to (live-1)*w reach, and no dead end;
 * - factors inside the step w are pinned to 0 and go;
 * - with w == 1 innermost factors whose extent divides both live and extent stand beside the composite;
 * - what then covers E exactly, up to padding of its outermost factor, dissolves. */
typedef struct composite {
    const factor *f; /* E, outermost first */
    size_t count;
    factor outermost; /* replaces f[0] */
    int64_t weight, live, extent;
    pad_kind pad;
} composite;

static int64_t composite_inner_size(const composite *k)
{
    return factors_size(k->f + 1, k->count - 1);
}

/* Drops what the last position does not reach; true when something changed. */
static bool composite_trim(composite *k)
{
    int64_t inner = composite_inner_size(k);
    int64_t reach = ceil_div((k->live - 1) * k->weight + 1, inner);
    if (reach > k->outermost.live)
        reach = k->outermost.live;
    int64_t live = ceil_div(reach * inner, k->weight);
    bool changed = reach != k->outermost.extent || live < k->live;
    if (live < k->live)
        k->live = live;
    k->outermost.extent = k->outermost.live = reach;
    if (reach == 1 && k->count > 1) {
        k->f++, k->count--;
        k->outermost = k->f[0];
        return true;
    }
    return changed;
}

/* Takes the step w into E: factors that it jumps over go, and one that it divides is divided. */
static void composite_step(mapping_context *c, composite *k)
{
    size_t count = k->count;
    while (count > 1 && k->weight % k->f[count - 1].extent == 0)
        k->weight /= k->f[--count].extent;
    factor last = k->f[count - 1];
    bool divides = count > 1 && k->weight > 1 && last.extent % k->weight == 0;
    if (count == k->count && !divides)
        return;
    factor_list e;
    list_init(&e, c);
    list_push(&e, k->outermost);
    if (count > 1)
        list_append_all(&e, k->f + 1, count - 2);
    if (divides) {
        last.weight *= k->weight;
        last.live = ceil_div(last.live, k->weight);
        last.extent /= k->weight;
        k->weight = 1;
    }
    if (count > 1)
        list_push(&e, last);
    k->f = list_keep(&e);
    k->count = e.count;
    k->outermost = e.items[0];
}

static const mapping *composite_intern(mapping_context *c, const composite *k)
{
    factor *f = ARENA_ARRAY(c->arena, factor, k->count);
    memcpy(f, k->f, k->count * sizeof *f);
    f[0] = k->outermost;
    return intern(c, f, k->count);
}

/* Says the whole of E with `live` of its first positions, padded to `extent`, in digits. False: not possible. */
static bool composite_dissolve(factor_list *l, const composite *k)
{
    int64_t inner = composite_inner_size(k);
    if (k->weight != 1 || k->live % inner != 0 || k->extent % inner != 0)
        return false;
    factor f = k->outermost;
    f.live = f.live < k->live / inner ? f.live : k->live / inner;
    f.extent = k->extent / inner;
    f.pad = k->pad;
    list_push(l, f);
    list_append_all(l, k->f + 1, k->count - 1);
    return true;
}

static void list_push_composite(factor_list *l, composite k)
{
    k.outermost = k.f[0];
    do
        composite_step(l->context, &k);
    while (composite_trim(&k));
    if (k.outermost.kind == FACTOR_COMPOSITE) { /* one composite is enough where its own end is not reached */
        factor_list e;
        list_init(&e, l->context);
        if (k.outermost.weight == 1 && k.outermost.live == k.outermost.extent)
            list_append_all(&e, k.outermost.inner->factors, k.outermost.inner->count);
        else
            list_push(&e, k.outermost); /* trimmed, it may say less in more digits */
        list_append_all(&e, k.f + 1, k.count - 1);
        if (e.count != k.count || !factor_equal(&e.items[0], &k.outermost)) {
            k.f = list_keep(&e);
            k.count = e.count;
            list_push_composite(l, k);
            return;
        }
    }
    if (k.count == 1) { /* a single digit after all */
        factor f = k.outermost;
        f.weight *= k.weight;
        f.live = k.live < ceil_div(f.live, k.weight) ? k.live : ceil_div(f.live, k.weight);
        f.extent = k.extent;
        f.pad = k.pad;
        list_push(l, f);
        return;
    }
    if (composite_dissolve(l, &k))
        return;
    size_t beside = k.count; /* factors beside .. count-1 stand beside the composite */
    if (k.weight == 1)
        while (beside > 1 && k.live % k.f[beside - 1].extent == 0 && k.extent % k.f[beside - 1].extent == 0) {
            beside--;
            k.live /= k.f[beside].extent;
            k.extent /= k.f[beside].extent;
        }
    const factor *rest = k.f + beside;
    size_t rest_count = k.count - beside;
    k.count = beside;
    factor f = {.kind = FACTOR_COMPOSITE, .pad = k.live < k.extent ? k.pad : PAD_TOP,
                .inner = composite_intern(l->context, &k), .weight = k.weight, .live = k.live, .extent = k.extent};
    list_append(l, f);
    list_append_all(l, rest, rest_count);
}

/* Appends any factor; a composite whose range has changed is reduced again. */
static void list_push(factor_list *l, factor f)
{
    if (f.kind == FACTOR_COMPOSITE && f.live > 1)
        list_push_composite(l, (composite){.f = f.inner->factors, .count = f.inner->count, .weight = f.weight,
                                           .live = f.live, .extent = f.extent, .pad = f.pad});
    else if (f.kind == FACTOR_COMPOSITE)
        list_append(l, (factor){.kind = FACTOR_BROADCAST, .pad = f.pad, .live = 1, .extent = f.extent});
    else
        list_append(l, f);
}

static const mapping *list_finish(const factor_list *l)
{
    return intern(l->context, l->items, l->count);
}

/* ---- constructors ---- */

const mapping *mapping_identity(mapping_context *c)
{
    return intern(c, NULL, 0);
}

const mapping *mapping_symbol(mapping_context *c, const axis *a)
{
    factor_list l;
    list_init(&l, c);
    list_push(&l, (factor){.kind = FACTOR_AXIS, .axis = a, .weight = 1, .live = a->size, .extent = a->size});
    return list_finish(&l);
}

mapping_status mapping_broadcast(mapping_context *c, int64_t n, const mapping **out)
{
    if (n <= 0)
        return MAPPING_ZERO;
    if (n > MAPPING_MAX_SIZE)
        return MAPPING_TOO_LARGE;
    factor_list l;
    list_init(&l, c);
    if (n > 1)
        list_push(&l, (factor){.kind = FACTOR_BROADCAST, .live = n, .extent = n});
    *out = list_finish(&l);
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
    list_init(&l, c);
    list_append_all(&l, outer->factors, outer->count);
    list_append_all(&l, inner->factors, inner->count);
    *out = list_finish(&l);
    return MAPPING_OK;
}

mapping_status mapping_concat(mapping_context *c, const mapping *const *parts, size_t count, const mapping **out)
{
    int64_t size = 1;
    factor_list l;
    list_init(&l, c);
    for (size_t i = 0; i < count; i++) {
        if (__builtin_mul_overflow(size, parts[i]->size, &size) || size > MAPPING_MAX_SIZE)
            return MAPPING_TOO_LARGE;
        list_append_all(&l, parts[i]->factors, parts[i]->count);
    }
    *out = list_finish(&l);
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
    list_init(&l, c);
    if (kept == 0 || n == 1) {
        list_append_all(&l, m->factors, kept);
    } else if (m->factors[kept - 1].extent % n == 0) {
        list_append_all(&l, m->factors, kept - 1);
        factor f = m->factors[kept - 1];
        f.weight *= n;
        f.live = ceil_div(f.live, n);
        f.extent /= n;
        list_push(&l, f);
    } else {
        int64_t extent = factors_size(m->factors, kept) / n;
        list_push_composite(&l, (composite){.f = m->factors, .count = kept, .weight = n, .live = extent, .extent = extent});
    }
    *out = list_finish(&l);
    return MAPPING_OK;
}

/* The first n positions, 0 < n <= SIZE: `% n` and `= n` are this one function. */
static const mapping *mapping_take(mapping_context *c, const mapping *m, int64_t n)
{
    size_t kept = m->count; /* factors kept .. count-1 are whole */
    while (kept > 0 && n % m->factors[kept - 1].extent == 0)
        n /= m->factors[--kept].extent;
    factor_list l;
    list_init(&l, c);
    if (n > 1 && n < m->factors[kept - 1].extent) {
        factor f = m->factors[--kept];
        f.extent = n;
        f.live = f.live < n ? f.live : n;
        list_push(&l, f);
        kept++;
    } else if (n > 1) {
        list_push_composite(&l, (composite){.f = m->factors, .count = kept, .weight = 1, .live = n, .extent = n});
    }
    list_append_all(&l, m->factors + kept, m->count - kept);
    return list_finish(&l);
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
    list_init(&l, c);
    if (n == m->size) {
        *out = m;
        return MAPPING_OK;
    }
    if (n % m->size == 0) { /* a hole outside: merges, or stays where the kinds differ */
        list_push(&l, (factor){.kind = FACTOR_BROADCAST, .pad = kind, .live = 1, .extent = n / m->size});
        list_append_all(&l, m->factors, m->count);
    } else {
        const factor *f = &m->factors[0];
        int64_t inner = m->size / f->extent;
        if (n % inner == 0 && (f->live == f->extent || f->pad == kind)) {
            factor g = *f;
            g.extent = n / inner;
            g.pad = kind;
            list_push(&l, g);
            list_append_all(&l, m->factors + 1, m->count - 1);
        } else {
            list_push_composite(&l, (composite){.f = m->factors, .count = m->count, .weight = 1, .live = m->size,
                                                .extent = n, .pad = kind});
        }
    }
    *out = list_finish(&l);
    return MAPPING_OK;
}

/* ---- sliding windows ---- */

/* Every product is below 2^63: a digit ends less than its weight behind its axis. */
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
            bool inside = (n.extent - 1) * n.weight < n.of->size; /* `R # 16 / 4` beside `R # 16 % 4` is not */
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

static bool window_terms_equal(const axis *a, const window_list *l)
{
    if (a->term_count != l->count)
        return false;
    for (uint32_t i = 0; i < l->count; i++) {
        const window_term *t = &a->terms[i], *n = &l->items[i];
        if (t->of != n->of || t->weight != n->weight || t->extent != n->extent || t->stride != n->stride)
            return false;
    }
    return true;
}

static const axis *window_axis(mapping_context *c, const window_list *l, window_hold h)
{
    for (size_t i = 0; i < c->axis_count; i++) {
        const axis *x = c->axes[i];
        if (x->term_count > 0 && window_terms_equal(x, l) && x->first == h.from && x->size == h.to - h.from)
            return x;
    }
    axis *a = ARENA_NEW(c->arena, axis);
    window_term *terms = ARENA_ARRAY(c->arena, window_term, l->count);
    memcpy(terms, l->items, l->count * sizeof *terms);
    *a = (axis){window_name(c, l, h), h.to - h.from, (uint32_t)c->axis_count, l->count, terms, h.from, h.to - h.from < h.places};
    ARENA_PUSH(c->arena, c->axes, c->axis_count, c->axis_capacity, a);
    return a;
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

mapping_status mapping_window_held(mapping_context *c, const window_part *parts, size_t count, int64_t from, int64_t to, const mapping **out)
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
    list_init(&all, c);
    for (uint32_t i = 0; i < l.count; i++)
        list_push(&all, window_digit(&l.items[i]));
    *out = list_finish(&all);
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

mapping_status mapping_split(mapping_context *c, const mapping *m, int64_t n, const mapping **outer,
                             const mapping **inner)
{
    mapping_status status = mapping_stride(c, m, n, outer);
    return status == MAPPING_OK ? mapping_modulo(c, m, n, inner) : status;
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
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
    list_init(&l, c);
    list_append_all(&l, e, at);
    list_push(&l, high);
    const factor *kept = list_keep(&l);
    factor_list parts;
    list_init(&parts, c);
    if (l.count > 0)
        list_push_composite(&parts, (composite){.f = kept, .count = l.count, .weight = 1, .live = f->live / n, .extent = f->extent / n, .pad = f->pad});
    *outer = list_finish(&parts);
    list_init(&l, c);
    list_push(&l, low);
    list_append_all(&l, e + at + 1, count - at - 1);
    kept = list_keep(&l);
    list_init(&parts, c);
    list_push_composite(&parts, (composite){.f = kept, .count = l.count, .weight = f->weight, .live = n, .extent = n});
    *inner = list_finish(&parts);
    return (*outer)->size == f->extent / n && (*inner)->size == n;
}

bool mapping_divide_group(mapping_context *c, const factor *f, const mapping **outer, const mapping **inner)
{
    for (size_t at = f->inner->count; at-- > 0;)
        if (divide_group_at(c, f, at, outer, inner))
            return true;
    return false;
}

const mapping *mapping_strip_padding(mapping_context *c, const mapping *m)
{
    if (m->count == 0 || m->factors[0].live == m->factors[0].extent)
        return m;
    factor_list l;
    list_init(&l, c);
    factor f = m->factors[0];
    f.extent = f.live;
    list_push(&l, f);
    list_append_all(&l, m->factors + 1, m->count - 1);
    return mapping_strip_padding(c, list_finish(&l));
}

const mapping *mapping_of_factor(mapping_context *c, const factor *f)
{
    factor_list l;
    list_init(&l, c);
    list_push(&l, *f);
    return list_finish(&l);
}

bool mapping_mentions(const mapping *m, const axis *a)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->factors[i].axis == a || (m->factors[i].inner && mapping_mentions(m->factors[i].inner, a)))
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
        if (m->factors[i].live < m->factors[i].extent ||
            (m->factors[i].inner && !mapping_is_full(m->factors[i].inner)))
            return false;
    return axis_count < 64;
}

static bool has_composite(const mapping *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->factors[i].kind == FACTOR_COMPOSITE)
            return true;
    return false;
}

bool mapping_equal(mapping_context *c, const mapping *a, const mapping *b)
{
    if (a == b || a->size != b->size || a->size > MAPPING_ENUMERATION_LIMIT || !(has_composite(a) || has_composite(b)))
        return a == b;
    int64_t *x = ARENA_ARRAY(c->arena, int64_t, 2 * c->axis_count), *y = x + c->axis_count;
    for (int64_t i = 0; i < a->size; i++) {
        memset(x, 0, 2 * c->axis_count * sizeof *x);
        bool live = mapping_map(a, i, x);
        if (mapping_map(b, i, y) != live || (live && memcmp(x, y, c->axis_count * sizeof *x) != 0))
            return false;
    }
    return true;
}

uint32_t mapping_axes(const mapping *m, const axis **out, uint32_t capacity)
{
    uint32_t count = 0;
    const axis *seen[64];
    uint32_t limit = capacity < 64 ? capacity : 64;
    for (size_t i = 0; i < m->count; i++) {
        const axis *sub[64];
        uint32_t found = 1;
        sub[0] = m->factors[i].axis;
        if (m->factors[i].inner)
            found = mapping_axes(m->factors[i].inner, sub, 64);
        for (uint32_t j = 0; j < found; j++) {
            bool known = sub[j] == NULL;
            for (uint32_t k = 0; k < count && !known; k++)
                known = seen[k] == sub[j];
            if (!known && count < limit) {
                seen[count] = sub[j];
                out[count++] = sub[j];
            }
        }
    }
    return count;
}

/* ---- expressions ---- */

typedef struct step_list {
    arena *arena;
    mapping_step *items;
    size_t count, capacity;
} step_list;

static void push_step(step_list *l, char op, int64_t n)
{
    mapping_step s = {.op = op, .n = n};
    ARENA_PUSH(l->arena, l->items, l->count, l->capacity, s);
}

static void push_pad(step_list *l, int64_t n, pad_kind kind)
{
    mapping_step s = {.op = '#', .n = n, .pad = kind};
    ARENA_PUSH(l->arena, l->items, l->count, l->capacity, s);
}

/* What makes the digit f of something of `size` positions that has just been pushed, in the shortest form. */
static void digit_steps(step_list *l, int64_t size, const factor *f)
{
    int64_t have = ceil_div(size, f->weight); /* positions after the division */
    bool cut = f->live < have;
    if (f->weight > 1 && size % f->weight == 0) {
        push_step(l, '/', f->weight);
    } else if (f->weight > 1 && cut) { /* cut first: what is left is divisible */
        push_step(l, '=', f->live * f->weight);
        push_step(l, '/', f->weight);
        have = f->live;
        cut = false;
    } else if (f->weight > 1) { /* pad first, to the final extent where that is the same */
        if (f->pad == PAD_TOP && f->extent <= MAPPING_MAX_SIZE / f->weight)
            have = f->extent;
        push_pad(l, have * f->weight, PAD_TOP);
        push_step(l, '/', f->weight);
    }
    if (cut) {
        push_step(l, have % f->live == 0 ? '%' : '=', f->live);
        have = f->live;
    }
    if (have < f->extent)
        push_pad(l, f->extent, f->pad);
}

/* An axis digit, a hole or a broadcast. */
static void simple_steps(step_list *l, const factor *f)
{
    if (f->kind == FACTOR_AXIS) {
        mapping_step s = {.op = 'A', .axis = f->axis};
        ARENA_PUSH(l->arena, l->items, l->count, l->capacity, s);
        digit_steps(l, f->axis->size, f);
        return;
    }
    push_step(l, '1', f->live);
    if (f->live < f->extent)
        push_pad(l, f->extent, f->pad);
}

static void mapping_steps(step_list *l, const mapping *m)
{
    if (m->count == 0)
        push_step(l, '1', 1);
    for (size_t i = 0; i < m->count; i++) {
        const factor *f = &m->factors[i];
        if (f->kind == FACTOR_COMPOSITE) {
            mapping_steps(l, f->inner);
            digit_steps(l, f->inner->size, f);
        } else {
            simple_steps(l, f);
        }
        if (i > 0)
            push_step(l, ',', 0);
    }
}

size_t mapping_postfix(const mapping *m, arena *a, const mapping_step **out)
{
    step_list l = {.arena = a};
    mapping_steps(&l, m);
    *out = l.items;
    return l.count;
}

static void print_step(const mapping_step *s, strbuf *out)
{
    static const char *const pads[] = {" #", " #{0}", " #{!}"};
    if (s->op == 'A')
        strbuf_puts(out, s->axis->name);
    else if (s->op == '1')
        strbuf_printf(out, "%lld", (long long)s->n);
    else if (s->op == '#')
        strbuf_printf(out, "%s %lld", pads[s->pad], (long long)s->n);
    else
        strbuf_printf(out, " %c %lld", s->op, (long long)s->n);
}

void mapping_print_factor(const factor *f, strbuf *out)
{
    step_list l = {.arena = out->arena};
    if (f->kind == FACTOR_COMPOSITE) {
        strbuf_puts(out, "[");
        mapping_print(f->inner, out);
        strbuf_puts(out, "]");
        digit_steps(&l, f->inner->size, f);
    } else {
        simple_steps(&l, f);
    }
    for (size_t k = 0; k < l.count; k++)
        print_step(&l.items[k], out);
}

void mapping_print(const mapping *m, strbuf *out)
{
    if (m->count == 0)
        strbuf_puts(out, "1");
    for (size_t i = 0; i < m->count; i++) {
        strbuf_puts(out, i > 0 ? ", " : "");
        mapping_print_factor(&m->factors[i], out);
    }
}

const char *mapping_text(const mapping *m, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    mapping_print(m, &s);
    return s.text;
}
