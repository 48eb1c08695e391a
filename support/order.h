/* Orders, as qsort asks for them. The one idea: an order is a sign, and of several the first that is not 0 decides; what is equal in all of
 * them stays as it was, so that an answer never depends on whose C library sorts. */
#ifndef VISA_SUPPORT_ORDER_H
#define VISA_SUPPORT_ORDER_H

#include <stddef.h>
#include <stdint.h>

/* Ascending; ORDER(b, a) is descending. Each is evaluated twice. */
#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

static inline int order_then(int first, int then)
{
    return first ? first : then;
}

/* By halves: in *first the place of the first of `count` for which is_before, an expression of `place`, does not hold; it holds for all in
 * front of that one. `count`: it holds for all. */
#define ORDER_FIRST(first, count, place, is_before) \
    do { \
        size_t order_end = (count); \
        *(first) = 0; \
        while (*(first) < order_end) { \
            size_t place = *(first) + (order_end - *(first)) / 2; \
            if (is_before) \
                *(first) = place + 1; \
            else \
                order_end = place; \
        } \
    } while (0)

typedef int order_of(const void *a, const void *b);

/* `count` items of `bytes` each, ascending; equal ones keep their order. Of none `items` may be NULL. */
void order_sort(void *items, size_t count, size_t bytes, order_of *compare);

/* Puts an item among those that are in order, behind its equals. Of more than `most` the last one is dropped; *count of them stay. */
void order_keep(void *items, size_t *count, size_t most, size_t bytes, const void *item, order_of *compare);

/* Of int64_t, ascending. */
static inline int order_numbers(const void *a, const void *b)
{
    return ORDER(*(const int64_t *)a, *(const int64_t *)b);
}

#endif
