/* What the generator decides of a statement that is no contraction: its expression as nodes, the digit that is walked in vectors, the places
 * of a reduction in the machine's order. No LLVM here. */
#ifndef VISA_CODEGEN_REFERENCE_ELEMENTS_PLAN_H
#define VISA_CODEGEN_REFERENCE_ELEMENTS_PLAN_H

#include "codegen/reference/plan.h"

/* False without memory. */
bool elements_plan_nodes(plan_statement *s);
/* NULL or a fault. The digits of the statement are grouped, its nodes made. */
char *elements_plan(const reference_plan *p, plan_statement *s, uint32_t number);
/* Steps of time whose terms wait in slots at once; bytes of the slots, -1 where they are too many. */
int64_t elements_plan_steps(const plan_statement *s);
int64_t elements_plan_slot_bytes(const plan_statement *s);
/* Is there a function among its nodes that another library may compute a little apart? */
bool elements_plan_approximates(const plan_statement *s);

#endif
