/* Element types in LLVM IR (docs/numerics.md, written a second time and on its own).
 *
 * The one idea: an element in memory is a code, an integer of its storage width; arithmetic sees only i32 and
 * f32. Widening takes a code to its value, narrowing a value to its code; both are branch-free, and
 * take a vector as well as one element. */
#ifndef VISA_CODEGEN_REFERENCE_CONVERT_H
#define VISA_CODEGEN_REFERENCE_CONVERT_H

#include "codegen/reference/emitter.h"

/* The storage of a code. */
LLVMTypeRef emit_code_type(emitter *e, dtype t);
/* Codes are i8 (i4 in the low nibble, the rest undefined), i16 or i32. Tensors need no alignment. */
LLVMValueRef emit_code_load(emitter *e, dtype t, LLVMValueRef tensor, LLVMValueRef element);
void emit_code_store(emitter *e, dtype t, LLVMValueRef code, LLVMValueRef tensor, LLVMValueRef element);

/* i32 or f32; vectors of them for vectors. */
LLVMValueRef emit_widen(emitter *e, dtype t, LLVMValueRef code);
/* The same, but that a NaN may have any bits. */
LLVMValueRef emit_widen_number(emitter *e, dtype t, LLVMValueRef code);
/* Of a vector, for a product that is added to a sum of +0 and others: a NaN may keep its bits, a zero lose its sign. */
LLVMValueRef emit_widen_factor(emitter *e, dtype t, LLVMValueRef code);
/* The same of two vectors of bf16 side by side, as bits: the even elements of both, and the odd ones. */
void emit_widen_apart(emitter *e, LLVMValueRef codes, LLVMValueRef *even, LLVMValueRef *odd);
LLVMValueRef emit_narrow(emitter *e, dtype t, LLVMValueRef value);

#endif
