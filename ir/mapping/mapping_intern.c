/* Axes and mappings of one compilation: what has the same factors is the same object, so that equality of meaning is equality of pointers.
 */
#include <assert.h>
#include <string.h>

#include "ir/mapping/mapping_parts.h"
#include "support/budget.h"

struct interned {
    struct interned *next;  /* in its bucket */
    struct interned *older; /* the one that came before, whatever its bucket */
    uint64_t hash;
    const mapping *mapping; /* NULL: an axis */
    const axis *axis;
};

mapping_context *mapping_context_new(arena *a)
{
    mapping_context *c = ARENA_NEW(a, mapping_context);
    c->arena = a;
    c->buckets = c->first;
    c->bucket_count = FIRST_BUCKETS;
    return c;
}

mapping_mark mapping_context_mark(mapping_context *c)
{
    return (mapping_mark){arena_mark_here(c->arena), c->latest, c->buckets, c->bucket_count, c->axis_count};
}

static void forget(mapping_context *c, struct interned *entry)
{
    struct interned **at = &c->buckets[entry->hash & (c->bucket_count - 1)];
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    c->latest = entry->older;
    c->interned_count--;
}

static void bucket_insert(mapping_context *c, struct interned *entry)
{
    struct interned **bucket = &c->buckets[entry->hash & (c->bucket_count - 1)];
    entry->next = *bucket;
    *bucket = entry;
}

/* The table that was in use at the mark, with what stays. */
static void restore_table(mapping_context *c, const mapping_mark *mark)
{
    c->buckets = mark->buckets;
    c->bucket_count = mark->bucket_count;
    memset(c->buckets, 0, c->bucket_count * sizeof *c->buckets);
    c->latest = mark->latest;
    c->interned_count = 0;
    for (struct interned *i = c->latest; i; i = i->older, c->interned_count++)
        bucket_insert(c, i);
}

void mapping_context_rewind(mapping_context *c, mapping_mark mark)
{
    if (c->buckets != mark.buckets)
        restore_table(c, &mark);
    while (c->latest != mark.latest)
        forget(c, c->latest);
    arena_rewind(c->arena, mark.arena);
    c->axis_count = mark.axis_count;
}

arena *mapping_context_arena(mapping_context *c)
{
    return c->arena;
}

static uint64_t hash_mix(uint64_t h, uint64_t value)
{
    h ^= value;
    h *= 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

/* The products of a factor wait for none of the others. */
static uint64_t factors_hash(const factor *f, size_t count)
{
    uint64_t h = count;
    for (size_t i = 0; i < count; i++)
        h = hash_mix(h, ((uint64_t)f[i].kind << 8 | (uint64_t)f[i].pad) + (uint64_t)(uintptr_t)f[i].axis * 0xc2b2ae3d27d4eb4fu +
                            (uint64_t)(uintptr_t)f[i].inner * 0xff51afd7ed558ccdu + (uint64_t)f[i].weight * 0x9fb21c651e98df25u +
                            (uint64_t)f[i].live * 0xd6e8feb86659fd93u + (uint64_t)f[i].extent * 0xa0761d6478bd642fu);
    return h;
}

bool factor_equal(const factor *a, const factor *b)
{
    return a->kind == b->kind && a->pad == b->pad && a->axis == b->axis && a->inner == b->inner && a->weight == b->weight &&
           a->live == b->live && a->extent == b->extent;
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
    c->buckets = grown;
    c->bucket_count = count;
    for (struct interned *i = c->latest; i; i = i->older)
        bucket_insert(c, i);
}

static struct interned *bucket_of(const mapping_context *c, uint64_t hash)
{
    return c->buckets[hash & (c->bucket_count - 1)];
}

static void add_entry(mapping_context *c, struct interned *entry, struct interned what)
{
    *entry = what;
    entry->older = c->latest;
    bucket_insert(c, entry);
    c->latest = entry;
    c->interned_count++;
}

const mapping *mapping_intern(mapping_context *c, const factor *f, size_t count)
{
    if (c->interned_count == c->bucket_count)
        buckets_grow(c);
    uint64_t hash = factors_hash(f, count);
    for (struct interned *i = bucket_of(c, hash); i; i = i->next)
        if (i->hash == hash && i->mapping && i->mapping->count == count && factors_equal(i->mapping->factors, f, count))
            return i->mapping;
    struct interned *entry = arena_alloc(c->arena, sizeof *entry + sizeof(mapping) + count * sizeof *f);
    mapping *m = (mapping *)(entry + 1);
    m->size = 1;
    m->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        m->factors[i] = f[i];
        m->size *= f[i].extent;
        const mapping *inner = f[i].inner;
        if (inner)
            budget_hold(&m->depth, &m->parts, inner->depth, inner->parts);
    }
    if (m->depth > 0)
        budget_nested(c->arena, m->depth, m->parts);
    add_entry(c, entry, (struct interned){.hash = hash, .mapping = m});
    return m;
}

/* ---- axes ---- */

static uint64_t axis_hash(const axis *a)
{
    uint64_t h = hash_mix((uint64_t)a->size, (uint64_t)a->first);
    for (const char *p = a->term_count ? "" : a->name; *p; p++)
        h = hash_mix(h, (unsigned char)*p);
    for (uint32_t i = 0; i < a->term_count; i++) {
        h = hash_mix(h, (uint64_t)(uintptr_t)a->terms[i].of);
        h = hash_mix(h, (uint64_t)a->terms[i].weight);
        h = hash_mix(h, (uint64_t)a->terms[i].extent);
        h = hash_mix(h, (uint64_t)a->terms[i].stride);
    }
    return h;
}

static bool window_term_equal(const window_term *t, const window_term *u)
{
    return t->of == u->of && t->weight == u->weight && t->extent == u->extent && t->stride == u->stride;
}

/* Windows are the same by their terms, other axes by their names. */
static bool axis_equal(const axis *a, const axis *b)
{
    bool equal = a->size == b->size && a->first == b->first && a->term_count == b->term_count;
    for (uint32_t i = 0; i < a->term_count && equal; i++)
        equal = window_term_equal(&a->terms[i], &b->terms[i]);
    return equal && (a->term_count > 0 || strcmp(a->name, b->name) == 0);
}

const axis *axis_find(const mapping_context *c, const axis *like)
{
    uint64_t hash = axis_hash(like);
    for (struct interned *i = bucket_of(c, hash); i; i = i->next)
        if (i->hash == hash && i->axis && axis_equal(i->axis, like))
            return i->axis;
    return NULL;
}

const axis *axis_add(mapping_context *c, axis a)
{
    if (c->interned_count == c->bucket_count)
        buckets_grow(c);
    axis *kept = ARENA_NEW(c->arena, axis);
    *kept = a;
    kept->number = (uint32_t)c->axis_count++;
    add_entry(c, ARENA_NEW(c->arena, struct interned), (struct interned){.hash = axis_hash(kept), .axis = kept});
    return kept;
}

const axis *mapping_axis(mapping_context *c, const char *name, int64_t size)
{
    assert(size >= 1);
    axis a = {.name = name, .size = size};
    const axis *known = axis_find(c, &a);
    a.name = known ? name : arena_strdup(c->arena, name);
    return known ? known : axis_add(c, a);
}
