#include "codegen/reference/bound.h"

#include <float.h>
#include <math.h>

#include "codegen/reference/convert.h"

static LLVMValueRef fabs_of(emitter *e, LLVMValueRef x)
{
    return emit_intrinsic(e, "llvm.fabs", &x, 1);
}

static LLVMValueRef times(emitter *e, LLVMValueRef x, double factor)
{
    return LLVMBuildFMul(e->b, x, emit_f64_like(e, x, factor), "");
}

static LLVMValueRef below(emitter *e, LLVMValueRef x, LLVMValueRef limit)
{
    return LLVMBuildFCmp(e->b, LLVMRealOLT, x, limit, "");
}

static LLVMValueRef extended(emitter *e, LLVMValueRef x)
{
    return LLVMBuildFPExt(e->b, x, emit_type_like(e, x, e->f64), "");
}

LLVMValueRef emit_magnitude(emitter *e, LLVMValueRef value)
{
    LLVMValueRef size = fabs_of(e, value);
    return LLVMBuildSelect(e->b, below(e, size, emit_f32_like(e, size, INFINITY)), size, emit_f32_like(e, size, 0), "");
}

LLVMValueRef emit_rounded_up(emitter *e, LLVMValueRef bound)
{
    LLVMValueRef up = LLVMBuildFPTrunc(e->b, times(e, bound, 1 + 0x1p-20), e->f32, "");
    LLVMValueRef least = emit_f32(e, FLT_MIN);
    up = LLVMBuildSelect(e->b, below(e, up, least), least, up, "");
    LLVMValueRef some = LLVMBuildFCmp(e->b, LLVMRealUGT, bound, emit_f64(e, 0), "");
    return LLVMBuildSelect(e->b, some, up, emit_f32(e, 0), "");
}

static double terms_of(const plan_statement *s)
{
    double terms = 1;
    for (uint32_t i = 0; i < s->of->digit_count; i++)
        terms *= s->of->digits[i].kept ? 1 : (double)s->of->digits[i].size;
    return terms;
}

/* How many additions a term goes through in the machine: levels of the tree over the lanes, and steps of time after the first. */
static double height_of(const plan_statement *s)
{
    double steps = 1, last = 0, levels = 0;
    for (uint32_t i = 0; i < s->of->digit_count; i++) {
        const einsum_digit *d = &s->of->digits[i];
        if (d->kept || (s->of->piece_count && d->group))
            continue;
        last += d->lane * (double)(d->size - 1);
        steps *= d->lane ? 1 : (double)d->size;
    }
    for (uint32_t i = 0; i < s->of->piece_count; i++) {
        last += s->of->pieces[i].lane * (double)(s->of->pieces[i].size - 1);
        steps *= s->of->pieces[i].lane ? 1 : (double)s->of->pieces[i].size;
    }
    for (double lanes = 1; lanes <= last; lanes *= 2)
        levels++;
    return fmin(levels + steps, terms_of(s)) - 1;
}

LLVMValueRef emit_sum_bound(emitter *e, const plan_statement *s, bool inexact, const sum_parts *sums)
{
    double depth = terms_of(s), u = 0x1p-24, products = s->exact_products ? 0 : 1;
    double roundings = depth - 1 + products;
    LLVMValueRef magnitude = sums->magnitude, error = sums->error, value = sums->value;
    /* magnitude and error are sums themselves, in f32 or f64 */
    double inflate = 1 + 0x1p-20 + 4 * depth * (s->wide_bound ? 0x1p-53 : u);
    double underflow = (roundings + (inexact ? depth : 0)) * 0x1p-148;
    LLVMValueRef largest = LLVMBuildFAdd(e->b, magnitude, error, ""), bound;
    if (sums->precise) {
        double height = height_of(s) + products;
        LLVMValueRef own = fabs_of(e, LLVMBuildFSub(e->b, extended(e, value), sums->precise, ""));
        own = LLVMBuildFAdd(e->b, own, times(e, magnitude, depth * 0x1p-52), "");
        bound = LLVMBuildFAdd(e->b, own, times(e, largest, height * u * (1 + 2 * height * u)), "");
    } else {
        bound = times(e, LLVMBuildFAdd(e->b, largest, magnitude, ""), roundings * u);
        underflow += s->flushes ? 2 * depth * 0x1p-126 : 0;
    }
    bound = LLVMBuildFAdd(e->b, error, bound, "");
    bound = LLVMBuildFAdd(e->b, times(e, bound, inflate), emit_f64_like(e, bound, underflow), "");

    LLVMValueRef infinity = emit_f64_like(e, bound, INFINITY);
    LLVMValueRef fits = below(e, times(e, largest, inflate + 2 * depth * u), emit_f64_like(e, bound, FLT_MAX));
    LLVMValueRef finite = below(e, fabs_of(e, value), emit_f32_like(e, value, INFINITY));
    /* Nothing overflows: an infinity or NaN came in with the sources and comes out in every order. */
    LLVMValueRef special = inexact ? infinity : emit_f64_like(e, bound, 0);
    bound = LLVMBuildSelect(e->b, finite, bound, special, "");
    return LLVMBuildSelect(e->b, fits, bound, infinity, "");
}

/* Distance between the value's code and the code of another f32, in values of t; NaN when there is none. */
static LLVMValueRef code_distance(emitter *e, dtype t, LLVMValueRef code, LLVMValueRef other)
{
    LLVMValueRef other_code = emit_narrow(e, t, other);
    LLVMValueRef near = extended(e, emit_widen(e, t, code)), far = extended(e, emit_widen(e, t, other_code));
    LLVMValueRef distance = fabs_of(e, LLVMBuildFSub(e->b, far, near, ""));
    LLVMValueRef same = LLVMBuildICmp(e->b, LLVMIntEQ, code, other_code, "");
    return LLVMBuildSelect(e->b, same, emit_f64_like(e, distance, 0), distance, "");
}

/* value + error, not nearer to the value than the true sum in spite of the rounding to f32 */
static LLVMValueRef interval_end(emitter *e, LLVMValueRef value, LLVMValueRef error)
{
    LLVMValueRef end = LLVMBuildFAdd(e->b, extended(e, value), error, "");
    LLVMValueRef slack = times(e, fabs_of(e, end), 0x1p-23);
    slack = LLVMBuildFAdd(e->b, slack, emit_f64_like(e, slack, 0x1p-149), "");
    slack = emit_intrinsic(e, "llvm.copysign", (LLVMValueRef[]){slack, error}, 2);
    return LLVMBuildFPTrunc(e->b, LLVMBuildFAdd(e->b, end, slack, ""), emit_type_like(e, end, e->f32), "");
}

LLVMValueRef emit_cast_bound(emitter *e, dtype t, LLVMValueRef value, LLVMValueRef code, LLVMValueRef error)
{
    if (t == DTYPE_F32)
        return error;
    LLVMValueRef infinity = emit_f64_like(e, error, INFINITY);
    LLVMValueRef up = code_distance(e, t, code, interval_end(e, value, error));
    LLVMValueRef negated = LLVMBuildFNeg(e->b, error, "");
    LLVMValueRef down = code_distance(e, t, code, interval_end(e, value, negated));
    LLVMValueRef more = LLVMBuildFCmp(e->b, LLVMRealOGT, up, down, "");
    LLVMValueRef bound = LLVMBuildSelect(e->b, more, up, down, "");
    LLVMValueRef both = LLVMBuildFCmp(e->b, LLVMRealORD, up, down, "");
    LLVMValueRef known = LLVMBuildAnd(e->b, both, below(e, error, infinity), "");
    bound = LLVMBuildSelect(e->b, known, bound, infinity, "");
    LLVMValueRef none = LLVMBuildFCmp(e->b, LLVMRealOEQ, error, emit_f64_like(e, error, 0), "");
    return LLVMBuildSelect(e->b, none, emit_f64_like(e, error, 0), bound, "");
}
