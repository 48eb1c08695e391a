#include "codegen/hazard.h"

#include <string.h>

enum { CONTEXTS = CONTEXT_DMA + 1, FIRST_BUCKETS = 8 };

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
    size_t done;         /* of its latest access, commands */
    struct region *next; /* of its bucket */
} region;

/* What a context did to a memory. */
typedef struct history {
    region **items;
    size_t count, capacity;
    region **buckets; /* items by their range */
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

static size_t bucket_of(const history *h, const memory_access *x)
{
    uint64_t key = (uint64_t)x->begin * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)x->end * UINT64_C(0xc2b2ae3d27d4eb4f) ^ x->write;
    return (size_t)(key >> 32) & (h->bucket_count - 1);
}

static void put(history *h, region *r)
{
    region **bucket = &h->buckets[bucket_of(h, &r->access)];
    r->next = *bucket;
    *bucket = r;
}

static void grow(history *h, arena *a)
{
    h->bucket_count = h->bucket_count ? 2 * h->bucket_count : FIRST_BUCKETS;
    h->buckets = ARENA_ARRAY(a, region *, h->bucket_count);
    for (size_t i = 0; i < h->count; i++)
        put(h, h->items[i]);
}

void hazard_log_add(hazard_log *l, context c, const memory_access *x, size_t done)
{
    history *h = &l->of[c][places[x->kind]];
    if (h->count >= h->bucket_count)
        grow(h, l->arena);
    for (region *r = h->buckets[bucket_of(h, x)]; r; r = r->next)
        if (r->access.begin == x->begin && r->access.end == x->end && r->access.write == x->write) {
            r->done = done;
            return;
        }
    region *r = ARENA_NEW(l->arena, region);
    *r = (region){*x, done, NULL};
    ARENA_PUSH(l->arena, h->items, h->count, h->capacity, r);
    put(h, r);
}

size_t hazard_log_before(const hazard_log *l, context c, const memory_access *accesses, size_t count)
{
    size_t needed = 0;
    for (size_t i = 0; i < count; i++) {
        const memory_access *x = &accesses[i];
        const history *h = &l->of[c][places[x->kind]];
        for (size_t k = 0; k < h->count; k++) {
            const region *r = h->items[k];
            bool meet = x->begin < r->access.end && r->access.begin < x->end && (x->write || r->access.write);
            if (meet && r->done > needed)
                needed = r->done;
        }
    }
    return needed;
}
