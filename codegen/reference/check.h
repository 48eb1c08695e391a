/* Does an einsum keep the rules of target/einsum.h? It may come from any file.
 *
 * The one idea: every product of sizes is checked before it is used, so that nothing after this point can overflow. */
#ifndef VISA_CODEGEN_REFERENCE_CHECK_H
#define VISA_CODEGEN_REFERENCE_CHECK_H

#include "codegen/reference/plan.h"

/* NULL, or the rule that is broken: of axes, windows and tensors, and of a statement when all before it are planned. */
char *check_tensors(const einsum *e);
char *check_statement(const reference_plan *p, uint32_t number);

#endif
