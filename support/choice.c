#include "support/choice.h"

#include <string.h>

#include "support/shown.h"

/* Edits that turn one word into the other: letters inserted, dropped, replaced, or two neighbours swapped; a change of case
 * counts half. In half edits. */
static unsigned distance(const char *a, const char *b)
{
    enum { LONGEST = 40 };
    size_t n = strlen(a), m = strlen(b);
    unsigned d[LONGEST + 1][LONGEST + 1];
    if (n > LONGEST || m > LONGEST)
        return CHOICE_FAR;
    for (size_t i = 0; i <= n; i++)
        for (size_t j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = 2 * (unsigned)(i + j);
                continue;
            }
            unsigned change = a[i - 1] == b[j - 1] ? 0 : (a[i - 1] ^ b[j - 1]) == 32 ? 1 : 2;
            unsigned best = d[i - 1][j - 1] + change;
            best = best < d[i - 1][j] + 2 ? best : d[i - 1][j] + 2;
            best = best < d[i][j - 1] + 2 ? best : d[i][j - 1] + 2;
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            d[i][j] = swapped && d[i - 2][j - 2] + 2 < best ? d[i - 2][j - 2] + 2 : best;
        }
    return d[n][m];
}

bool choice_is_nearer(const char *name, const char *candidate, unsigned *best)
{
    size_t n = strlen(name), m = strlen(candidate);
    unsigned allowed = 2 * (((unsigned)n + 2) / 3);
    if (2 * (n > m ? n - m : m - n) > allowed) /* so many letters at least are inserted or dropped */
        return false;
    unsigned d = distance(name, candidate);
    if (d > allowed || d >= *best || (n == 1 && d > 1))
        return false;
    *best = d;
    return true;
}

const char *choice_near(const char *name, const char *const *known)
{
    const char *found = NULL;
    unsigned best = CHOICE_FAR;
    for (size_t i = 0; known[i]; i++)
        if (strcmp(name, known[i]) == 0) /* as mostly, where a name that is right is asked for, too: nothing is nearer */
            return known[i];
    for (; *known; known++)
        if (choice_is_nearer(name, *known, &best))
            found = *known;
    return found;
}

size_t choice_index(const char *const *known, size_t count, const char *name)
{
    size_t i = 0;
    while (i < count && strcmp(known[i], name) != 0)
        i++;
    return i;
}

const char *choice_list(arena *a, const char *const *known)
{
    const char *list = "";
    for (size_t i = 0; known[i]; i++)
        list = arena_printf(a, "%s%s%s", list, i ? ", " : "", known[i]);
    return list;
}

void choice_refuse_kernel(diag_list *diags, const char *file, const char *given, const char *const *known)
{
    size_t count = 0;
    while (known[count])
        count++;
    const char *place = file ? file : "the file", *near = given ? choice_near(given, known) : NULL;
    for (size_t i = 0; given && i < count; i++)
        if (strcmp(known[i], given) == 0) { /* it is there, and left out: of a generic one the sizes are not known */
            diag_help(diags,
                      diag_add(diags, E_KERNEL, SRC_NOWHERE, "kernel `%s` of %s is not compiled", shown_text(given, diags->arena), place),
                      "give its generic parameters sizes: -D NAME=SIZE");
            return;
        }
    diag *d = given        ? diag_add(diags, E_KERNEL, SRC_NOWHERE, "%s has no kernel `%s`", place, shown_text(given, diags->arena))
              : count == 0 ? diag_add(diags, E_KERNEL, SRC_NOWHERE, "%s has no kernel", place)
                           : diag_add(diags, E_KERNEL, SRC_NOWHERE, "%s has %zu kernels; choose one", place, count);
    if (near)
        diag_help(diags, d, "did you mean `%s`?", near);
    else if (count > 0)
        diag_help(diags, d, "--kernel=NAME with one of: %s", choice_list(diags->arena, known));
}
