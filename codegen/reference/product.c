#include "codegen/reference/product.h"

#include <stdio.h>

#include "codegen/reference/convert.h"

LLVMTypeRef product_sum_type(emitter *e, const plan_tile *t)
{
    switch (t->product) {
    case PRODUCT_F64: return e->f64;
    case PRODUCT_F32:
    case PRODUCT_BF16_DOT:
    case PRODUCT_TREE: return e->f32;
    default: return e->i32;
    }
}

LLVMValueRef product_items(emitter *e, const plan_tile *t, LLVMValueRef units)
{
    LLVMTypeRef item = t->product == PRODUCT_I16_PAIRS  ? e->i16
                       : t->product == PRODUCT_BF16_DOT ? LLVMBFloatTypeInContext(e->context)
                                                        : e->f32;
    return LLVMBuildBitCast(e->b, units, emit_vector_type(item, t->lanes * t->per), "");
}

static LLVMValueRef multiply_pairs(emitter *e, const plan_tile *t, LLVMValueRef row, LLVMValueRef column)
{
    const char *name = t->lanes == 16  ? "llvm.x86.avx512.pmaddw.d.512"
                       : t->lanes == 8 ? "llvm.x86.avx2.pmadd.wd"
                                       : "llvm.x86.sse2.pmadd.wd";
    LLVMValueRef args[] = {product_items(e, t, row), product_items(e, t, column)};
    return emit_plain_intrinsic(e, name, args, 2);
}

static LLVMValueRef dot(emitter *e, const plan_tile *t, const char *name, LLVMValueRef sum, LLVMValueRef row, LLVMValueRef column)
{
    char full[64];
    snprintf(full, sizeof full, "%s.%d", name, (int)t->lanes * 32);
    LLVMValueRef args[] = {sum, row, column};
    return emit_plain_intrinsic(e, full, args, 3);
}

LLVMValueRef product_add(emitter *e, const plan_tile *t, LLVMValueRef sum, LLVMValueRef row, LLVMValueRef column)
{
    LLVMBuilderRef b = e->b;
    switch (t->product) {
    case PRODUCT_I32: return LLVMBuildAdd(b, sum, LLVMBuildMul(b, row, column, ""), "");
    case PRODUCT_I16_PAIRS: return LLVMBuildAdd(b, sum, multiply_pairs(e, t, row, column), "");
    case PRODUCT_I8_DOT: return dot(e, t, "llvm.x86.avx512.vpdpbusd", sum, row, column);
    case PRODUCT_BF16_DOT: return dot(e, t, "llvm.x86.avx512bf16.dpbf16ps", sum, product_items(e, t, row), product_items(e, t, column));
    default: break;
    }
    LLVMValueRef x = product_items(e, t, row), y = product_items(e, t, column);
    if (t->product == PRODUCT_F64) {
        x = LLVMBuildFPExt(b, x, LLVMTypeOf(sum), "");
        y = LLVMBuildFPExt(b, y, LLVMTypeOf(sum), "");
    }
    if (e->fused)
        return emit_intrinsic(e, "llvm.fma", (LLVMValueRef[]){x, y, sum}, 3);
    return LLVMBuildFAdd(b, sum, LLVMBuildFMul(b, x, y, ""), "");
}

LLVMValueRef product_units(emitter *e, const plan_tile *t, dtype type, LLVMValueRef codes)
{
    LLVMValueRef items = codes;
    if (t->product == PRODUCT_F32 || t->product == PRODUCT_I32)
        items = emit_widen_factor(e, type, codes);
    else if (t->product == PRODUCT_I16_PAIRS)
        items = LLVMBuildTrunc(e->b, emit_widen(e, type, codes), emit_type_like(e, codes, e->i16), "");
    return LLVMBuildBitCast(e->b, items, emit_vector_type(e->i32, LLVMGetVectorSize(LLVMTypeOf(codes)) / t->per), "");
}
