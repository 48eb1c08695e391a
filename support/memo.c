#include "support/memo.h"

#include <string.h>

enum { FIRST_PLACES = 64 };

typedef struct memo_item {
    uint64_t hash;
    const int64_t *key;
    size_t count;
    void *answer;
} memo_item;

struct memo {
    arena *arena;
    size_t bytes;      /* of an answer */
    memo_item *places; /* by hash, a power of two of them, at most half of them taken */
    size_t place_count, taken;
};

memo *memo_new(arena *a, size_t bytes)
{
    memo *m = ARENA_NEW(a, memo);
    *m = (memo){a, bytes, ARENA_ARRAY(a, memo_item, FIRST_PLACES), FIRST_PLACES, 0};
    return m;
}

static uint64_t hash_of(const int64_t *key, size_t count)
{
    uint64_t hash = count;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ (uint64_t)key[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash;
}

/* Where it is, or the place that is free for it. */
static memo_item *place_of(const memo *m, uint64_t hash, const int64_t *key, size_t count)
{
    for (size_t at = hash & (m->place_count - 1);; at = (at + 1) & (m->place_count - 1)) {
        memo_item *i = &m->places[at];
        if (!i->answer || (i->hash == hash && i->count == count && memcmp(i->key, key, count * sizeof *key) == 0))
            return i;
    }
}

static void grow(memo *m)
{
    const memo_item *old = m->places;
    size_t count = m->place_count;
    m->place_count = 2 * count;
    m->places = ARENA_ARRAY(m->arena, memo_item, m->place_count);
    for (size_t i = 0; i < count; i++)
        if (old[i].answer)
            *place_of(m, old[i].hash, old[i].key, old[i].count) = old[i];
}

size_t memo_count(const memo *m)
{
    return m->taken;
}

void *memo_find(memo *m, const int64_t *key, size_t count, bool *is_new)
{
    uint64_t hash = hash_of(key, count);
    memo_item *found = place_of(m, hash, key, count);
    *is_new = !found->answer;
    if (found->answer)
        return found->answer;
    int64_t *own = ARENA_ARRAY(m->arena, int64_t, count);
    memcpy(own, key, count * sizeof *key);
    void *answer = arena_array(m->arena, 1, m->bytes);
    *found = (memo_item){hash, own, count, answer};
    if (2 * ++m->taken > m->place_count)
        grow(m);
    return answer;
}
