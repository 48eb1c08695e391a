/* Statements that are computed where their result is read.
 *
 * The one idea: an intermediate that one statement assigns, whole, and one other reads once, needs no memory:
 * the reader's expression takes the maker's in the place of the element. A map goes into the map or reduction
 * after it, coordinate by coordinate; a contraction takes the map that follows it as what becomes of each sum. The
 * statement that was removed is `absorbed`. */
#ifndef VISA_CODEGEN_REFERENCE_FUSE_H
#define VISA_CODEGEN_REFERENCE_FUSE_H

#include "codegen/reference/plan.h"

/* All statements were checked, and their nodes made. False without memory. */
bool fuse_statements(reference_plan *p);
void fuse_free(plan_statement *s);

#endif
