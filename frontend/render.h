/* Diagnostics as text, as JSON and as SARIF.
 *
 * The one idea: a diagnostic is a value until it is shown, and it is shown in one of three shapes: as clang
 * shows it (place, message, the source line with the whole range underlined, notes, a help line), as a
 * JSON array for programs, or as SARIF for viewers of such logs. All read the list in the order in which it is: sort it first
 * (diag_list_sort). */
#ifndef VISA_FRONTEND_RENDER_H
#define VISA_FRONTEND_RENDER_H

#include "frontend/source.h"

/* Text of the whole list, ending in a newline; empty for an empty list. `colour` adds ANSI sequences. */
const char *render_text(const diag_list *diags, const source_map *sources, bool colour, arena *a);

/* [{id, severity, file, range: {begin: {line, column, offset}, end: {..}}, message, notes: [{message, file,
 * range}], help}]; file and range are null for a diagnostic without a place, help is null when there is none.
 */
const char *render_json(const diag_list *diags, const source_map *sources, arena *a);

/* A SARIF 2.1.0 log with one run of `visac` of that version: the rules that were broken, results with their regions, notes as
 * related locations. */
const char *render_sarif(const diag_list *diags, const source_map *sources, const char *version, arena *a);

/* The text with nothing in it that a terminal or a JSON reader could stumble over. */
const char *render_clean(const char *text, arena *a);

#endif
