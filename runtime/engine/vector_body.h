/* The operations of the Vector Engine over arrays, for a processor's level: a file that includes this is compiled for it, and says
 * VECTOR_SET, the name of its table, and VECTOR_LEVEL.
 *
 * The one idea: loops that the compiler's vectoriser takes as they are, without a branch and without a call; IEEE arithmetic, and no
 * contraction, make the bits the same at all levels. */
#include <math.h>

#include "runtime/engine/vector_math.h"
#include "runtime/engine/vector_set.h"
#include "runtime/tensor/numeric.h"

/* What an operation computes: all NaNs are one. */
static inline uint32_t word(float x)
{
    return x != x ? NUMERIC_F32_NAN : f32_bits(x);
}

static inline uint32_t clamped(int64_t n)
{
    return (uint32_t)(int32_t)(n > INT32_MAX ? INT32_MAX : n < INT32_MIN ? INT32_MIN : n);
}

static inline uint32_t shifted_right(uint32_t a, uint32_t b)
{
    uint32_t zeros = a >> (b & 31), sign = 0 - (a >> 31);
    return zeros | (b & 31 ? sign << (32 - (b & 31)) : 0);
}

static inline uint32_t magnitude(uint32_t a)
{
    return a >> 31 ? 0 - a : a;
}

/* ---- an operation each: a, b and c are its operands ---- */

#define OP(symbol, result) \
    static inline uint32_t run_##symbol(uint32_t a, uint32_t b, uint32_t c) \
    { \
        (void)a, (void)b, (void)c; \
        return result; \
    }

OP(AND_I32, a &b)
OP(OR_I32, a | b)
OP(XOR_I32, a ^ b)
OP(LOGIC_SHL, a << (b & 31))
OP(LOGIC_SHR, a >> (b & 31))
OP(LOGIC_SAR, shifted_right(a, b))
OP(AND_F32, a &b)
OP(OR_F32, a | b)
OP(XOR_F32, a ^ b)

OP(ADD_FXP, a + b)
OP(ADD_FXP_SAT, clamped((int64_t)(int32_t)a + (int32_t)b))
OP(SUB_FXP, a - b)
OP(SUB_FXP_SAT, clamped((int64_t)(int32_t)a - (int32_t)b))
OP(FXP_SHL, a << (b & 31))
OP(FXP_SHL_SAT, clamped((int64_t)(int32_t)a *((int64_t)1 << (b < 31 ? b : 31))))
OP(MUL_INT, a *b)
OP(FXP_SHR, a >> (b & 31))
OP(FXP_SAR, shifted_right(a, b))

/* a / 2^b, nearest, a half away from zero: with half of 2^b added to the magnitude. */
static inline uint32_t run_FXP_SAR_ROUND(uint32_t a, uint32_t b, uint32_t c)
{
    (void)c;
    int64_t of = (int32_t)a, size = of < 0 ? -of : of, rounded = (size + ((INT64_C(1) << (b & 31)) >> 1)) >> (b & 31);
    return (uint32_t)(int32_t)(of < 0 ? -rounded : rounded);
}

/* The product times 2^-31: a half goes up. */
static inline uint32_t run_MUL_FXP(uint32_t a, uint32_t b, uint32_t c)
{
    (void)c;
    int64_t product = (int64_t)(int32_t)a * (int32_t)b;
    return clamped((product + ((int64_t)1 << 30)) >> 31);
}

/* i32 to f32 rounds once, to nearest even; a power of two is exact, since the least is 2^-31. */
OP(FXP_TO_FP, word((float)(int32_t)a *f32_of_bits((127 - 31 + (b & 31)) << 23)))

static inline uint32_t run_FP_TO_FXP(uint32_t a, uint32_t b, uint32_t c)
{
    (void)c;
    float x = f32_of_bits(a);
    double scaled = (double)x * (double)((int64_t)1 << (31 - (b & 31))), rounded = floor(fabs(scaled) + 0.5);
    if (x != x)
        return a >> 31 ? UINT32_C(0x80000000) : UINT32_C(0x7fffffff);
    if (rounded >= 0x1p31) /* of a negative number that is -2^31, and so is what is below it */
        return scaled < 0 ? UINT32_C(0x80000000) : UINT32_C(0x7fffffff);
    return (uint32_t)(int32_t)(scaled < 0 ? -rounded : rounded);
}

OP(F32_OF_BITS, a)
OP(BITS_OF_F32, a)

OP(EXP, word(vector_exp(f32_of_bits(a))))
OP(NEG_EXP, word(vector_exp(-f32_of_bits(a))))
OP(SQRT, word(sqrtf(f32_of_bits(a))))
OP(TANH, word(vector_tanh(f32_of_bits(a))))
OP(SIGMOID, word(vector_sigmoid(f32_of_bits(a))))

/* The float that is nearest to the function of x, which is about d. */
static inline uint32_t nearest(double d, float x, float (*wide)(float))
{
    return word(vector_is_open(d) ? wide(x) : (float)d);
}

/* OP of a function of the float x. */
#define OF(symbol, value, wide) \
    static inline uint32_t run_##symbol(uint32_t a, uint32_t b, uint32_t c) \
    { \
        const float x = f32_of_bits(a); \
        (void)b, (void)c; \
        return nearest(value, x, wide); \
    }

OF(LOG, vector_log(x), vector_wide_log)
OF(SIN, vector_is_far(a) ? vector_far_sin(x) : vector_near_sin(x), vector_wide_sin)
OF(COS, vector_is_far(a) ? vector_far_cos(x) : vector_near_cos(x), vector_wide_cos)
OF(ERF, vector_erf(x), vector_wide_erf)

OP(ADD_F, word(f32_of_bits(a) + f32_of_bits(b)))
OP(SUB_F, word(f32_of_bits(a) - f32_of_bits(b)))
OP(MUL_F0, word(f32_of_bits(a) * f32_of_bits(b)))
OP(MUL_F1, word(f32_of_bits(a) * f32_of_bits(b)))
OP(MUL_FMA, word(f32_of_bits(a) * f32_of_bits(b)))
OP(DIV_F, word(f32_of_bits(a) / f32_of_bits(b)))
OP(FMA_F, word(fmaf(f32_of_bits(a), f32_of_bits(b), f32_of_bits(c))))
OP(FP_DIV, word(f32_of_bits(a) / f32_of_bits(b)))

OP(CLIP_MIN_I32, (int32_t)b < (int32_t)a ? b : a)
OP(CLIP_MAX_I32, (int32_t)b > (int32_t)a ? b : a)
OP(CLIP_ABS_MIN_I32, magnitude(a) < magnitude(b) ? a : b)
OP(CLIP_ABS_MAX_I32, magnitude(a) > magnitude(b) ? a : b)
OP(CLIP_ADD_FXP, a + b)
OP(CLIP_ADD_FXP_SAT, clamped((int64_t)(int32_t)a + (int32_t)b))

OP(REDUCE_ADD_SAT, run_ADD_FXP_SAT(a, b, c))
OP(REDUCE_MAX_I32, run_CLIP_MAX_I32(a, b, c))
OP(REDUCE_MIN_I32, run_CLIP_MIN_I32(a, b, c))
OP(REDUCE_ADD_F32, run_ADD_F(a, b, c))
OP(SLICES_ADD_I32, run_ADD_FXP(a, b, c))
OP(SLICES_ADD_SAT, run_ADD_FXP_SAT(a, b, c))
OP(SLICES_MAX_I32, run_CLIP_MAX_I32(a, b, c))
OP(SLICES_MIN_I32, run_CLIP_MIN_I32(a, b, c))
OP(SLICES_ADD_F32, run_ADD_F(a, b, c))
OP(SLICES_MUL_F32, run_MUL_F0(a, b, c))

/* Bits as a number that orders floats, -0 below 0. */
static inline int32_t order(uint32_t bits)
{
    return (int32_t)(bits ^ (0 - (bits >> 31)) >> 1);
}

static inline bool is_nan(uint32_t bits)
{
    return (bits & 0x7fffffff) > 0x7f800000;
}

static inline uint32_t run_CLIP_MIN_F32(uint32_t a, uint32_t b, uint32_t c)
{
    (void)c;
    uint32_t least = order(b) < order(a) ? b : a;
    return is_nan(a) ? (is_nan(b) ? NUMERIC_F32_NAN : b) : is_nan(b) ? a : least;
}

static inline uint32_t run_CLIP_MAX_F32(uint32_t a, uint32_t b, uint32_t c)
{
    (void)c;
    uint32_t most = order(b) > order(a) ? b : a;
    return is_nan(a) ? (is_nan(b) ? NUMERIC_F32_NAN : b) : is_nan(b) ? a : most;
}

OP(REDUCE_MAX_F32, run_CLIP_MAX_F32(a, b, c))
OP(REDUCE_MIN_F32, run_CLIP_MIN_F32(a, b, c))
OP(SLICES_MAX_F32, run_CLIP_MAX_F32(a, b, c))
OP(SLICES_MIN_F32, run_CLIP_MIN_F32(a, b, c))
OP(CLIP_ABS_MIN_F32, fabsf(f32_of_bits(a)) < fabsf(f32_of_bits(b)) ? a : b)
OP(CLIP_ABS_MAX_F32, fabsf(f32_of_bits(a)) > fabsf(f32_of_bits(b)) ? a : b)
OP(CLIP_ADD_F32, word(f32_of_bits(a) + f32_of_bits(b)))

/* ---- functions that have more to do for a few words: where there is one of these, those next to it are taken one by one as well ---- */

enum { TOGETHER = 64 };

#define NEAREST(symbol, value, is_apart) \
    static void nearest_##symbol(stream_word *out, const vector_operand *of, int64_t count) \
    { \
        for (int64_t first = 0; first < count; first += TOGETHER, out += TOGETHER) { \
            int64_t some = count - first < TOGETHER ? count - first : TOGETHER; \
            uint32_t words[TOGETHER]; /* `out` may be the operand */ \
            uint64_t apart = 0; \
            for (int64_t i = 0; i < some; i++) { \
                words[i] = of->words[(first + i) * of->step]; \
                apart |= is_apart(words[i]); \
            } \
            for (int64_t i = 0, all = apart ? 0 : some; i < all; i++) { \
                double d = value(f32_of_bits(words[i])); \
                apart |= vector_is_open(d); \
                out[i] = word((float)d); \
            } \
            for (int64_t i = 0; apart && i < some; i++) \
                out[i] = run_##symbol(words[i], 0, 0); \
        } \
    }

#define NO_WORD(w) false
NEAREST(LOG, vector_log, NO_WORD)
NEAREST(SIN, vector_near_sin, vector_is_far)
NEAREST(COS, vector_near_cos, vector_is_far)
NEAREST(ERF, vector_erf, NO_WORD)

static inline bool takes_nearest(vector_op op, stream_word *out, const vector_operand *of, int64_t count)
{
    switch (op) {
    case VECTOR_LOG: nearest_LOG(out, of, count); return true;
    case VECTOR_SIN: nearest_SIN(out, of, count); return true;
    case VECTOR_COS: nearest_COS(out, of, count); return true;
    case VECTOR_ERF: nearest_ERF(out, of, count); return true;
    default: return false;
    }
}

/* ---- over arrays: what is read one by one, and one word for all, are loops for vectors ---- */

#define VECTOR_OP(symbol, code, class, type, variant, alu, operands, ...) \
    static void array_##symbol(stream_word *out, const vector_operand *of, int64_t count) \
    { \
        enum { ALL = (operands) }; \
        if (takes_nearest(VECTOR_##symbol, out, of, count)) \
            return; \
        const stream_word *a = of[0].words, *b = ALL > 1 ? of[1].words : a, *c = ALL > 2 ? of[2].words : a; \
        int64_t next_a = of[0].step, next_b = ALL > 1 ? of[1].step : 0, next_c = ALL > 2 ? of[2].step : 0; \
        if (next_a == 1 && next_b == 0 && next_c == 0) { \
            const uint32_t same_b = *b, same_c = *c; \
            for (int64_t i = 0; i < count; i++) \
                out[i] = run_##symbol(a[i], same_b, same_c); \
        } else if (ALL == 2 && next_a == 1 && next_b == 1) { \
            for (int64_t i = 0; i < count; i++) \
                out[i] = run_##symbol(a[i], b[i], 0); \
        } else { \
            for (int64_t i = 0; i < count; i++) \
                out[i] = run_##symbol(a[i * next_a], b[i * next_b], c[i * next_c]); \
        } \
    }
#include "target/engines.def"

/* ---- comparisons: x of the stream, y the constant ---- */

#define COMPARE(symbol, of_i32, of_f32) \
    static void compare_##symbol(stream_word *tags, unsigned bit, bool is_float, const stream_word *words, stream_word with, \
                                 int64_t count) \
    { \
        for (int64_t i = 0; i < count; i++) { \
            const uint32_t x = words[i], y = with; \
            (void)x, (void)y; \
            tags[i] |= (stream_word)((is_float ? (of_f32) : (of_i32)) ? 1 : 0) << bit; \
        } \
    }

COMPARE(FALSE, false, false)
COMPARE(TRUE, true, true)
COMPARE(EQUAL, x == y, f32_of_bits(x) == f32_of_bits(y))
COMPARE(LESS, (int32_t)x < (int32_t)y, f32_of_bits(x) < f32_of_bits(y))
COMPARE(GREATER, (int32_t)x > (int32_t)y, f32_of_bits(x) > f32_of_bits(y))
COMPARE(LESS_UNSIGNED, x < y, x < y)
COMPARE(GREATER_UNSIGNED, x > y, x > y)

/* Where the element's tag is one of `tags`, the other word. */
static void select_by_tag(stream_word *words, const stream_word *others, const stream_word *tag_of, unsigned tags, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        words[i] = tags >> (tag_of[i] & 15) & 1 ? others[i] : words[i];
}

const vector_set VECTOR_SET = {
    .level = VECTOR_LEVEL,
    .functions =
        {
#define VECTOR_OP(symbol, code, ...) [code] = array_##symbol,
#include "target/engines.def"
        },
    .compare =
        {
#define VECTOR_COMPARE(symbol, ...) [VECTOR_COMPARE_##symbol] = compare_##symbol,
#include "target/engines.def"
        },
    .select = select_by_tag,
};
