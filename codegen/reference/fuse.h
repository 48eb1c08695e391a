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

/* ---- what forward.h needs too ---- */

bool fuse_has_window(const einsum *e, uint32_t tensor);
/* Do all digits of the axis, or none of them, move the operand? Else the axis is walked in part only. */
bool fuse_moves_alike(const plan_statement *s, unsigned side, uint32_t axis, bool *moves);
/* A statement of its own for `to`, as `from` is, with room for more shifts. False without memory. */
bool fuse_copy_digits(plan_statement *to, const einsum_statement *from, uint32_t more_shifts);
void fuse_free_digits(plan_statement *s);

#endif
