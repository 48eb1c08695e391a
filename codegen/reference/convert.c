#include "codegen/reference/convert.h"

#include <math.h>

/* ---- small IR shorthands ---- */

static LLVMValueRef and32(emitter *e, LLVMValueRef x, uint32_t mask)
{
    return LLVMBuildAnd(e->b, x, emit_i32_like(e, x, mask), "");
}

static LLVMValueRef add32(emitter *e, LLVMValueRef x, int64_t n)
{
    return LLVMBuildAdd(e->b, x, emit_i32_like(e, x, n), "");
}

static LLVMValueRef shift_right(emitter *e, LLVMValueRef x, unsigned bits)
{
    return LLVMBuildLShr(e->b, x, emit_i32_like(e, x, bits), "");
}

static LLVMValueRef shift_left(emitter *e, LLVMValueRef x, unsigned bits)
{
    return LLVMBuildShl(e->b, x, emit_i32_like(e, x, bits), "");
}

static LLVMValueRef choose(emitter *e, LLVMIntPredicate p, LLVMValueRef x, uint32_t than, LLVMValueRef yes, LLVMValueRef no)
{
    return LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, p, x, emit_i32_like(e, x, than), ""), yes, no, "");
}

static LLVMValueRef least(emitter *e, LLVMValueRef x, uint32_t most)
{
    return choose(e, LLVMIntULT, x, most, x, emit_i32_like(e, x, most));
}

static LLVMValueRef bits_of(emitter *e, LLVMValueRef value)
{
    return LLVMBuildBitCast(e->b, value, emit_type_like(e, value, e->i32), "");
}

static LLVMValueRef value_of(emitter *e, LLVMValueRef bits)
{
    return LLVMBuildBitCast(e->b, bits, emit_type_like(e, bits, e->f32), "");
}

static LLVMValueRef extended(emitter *e, LLVMValueRef code)
{
    return LLVMBuildZExt(e->b, code, emit_type_like(e, code, e->i32), "");
}

static LLVMValueRef truncated(emitter *e, LLVMValueRef code, LLVMTypeRef type)
{
    return LLVMBuildTrunc(e->b, code, emit_type_like(e, code, type), "");
}

/* ---- codes in memory ---- */

LLVMTypeRef emit_code_type(emitter *e, dtype t)
{
    unsigned bits = dtype_row_of(t)->bits;
    return bits <= 8 ? e->i8 : bits == 16 ? e->i16 : e->i32;
}

static LLVMValueRef nibble_byte(emitter *e, LLVMValueRef element)
{
    return LLVMBuildLShr(e->b, element, emit_i64(e, 1), "");
}

/* 0 for an even element, 4 for an odd one */
static LLVMValueRef nibble_shift(emitter *e, LLVMValueRef element)
{
    LLVMValueRef odd = LLVMBuildAnd(e->b, LLVMBuildTrunc(e->b, element, e->i8, ""), LLVMConstInt(e->i8, 1, false), "");
    return LLVMBuildShl(e->b, odd, LLVMConstInt(e->i8, 2, false), "");
}

LLVMValueRef emit_code_load(emitter *e, dtype t, LLVMValueRef tensor, LLVMValueRef element)
{
    if (dtype_row_of(t)->bits < 8) {
        LLVMValueRef byte = emit_load(e, e->i8, tensor, nibble_byte(e, element));
        return LLVMBuildLShr(e->b, byte, nibble_shift(e, element), "");
    }
    LLVMValueRef code = emit_load(e, emit_code_type(e, t), tensor, element);
    LLVMSetAlignment(code, 1);
    return code;
}

static void store_nibble(emitter *e, LLVMValueRef code, LLVMValueRef tensor, LLVMValueRef element)
{
    LLVMValueRef fifteen = LLVMConstInt(e->i8, 15, false);
    LLVMValueRef at = nibble_byte(e, element), shift = nibble_shift(e, element);
    LLVMValueRef mask = LLVMBuildShl(e->b, fifteen, shift, "");
    LLVMValueRef others = LLVMBuildAnd(e->b, emit_load(e, e->i8, tensor, at), LLVMBuildNot(e->b, mask, ""), "");
    LLVMValueRef own = LLVMBuildShl(e->b, LLVMBuildAnd(e->b, code, fifteen, ""), shift, "");
    emit_store(e, LLVMBuildOr(e->b, others, own, ""), tensor, at);
}

void emit_code_store(emitter *e, dtype t, LLVMValueRef code, LLVMValueRef tensor, LLVMValueRef element)
{
    if (dtype_row_of(t)->bits < 8) {
        store_nibble(e, code, tensor, element);
        return;
    }
    LLVMValueRef store = LLVMBuildStore(e->b, code, emit_item(e, emit_code_type(e, t), tensor, element));
    LLVMSetAlignment(store, 1);
}

/* ---- widening ---- */

/* A subnormal becomes a zero of its sign; of a NaN the bits stay. */
static LLVMValueRef widen_bf16_number(emitter *e, LLVMValueRef code)
{
    LLVMValueRef bits = shift_left(e, extended(e, code), 16);
    return value_of(e, choose(e, LLVMIntEQ, and32(e, bits, 0x7f800000), 0, and32(e, bits, 0x80000000), bits));
}

/* Every NaN becomes the one NaN, too. */
static LLVMValueRef widen_bf16(emitter *e, LLVMValueRef code)
{
    LLVMValueRef value = widen_bf16_number(e, code), is_nan = LLVMBuildFCmp(e->b, LLVMRealUNO, value, value, "");
    return value_of(e, LLVMBuildSelect(e->b, is_nan, emit_i32_like(e, value, 0x7fc00000), bits_of(e, value), ""));
}

typedef struct f8_format {
    int fraction_bits, bias;
    bool infinities; /* the highest exponent holds infinities and NaNs; else only the highest code is NaN */
} f8_format;

static f8_format f8_format_of(dtype t)
{
    return t == DTYPE_F8E4M3 ? (f8_format){3, 7, false} : (f8_format){2, 15, true};
}

/* Normal codes move their fields to the places of an f32's; subnormal ones count steps. */
static LLVMValueRef widen_f8(emitter *e, dtype t, LLVMValueRef code)
{
    f8_format f = f8_format_of(t);
    LLVMValueRef bits = extended(e, code), magnitude = and32(e, bits, 0x7f);
    unsigned place = 23 - (unsigned)f.fraction_bits;
    LLVMValueRef normal = add32(e, shift_left(e, magnitude, place), (int64_t)(127 - f.bias) << 23);
    LLVMValueRef count = LLVMBuildSIToFP(e->b, magnitude, emit_type_like(e, magnitude, e->f32), "");
    LLVMValueRef step = emit_f32_like(e, count, ldexp(1, 1 - f.bias - f.fraction_bits));
    LLVMValueRef subnormal = bits_of(e, LLVMBuildFMul(e->b, count, step, ""));
    LLVMValueRef size = choose(e, LLVMIntULT, magnitude, 1u << f.fraction_bits, subnormal, normal);
    if (f.infinities)
        size = choose(e, LLVMIntEQ, magnitude, 0x7c, emit_i32_like(e, size, 0x7f800000), size);
    size = LLVMBuildOr(e->b, size, shift_left(e, and32(e, bits, 0x80), 24), "");
    return value_of(e, choose(e, LLVMIntUGT, magnitude, f.infinities ? 0x7c : 0x7e, emit_i32_like(e, size, 0x7fc00000), size));
}

/* Three bits count: 0, 1 and 2 halves, then 1.5, 2, 3, 4 and 6; 2 and above are an exponent and half a bit of fraction. */
static LLVMValueRef widen_f4e2m1(emitter *e, LLVMValueRef code)
{
    LLVMValueRef bits = extended(e, code), magnitude = and32(e, bits, 7);
    LLVMValueRef normal = add32(e, shift_left(e, magnitude, 22), (int64_t)126 << 23);
    LLVMValueRef half = choose(e, LLVMIntEQ, magnitude, 1, emit_i32_like(e, magnitude, 0x3f000000), emit_i32_like(e, magnitude, 0));
    LLVMValueRef size = choose(e, LLVMIntULT, magnitude, 2, half, normal);
    return value_of(e, LLVMBuildOr(e->b, size, shift_left(e, and32(e, bits, 8), 28), ""));
}

LLVMValueRef emit_widen(emitter *e, dtype t, LLVMValueRef code)
{
    switch (t) {
    case DTYPE_I4:
    case DTYPE_I5: {
        LLVMValueRef high = shift_left(e, extended(e, code), 28);
        return LLVMBuildAShr(e->b, high, emit_i32_like(e, high, 28), "");
    }
    case DTYPE_U8: return extended(e, code);
    case DTYPE_F4E2M1: return widen_f4e2m1(e, code);
    case DTYPE_I8:
    case DTYPE_I9:
    case DTYPE_I16: return LLVMBuildSExt(e->b, code, emit_type_like(e, code, e->i32), "");
    case DTYPE_F8E4M3:
    case DTYPE_F8E5M2: return widen_f8(e, t, code);
    case DTYPE_BF16: return widen_bf16(e, code);
    case DTYPE_F32: return value_of(e, code);
    default: return code;
    }
}

LLVMValueRef emit_widen_number(emitter *e, dtype t, LLVMValueRef code)
{
    return t == DTYPE_BF16 ? widen_bf16_number(e, code) : emit_widen(e, t, code);
}

static LLVMValueRef exponent_of(emitter *e, LLVMValueRef codes)
{
    enum { EXPONENT = 0x7f80 };
    return LLVMBuildAnd(e->b, codes, emit_splat(e, LLVMConstInt(e->i16, EXPONENT, false), LLVMGetVectorSize(LLVMTypeOf(codes))), "");
}

/* i1: is the code a number above the subnormal ones, or none? */
static LLVMValueRef is_normal(emitter *e, LLVMValueRef codes)
{
    return LLVMBuildICmp(e->b, LLVMIntNE, exponent_of(e, codes), LLVMConstNull(LLVMTypeOf(codes)), "");
}

/* AVX2 has an instruction that makes zeros of subnormal codes, in a vector or half of one: times the sign of the exponent. */
static bool has_sign_product(const emitter *e, LLVMValueRef codes)
{
    enum { AVX2_LANES = 8 };
    unsigned lanes = LLVMGetVectorSize(LLVMTypeOf(codes));
    return e->plan->machine.lanes == AVX2_LANES && (lanes == AVX2_LANES || lanes == 2 * AVX2_LANES);
}

static LLVMValueRef without_subnormals(emitter *e, LLVMValueRef codes)
{
    enum { FEW_LANES = 8 };
    if (!has_sign_product(e, codes))
        return LLVMBuildSelect(e->b, is_normal(e, codes), codes, LLVMConstNull(LLVMTypeOf(codes)), "");
    const char *name = LLVMGetVectorSize(LLVMTypeOf(codes)) == FEW_LANES ? "llvm.x86.ssse3.psign.w.128" : "llvm.x86.avx2.psign.w";
    return emit_plain_intrinsic(e, name, (LLVMValueRef[]){codes, exponent_of(e, codes)}, 2);
}

LLVMValueRef emit_widen_factor(emitter *e, dtype t, LLVMValueRef code)
{
    if (t != DTYPE_BF16)
        return emit_widen(e, t, code);
    if (has_sign_product(e, code))
        return value_of(e, shift_left(e, extended(e, without_subnormals(e, code)), 16));
    LLVMValueRef wide = extended(e, code);
    return value_of(e, shift_left(e, LLVMBuildSelect(e->b, is_normal(e, code), wide, LLVMConstNull(LLVMTypeOf(wide)), ""), 16));
}

void emit_widen_apart(emitter *e, LLVMValueRef codes, LLVMValueRef *even, LLVMValueRef *odd)
{
    LLVMValueRef pairs =
        LLVMBuildBitCast(e->b, without_subnormals(e, codes), emit_vector_type(e->i32, LLVMGetVectorSize(LLVMTypeOf(codes)) / 2), "");
    *even = shift_left(e, pairs, 16);
    *odd = and32(e, pairs, 0xffff0000);
}

/* ---- narrowing ---- */

/* The magnitude's upper bits, nearest even: `drop` low bits go. The sum cannot leave 32 bits. */
static LLVMValueRef drop_nearest_even(emitter *e, LLVMValueRef magnitude, unsigned drop)
{
    LLVMValueRef lowest_kept = and32(e, shift_right(e, magnitude, drop), 1);
    LLVMValueRef half = add32(e, magnitude, ((int64_t)1 << (drop - 1)) - 1);
    return shift_right(e, LLVMBuildAdd(e->b, half, lowest_kept, ""), drop);
}

/* The CPU's own conversion rounds as ours does and takes subnormals for zero; its NaNs keep their bits. */
static LLVMValueRef narrow_bf16_vector(emitter *e, LLVMValueRef value)
{
    LLVMValueRef code = emit_plain_intrinsic(e, "llvm.x86.avx512bf16.cvtneps2bf16.512", &value, 1);
    code = LLVMBuildBitCast(e->b, code, emit_type_like(e, value, e->i16), "");
    LLVMValueRef is_nan = LLVMBuildFCmp(e->b, LLVMRealUNO, value, value, "");
    return LLVMBuildSelect(e->b, is_nan, truncated(e, emit_i32_like(e, value, 0x7fc0), e->i16), code, "");
}

static LLVMValueRef narrow_bf16(emitter *e, LLVMValueRef bits)
{
    enum { LANES = 16 };
    LLVMTypeRef type = LLVMTypeOf(bits);
    if (e->plan->machine.bf16_dot && LLVMGetTypeKind(type) == LLVMVectorTypeKind && LLVMGetVectorSize(type) == LANES)
        return narrow_bf16_vector(e, value_of(e, bits));
    LLVMValueRef value = value_of(e, bits), is_nan = LLVMBuildFCmp(e->b, LLVMRealUNO, value, value, "");
    LLVMValueRef normal = LLVMBuildICmp(e->b, LLVMIntUGT, and32(e, bits, 0x7fffffff), emit_i32_like(e, bits, 0x007fffff), "");
    LLVMValueRef kept = LLVMBuildOr(e->b, LLVMBuildSExt(e->b, normal, LLVMTypeOf(bits), ""), emit_i32_like(e, bits, 0x80000000), "");
    /* the sign is not in the way: a carry into it comes from a NaN alone */
    LLVMValueRef odd = and32(e, shift_right(e, bits, 16), 1), rounded = LLVMBuildAdd(e->b, add32(e, bits, 0x7fff), odd, "");
    LLVMValueRef number = LLVMBuildAnd(e->b, rounded, kept, "");
    return truncated(e, shift_right(e, LLVMBuildSelect(e->b, is_nan, emit_i32_like(e, bits, 0x7fc00000), number, ""), 16), e->i16);
}

/* Sign and NaN around a magnitude code of an 8-bit float. */
static LLVMValueRef finish_f8(emitter *e, LLVMValueRef bits, LLVMValueRef code, uint32_t nan_code)
{
    LLVMValueRef sign = and32(e, shift_right(e, bits, 24), 0x80);
    code = LLVMBuildOr(e->b, code, sign, "");
    code = choose(e, LLVMIntUGT, and32(e, bits, 0x7fffffff), 0x7f800000, emit_i32_like(e, code, nan_code), code);
    return truncated(e, code, e->i8);
}

/* Nearest even, saturating at 448. Below 2^-6 the codes count steps of 2^-9, which is the distance of
 * neighbouring f32 values at 2^14: adding 2^14 rounds to a step. */
static LLVMValueRef narrow_f8e4m3(emitter *e, LLVMValueRef bits)
{
    LLVMValueRef magnitude = and32(e, bits, 0x7fffffff);
    LLVMValueRef normal = add32(e, drop_nearest_even(e, magnitude, 20), -((127 - 7) << 3));
    normal = least(e, normal, 0x7e);
    LLVMValueRef stepped = LLVMBuildFAdd(e->b, value_of(e, magnitude), emit_f32_like(e, magnitude, 16384.0), "");
    LLVMValueRef subnormal = and32(e, bits_of(e, stepped), 0xf);
    LLVMValueRef code = choose(e, LLVMIntULT, magnitude, (127 - 6) << 23, subnormal, normal);
    return finish_f8(e, bits, code, 0x7f);
}

/* Half away from zero; overflow is infinity. Below 2^-14 the codes count steps of 2^-16 and stop at 3. */
static LLVMValueRef narrow_f8e5m2(emitter *e, LLVMValueRef bits)
{
    LLVMValueRef magnitude = and32(e, bits, 0x7fffffff);
    LLVMValueRef normal = add32(e, shift_right(e, add32(e, magnitude, 1 << 20), 21), -((127 - 15) << 2));
    normal = least(e, normal, 0x7c);
    LLVMValueRef small = choose(e, LLVMIntULT, magnitude, (127 - 14) << 23, magnitude, emit_i32_like(e, magnitude, 0));
    LLVMValueRef steps = LLVMBuildFMul(e->b, value_of(e, small), emit_f32_like(e, small, 65536.0), "");
    LLVMValueRef whole = LLVMBuildFPToSI(e->b, steps, emit_type_like(e, steps, e->i32), "");
    LLVMValueRef rest = LLVMBuildFSub(e->b, steps, LLVMBuildSIToFP(e->b, whole, emit_type_like(e, whole, e->f32), ""), "");
    LLVMValueRef half = LLVMBuildFCmp(e->b, LLVMRealOGE, rest, emit_f32_like(e, rest, 0.5), "");
    LLVMValueRef subnormal = LLVMBuildAdd(e->b, whole, extended(e, half), "");
    subnormal = least(e, subnormal, 3);
    LLVMValueRef code = choose(e, LLVMIntULT, magnitude, (127 - 14) << 23, subnormal, normal);
    return finish_f8(e, bits, code, 0x7e);
}

/* Nearest even, saturating at 6: how many of the middles between neighbours the magnitude has passed. */
static LLVMValueRef narrow_f4e2m1(emitter *e, LLVMValueRef bits)
{
    static const double middles[] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5};
    LLVMValueRef magnitude = value_of(e, and32(e, bits, 0x7fffffff)), code = emit_i32_like(e, bits, 0);
    for (unsigned i = 0; i < sizeof middles / sizeof *middles; i++) {
        LLVMValueRef middle = emit_f32_like(e, magnitude, middles[i]);
        LLVMValueRef passed = LLVMBuildFCmp(e->b, i % 2 ? LLVMRealOGE : LLVMRealOGT, magnitude, middle, "");
        code = LLVMBuildAdd(e->b, code, extended(e, passed), "");
    }
    LLVMValueRef sign = and32(e, shift_right(e, bits, 28), 8);
    LLVMValueRef number = LLVMBuildFCmp(e->b, LLVMRealORD, magnitude, magnitude, "");
    return truncated(e, LLVMBuildOr(e->b, code, LLVMBuildSelect(e->b, number, sign, emit_i32_like(e, sign, 0), ""), ""), e->i8);
}

LLVMValueRef emit_narrow(emitter *e, dtype t, LLVMValueRef value)
{
    switch (t) {
    case DTYPE_F4E2M1: return narrow_f4e2m1(e, bits_of(e, value));
    case DTYPE_U8:
    case DTYPE_I5:
    case DTYPE_I9:
    case DTYPE_I4:
    case DTYPE_I8:
    case DTYPE_I16: return truncated(e, value, emit_code_type(e, t));
    case DTYPE_F8E4M3: return narrow_f8e4m3(e, bits_of(e, value));
    case DTYPE_F8E5M2: return narrow_f8e5m2(e, bits_of(e, value));
    case DTYPE_BF16: return narrow_bf16(e, bits_of(e, value));
    case DTYPE_F32: return bits_of(e, value);
    default: return value;
    }
}
