/* How far another legal summation order can be from the reference's value.
 *
 * The one idea: the bound is computed, not chosen. For n terms every order of f32 additions is within
 * (n - 1) * 2^-24 * sum |a||b| of the true sum, and n * 2^-24 when products round too (Jeannerod and Rump);
 * machine and reference both are, so twice that. Errors of the sources multiply through. A cast is monotone,
 * so its bound is exact: cast both ends of the interval. */
#ifndef VISA_CODEGEN_REFERENCE_BOUND_H
#define VISA_CODEGEN_REFERENCE_BOUND_H

#include "codegen/reference/emitter.h"

/* Of the f32 sum `value`. magnitude: sum of |a||b| over finite terms; error: sum of |a|*eb + |b|*ea + ea*eb;
 * all f64. `inexact`: some source has an error. */
LLVMValueRef emit_sum_bound(emitter *e, const plan_statement *s, bool inexact, LLVMValueRef value, LLVMValueRef magnitude,
                            LLVMValueRef error);
/* Of `code`, which is `value` (f32, bound `error`) narrowed to t. */
LLVMValueRef emit_cast_bound(emitter *e, dtype t, LLVMValueRef value, LLVMValueRef code, LLVMValueRef error);

/* f32 numbers for the sums above: |value|, or 0 when it is not finite; and an f64 bound rounded up. */
LLVMValueRef emit_magnitude(emitter *e, LLVMValueRef value);
LLVMValueRef emit_rounded_up(emitter *e, LLVMValueRef bound);

#endif
