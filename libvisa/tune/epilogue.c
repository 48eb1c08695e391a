#include "libvisa/tune/epilogue.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* The units that the operations of a question need; each does one of a pass. */
typedef enum unit { FXP_ADD, FXP_MUL, FMA, MUL0, MUL1, EXP, FPU, FOLD, DIV, CLIP_ADD, CLIP_MAX, CLIP_MIN } unit;
typedef enum phase { IN_FRONT, IN_NARROW, IN_FOLD, IN_DIVISION, IN_BACK, IN_SLICES } phase;

typedef struct filler {
    tune_epilogue *out;
    size_t capacity;
    tune_pass *pass; /* NULL: the next operation begins one */
    unsigned used;   /* units of the pass, a bit each */
    phase at;
    bool whole; /* the stream has integers */
    bool wide;  /* the rest fits after the width of 8: no split */
    arena *arena;
} filler;

static const char *const function_names[] = {[TUNE_EXP] = "Exp", [TUNE_LOG] = "Log",   [TUNE_SQRT] = "Sqrt",      [TUNE_SIN] = "Sin",
                                             [TUNE_COS] = "Cos", [TUNE_TANH] = "Tanh", [TUNE_SIGMOID] = "Sigmoid"};

static bool is_whole(const tune_operation *o)
{
    bool kept = o->what == TUNE_ADD || o->what == TUNE_SUBTRACT || o->what == TUNE_TIMES || o->what == TUNE_SQUARE ||
                o->what == TUNE_LARGER || o->what == TUNE_SMALLER || o->what == TUNE_FOLD_ADD;
    return kept && (o->operand || (o->value == floor(o->value) && fabs(o->value) <= INT32_MAX));
}

bool tune_operations_are_whole(const tune_operation *operations, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!is_whole(&operations[i]))
            return false;
    return true;
}

static const char *number(const filler *f, double value)
{
    if (f->whole)
        return arena_printf(f->arena, "%.0f", value);
    const char *text = arena_printf(f->arena, "%.9g", value);
    return arena_printf(f->arena, strpbrk(text, ".e") ? "%sf32" : "%s.0f32", text);
}

/* As a method of the pass has it, which meets it then. */
static const char *operand(const filler *f, const tune_operation *o)
{
    if (!o->operand)
        return number(f, o->value);
    assert(f->pass->operand_count < TUNE_PASS_OPERANDS); /* each takes a unit */
    f->pass->operands[f->pass->operand_count++] = o->operand;
    return arena_printf(f->arena, "&%s", o->operand);
}

static void begin_pass(filler *f)
{
    ARENA_PUSH(f->arena, f->out->passes, f->out->count, f->capacity, ((tune_pass){0}));
    f->pass = &f->out->passes[f->out->count - 1];
    f->used = 0;
    f->at = IN_FRONT;
    f->wide = false;
}

/* Takes a unit at a place that is not in front of what the pass has; false: the pass is past it, or the unit is in use. */
static bool take(filler *f, unit u, phase at)
{
    if (f->at > at || (f->used >> u & 1) || (f->wide && at >= IN_NARROW && at <= IN_DIVISION))
        return false;
    f->at = at;
    f->used |= 1U << u;
    return true;
}

static void say(filler *f, const char *text)
{
    tune_lines *l = f->at == IN_FRONT ? &f->pass->front : f->at >= IN_BACK ? &f->pass->back : &f->pass->narrow;
    l->text[l->count++] = text;
}

static bool put_clip(filler *f, const tune_operation *o, unit u, const char *name)
{
    if (!take(f, u, IN_BACK))
        return false;
    say(f, arena_printf(f->arena, "vector_clip(ClipBinaryOp%s::%s, %s)", f->whole ? "I32" : "F32", name, operand(f, o)));
    return true;
}

static bool put_whole(filler *f, const tune_operation *o)
{
    const char *name = o->what == TUNE_ADD ? "AddFxp" : o->what == TUNE_SUBTRACT ? "SubFxp" : "MulInt";
    if (take(f, o->what == TUNE_TIMES ? FXP_MUL : FXP_ADD, IN_FRONT)) {
        say(f, o->reversed && o->what == TUNE_SUBTRACT
                   ? arena_printf(f->arena, "vector_fxp_with_mode(FxpBinaryOp::%s, BinaryArgMode::Mode10, %s)", name, operand(f, o))
                   : arena_printf(f->arena, "vector_fxp(FxpBinaryOp::%s, %s)", name, operand(f, o)));
        return true;
    }
    return o->what == TUNE_ADD && put_clip(f, o, CLIP_ADD, "AddFxp");
}

static bool put_add(filler *f, const tune_operation *o)
{
    if (o->what == TUNE_ADD && f->wide)
        return put_clip(f, o, CLIP_ADD, "Add");
    if (take(f, FMA, IN_NARROW)) {
        const char *name = o->what == TUNE_ADD ? "AddF" : "SubF";
        say(f, o->reversed && o->what == TUNE_SUBTRACT
                   ? arena_printf(f->arena, "vector_fp_binary_with_mode(FpBinaryOp::%s, BinaryArgMode::Mode10, %s)", name, operand(f, o))
                   : arena_printf(f->arena, "vector_fp_binary(FpBinaryOp::%s, %s)", name, operand(f, o)));
        return true;
    }
    return o->what == TUNE_ADD && put_clip(f, o, CLIP_ADD, "Add");
}

static bool put_add_times(filler *f, const tune_operation *o)
{
    if (!take(f, FMA, IN_NARROW))
        return false;
    say(f, arena_printf(f->arena, "vector_fp_ternary_with_mode(FpTernaryOp::FmaF, TernaryArgMode::Mode120, (%s, %s))", operand(f, o),
                        number(f, o->value)));
    return true;
}

static bool put_times(filler *f, const tune_operation *o)
{
    static const struct {
        unit unit;
        const char *name;
    } units[] = {{MUL0, "Mul0"}, {MUL1, "Mul1"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (take(f, units[i].unit, IN_NARROW)) {
            say(f, arena_printf(f->arena, "vector_fp_binary(FpBinaryOp::MulF(FpMulAlu::%s), %s)", units[i].name, operand(f, o)));
            return true;
        }
    return false;
}

/* The stream by itself. */
static bool put_square(filler *f)
{
    if (f->whole && take(f, FXP_MUL, IN_FRONT)) {
        say(f, "vector_fxp_with_mode(FxpBinaryOp::MulInt, BinaryArgMode::Mode00, 0)");
        return true;
    }
    for (int second = 0; !f->whole && second < 2; second++)
        if (take(f, second ? MUL1 : MUL0, IN_NARROW)) {
            say(f, arena_printf(f->arena, "vector_fp_binary_with_mode(FpBinaryOp::MulF(FpMulAlu::Mul%d), BinaryArgMode::Mode00, 0.0f32)",
                                second));
            return true;
        }
    return false;
}

static bool put_divide(filler *f, const tune_operation *o)
{
    if (!take(f, DIV, IN_DIVISION))
        return false;
    say(f, arena_printf(f->arena, o->reversed ? "vector_fp_div_with_mode(BinaryArgMode::Mode10, %s)" : "vector_fp_div(%s)", operand(f, o)));
    return true;
}

static bool put_function(filler *f, tune_operator what)
{
    if (!take(f, what == TUNE_EXP ? EXP : FPU, IN_NARROW))
        return false;
    say(f, arena_printf(f->arena, "vector_fp_unary(FpUnaryOp::%s)", function_names[what]));
    return true;
}

/* x * sigmoid(x): x is set aside in front of its function. */
static bool put_silu(filler *f)
{
    unsigned needed = 1U << FPU | 1U << MUL1;
    if (f->wide || f->at > IN_NARROW || (f->used & needed) || f->pass->stashes)
        return false;
    f->at = IN_NARROW;
    f->pass->stashes = true;
    say(f, "vector_stash()");
    put_function(f, TUNE_SIGMOID);
    f->used |= 1U << MUL1;
    say(f, "vector_fp_binary(FpBinaryOp::MulF(FpMulAlu::Mul1), Stash)");
    return true;
}

/* Inside slices, then over those that share the axis; nothing follows them in the pass, but where it has nothing in front of slices. */
static bool put_fold(filler *f, const tune_operation *o)
{
    static const char *const of_float[] = {"Add", "Max", "Min"}, *const of_whole[] = {"AddSat", "Max", "Min"};
    const char *name = (f->whole ? of_whole : of_float)[o->what - TUNE_FOLD_ADD], *type = f->whole ? "I32" : "F32";
    if (f->pass->fold || (o->in_slice && !take(f, FOLD, IN_FOLD)))
        return false;
    f->pass->fold = o;
    if (o->in_slice)
        say(f, arena_printf(f->arena, "vector_intra_slice_reduce::<%s, _, _>(IntraSliceReduceOp%s::%s)", o->operand, type, name));
    if (o->over_slices) {
        f->pass->slices_first = f->used == 0 && f->at == IN_FRONT && f->pass->front.count == 0;
        f->at = f->pass->slices_first ? IN_FRONT : IN_SLICES;
        f->pass->over_slices = arena_printf(f->arena, "InterSliceReduceOp%s::%s", type, name);
    }
    return true;
}

static bool put(filler *f, const tune_operation *o)
{
    switch (o->what) {
    case TUNE_FOLD_ADD:
    case TUNE_FOLD_MAX:
    case TUNE_FOLD_MIN: return put_fold(f, o);
    case TUNE_LARGER: return put_clip(f, o, CLIP_MAX, "Max");
    case TUNE_SMALLER: return put_clip(f, o, CLIP_MIN, "Min");
    case TUNE_ADD:
    case TUNE_SUBTRACT: return f->whole ? put_whole(f, o) : put_add(f, o);
    case TUNE_TIMES: return f->whole ? put_whole(f, o) : put_times(f, o);
    case TUNE_DIVIDE: return put_divide(f, o);
    case TUNE_ADD_TIMES: return put_add_times(f, o);
    case TUNE_SILU: return put_silu(f);
    case TUNE_SQUARE: return put_square(f);
    default: return put_function(f, o->what);
    }
}

/* Can the operations from here on be done by the last stage alone, which takes flits of 8 whole? */
static bool fits_back(const tune_operation *o, size_t count)
{
    unsigned used = 0;
    for (size_t i = 0; i < count; i++) {
        if (o[i].what != TUNE_ADD && o[i].what != TUNE_LARGER && o[i].what != TUNE_SMALLER)
            return false;
        if (used >> o[i].what & 1)
            return false;
        used |= 1U << o[i].what;
    }
    return true;
}

static void put_or_begin(filler *f, const tune_operation *o, size_t rest)
{
    if (f->pass && put(f, o))
        return;
    begin_pass(f);
    f->wide = !f->whole && fits_back(o, rest);
    bool is_put = put(f, o);
    assert(is_put); /* an empty pass has every unit */
    (void)is_put;
}

/* x * sigmoid(x * (LINEAR + CUBIC * x^2)), the tanh form of GELU. All multipliers of a pass go into the gate, so the product is another
 * one, and x waits for it. */
static void put_gelu(filler *f)
{
    static const double LINEAR = 1.5957691216057308, CUBIC = 0.07135481627159519; /* 2 sqrt(2 / pi), and that by 0.044715 */
    static const tune_operation product = {.what = TUNE_TIMES, .operand = "gate"};
    if (!f->pass)
        begin_pass(f);
    begin_pass(f);
    f->pass->is_gate = f->pass->stashes = true;
    f->at = IN_NARROW;
    say(f, "vector_stash()");
    say(f, arena_printf(f->arena, "vector_fp_ternary_with_mode(FpTernaryOp::FmaF, TernaryArgMode::Mode002, (1.0f32, %s))",
                        number(f, LINEAR / CUBIC)));
    say(f, "vector_fp_binary(FpBinaryOp::MulF(FpMulAlu::Mul0), Stash)");
    say(f, arena_printf(f->arena, "vector_fp_binary(FpBinaryOp::MulF(FpMulAlu::Mul1), %s)", number(f, CUBIC)));
    say(f, "vector_fp_unary(FpUnaryOp::Sigmoid)");
    begin_pass(f);
    put(f, &product);
}

/* To whole numbers, as the last stage takes them. */
static void put_rounding(filler *f)
{
    if (!f->pass || f->at > IN_DIVISION)
        begin_pass(f);
    f->at = IN_BACK;
    say(f, "vector_fp_to_fxp(31)");
    f->whole = true;
}

/* The bounds that end a list and are whole numbers, as far as one pass has units: rounding is monotone and keeps such numbers, so they are
 * the same before and after it. */
static size_t bounds_at_end(const tune_operation *o, size_t count)
{
    size_t from = count;
    unsigned used = 0;
    for (; from > 0; from--) {
        const tune_operation *one = &o[from - 1];
        bool is_bound = (one->what == TUNE_LARGER || one->what == TUNE_SMALLER) && !one->operand && is_whole(one);
        if (!is_bound || (used >> one->what & 1))
            break;
        used |= 1U << one->what;
    }
    return count - from;
}

tune_epilogue tune_epilogue_make(const tune_operation *o, size_t count, bool whole, dtype sums, dtype out, arena *a)
{
    tune_epilogue e = {.type = sums};
    filler f = {.out = &e, .arena = a, .whole = sums == DTYPE_I32};
    bool to_float = f.whole && !whole;
    bool to_whole = dtype_row_of(out)->kind == DTYPE_KIND_INT && (to_float || !f.whole);
    size_t ahead = 0;
    for (; to_float && ahead < count && o[ahead].of_sums; ahead++)
        put_or_begin(&f, &o[ahead], 1);
    if (to_float) {
        if (!f.pass || f.at > IN_FRONT)
            begin_pass(&f);
        say(&f, "vector_fxp_to_fp(31)");
        f.whole = false;
        f.wide = fits_back(o + ahead, count - ahead);
    }
    /* after the rounding they are of its pass: in front of it they would end one */
    size_t first = count - (to_whole ? bounds_at_end(o, count) : 0);
    for (size_t i = ahead; i < first; i++)
        if (o[i].what == TUNE_GELU)
            put_gelu(&f);
        else
            put_or_begin(&f, &o[i], count - i);
    if (to_whole)
        put_rounding(&f);
    for (size_t i = first; i < count; i++)
        put_or_begin(&f, &o[i], count - i);
    e.type = f.whole ? DTYPE_I32 : DTYPE_F32;
    return e;
}

bool tune_pass_does_anything(const tune_pass *p)
{
    return p->front.count + p->narrow.count + p->back.count > 0;
}

bool tune_pass_meets(const tune_pass *p, const char *operand)
{
    for (size_t i = 0; i < p->operand_count; i++)
        if (strcmp(p->operands[i], operand) == 0)
            return true;
    return false;
}

bool tune_epilogue_stashes(const tune_epilogue *e)
{
    for (size_t i = 0; i < e->count; i++)
        if (e->passes[i].stashes)
            return true;
    return false;
}

bool tune_epilogue_has_gate(const tune_epilogue *e)
{
    for (size_t i = 0; i < e->count; i++)
        if (e->passes[i].is_gate)
            return true;
    return false;
}
