/* What the parser keeps as text and somebody needs: calls of the file's own macros, the arguments of assertions, the fields of structs.
 *
 * The one idea: such a text is put into a form that the parser reads, as a text of its own, and stands in the tree in place of the node
 * that had it unread. Places in it are led back to where they were written, so that nobody after this file knows the difference. */
#ifndef VISA_FRONTEND_EXPAND_H
#define VISA_FRONTEND_EXPAND_H

#include "frontend/ast.h"
#include "frontend/source.h"

typedef struct expander expander;
expander *expander_new(source_map *sources, arena *a, diag_list *diags);
/* Forgets the macros of files before: another program begins. */
void expand_begin(expander *e);
/* The tree of a file with its macros expanded; macros of files that were expanded before are known in it. */
const ast *expand_file(expander *e, const ast *file);
/* The expander as it is now, for expand_restore after its arena was rewound to here or later. */
const expander *expand_keep(const expander *e);
void expand_restore(expander *e, const expander *kept);
/* The place in a file that somebody wrote of a place in an expansion; *call: the outermost call that made it, or SRC_NOWHERE. */
src_range expand_place(const expander *e, src_range range, src_range *call);
/* Leads the places of all messages back, and says of which call they are. */
void expand_settle(const expander *e, diag_list *diags);

#endif
