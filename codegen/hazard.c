#include "codegen/hazard.h"

#include <string.h>

enum { CONTEXTS = CONTEXT_DMA + 1, FEW = 8, FIRST_BUCKETS = 32 };

/* The number of each memory. */
enum {
#define MEMORY(symbol) PLACE_OF_##symbol,
#include "ir/tensor.def"
};
static const unsigned char places[TENSOR_KIND_COUNT] = {
#define MEMORY(symbol) [symbol] = PLACE_OF_##symbol,
#include "ir/tensor.def"
};

typedef struct region {
    memory_access access;
    size_t done; /* of its latest access, commands */
    size_t next; /* of its bucket: number + 1; 0: the last one */
} region;

/* What a context did to a memory. */
typedef struct history {
    region *items;
    size_t count, capacity;
    size_t *buckets; /* of items by their range, number + 1; NULL: they are few enough to look at all */
    size_t bucket_count;
} history;

struct hazard_log {
    arena *arena;
    history of[CONTEXTS][TENSOR_MEMORY_COUNT];
};

hazard_log *hazard_log_new(arena *a)
{
    hazard_log *l = ARENA_NEW(a, hazard_log);
    l->arena = a;
    return l;
}

static size_t *bucket_of(const history *h, const memory_access *x)
{
    uint64_t key = (uint64_t)x->begin * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)x->end * UINT64_C(0xc2b2ae3d27d4eb4f) ^ x->write;
    return &h->buckets[(size_t)(key >> 32) & (h->bucket_count - 1)];
}

static void put(history *h, size_t number)
{
    size_t *bucket = bucket_of(h, &h->items[number].access);
    h->items[number].next = *bucket;
    *bucket = number + 1;
}

static void grow(history *h, arena *a)
{
    h->bucket_count = h->bucket_count ? 2 * h->bucket_count : FIRST_BUCKETS;
    h->buckets = ARENA_ARRAY(a, size_t, h->bucket_count);
    for (size_t i = 0; i < h->count; i++)
        put(h, i);
}

static bool same_range(const memory_access *x, const memory_access *y)
{
    return x->begin == y->begin && x->end == y->end && x->write == y->write;
}

/* NULL: the context has not done that yet. */
static region *find(const history *h, const memory_access *x)
{
    for (size_t i = 0; !h->buckets && i < h->count; i++)
        if (same_range(&h->items[i].access, x))
            return &h->items[i];
    for (size_t next = h->buckets ? *bucket_of(h, x) : 0; next > 0; next = h->items[next - 1].next)
        if (same_range(&h->items[next - 1].access, x))
            return &h->items[next - 1];
    return NULL;
}

void hazard_log_add(hazard_log *l, context c, const memory_access *x, size_t done)
{
    history *h = &l->of[c][places[x->kind]];
    region *known = find(h, x);
    if (known) {
        known->done = done;
        return;
    }
    region made = {*x, done, 0};
    ARENA_PUSH(l->arena, h->items, h->count, h->capacity, made);
    if (h->count > FEW && h->count > h->bucket_count)
        grow(h, l->arena);
    else if (h->buckets)
        put(h, h->count - 1);
}

size_t hazard_log_before(const hazard_log *l, context c, const memory_access *accesses, size_t count)
{
    size_t needed = 0;
    for (size_t i = 0; i < count; i++) {
        const memory_access *x = &accesses[i];
        const history *h = &l->of[c][places[x->kind]];
        for (size_t k = 0; k < h->count; k++) {
            const region *r = &h->items[k];
            bool meet = x->begin < r->access.end && r->access.begin < x->end && (x->write || r->access.write);
            if (meet && r->done > needed)
                needed = r->done;
        }
    }
    return needed;
}
