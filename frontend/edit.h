/* Changes of a text, collected while it is read and made all at once.
 *
 * The one idea: an edit replaces a range of the text as it was, so whoever finds the next one need not know of the others; what is found
 * twice of one place (a macro's text, met in each of its calls) is one edit, and two that contradict each other are found when they are
 * made. */
#ifndef VISA_FRONTEND_EDIT_H
#define VISA_FRONTEND_EDIT_H

#include "support/arena.h"
#include "support/strbuf.h"

/* Bytes [begin, end) become `text`. Of insertions at one place that of the lower rank stands first, and of one rank there is one. */
typedef struct edit {
    uint32_t begin, end;
    int rank;
    const char *text;
} edit;

typedef struct edit_list {
    edit *items;
    size_t count, capacity;
} edit_list;

void edit_add(edit_list *list, arena *a, uint32_t begin, uint32_t end, int rank, const char *text);
/* The text with all edits made, in *out; NULL. Else the first edit that contradicts one before it, and *out is not written. Sorts the list.
 */
const edit *edit_apply(edit_list *list, const char *text, size_t bytes, strbuf *out);

#endif
