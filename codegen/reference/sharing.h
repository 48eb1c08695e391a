/* Statements that share code.
 *
 * The one idea: the tiles of an unrolled loop are statements that differ only in where their operands begin; one function with these
 * places as parameters does them all. */
#ifndef VISA_CODEGEN_REFERENCE_SHARING_H
#define VISA_CODEGEN_REFERENCE_SHARING_H

#include "codegen/reference/plan.h"

/* Sets `code` and `base_varies`; all statements before it have theirs. */
void sharing_find(reference_plan *p, uint32_t number);

bool sharing_same_digits(const einsum_statement *a, const einsum_statement *b);
/* Is an axis that combinations of the digits can leave shifted by another distance? */
bool sharing_guards_differ(const einsum *e, const plan_statement *x, const plan_statement *y);

#endif
