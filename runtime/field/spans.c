#include "runtime/field/spans.h"

#include <stdlib.h>

/* Is the second one the continuation of the first? */
static bool joined(field_span *last, field_span s)
{
    if (last->first == FIELD_ZEROS || s.first == FIELD_ZEROS) {
        last->count += last->first == s.first ? s.count : 0;
        return last->first == s.first;
    }
    int64_t apart = last->count == 1 ? s.first - last->first : last->apart;
    if (apart <= 0 || s.first != last->first + apart * last->count || (s.count > 1 && s.apart != apart))
        return false;
    last->apart = apart;
    last->count += s.count;
    return true;
}

void field_spans_add(field_spans *l, field_span s)
{
    enum { FIRST = 32 }; /* less than a KiB, which the allocator keeps at hand */
    if (l->failed || (l->count > 0 && joined(&l->items[l->count - 1], s)))
        return;
    if (l->count == l->capacity) {
        size_t capacity = l->capacity ? 2 * l->capacity : FIRST;
        field_span *items = realloc(l->items, capacity * sizeof *items);
        l->failed = !items;
        if (!items)
            return;
        l->items = items;
        l->capacity = capacity;
    }
    l->items[l->count++] = s;
}

void field_spans_free(field_spans *l)
{
    free(l->items);
    *l = (field_spans){0};
}
