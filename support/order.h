/* Orders, as qsort asks for them. The one idea: an order is a sign, and of several the first that is not 0 decides. */
#ifndef VISA_SUPPORT_ORDER_H
#define VISA_SUPPORT_ORDER_H

#include <stdint.h>

/* Ascending; ORDER(b, a) is descending. Each is evaluated twice. */
#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

static inline int order_then(int first, int then)
{
    return first ? first : then;
}

/* Of int64_t, ascending. */
static inline int order_numbers(const void *a, const void *b)
{
    return ORDER(*(const int64_t *)a, *(const int64_t *)b);
}

#endif
