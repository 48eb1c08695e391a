/* Diagnostics as text and as JSON.
 *
 * The one idea: a diagnostic is a value until it is shown, and it is shown in one of two shapes: as clang
 * shows it (place, message, the source line with the whole range underlined, notes, a help line), or as a
 * JSON array for programs. Both read the list in the order in which it is: sort it first (diag_list_sort). */
#ifndef VISA_FRONTEND_RENDER_H
#define VISA_FRONTEND_RENDER_H

#include "frontend/source.h"

/* Text of the whole list, ending in a newline; empty for an empty list. `colour` adds ANSI sequences. */
const char *render_text(const diag_list *diags, const source_map *sources, bool colour, arena *a);

/* [{id, severity, file, range: {begin: {line, column, offset}, end: {..}}, message, notes: [{message, file,
 * range}], help}]; file and range are null for a diagnostic without a place, help is null when there is none.
 */
const char *render_json(const diag_list *diags, const source_map *sources, arena *a);

#endif
