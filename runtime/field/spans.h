/* Lists of numbers, kept as progressions.
 *
 * The one idea: a term of a sum is traced back through stages and memories each of which moves elements by loops, so elements that are as
 * far apart as each other mostly stay so; a list of such runs is followed run by run, and what comes back together on the way is one run
 * again. */
#ifndef VISA_RUNTIME_FIELD_SPANS_H
#define VISA_RUNTIME_FIELD_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers of elements, or of bits; first FIELD_ZEROS: that many zeros. */
enum { FIELD_ZEROS = -1 };
typedef struct field_span {
    int64_t first, apart, count;
} field_span;

typedef struct field_spans {
    field_span *items; /* malloc'd */
    size_t count, capacity;
    bool failed; /* no memory for one */
} field_spans;

/* At the end of the list; it continues the last one where it can. */
void field_spans_add(field_spans *l, field_span s);
void field_spans_free(field_spans *l);

/* How many from the first on are in the same block of `size` numbers. */
static inline int64_t field_span_within(field_span s, int64_t size)
{
    if (s.count == 1 || s.apart <= 0)
        return 1;
    int64_t fit = (size - 1 - s.first % size) / s.apart + 1;
    return fit < s.count ? fit : s.count;
}

#endif
