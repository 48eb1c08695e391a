/* An expression as it is computed: each value once.
 *
 * The one idea: postfix becomes a list of nodes, each of which names those of its operands; what was fused
 * into a statement adds its own nodes, and a value that is used twice is one node. Next to each value goes its
 * error, how far another implementation may be (bound.h); NULL is none. */
#ifndef VISA_CODEGEN_REFERENCE_EXPRESSION_H
#define VISA_CODEGEN_REFERENCE_EXPRESSION_H

#include "codegen/reference/emitter.h"

typedef struct expression_value {
    LLVMValueRef value, error; /* error: f64, or a vector; NULL: 0 */
} expression_value;

/* The value of the last node. `sources`: by number of the plan's sources; `sum`: of PLAN_SUM nodes. With
 * `bounded`, errors as well. */
expression_value emit_expression(emitter *e, const plan_statement *p, const expression_value *sources, const expression_value *sum,
                                 int64_t lanes, bool bounded);

#endif
