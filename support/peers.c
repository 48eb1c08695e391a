#include "support/peers.h"

#include <stdlib.h>
#include <string.h>

static bool is_alone(const peers *p)
{
    return !p->gather || p->parts <= 1;
}

size_t peers_size(const peers *p)
{
    return is_alone(p) ? 1 : (size_t)p->parts;
}

bool peers_has_piece(const peers *p, size_t count, size_t *piece)
{
    *piece = is_alone(p) ? 0 : (size_t)p->part;
    return *piece < count;
}

bool peers_share(const peers *p, unsigned char **bytes, size_t *size)
{
    return is_alone(p) || p->share(bytes, size);
}

bool peers_exchange(const peers *p, const int64_t *mine, size_t count, arena *a, const int64_t **all, size_t *all_count)
{
    if (is_alone(p)) {
        *all = mine;
        *all_count = count;
        return true;
    }
    int64_t *gathered = NULL; /* in the first process only, which hands them on */
    size_t *counts = NULL, ranks = 0, bytes = 0;
    bool good = p->gather(p->user, mine, count, &gathered, &counts, &ranks);
    for (size_t i = 0; i < ranks && good; i++)
        bytes += counts[i] * sizeof *gathered;
    unsigned char *shared = (unsigned char *)gathered;
    good = p->share(&shared, &bytes) && good;
    int64_t *numbers = ARENA_ARRAY(a, int64_t, bytes / sizeof(int64_t) + 1); /* those that came need not lie as numbers do */
    if (shared && bytes > 0)
        memcpy(numbers, shared, bytes);
    *all = numbers;
    *all_count = bytes / sizeof *numbers;
    free(shared);
    free(counts);
    return good;
}
