#include "runtime/tensor/fold.h"

#include <stdbool.h>

#include "support/order.h"

enum { SHOWN = 4 };

const char *fold_text(int64_t *values, size_t count, int64_t all, arena *a)
{
    if (count == 0)
        return "none";
    order_sort(values, count, sizeof *values, order_numbers);
    size_t distinct = 1;
    for (size_t i = 1; i < count; i++)
        if (values[i] != values[i - 1])
            values[distinct++] = values[i];
    if (all > 1 && (int64_t)distinct == all)
        return arena_printf(a, "all %lld", (long long)all);
    if (distinct == 1)
        return arena_printf(a, "%lld", (long long)values[0]);
    int64_t step = values[1] - values[0];
    bool even = true;
    for (size_t i = 1; i < distinct; i++)
        even = even && values[i] - values[i - 1] == step;
    if (even && distinct > 2 && step > 1)
        return arena_printf(a, "%lld, %lld .. %lld", (long long)values[0], (long long)values[1], (long long)values[distinct - 1]);
    if (even && step == 1)
        return arena_printf(a, "%lld..%lld", (long long)values[0], (long long)values[distinct - 1]);
    const char *text = "";
    for (size_t i = 0; i < distinct && i < SHOWN; i++)
        text = arena_printf(a, "%s%s%lld", text, i ? ", " : "", (long long)values[i]);
    return distinct > SHOWN ? arena_printf(a, "%s and %zu more", text, distinct - SHOWN) : text;
}
