/* How far another legal summation order can be from the reference's value.
 *
 * The one idea: the bound is computed, not chosen. For n terms every order of f32 additions is within
 * (n - 1) * 2^-24 * sum |a||b| of the true sum, and n * 2^-24 when products round too (Jeannerod and Rump);
 * machine and reference both are, so twice that. Of a sum that others are computed from less is known to be
 * enough: the reference adds the terms in f64 too, which says how far off its own sum is, and a term goes
 * through no more roundings in the machine than its tree has levels and its time has steps. Errors of the
 * sources multiply through. A cast is monotone, so its bound is exact: cast both ends of the interval. */
#ifndef VISA_CODEGEN_REFERENCE_BOUND_H
#define VISA_CODEGEN_REFERENCE_BOUND_H

#include "codegen/reference/emitter.h"

/* Of the f32 sum `value`: of |a||b| over finite terms; of |a|*eb + |b|*ea + ea*eb; of the terms themselves, NULL where that is not
 * computed. All f64. */
typedef struct sum_parts {
    LLVMValueRef value, magnitude, error, precise;
} sum_parts;
/* `inexact`: some source has an error. */
LLVMValueRef emit_sum_bound(emitter *e, const plan_statement *s, bool inexact, const sum_parts *sums);
/* Of `code`, which is `value` (f32, bound `error`) narrowed to t. */
LLVMValueRef emit_cast_bound(emitter *e, dtype t, LLVMValueRef value, LLVMValueRef code, LLVMValueRef error);

/* f32 numbers for the sums above: |value|, or 0 when it is not finite; and an f64 bound rounded up. */
LLVMValueRef emit_magnitude(emitter *e, LLVMValueRef value);
LLVMValueRef emit_rounded_up(emitter *e, LLVMValueRef bound);

#endif
