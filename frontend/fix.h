/* What a help line asks for, as changes of the text.
 *
 * The one idea: a diagnostic that says what to write says where as well (diag_replace), so that an editor, a page or `visac --fix` can do
 * it; "did you mean `x`?" is about the name at the diagnostic's place. Where a person has to choose there is nothing. */
#ifndef VISA_FRONTEND_FIX_H
#define VISA_FRONTEND_FIX_H

#include "frontend/edit.h"
#include "frontend/source.h"
#include "support/diag.h"

/* The changes, all of them to be made, each in a file that is there; 0: none. *edits is the diagnostic's or the arena's. */
size_t fix_edits(const diag *d, const source_map *sources, arena *a, const diag_edit **edits);

/* The changes of a file's diagnostics: of two that touch the same place the first in the list. How many diagnostics were taken. */
size_t fix_collect(const diag_list *list, const source_map *sources, int file, arena *a, edit_list *taken);
/* The text of a file with the them. How many were taken; with 0 *out is not written. */
size_t fix_apply(const diag_list *list, const source_map *sources, int file, arena *a, strbuf *out);

#endif
