#include "codegen/reference/scalar_bound.h"

#include <float.h>
#include <math.h>

#include "codegen/reference/scalar.h"

/* Operands, their errors as f64 like the result, and the result. */
typedef struct bound_of {
    emitter *e;
    const scalar_row *row;
    LLVMValueRef x[SCALAR_OPERANDS], error[SCALAR_OPERANDS], result;
} bound_of;

static LLVMValueRef constant(const bound_of *b, double value)
{
    return emit_f64_like(b->e, b->result, value);
}

static LLVMValueRef plus(const bound_of *b, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildFAdd(b->e->b, x, y, "");
}

static LLVMValueRef times(const bound_of *b, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildFMul(b->e->b, x, y, "");
}

static LLVMValueRef extended(const bound_of *b, LLVMValueRef x)
{
    return LLVMBuildFPExt(b->e->b, x, emit_type_like(b->e, x, b->e->f64), "");
}

static LLVMValueRef magnitude(const bound_of *b, LLVMValueRef x)
{
    LLVMValueRef wide = extended(b, x);
    return emit_intrinsic(b->e, "llvm.fabs", &wide, 1);
}

static LLVMValueRef larger(const bound_of *b, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildSelect(b->e->b, LLVMBuildFCmp(b->e->b, LLVMRealOGT, x, y, ""), x, y, "");
}

static LLVMValueRef choose(const bound_of *b, LLVMValueRef condition, LLVMValueRef yes, LLVMValueRef no)
{
    return LLVMBuildSelect(b->e->b, condition, yes, no, "");
}

static LLVMValueRef is_zero(const bound_of *b, LLVMValueRef x)
{
    return LLVMBuildFCmp(b->e->b, LLVMRealOEQ, x, constant(b, 0), "");
}

/* Both results are rounded; without a limit where the result is no number, or another may overflow. */
static LLVMValueRef rounded(const bound_of *b, LLVMValueRef error)
{
    LLVMValueRef reach = plus(b, magnitude(b, b->result), error);
    error = plus(b, times(b, error, constant(b, 1 + 0x1p-20)), plus(b, times(b, reach, constant(b, 0x1p-22)), constant(b, 0x1p-148)));
    LLVMValueRef fits = LLVMBuildFCmp(b->e->b, LLVMRealOLT, times(b, reach, constant(b, 1 + 0x1p-20)), constant(b, FLT_MAX), "");
    return choose(b, fits, error, constant(b, INFINITY));
}

/* ---- the rules; all errors together are not zero ---- */

static LLVMValueRef bound_NONE(const bound_of *b)
{
    return constant(b, INFINITY);
}

static LLVMValueRef bound_SUM(const bound_of *b)
{
    return rounded(b, plus(b, b->error[0], b->error[1]));
}

static LLVMValueRef product_error(const bound_of *b)
{
    LLVMValueRef x = magnitude(b, b->x[0]), y = magnitude(b, b->x[1]);
    LLVMValueRef sum = plus(b, times(b, x, b->error[1]), times(b, y, b->error[0]));
    return plus(b, sum, times(b, b->error[0], b->error[1]));
}

static LLVMValueRef bound_PRODUCT(const bound_of *b)
{
    return rounded(b, product_error(b));
}

static LLVMValueRef bound_FUSED(const bound_of *b)
{
    return rounded(b, plus(b, product_error(b), b->error[2]));
}

/* |x/y - x'/y'| <= (|x| ey + |y| ex) / (|y| (|y| - ey)) */
static LLVMValueRef bound_QUOTIENT(const bound_of *b)
{
    emitter *e = b->e;
    LLVMValueRef x = magnitude(b, b->x[0]), y = magnitude(b, b->x[1]), least = LLVMBuildFSub(e->b, y, b->error[1], "");
    LLVMValueRef above = plus(b, times(b, x, b->error[1]), times(b, y, b->error[0]));
    LLVMValueRef error = rounded(b, LLVMBuildFDiv(e->b, above, times(b, y, least), ""));
    return choose(b, LLVMBuildFCmp(e->b, LLVMRealOGT, least, constant(b, 0), ""), error, constant(b, INFINITY));
}

static LLVMValueRef bound_MOST(const bound_of *b)
{
    LLVMValueRef most = b->error[0];
    for (unsigned i = 1; i < scalar_arity(b->row); i++)
        most = larger(b, most, b->error[i]);
    return most;
}

/* value + error as an f32 that is not nearer */
static LLVMValueRef interval_end(const bound_of *b, double sign)
{
    emitter *e = b->e;
    LLVMValueRef end = plus(b, extended(b, b->x[0]), times(b, b->error[0], constant(b, sign)));
    LLVMValueRef slack = plus(b, times(b, emit_intrinsic(e, "llvm.fabs", &end, 1), constant(b, 0x1p-23)), constant(b, 0x1p-149));
    return LLVMBuildFPTrunc(e->b, plus(b, end, times(b, slack, constant(b, sign))), emit_type_like(e, b->result, e->f32), "");
}

static LLVMValueRef distance_at(const bound_of *b, double sign)
{
    LLVMValueRef end = interval_end(b, sign);
    LLVMValueRef other = emit_scalar(b->e, b->row->op, &end);
    LLVMValueRef distance = LLVMBuildFSub(b->e->b, extended(b, other), extended(b, b->result), "");
    distance = emit_intrinsic(b->e, "llvm.fabs", &distance, 1);
    return choose(b, LLVMBuildFCmp(b->e->b, LLVMRealOEQ, other, b->result, ""), constant(b, 0), distance);
}

static LLVMValueRef bound_MONOTONE(const bound_of *b)
{
    LLVMValueRef up = distance_at(b, 1), down = distance_at(b, -1);
    return choose(b, LLVMBuildFCmp(b->e->b, LLVMRealORD, up, down, ""), larger(b, up, down), constant(b, INFINITY));
}

static LLVMValueRef bound_LIPSCHITZ(const bound_of *b)
{
    return rounded(b, b->error[0]);
}

/* 0 where the order of the two is certain. */
static LLVMValueRef bound_COMPARE(const bound_of *b)
{
    emitter *e = b->e;
    LLVMValueRef between = LLVMBuildFSub(e->b, extended(b, b->x[0]), extended(b, b->x[1]), "");
    between = emit_intrinsic(e, "llvm.fabs", &between, 1);
    LLVMValueRef apart = LLVMBuildFCmp(e->b, LLVMRealOGT, between, plus(b, b->error[0], b->error[1]), "");
    return choose(b, apart, constant(b, 0), constant(b, INFINITY));
}

static LLVMValueRef bound_SELECT(const bound_of *b)
{
    emitter *e = b->e;
    LLVMValueRef taken = choose(b, b->x[0], b->error[1], b->error[2]);
    LLVMValueRef between = LLVMBuildFSub(e->b, extended(b, b->x[1]), extended(b, b->x[2]), "");
    between = emit_intrinsic(e, "llvm.fabs", &between, 1);
    LLVMValueRef either = plus(b, between, larger(b, b->error[1], b->error[2]));
    either = choose(b, LLVMBuildFCmp(e->b, LLVMRealORD, either, either, ""), either, constant(b, INFINITY));
    return choose(b, is_zero(b, b->error[0]), taken, either);
}

static LLVMValueRef bound_by_rule(const bound_of *b)
{
    switch (b->row->bound) {
    case BOUND_SUM: return bound_SUM(b);
    case BOUND_PRODUCT: return bound_PRODUCT(b);
    case BOUND_QUOTIENT: return bound_QUOTIENT(b);
    case BOUND_FUSED: return bound_FUSED(b);
    case BOUND_MOST: return bound_MOST(b);
    case BOUND_MONOTONE: return bound_MONOTONE(b);
    case BOUND_LIPSCHITZ: return bound_LIPSCHITZ(b);
    case BOUND_COMPARE: return bound_COMPARE(b);
    case BOUND_SELECT: return bound_SELECT(b);
    case BOUND_NONE: break;
    }
    return bound_NONE(b);
}

/* A unit in the last place of a result that is a number. */
static LLVMValueRef units(const bound_of *b)
{
    LLVMValueRef size = magnitude(b, b->result);
    LLVMValueRef error = plus(b, times(b, size, constant(b, b->row->ulps * 0x1p-23)), constant(b, b->row->ulps * 0x1p-149));
    LLVMValueRef number = LLVMBuildFCmp(b->e->b, LLVMRealOLT, size, constant(b, INFINITY), "");
    return choose(b, number, error, constant(b, 0));
}

LLVMValueRef emit_scalar_bound(emitter *e, const scalar_row *row, const LLVMValueRef *operands, const LLVMValueRef *errors,
                               LLVMValueRef result)
{
    bound_of b = {.e = e, .row = row, .result = result};
    bool inexact = false;
    for (unsigned i = 0; i < scalar_arity(row); i++) {
        b.x[i] = operands[i];
        b.error[i] = errors[i] ? errors[i] : constant(&b, 0);
        inexact |= errors[i] != NULL;
    }
    LLVMValueRef bound = NULL;
    if (inexact) {
        LLVMValueRef all = b.error[0];
        for (unsigned i = 1; i < scalar_arity(row); i++)
            all = larger(&b, all, b.error[i]);
        bound = choose(&b, is_zero(&b, all), constant(&b, 0), bound_by_rule(&b));
    }
    if (row->ulps == 0)
        return bound;
    return bound ? plus(&b, bound, units(&b)) : units(&b);
}
