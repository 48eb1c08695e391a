#include "codegen/reference/scalar.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "codegen/reference/convert.h"

/* ---- shorthands ---- */

static LLVMValueRef wide(emitter *e, LLVMValueRef x)
{
    return LLVMBuildSExt(e->b, x, emit_type_like(e, x, e->i64), "");
}

static LLVMValueRef i64_like(emitter *e, LLVMValueRef x, int64_t value)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMValueRef one = emit_i64(e, value);
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? emit_splat(e, one, LLVMGetVectorSize(type)) : one;
}

static LLVMValueRef bits_of(emitter *e, LLVMValueRef x)
{
    return LLVMBuildBitCast(e->b, x, emit_type_like(e, x, e->i32), "");
}

static LLVMValueRef value_of(emitter *e, LLVMValueRef x)
{
    return LLVMBuildBitCast(e->b, x, emit_type_like(e, x, e->f32), "");
}

static LLVMValueRef clamp(emitter *e, LLVMValueRef x, int64_t least, int64_t most)
{
    LLVMValueRef low = emit_i32_like(e, x, least), high = emit_i32_like(e, x, most);
    x = LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, x, low, ""), low, x, "");
    return LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntSGT, x, high, ""), high, x, "");
}

/* Of an i64. */
static LLVMValueRef clamped(emitter *e, LLVMValueRef x)
{
    LLVMValueRef low = i64_like(e, x, INT32_MIN), high = i64_like(e, x, INT32_MAX);
    x = LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, x, low, ""), low, x, "");
    x = LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntSGT, x, high, ""), high, x, "");
    return LLVMBuildTrunc(e->b, x, emit_type_like(e, x, e->i32), "");
}

static LLVMValueRef count_of(emitter *e, LLVMValueRef x)
{
    return LLVMBuildAnd(e->b, x, emit_i32_like(e, x, 31), "");
}

static LLVMValueRef unary(emitter *e, const char *name, LLVMValueRef x)
{
    return emit_intrinsic(e, name, &x, 1);
}

static LLVMValueRef function_of(emitter *e, const char *name, LLVMTypeRef type)
{
    LLVMValueRef callee = LLVMGetNamedFunction(e->module, name);
    return callee ? callee : LLVMAddFunction(e->module, name, type);
}

#ifdef HAVE_MVEC
/* Its library's name of a function of so many f64: those of a register of the CPU, or fewer. */
static void vector_name(char *name, size_t size, const char *function, int64_t lanes)
{
    snprintf(name, size, "_ZGV%cN%lldv_%s", lanes == 8 ? 'e' : lanes == 4 ? 'd' : 'b', (long long)lanes, function);
}
#endif

/* Some lanes of f64 through the function. */
static LLVMValueRef call_lanes(emitter *e, const char *function, LLVMValueRef x, unsigned lanes)
{
    LLVMTypeRef vector = LLVMTypeOf(x), type = LLVMFunctionType(e->f64, &e->f64, 1, false);
    if (LLVMGetTypeKind(vector) != LLVMVectorTypeKind)
        return LLVMBuildCall2(e->b, type, function_of(e, function, type), &x, 1, "");
#ifdef HAVE_MVEC
    enum { MOST_NAME = 32 };
    char name[MOST_NAME];
    vector_name(name, sizeof name, function, lanes);
    type = LLVMFunctionType(vector, &vector, 1, false);
    return LLVMBuildCall2(e->b, type, function_of(e, name, type), &x, 1, "");
#else
    LLVMValueRef all = LLVMGetPoison(vector), callee = function_of(e, function, type);
    for (unsigned i = 0; i < lanes; i++) {
        LLVMValueRef lane = LLVMBuildExtractElement(e->b, x, emit_i32(e, i), "");
        all = LLVMBuildInsertElement(e->b, all, LLVMBuildCall2(e->b, type, callee, &lane, 1, ""), emit_i32(e, i), "");
    }
    return all;
#endif
}

static LLVMValueRef nearest_at_once(emitter *e, const char *function, LLVMValueRef x, unsigned lanes)
{
    LLVMValueRef value = call_lanes(e, function, LLVMBuildFPExt(e->b, x, emit_type_like(e, x, e->f64), ""), lanes);
    return LLVMBuildFPTrunc(e->b, value, LLVMTypeOf(x), "");
}

/* The f32 nearest to what the C library computes in f64: another implementation that is as careful gives the same, but where the true
 * value is within 2^-50 of the middle of two. Vectors go through the library's functions of vectors, as many lanes as a register has. */
enum { MOST_LANES = 8 };
static LLVMValueRef nearest_of(emitter *e, const char *function, LLVMValueRef x, unsigned most_lanes)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    bool one = LLVMGetTypeKind(type) != LLVMVectorTypeKind;
    unsigned lanes = one ? 1 : LLVMGetVectorSize(type), part = one ? 1 : (unsigned)e->plan->machine.lanes / 2;
    part = part > most_lanes ? most_lanes : part;
    while (part > 1 && lanes % part)
        part /= 2;
    if (part == lanes)
        return nearest_at_once(e, function, x, lanes);
    LLVMValueRef all = LLVMGetPoison(type);
    for (unsigned from = 0; from < lanes; from += part) {
        int taken[MOST_LANES];
        for (unsigned i = 0; i < part; i++)
            taken[i] = (int)(from + i);
        LLVMValueRef some = part == 1 ? LLVMBuildExtractElement(e->b, x, emit_i32(e, from), "") : emit_shuffle(e, x, x, taken, part);
        some = nearest_at_once(e, function, some, part);
        for (unsigned i = 0; i < part; i++)
            all = LLVMBuildInsertElement(e->b, all, part == 1 ? some : LLVMBuildExtractElement(e->b, some, emit_i32(e, i), ""),
                                         emit_i32(e, from + i), "");
    }
    return all;
}

static LLVMValueRef nearest(emitter *e, const char *function, LLVMValueRef x)
{
    return nearest_of(e, function, x, MOST_LANES);
}

/* By value. A number before a NaN; of two equal numbers, which are two zeros or the same, the bits that
 * `meet` makes. */
static LLVMValueRef extreme(emitter *e, LLVMRealPredicate first, LLVMValueRef x, LLVMValueRef y, LLVMValueRef meet)
{
    LLVMValueRef takes = LLVMBuildOr(e->b, LLVMBuildFCmp(e->b, first, x, y, ""), LLVMBuildFCmp(e->b, LLVMRealUNO, y, y, ""), "");
    LLVMValueRef result = LLVMBuildSelect(e->b, takes, x, y, "");
    return LLVMBuildSelect(e->b, LLVMBuildFCmp(e->b, LLVMRealOEQ, x, y, ""), value_of(e, meet), result, "");
}

static LLVMValueRef rounded_through(emitter *e, dtype t, LLVMValueRef x)
{
    return emit_widen(e, t, emit_narrow(e, t, x));
}

static LLVMValueRef wrapped(emitter *e, LLVMValueRef x, unsigned bits)
{
    LLVMValueRef by = emit_i32_like(e, x, 32 - (int64_t)bits);
    return LLVMBuildAShr(e->b, LLVMBuildShl(e->b, x, by, ""), by, "");
}

/* ---- i32 ---- */

/* clang-format off: a line is an operation */
#define OP(name) static LLVMValueRef emit_##name(emitter *e, const LLVMValueRef *x)

OP(ADD_I32)
{
    return LLVMBuildAdd(e->b, x[0], x[1], "");
}
OP(SUB_I32)
{
    return LLVMBuildSub(e->b, x[0], x[1], "");
}
OP(MUL_I32)
{
    return LLVMBuildMul(e->b, x[0], x[1], "");
}
OP(ADD_SAT_I32)
{
    return clamped(e, LLVMBuildAdd(e->b, wide(e, x[0]), wide(e, x[1]), ""));
}
OP(SUB_SAT_I32)
{
    return clamped(e, LLVMBuildSub(e->b, wide(e, x[0]), wide(e, x[1]), ""));
}
OP(MUL_SAT_I32)
{
    return clamped(e, LLVMBuildMul(e->b, wide(e, x[0]), wide(e, x[1]), ""));
}
OP(MUL_FXP)
{
    LLVMValueRef product = LLVMBuildMul(e->b, wide(e, x[0]), wide(e, x[1]), ""), one = i64_like(e, product, 1);
    LLVMValueRef half = LLVMBuildAdd(e->b, LLVMBuildAShr(e->b, product, i64_like(e, product, 30), ""), one, "");
    return clamped(e, LLVMBuildAShr(e->b, half, one, "")); /* only of two -2^31 is it 2^31 */
}
OP(NEG_I32)
{
    return LLVMBuildNeg(e->b, x[0], "");
}
OP(ABS_I32)
{
    return LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, x[0], emit_i32_like(e, x[0], 0), ""), LLVMBuildNeg(e->b, x[0], ""), x[0],
                           "");
}
OP(MIN_I32)
{
    return LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, x[0], x[1], ""), x[0], x[1], "");
}
OP(MAX_I32)
{
    return LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntSGT, x[0], x[1], ""), x[0], x[1], "");
}
OP(CLIP_I32)
{
    return emit_MIN_I32(e, (LLVMValueRef[]){emit_MAX_I32(e, x), x[2]});
}
OP(AND_I32)
{
    return LLVMBuildAnd(e->b, x[0], x[1], "");
}
OP(OR_I32)
{
    return LLVMBuildOr(e->b, x[0], x[1], "");
}
OP(XOR_I32)
{
    return LLVMBuildXor(e->b, x[0], x[1], "");
}
OP(NOT_I32)
{
    return LLVMBuildNot(e->b, x[0], "");
}
OP(SHL_I32)
{
    return LLVMBuildShl(e->b, x[0], count_of(e, x[1]), "");
}
OP(SHR_I32)
{
    return LLVMBuildLShr(e->b, x[0], count_of(e, x[1]), "");
}
OP(SAR_I32)
{
    return LLVMBuildAShr(e->b, x[0], count_of(e, x[1]), "");
}

/* ---- f32 ---- */

OP(ADD_F32)
{
    return LLVMBuildFAdd(e->b, x[0], x[1], "");
}
OP(SUB_F32)
{
    return LLVMBuildFSub(e->b, x[0], x[1], "");
}
OP(MUL_F32)
{
    return LLVMBuildFMul(e->b, x[0], x[1], "");
}
OP(DIV_F32)
{
    return LLVMBuildFDiv(e->b, x[0], x[1], "");
}
OP(FMA_F32)
{
    return emit_intrinsic(e, "llvm.fma", (LLVMValueRef[]){x[0], x[1], x[2]}, 3);
}
OP(NEG_F32)
{
    return LLVMBuildFNeg(e->b, x[0], "");
}
OP(ABS_F32)
{
    return unary(e, "llvm.fabs", x[0]);
}
OP(CANONICAL_F32)
{
    LLVMValueRef bits = bits_of(e, x[0]), magnitude = LLVMBuildAnd(e->b, bits, emit_i32_like(e, bits, INT32_MAX), "");
    LLVMValueRef is_nan = LLVMBuildICmp(e->b, LLVMIntUGT, magnitude, emit_i32_like(e, bits, 0x7f800000), "");
    return value_of(e, LLVMBuildSelect(e->b, is_nan, emit_i32_like(e, bits, 0x7fc00000), bits, ""));
}
OP(MIN_F32)
{
    return extreme(e, LLVMRealOLT, x[0], x[1], LLVMBuildOr(e->b, bits_of(e, x[0]), bits_of(e, x[1]), ""));
}
OP(MAX_F32)
{
    return extreme(e, LLVMRealOGT, x[0], x[1], LLVMBuildAnd(e->b, bits_of(e, x[0]), bits_of(e, x[1]), ""));
}
OP(CLIP_F32)
{
    return emit_MIN_F32(e, (LLVMValueRef[]){emit_MAX_F32(e, x), x[2]});
}
OP(SQRT_F32)
{
    return unary(e, "llvm.sqrt", x[0]);
}
OP(FLOOR_F32)
{
    return unary(e, "llvm.floor", x[0]);
}
OP(CEIL_F32)
{
    return unary(e, "llvm.ceil", x[0]);
}
OP(TRUNC_F32)
{
    return unary(e, "llvm.trunc", x[0]);
}
OP(ROUND_F32)
{
    return unary(e, "llvm.round", x[0]);
}
OP(ROUND_EVEN_F32)
{
    return unary(e, "llvm.roundeven", x[0]);
}
OP(EXP_F32)
{
    return nearest(e, "exp", x[0]);
}
OP(LOG_F32)
{
    return nearest(e, "log", x[0]);
}
OP(TANH_F32)
{
    return nearest(e, "tanh", x[0]);
}
OP(SIGMOID_F32)
{
    LLVMValueRef one = emit_f32_like(e, x[0], 1);
    return LLVMBuildFDiv(e->b, one, LLVMBuildFAdd(e->b, one, nearest(e, "exp", LLVMBuildFNeg(e->b, x[0], "")), ""), "");
}
OP(ERF_F32)
{
    return nearest_of(e, "erf", x[0], 1); /* not every C library has it of vectors */
}
OP(SIN_F32)
{
    return nearest(e, "sin", x[0]);
}
OP(COS_F32)
{
    return nearest(e, "cos", x[0]);
}

/* ---- comparisons ---- */

OP(EQ_I32)
{
    return LLVMBuildICmp(e->b, LLVMIntEQ, x[0], x[1], "");
}
OP(NE_I32)
{
    return LLVMBuildICmp(e->b, LLVMIntNE, x[0], x[1], "");
}
OP(LT_I32)
{
    return LLVMBuildICmp(e->b, LLVMIntSLT, x[0], x[1], "");
}
OP(LE_I32)
{
    return LLVMBuildICmp(e->b, LLVMIntSLE, x[0], x[1], "");
}
OP(LT_U32)
{
    return LLVMBuildICmp(e->b, LLVMIntULT, x[0], x[1], "");
}
OP(EQ_F32)
{
    return LLVMBuildFCmp(e->b, LLVMRealOEQ, x[0], x[1], "");
}
OP(NE_F32)
{
    return LLVMBuildFCmp(e->b, LLVMRealUNE, x[0], x[1], "");
}
OP(LT_F32)
{
    return LLVMBuildFCmp(e->b, LLVMRealOLT, x[0], x[1], "");
}
OP(LE_F32)
{
    return LLVMBuildFCmp(e->b, LLVMRealOLE, x[0], x[1], "");
}
OP(AND_BOOL)
{
    return LLVMBuildAnd(e->b, x[0], x[1], "");
}
OP(OR_BOOL)
{
    return LLVMBuildOr(e->b, x[0], x[1], "");
}
OP(NOT_BOOL)
{
    return LLVMBuildNot(e->b, x[0], "");
}
OP(SELECT_I32)
{
    return LLVMBuildSelect(e->b, x[0], x[1], x[2], "");
}
OP(SELECT_F32)
{
    return LLVMBuildSelect(e->b, x[0], x[1], x[2], "");
}

/* ---- conversions ---- */

OP(F32_OF_I32)
{
    return LLVMBuildSIToFP(e->b, x[0], emit_type_like(e, x[0], e->f32), "");
}

/* Between the limits a conversion is defined; there and for NaN its result is not used. */
static LLVMValueRef truncated(emitter *e, LLVMValueRef x, LLVMValueRef nan)
{
    LLVMValueRef low = emit_f64_like(e, x, -0x1p31), high = emit_f64_like(e, x, 0x1p31);
    LLVMValueRef below = LLVMBuildFCmp(e->b, LLVMRealOLE, x, low, ""), above = LLVMBuildFCmp(e->b, LLVMRealOGE, x, high, "");
    LLVMValueRef none = LLVMBuildFCmp(e->b, LLVMRealUNO, x, x, "");
    LLVMValueRef outside = LLVMBuildOr(e->b, LLVMBuildOr(e->b, below, above, ""), none, "");
    LLVMValueRef safe = LLVMBuildSelect(e->b, outside, emit_f64_like(e, x, 0), x, "");
    LLVMValueRef whole = LLVMBuildFPToSI(e->b, safe, emit_type_like(e, x, e->i32), "");
    whole = LLVMBuildSelect(e->b, below, emit_i32_like(e, whole, INT32_MIN), whole, "");
    whole = LLVMBuildSelect(e->b, above, emit_i32_like(e, whole, INT32_MAX), whole, "");
    return LLVMBuildSelect(e->b, none, nan, whole, "");
}

static LLVMValueRef doubled(emitter *e, LLVMValueRef x)
{
    return LLVMBuildFPExt(e->b, x, emit_type_like(e, x, e->f64), "");
}

OP(I32_OF_F32)
{
    return truncated(e, doubled(e, x[0]), emit_i32_like(e, x[0], 0));
}

/* 2^n as f64, from its exponent's bits. */
static LLVMValueRef power_of_two(emitter *e, LLVMValueRef n)
{
    LLVMValueRef exponent = LLVMBuildAdd(e->b, wide(e, n), i64_like(e, n, 1023), "");
    return LLVMBuildBitCast(e->b, LLVMBuildShl(e->b, exponent, i64_like(e, n, 52), ""), emit_type_like(e, n, e->f64), "");
}

/* Exact in f64, and rounded once to f32. */
OP(F32_OF_FXP)
{
    LLVMValueRef scale = power_of_two(e, LLVMBuildSub(e->b, count_of(e, x[1]), emit_i32_like(e, x[1], 31), ""));
    LLVMValueRef value = LLVMBuildFMul(e->b, LLVMBuildSIToFP(e->b, x[0], emit_type_like(e, x[0], e->f64), ""), scale, "");
    return LLVMBuildFPTrunc(e->b, value, emit_type_like(e, x[0], e->f32), "");
}

/* x * 2^n is exact in f64; adding half of the sign to it is, below 2^52, and beyond it is clamped. */
OP(FXP_OF_F32)
{
    LLVMValueRef scale = power_of_two(e, LLVMBuildSub(e->b, emit_i32_like(e, x[1], 31), count_of(e, x[1]), ""));
    LLVMValueRef value = LLVMBuildFMul(e->b, doubled(e, x[0]), scale, "");
    LLVMValueRef half = emit_intrinsic(e, "llvm.copysign", (LLVMValueRef[]){emit_f64_like(e, value, 0.5), value}, 2);
    LLVMValueRef negative = LLVMBuildICmp(e->b, LLVMIntSLT, bits_of(e, x[0]), emit_i32_like(e, x[0], 0), "");
    LLVMValueRef nan = LLVMBuildSelect(e->b, negative, emit_i32_like(e, x[0], INT32_MIN), emit_i32_like(e, x[0], INT32_MAX), "");
    return truncated(e, LLVMBuildFAdd(e->b, value, half, ""), nan);
}

OP(BITS_OF_F32)
{
    return bits_of(e, x[0]);
}
OP(F32_OF_BITS)
{
    return value_of(e, x[0]);
}
OP(WRAP_I4)
{
    return wrapped(e, x[0], 4);
}
OP(WRAP_I8)
{
    return wrapped(e, x[0], 8);
}
OP(WRAP_I16)
{
    return wrapped(e, x[0], 16);
}
OP(SAT_I4)
{
    return clamp(e, x[0], -8, 7);
}
OP(SAT_I8)
{
    return clamp(e, x[0], INT8_MIN, INT8_MAX);
}
OP(SAT_I16)
{
    return clamp(e, x[0], INT16_MIN, INT16_MAX);
}
OP(ROUND_F8E4M3)
{
    return rounded_through(e, DTYPE_F8E4M3, x[0]);
}
OP(ROUND_F8E5M2)
{
    return rounded_through(e, DTYPE_F8E5M2, x[0]);
}
OP(ROUND_BF16)
{
    return rounded_through(e, DTYPE_BF16, x[0]);
}

/* clang-format on */

LLVMValueRef emit_scalar(emitter *e, scalar_op op, const LLVMValueRef *operands)
{
    switch (op) {
#define SCALAR(symbol, code, name, a, b, c, result, flags, identity, bound, ulps, text, meaning) \
    case SCALAR_##symbol: \
        return emit_##symbol(e, operands);
#include "target/scalar.def"
#undef SCALAR
    default: return NULL;
    }
}

LLVMTypeRef emit_scalar_type(emitter *e, scalar_type type, int64_t lanes)
{
    LLVMTypeRef one = type == SCALAR_I32 ? e->i32 : type == SCALAR_F32 ? e->f32 : e->i1;
    return lanes > 1 ? emit_vector_type(one, lanes) : one;
}

LLVMValueRef emit_scalar_constant(emitter *e, scalar_type type, uint32_t bits, int64_t lanes)
{
    LLVMValueRef one = LLVMConstInt(e->i32, bits, false);
    one = type == SCALAR_F32 ? LLVMConstBitCast(one, e->f32) : one;
    return lanes > 1 ? emit_splat(e, one, lanes) : one;
}

/* What LLVM calls where the CPU has no instruction, and what is called by name. */
#ifdef HAVE_MVEC
#define OF_VECTORS(function) \
    extern char _ZGVbN2v_##function[], _ZGVdN4v_##function[], _ZGVeN8v_##function[]; /* functions, of which only the address is taken */
OF_VECTORS(exp)
OF_VECTORS(log)
OF_VECTORS(tanh)
OF_VECTORS(sin)
OF_VECTORS(cos)
#undef OF_VECTORS
#define OF_VECTORS(function) SYMBOL(_ZGVbN2v_##function), SYMBOL(_ZGVdN4v_##function), SYMBOL(_ZGVeN8v_##function),
#else
#define OF_VECTORS(function)
#endif

scalar_symbol scalar_symbol_at(size_t index)
{
#define SYMBOL(name) \
    { \
#name, (void *)(uintptr_t)(name) \
    }
    static const scalar_symbol symbols[] = {SYMBOL(exp),
                                            SYMBOL(log),
                                            SYMBOL(tanh),
                                            SYMBOL(erf),
                                            SYMBOL(sin),
                                            SYMBOL(cos),
                                            SYMBOL(fmaf),
                                            SYMBOL(floorf),
                                            SYMBOL(ceilf),
                                            SYMBOL(truncf),
                                            SYMBOL(roundevenf),
                                            SYMBOL(roundf),
                                            OF_VECTORS(exp) OF_VECTORS(log) OF_VECTORS(tanh) OF_VECTORS(sin) OF_VECTORS(cos)};
#undef SYMBOL
    return index < sizeof symbols / sizeof *symbols ? symbols[index] : (scalar_symbol){NULL, NULL};
}
