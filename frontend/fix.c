#include "frontend/fix.h"

#include <string.h>

#include "support/budget.h"

/* Names that differ in their numbers are names of different things, as like as they are. */
static bool has_same_digits(const char *a, size_t a_bytes, const char *b)
{
    const char *end = a + a_bytes;
    for (;; a++, b++) {
        while (a < end && !(*a >= '0' && *a <= '9'))
            a++;
        while (*b && !(*b >= '0' && *b <= '9'))
            b++;
        if (a == end || !*b || *a != *b)
            return a == end && !*b;
    }
}

/* Of a name with its path the last one is meant, unless the help has a path itself; the type arguments after it stay. */
static size_t meant_edit(const diag *d, const source_map *sources, arena *a, const diag_edit **edits)
{
    static const char mean[] = "did you mean `";
    const size_t front = sizeof mean - 1;
    size_t bytes = d->help ? strlen(d->help) : 0;
    if (bytes < front + 2 || strncmp(d->help, mean, front) != 0 || strcmp(d->help + bytes - 2, "`?") != 0)
        return 0;
    diag_edit *meant = ARENA_NEW(a, diag_edit);
    *meant = (diag_edit){d->range, arena_strndup(a, d->help + front, bytes - front - 2)};
    const char *old = source_text(sources, d->range.file);
    const char *angles = memchr(old + d->range.begin, '<', d->range.end - d->range.begin);
    if (angles)
        meant->range.end = (uint32_t)(angles - old);
    for (uint32_t i = d->range.begin; i < meant->range.end && !strstr(meant->text, "::"); i++)
        if (old[i] == ':')
            meant->range.begin = i + 1;
    if (strchr(meant->text, '`') || !has_same_digits(old + meant->range.begin, meant->range.end - meant->range.begin, meant->text))
        return 0;
    *edits = meant;
    return 1;
}

size_t fix_edits(const diag *d, const source_map *sources, arena *a, const diag_edit **edits)
{
    int files = source_map_count(sources);
    if (d->shared || d->range.file < 0 || d->range.file >= files)
        return 0;
    for (size_t i = 0; i < d->edit_count; i++)
        if (d->edits[i].range.file < 0 || d->edits[i].range.file >= files)
            return 0;
    *edits = d->edits;
    return d->edit_count ? d->edit_count : meant_edit(d, sources, a, edits);
}

static bool touches(const edit_list *taken, const diag_edit *e)
{
    for (size_t i = 0; i < taken->count; i++)
        if (e->range.begin <= taken->items[i].end && taken->items[i].begin <= e->range.end)
            return true;
    return false;
}

size_t fix_collect(const diag_list *list, const source_map *sources, int file, arena *a, edit_list *taken)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        const diag_edit *edits;
        size_t wanted = fix_edits(list->items[i], sources, a, &edits);
        bool fits = wanted > 0;
        budget_spend(a, taken->count * wanted);
        for (size_t n = 0; fits && n < wanted; n++)
            fits = edits[n].range.file == file && !touches(taken, &edits[n]);
        for (size_t n = 0; fits && n < wanted; n++)
            edit_add(taken, a, edits[n].range.begin, edits[n].range.end, 0, edits[n].text);
        count += fits;
    }
    return count;
}

size_t fix_apply(const diag_list *list, const source_map *sources, int file, arena *a, strbuf *out)
{
    edit_list taken = {0};
    size_t count = fix_collect(list, sources, file, a, &taken);
    return count && !edit_apply(&taken, source_text(sources, file), source_bytes(sources, file), out) ? count : 0;
}
