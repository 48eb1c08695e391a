/* Maps of the same sources over the same digits, into places of one tensor that have nothing in common, as the two halves of a rotation:
 * one loop computes them all, so that what they read is read and widened once. */
#ifndef VISA_CODEGEN_REFERENCE_TWIN_H
#define VISA_CODEGEN_REFERENCE_TWIN_H

#include "codegen/reference/plan.h"

/* After all statements are planned. */
void twin_find(reference_plan *p);

/* The side of `s` on which the tensor is read that `of` reads on this side. */
unsigned twin_side(const plan_statement *s, const plan_statement *of, unsigned side);

#endif
