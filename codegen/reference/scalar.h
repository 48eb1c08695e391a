/* The operations of target/scalar.def in LLVM IR, one function for each row.
 *
 * The one idea: values are i32, f32 and i1, or vectors of them; every function takes both. What a C library computes is called
 * lane by lane, by the names of scalar_symbols. */
#ifndef VISA_CODEGEN_REFERENCE_SCALAR_H
#define VISA_CODEGEN_REFERENCE_SCALAR_H

#include "codegen/reference/emitter.h"

LLVMValueRef emit_scalar(emitter *e, scalar_op op, const LLVMValueRef *operands);
/* A constant of so many lanes; 1 is a scalar. */
LLVMValueRef emit_scalar_constant(emitter *e, scalar_type type, uint32_t bits, int64_t lanes);
LLVMTypeRef emit_scalar_type(emitter *e, scalar_type type, int64_t lanes);

/* Functions that code generated here may call, and where they are in this process. */
typedef struct scalar_symbol {
    const char *name;
    void *address;
} scalar_symbol;
/* NULL name: past the end. */
scalar_symbol scalar_symbol_at(size_t index);

#endif
