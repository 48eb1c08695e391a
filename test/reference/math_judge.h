/* Statements by hand, and what they compute by definition: every combination of digits as target/einsum.h
 * says, one after the other.
 *
 * The one idea: it knows no LLVM, no vectors and no fusion. Element types are the machine's
 * (runtime/tensor/numeric.h), which share nothing with the reference's either; each scalar operation is a function
 * of its row's name. */
#ifndef VISA_TEST_REFERENCE_MATH_JUDGE_H
#define VISA_TEST_REFERENCE_MATH_JUDGE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/reference_load.h"
#include "runtime/tensor/numeric.h"

/* ---- elements ---- */

static inline bool judge_is_float(dtype t)
{
    return dtype_row_of(t)->kind == DTYPE_KIND_FLOAT;
}

static inline uint32_t judge_load(dtype t, const unsigned char *tensor, int64_t i)
{
    uint32_t code = 0;
    if (dtype_row_of(t)->bits == 4)
        return tensor[i / 2] >> (i % 2 * 4) & 15;
    memcpy(&code, tensor + i * (dtype_row_of(t)->bits / 8), dtype_row_of(t)->bits / 8);
    return code;
}

static inline void judge_store(dtype t, unsigned char *tensor, int64_t i, uint32_t code)
{
    unsigned shift = i % 2 * 4;
    if (dtype_row_of(t)->bits == 4)
        tensor[i / 2] = (unsigned char)((tensor[i / 2] & ~(15u << shift)) | (code & 15) << shift);
    else
        memcpy(tensor + i * (dtype_row_of(t)->bits / 8), &code, dtype_row_of(t)->bits / 8);
}

/* An i32, an f32, or a truth value in `i`. */
typedef union judge_value {
    int32_t i;
    float f;
} judge_value;

static const float judge_f4e2m1[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

/* The nearest of the eight, of two the one whose code is even; what is no number is +0. */
static inline uint32_t judge_to_f4e2m1(float x)
{
    uint32_t best = 0;
    double size = fmin(fabs((double)x), 6);
    for (uint32_t code = 1; code < 8 && !isnan(x); code++) {
        double is = fabs(size - (double)judge_f4e2m1[code]), was = fabs(size - (double)judge_f4e2m1[best]);
        best = is < was || (is == was && code % 2 == 0) ? code : best;
    }
    return isnan(x) ? 0 : best | (signbit(x) ? 8 : 0);
}

static inline judge_value judge_widen(dtype t, uint32_t code)
{
    switch (t) {
    case DTYPE_I4: return (judge_value){.i = (int32_t)(code << 28) >> 28};
    case DTYPE_I8: return (judge_value){.i = (int8_t)code};
    case DTYPE_I16: return (judge_value){.i = (int16_t)code};
    case DTYPE_U8: return (judge_value){.i = (uint8_t)code};
    case DTYPE_F4E2M1: return (judge_value){.f = (code & 8 ? -1.0f : 1.0f) * judge_f4e2m1[code & 7]};
    case DTYPE_F8E4M3: return (judge_value){.f = numeric_f8e4m3_to_f32((uint8_t)code)};
    case DTYPE_F8E5M2: return (judge_value){.f = numeric_f8e5m2_to_f32((uint8_t)code)};
    case DTYPE_BF16: return (judge_value){.f = numeric_bf16_to_f32((uint16_t)code)};
    default: return (judge_value){.i = (int32_t)code};
    }
}

static inline uint32_t judge_narrow(dtype t, judge_value v)
{
    switch (t) {
    case DTYPE_F8E4M3: return numeric_f32_to_f8e4m3(v.f);
    case DTYPE_F8E5M2: return numeric_f32_to_f8e5m2(v.f);
    case DTYPE_BF16: return numeric_f32_to_bf16(v.f);
    case DTYPE_F4E2M1: return judge_to_f4e2m1(v.f);
    default: return (uint32_t)v.i;
    }
}

/* ---- scalar operations ---- */

/* clang-format off: a line is an operation */

#define JUDGE(name) static inline judge_value judge_##name(const judge_value *x)
#define JUDGE_I32(name, expression) \
    JUDGE(name) \
    { \
        (void)x; \
        return (judge_value){.i = (int32_t)(expression)}; \
    }
#define JUDGE_F32(name, expression) \
    JUDGE(name) \
    { \
        (void)x; \
        return (judge_value){.f = (expression)}; \
    }
#define JUDGE_A ((int64_t)x[0].i)
#define JUDGE_B ((int64_t)x[1].i)

static inline int64_t judge_clamp(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

JUDGE_I32(ADD_I32, (uint32_t)(JUDGE_A + JUDGE_B))
JUDGE_I32(SUB_I32, (uint32_t)(JUDGE_A - JUDGE_B))
JUDGE_I32(MUL_I32, (uint32_t)(JUDGE_A *JUDGE_B))
JUDGE_I32(ADD_SAT_I32, judge_clamp(JUDGE_A + JUDGE_B, INT32_MIN, INT32_MAX))
JUDGE_I32(SUB_SAT_I32, judge_clamp(JUDGE_A - JUDGE_B, INT32_MIN, INT32_MAX))
JUDGE_I32(MUL_SAT_I32, judge_clamp(JUDGE_A *JUDGE_B, INT32_MIN, INT32_MAX))
JUDGE_I32(MUL_FXP, JUDGE_A == INT32_MIN && JUDGE_B == INT32_MIN ? INT32_MAX : (((JUDGE_A * JUDGE_B) >> 30) + 1) >> 1)
JUDGE_I32(NEG_I32, (uint32_t)-JUDGE_A)
JUDGE_I32(ABS_I32, (uint32_t)(JUDGE_A < 0 ? -JUDGE_A : JUDGE_A))
JUDGE_I32(MIN_I32, JUDGE_A < JUDGE_B ? JUDGE_A : JUDGE_B)
JUDGE_I32(MAX_I32, JUDGE_A > JUDGE_B ? JUDGE_A : JUDGE_B)
JUDGE_I32(CLIP_I32, (JUDGE_A > JUDGE_B ? JUDGE_A : JUDGE_B) < x[2].i ? (JUDGE_A > JUDGE_B ? JUDGE_A : JUDGE_B) : x[2].i)
JUDGE_I32(AND_I32, x[0].i &x[1].i)
JUDGE_I32(OR_I32, x[0].i | x[1].i)
JUDGE_I32(XOR_I32, x[0].i ^ x[1].i)
JUDGE_I32(NOT_I32, ~x[0].i)
JUDGE_I32(SHL_I32, (uint32_t)x[0].i << (x[1].i & 31))
JUDGE_I32(SHR_I32, (uint32_t)x[0].i >> (x[1].i & 31))
JUDGE_I32(SAR_I32, x[0].i >> (x[1].i & 31))
JUDGE_F32(ADD_F32, x[0].f + x[1].f)
JUDGE_F32(SUB_F32, x[0].f - x[1].f)
JUDGE_F32(MUL_F32, x[0].f *x[1].f)
JUDGE_F32(DIV_F32, x[0].f / x[1].f)
JUDGE_F32(FMA_F32, fmaf(x[0].f, x[1].f, x[2].f))
JUDGE_F32(NEG_F32, -x[0].f)
JUDGE_F32(ABS_F32, fabsf(x[0].f))
JUDGE_F32(CANONICAL_F32, isnan(x[0].f) ? NAN : x[0].f)

/* -0 is below 0; a number before a NaN. */
static inline float judge_extreme(float a, float b, bool largest)
{
    if (isnan(a) || isnan(b))
        return isnan(a) ? b : a;
    if (a == b)
        return (signbit(a) != 0) == largest ? b : a;
    return (a > b) == largest ? a : b;
}

JUDGE_F32(MIN_F32, judge_extreme(x[0].f, x[1].f, false))
JUDGE_F32(MAX_F32, judge_extreme(x[0].f, x[1].f, true))
JUDGE_F32(CLIP_F32, judge_extreme(judge_extreme(x[0].f, x[1].f, true), x[2].f, false))
JUDGE_F32(SQRT_F32, sqrtf(x[0].f))
JUDGE_F32(FLOOR_F32, floorf(x[0].f))
JUDGE_F32(CEIL_F32, ceilf(x[0].f))
JUDGE_F32(TRUNC_F32, truncf(x[0].f))
JUDGE_F32(ROUND_F32, roundf(x[0].f))
JUDGE_F32(ROUND_EVEN_F32, rintf(x[0].f))
JUDGE_F32(EXP_F32, expf(x[0].f))
JUDGE_F32(LOG_F32, logf(x[0].f))
JUDGE_F32(TANH_F32, tanhf(x[0].f))
JUDGE_F32(ERF_F32, (float)erf((double)x[0].f))
JUDGE_F32(SIGMOID_F32, 1 / (1 + expf(-x[0].f)))
JUDGE_F32(SIN_F32, sinf(x[0].f))
JUDGE_F32(COS_F32, cosf(x[0].f))
JUDGE_I32(EQ_I32, x[0].i == x[1].i)
JUDGE_I32(NE_I32, x[0].i != x[1].i)
JUDGE_I32(LT_I32, x[0].i < x[1].i)
JUDGE_I32(LE_I32, x[0].i <= x[1].i)
JUDGE_I32(LT_U32, (uint32_t)x[0].i < (uint32_t)x[1].i)
JUDGE_I32(EQ_F32, x[0].f == x[1].f)
JUDGE_I32(NE_F32, x[0].f != x[1].f)
JUDGE_I32(LT_F32, x[0].f < x[1].f)
JUDGE_I32(LE_F32, x[0].f <= x[1].f)
JUDGE_I32(AND_BOOL, x[0].i &&x[1].i)
JUDGE_I32(OR_BOOL, x[0].i || x[1].i)
JUDGE_I32(NOT_BOOL, !x[0].i)
JUDGE_I32(SELECT_I32, x[0].i ? x[1].i : x[2].i)
JUDGE_F32(SELECT_F32, x[0].i ? x[1].f : x[2].f)
JUDGE_F32(F32_OF_I32, (float)x[0].i)
JUDGE_I32(I32_OF_F32, isnan(x[0].f) ? 0 : x[0].f <= -0x1p31f ? INT32_MIN : x[0].f >= 0x1p31f ? INT32_MAX : (int32_t)x[0].f)
JUDGE_F32(F32_OF_FXP, (float)ldexp(x[0].i, (x[1].i & 31) - 31))
JUDGE(FXP_OF_F32)
{
    double scaled = round(ldexp((double)x[0].f, 31 - (x[1].i & 31)));
    bool high = isnan(scaled) ? !signbit(x[0].f) : scaled > INT32_MAX, low = isnan(scaled) ? signbit(x[0].f) : scaled < INT32_MIN;
    return (judge_value){.i = high ? INT32_MAX : low ? INT32_MIN : (int32_t)scaled};
}
JUDGE_I32(BITS_OF_F32, x[0].i)
JUDGE_F32(F32_OF_BITS, x[0].f)
JUDGE_I32(WRAP_I4, (int32_t)((uint32_t)x[0].i << 28) >> 28)
JUDGE_I32(WRAP_I8, (int8_t)x[0].i)
JUDGE_I32(WRAP_I16, (int16_t)x[0].i)
JUDGE_I32(SAT_I4, judge_clamp(x[0].i, -8, 7))
JUDGE_I32(SAT_I8, judge_clamp(x[0].i, -128, 127))
JUDGE_I32(SAT_I16, judge_clamp(x[0].i, -32768, 32767))
JUDGE(ROUND_F8E4M3)
{
    return judge_widen(DTYPE_F8E4M3, judge_narrow(DTYPE_F8E4M3, x[0]));
}
JUDGE(ROUND_F8E5M2)
{
    return judge_widen(DTYPE_F8E5M2, judge_narrow(DTYPE_F8E5M2, x[0]));
}
JUDGE(ROUND_BF16)
{
    return judge_widen(DTYPE_BF16, judge_narrow(DTYPE_BF16, x[0]));
}

static inline judge_value judge_scalar(scalar_op op, const judge_value *x)
{
    switch (op) {
#define SCALAR(symbol, code, name, a, b, c, result, flags, identity, bound, ulps, text, meaning) \
    case SCALAR_##symbol: \
        return judge_##symbol(x);
#include "target/scalar.def"
#undef SCALAR
    default: abort();
    }
}

/* clang-format on */

/* ---- statements ---- */

enum { JUDGE_AXES = 16, JUDGE_DIGITS = 32 };

typedef struct judge_walk {
    const einsum *e;
    const einsum_statement *s;
    unsigned char *const *tensors;
    bool machine_order;
    int64_t counters[JUDGE_DIGITS];
    int64_t outside; /* indices */
} judge_walk;

static inline int64_t judge_combinations(const einsum_statement *s, bool kept)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < s->digit_count; i++)
        n *= s->digits[i].kept == kept ? s->digits[i].size : 1;
    return n;
}

static inline void judge_count(judge_walk *w, bool kept, int64_t n)
{
    for (uint32_t i = w->s->digit_count; i-- > 0;)
        if (w->s->digits[i].kept == kept) {
            w->counters[i] = n % w->s->digits[i].size;
            n /= w->s->digits[i].size;
        }
}

static inline int64_t judge_shift(const einsum_statement *s, int side, uint32_t axis)
{
    int64_t sum = 0, most = 0;
    for (uint32_t i = 0; i < s->shift_count; i++)
        if (s->shifts[i].axis == axis) {
            sum += (int)s->shifts[i].side == side ? s->shifts[i].offset : 0;
            most = s->shifts[i].offset > most ? s->shifts[i].offset : most;
        }
    return side < 0 ? most : sum;
}

/* Does the combination of all digits, or of the kept ones, exist? */
static inline bool judge_exists(const judge_walk *w, bool kept_only)
{
    for (uint32_t a = 0; a < w->e->axis_count; a++) {
        int64_t sum = 0;
        for (uint32_t i = 0; i < w->s->digit_count; i++)
            if (w->s->digits[i].axis == a && (w->s->digits[i].kept || !kept_only))
                sum += w->counters[i] * w->s->digits[i].weight;
        if (sum + judge_shift(w->s, -1, a) >= w->e->axes[a].size)
            return false;
    }
    return true;
}

static inline int64_t judge_coordinate(const judge_walk *w, int side, uint32_t axis)
{
    int64_t sum = judge_shift(w->s, side, axis);
    for (uint32_t i = 0; i < w->s->digit_count; i++) {
        const einsum_digit *d = &w->s->digits[i];
        if (d->axis == axis &&
            (side == EINSUM_DST ? d->kept && einsum_digit_indexes(d, EINSUM_DST) : einsum_digit_indexes(d, (einsum_side)side)))
            sum += w->counters[i] * d->weight;
    }
    return sum;
}

static inline judge_value judge_source(judge_walk *w, unsigned source);

/* Element of the operand; -1: an index is outside. */
static inline int64_t judge_element(judge_walk *w, int side)
{
    const einsum_tensor *t = &w->e->tensors[einsum_operand(w->s, (einsum_side)side)];
    int64_t at = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        int64_t place = judge_coordinate(w, side, t->axes[i]);
        for (uint32_t k = 0; k < einsum_index_count(w->s); k++)
            if (side == (int)einsum_indexed_side(w->s) && w->s->indices[k].axis == t->axes[i]) {
                const einsum_index *x = &w->s->indices[k];
                int64_t element = judge_source(w, k + 1).i;
                if (einsum_index_divides(x) && (element < 0 || element % x->step || (x->positions && element / x->step >= x->positions)))
                    return -1;
                element /= x->step * x->div;
                place += (x->mod ? element % x->mod : element) * x->unit;
            }
        if (place < 0 || place >= w->e->axes[t->axes[i]].size)
            return -1;
        at = at * w->e->axes[t->axes[i]].size + place;
    }
    return at;
}

static inline judge_value judge_source(judge_walk *w, unsigned source)
{
    uint32_t tensor = w->s->sources[source];
    dtype t = w->e->tensors[tensor].dtype;
    return judge_widen(t, judge_load(t, w->tensors[tensor], judge_element(w, EINSUM_A + (int)source)));
}

static inline judge_value judge_expression(judge_walk *w)
{
    judge_value stack[SCALAR_MAX_DEPTH];
    unsigned depth = 0;
    for (uint32_t i = 0; i < w->s->step_count; i++) {
        const scalar_step *step = &w->s->steps[i];
        const scalar_row *row = scalar_row_of(step->op);
        if (row) {
            depth -= scalar_arity(row);
            stack[depth] = judge_scalar(step->op, &stack[depth]);
        } else {
            stack[depth] = step->op == SCALAR_SOURCE ? judge_source(w, step->argument) : (judge_value){.i = (int32_t)step->argument};
        }
        depth++;
    }
    return stack[0];
}

/* A term, and where the machine meets it. */
typedef struct judge_term {
    int64_t step;
    int lane;
    judge_value value;
} judge_term;

static inline void judge_meet(judge_term *t, int64_t counter, int64_t size, int64_t lane)
{
    t->step = lane ? t->step : t->step * size + counter;
    t->lane += (int)(counter * lane);
}

static inline judge_term judge_place(judge_walk *w)
{
    judge_term t = {.value = judge_expression(w)};
    const einsum_statement *s = w->s;
    for (uint32_t i = 0; !s->piece_count && i < s->digit_count; i++)
        if (!s->digits[i].kept)
            judge_meet(&t, w->counters[i], s->digits[i].size, s->digits[i].lane);
    for (uint32_t k = 0; k < s->piece_count; k++) {
        int64_t position = 0;
        for (uint32_t i = 0; i < s->digit_count; i++)
            position += s->digits[i].group == s->pieces[k].group ? w->counters[i] * s->digits[i].stride : 0;
        judge_meet(&t, position / s->pieces[k].weight % s->pieces[k].size, s->pieces[k].size, s->pieces[k].lane);
    }
    return t;
}

static inline int judge_by_place(const void *x, const void *y)
{
    const judge_term *a = x, *b = y;
    return a->step != b->step ? (a->step > b->step) - (a->step < b->step) : (a->lane > b->lane) - (a->lane < b->lane);
}

/* Neighbours among 2^n lanes from `first` on; false: none holds a term. */
static inline bool judge_tree(scalar_op op, const judge_term *terms, int64_t count, int first, int lanes, judge_value *out)
{
    if (lanes == 1) {
        for (int64_t i = 0; i < count; i++)
            if (terms[i].lane == first) {
                *out = terms[i].value;
                return true;
            }
        return false;
    }
    judge_value x[2];
    bool left = judge_tree(op, terms, count, first, lanes / 2, &x[0]),
         right = judge_tree(op, terms, count, first + lanes / 2, lanes / 2, &x[1]);
    *out = left && right ? judge_scalar(op, x) : left ? x[0] : x[1];
    return left || right;
}

static inline judge_value judge_fold(judge_walk *w)
{
    int64_t depth = judge_combinations(w->s, false), count = 0;
    judge_term *terms = calloc((size_t)depth, sizeof *terms);
    judge_value x[2] = {{.i = (int32_t)scalar_row_of(w->s->fold)->identity}};
    for (int64_t k = 0; k < depth; k++) {
        judge_count(w, false, k);
        if (judge_exists(w, false))
            terms[count++] = judge_place(w);
    }
    if (w->machine_order)
        qsort(terms, (size_t)count, sizeof *terms, judge_by_place);
    for (int64_t i = 0, n; i < count; i += n) {
        for (n = 1; w->machine_order && i + n < count && terms[i + n].step == terms[i].step;)
            n++;
        x[1] = terms[i].value;
        if (w->machine_order)
            judge_tree(w->s->fold, terms + i, n, 0, 256, &x[1]);
        x[0] = judge_scalar(w->s->fold, x);
    }
    free(terms);
    return x[0];
}

/* i32 sums wrap; f32 ones are added in the order of the digits, beginning with the first. */
static inline judge_value judge_contraction(judge_walk *w)
{
    judge_value sum = {.i = 0};
    bool first = true;
    for (int64_t k = 0; k < judge_combinations(w->s, false); k++) {
        judge_count(w, false, k);
        if (!judge_exists(w, false))
            continue;
        judge_value a = judge_source(w, 0), b = judge_source(w, 1);
        if (w->s->accumulator == DTYPE_F32)
            sum.f = first ? a.f * b.f : sum.f + a.f * b.f;
        first = false;
        if (w->s->accumulator != DTYPE_F32)
            sum.i = (int32_t)((uint32_t)sum.i + (uint32_t)a.i * (uint32_t)b.i);
    }
    return sum;
}

static inline void judge_assign(judge_walk *w)
{
    const einsum_tensor *dst = &w->e->tensors[w->s->dst];
    uint32_t code = w->s->bits;
    bool moves = w->s->op == MATH_COPY || einsum_index_count(w->s) > 0;
    int64_t to = judge_element(w, EINSUM_DST);
    w->outside += to < 0;
    if (moves) {
        const einsum_tensor *a = &w->e->tensors[w->s->sources[0]];
        int64_t from = judge_element(w, EINSUM_A);
        w->outside += from < 0;
        if (w->s->counted && judge_element(w, EINSUM_B) % w->s->count_span >= judge_source(w, w->s->source_count - 1).i)
            from = -1;
        code = from < 0 ? 0 : judge_load(a->dtype, w->tensors[w->s->sources[0]], from);
        if (a->dtype != dst->dtype)
            code = judge_narrow(dst->dtype, judge_widen(a->dtype, code));
    } else if (w->s->op != MATH_FILL) {
        code = judge_narrow(dst->dtype, w->s->op == MATH_MAP      ? judge_expression(w)
                                        : w->s->op == MATH_REDUCE ? judge_fold(w)
                                                                  : judge_contraction(w));
    }
    if (to >= 0)
        judge_store(dst->dtype, w->tensors[w->s->dst], to, code);
}

/* All statements; how many indices were outside. */
static inline int64_t judge_einsum(const einsum *e, unsigned char *const *tensors, bool machine_order)
{
    int64_t outside = 0;
    for (uint32_t i = 0; i < e->statement_count; i++) {
        judge_walk w = {.e = e, .s = &e->statements[i], .tensors = tensors, .machine_order = machine_order};
        bool first = true;
        for (uint32_t k = 0; k < i; k++)
            first = first && e->statements[k].dst != w.s->dst;
        if (first)
            memset(tensors[w.s->dst], 0, (size_t)reference_tensor_bytes(e, w.s->dst));
        for (int64_t k = 0; k < judge_combinations(w.s, true); k++) {
            judge_count(&w, true, k);
            if (judge_exists(&w, true))
                judge_assign(&w);
        }
        outside += w.outside;
    }
    return outside;
}

#endif
