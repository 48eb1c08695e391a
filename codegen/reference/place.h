/* Where a product's operands are read and its sums are kept.
 *
 * The one idea: packing costs a pass over an operand, and is left out where the operand lies as the product reads it, or is read too
 * seldom to repay it; likewise sums stay in the destination where its elements are sums. */
#ifndef VISA_CODEGEN_REFERENCE_PLACE_H
#define VISA_CODEGEN_REFERENCE_PLACE_H

#include "codegen/reference/plan.h"

/* Few rows, and depth side by side in both sources: sums are taken along depth, and nothing is packed. */
bool place_along_depth(const reference_plan *plan, const plan_statement *p);
/* Of a form that stores blocks. */
void place_operands(const reference_plan *plan, plan_statement *p);
/* NULL, or why there is no such storage. */
char *place_scratch(plan_statement *p, uint32_t number);

#endif
