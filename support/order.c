#include "support/order.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { RUN = 8 }; /* so few are put in order where they are */
enum { NEAR_BYTES = 1024 };

static void exchange(unsigned char *a, unsigned char *b, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        unsigned char kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

/* Each goes forward past those that come after it. */
static void insert_all(unsigned char *items, size_t count, size_t bytes, order_of *compare)
{
    for (size_t i = 1; i < count; i++)
        for (unsigned char *at = items + i * bytes; at > items && compare(at - bytes, at) > 0; at -= bytes)
            exchange(at - bytes, at, bytes);
}

/* Two neighbours in order, of `first` and `second` items, as one in order: of equal ones those of the first come first. */
static void merge(unsigned char *to, const unsigned char *from, size_t first, size_t second, size_t bytes, order_of *compare)
{
    const unsigned char *a = from, *middle = from + first * bytes, *b = middle, *end = middle + second * bytes;
    for (; a < middle || b < end; to += bytes) {
        bool takes_first = b == end || (a < middle && compare(a, b) <= 0);
        memcpy(to, takes_first ? a : b, bytes);
        *(takes_first ? &a : &b) += bytes;
    }
}

/* How many of a run of so many there are from `at` on. */
static size_t run_at(size_t at, size_t run, size_t count)
{
    return count - at < run ? count - at : run;
}

void order_sort(void *items, size_t count, size_t bytes, order_of *compare)
{
    alignas(max_align_t) unsigned char near[NEAR_BYTES];
    unsigned char *far = count > RUN && count > NEAR_BYTES / bytes ? malloc(count * bytes) : NULL;
    unsigned char *room = count <= RUN ? NULL : count <= NEAR_BYTES / bytes ? near : far, *from = items, *to = room;
    size_t run = room ? RUN : count; /* without room slowly */
    for (size_t at = 0; at < count; at += run)
        insert_all(from + at * bytes, run_at(at, run, count), bytes, compare);
    for (; run < count; run *= 2) {
        for (size_t at = 0; at < count; at += 2 * run) {
            size_t first = run_at(at, run, count), second = run_at(at + first, run, count);
            merge(to + at * bytes, from + at * bytes, first, second, bytes, compare);
        }
        unsigned char *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != items)
        memcpy(items, from, count * bytes);
    free(far);
}

void order_keep(void *items, size_t *count, size_t most, size_t bytes, const void *item, order_of *compare)
{
    unsigned char *all = items;
    size_t at = *count;
    while (at > 0 && compare(all + (at - 1) * bytes, item) > 0)
        at--;
    if (at == most)
        return;
    *count -= *count == most;
    memmove(all + (at + 1) * bytes, all + at * bytes, (*count - at) * bytes);
    memcpy(all + at * bytes, item, bytes);
    ++*count;
}
