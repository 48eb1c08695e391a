/* The tiled matrix product, as one IR function per shape.
 *
 * The one idea: a tile of C stays in registers while depth advances; each step takes one column vector pair
 * and one broadcast row value per tile row. Every element of C is one running sum in depth order, so blocking
 * for the caches changes nothing in the result; LLVM may not reorder it either (no fast-math flags). */
#ifndef VISA_CODEGEN_REFERENCE_GEMM_H
#define VISA_CODEGEN_REFERENCE_GEMM_H

#include "codegen/reference/emitter.h"

typedef enum gemm_kind {
    GEMM_I32,       /* wraps */
    GEMM_F32,       /* product rounded, then added */
    GEMM_F32_FUSED, /* the same values when f32 holds the products */
    GEMM_F64,       /* f32 sources, f64 sums */
} gemm_kind;

typedef struct gemm_function {
    LLVMValueRef function;
    LLVMTypeRef type;
    gemm_kind kind;
} gemm_function;

/* void f(C, R, S): C[padded_rows][padded_columns] += R * S, with the sources packed tile by tile:
 * R[tile][depth][rows of a tile], S[tile][depth][columns of a tile]. */
gemm_function emit_gemm(emitter *e, const plan_statement *s, gemm_kind kind, const char *name);

#endif
