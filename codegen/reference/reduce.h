/* Reductions: the fold of an expression over the summed digits.
 *
 * The one idea: what a fold carries from term to term (its value, and for bounds the size and the error of the terms) is a handful of values that
 * run through the loops in registers. In an order of its own a reduction is one fold for each vector of outputs, or a vector of folds
 * for one output. In the machine's order, where that can be seen, the terms of a step of time are put into slots by lane and folded as a tree. */
#ifndef VISA_CODEGEN_REFERENCE_REDUCE_H
#define VISA_CODEGEN_REFERENCE_REDUCE_H

#include "codegen/reference/elements.h"

/* `slots`: scratch storage of the statement. */
void emit_reduce(const element_form *f, LLVMValueRef slots);

#endif
