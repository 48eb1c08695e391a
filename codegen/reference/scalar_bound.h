/* How an error of the operands passes through a scalar operation.
 *
 * The one idea: a rule for each value of the column `bound` of target/scalar.def. Where no operand has an
 * error the result has none, but for functions that another library may compute a few units in the last place
 * apart (`ulps`). Infinity: no rule bounds it. */
#ifndef VISA_CODEGEN_REFERENCE_SCALAR_BOUND_H
#define VISA_CODEGEN_REFERENCE_SCALAR_BOUND_H

#include "codegen/reference/emitter.h"

/* Of `result`, which the operation made of operands with these errors (NULL: none). NULL: it has none. */
LLVMValueRef emit_scalar_bound(emitter *e, const scalar_row *row, const LLVMValueRef *operands, const LLVMValueRef *errors,
                               LLVMValueRef result);

#endif
