#include "frontend/edit.h"

#include <string.h>

#include "support/order.h"

void edit_add(edit_list *list, arena *a, uint32_t begin, uint32_t end, int rank, const char *text)
{
    edit e = {begin, end, rank, text};
    ARENA_PUSH(a, list->items, list->count, list->capacity, e);
}

/* By place, then insertions first, then by rank and text: equal edits become neighbours. */
static int by_place(const void *left, const void *right)
{
    const edit *a = left, *b = right;
    return order_then(order_then(ORDER(a->begin, b->begin), ORDER(a->end, b->end)),
                      order_then(ORDER(a->rank, b->rank), strcmp(a->text, b->text)));
}

static bool contradicts(const edit *before, const edit *e)
{
    if (before->begin == e->begin && before->end == e->end && before->begin == before->end)
        return before->rank == e->rank;
    return e->begin < before->end;
}

const edit *edit_apply(edit_list *list, const char *text, size_t bytes, strbuf *out)
{
    order_sort(list->items, list->count, sizeof *list->items, by_place);
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (i == 0 || by_place(&list->items[kept - 1], &list->items[i]) != 0)
            list->items[kept++] = list->items[i];
    list->count = kept;
    for (size_t i = 1; i < list->count; i++)
        if (contradicts(&list->items[i - 1], &list->items[i]))
            return &list->items[i];
    uint32_t at = 0;
    for (size_t i = 0; i < list->count; i++) {
        const edit *e = &list->items[i];
        strbuf_append(out, text + at, e->begin - at);
        strbuf_puts(out, e->text);
        at = e->end;
    }
    strbuf_append(out, text + at, bytes - at);
    return NULL;
}
