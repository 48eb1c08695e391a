#include "target/vector.h"

const char *vector_alu_name(vector_alu a)
{
    static const char *const names[] = {
        [VECTOR_ALU_NONE] = "none",
#define VECTOR_ALU(symbol, name) [VECTOR_ALU_##symbol] = name,
#include "target/engines.def"
    };
    return names[a];
}

const char *vector_width_name(vector_width_kind k)
{
    static const char *const names[] = {"split", "trim", "concat", "pad"};
    return names[k];
}

const char *valid_count_name(valid_count_kind k)
{
    static const char *const names[] = {"packet clipper", "time filter, slice major", "time filter, time major"};
    return names[k];
}

/* The expressions, an array for each operation. */
#define A \
    { \
        SCALAR_SOURCE, 0 \
    }
#define B \
    { \
        SCALAR_SOURCE, 1 \
    }
#define C \
    { \
        SCALAR_SOURCE, 2 \
    }
#define INT(n) \
    { \
        SCALAR_CONSTANT_I32, (n) \
    }
#define DO(op) \
    { \
        SCALAR_##op, 0 \
    }
#define STEPS(...) \
    { \
        __VA_ARGS__ \
    }
#define VECTOR_OP(symbol, code, class, type, variant, alu, operands, from, to, steps, meaning) \
    static const scalar_step symbol##_steps[] = steps;
#include "target/engines.def"

static const vector_op_row rows[] = {
#define VECTOR_OP(symbol, code, class, type, variant, alu, operands, from, to, steps, meaning) \
    {VECTOR_##symbol, \
     #symbol, \
     VECTOR_CLASS_##class, \
     type, \
     variant, \
     VECTOR_ALU_##alu, \
     operands, \
     DTYPE_##from, \
     DTYPE_##to, \
     symbol##_steps, \
     sizeof symbol##_steps / sizeof(scalar_step), \
     meaning},
#include "target/engines.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

const vector_op_row *vector_op_row_at(size_t index)
{
    return index < ROWS ? &rows[index] : NULL;
}

const vector_op_row *vector_op_row_of(unsigned code)
{
    for (size_t i = 0; i < ROWS; i++)
        if ((unsigned)rows[i].op == code)
            return &rows[i];
    return NULL;
}

/* ---- tags ---- */

#define VECTOR_COMPARE(symbol, code, name, constants, i32, f32, meaning) \
    static const scalar_step symbol##_i32[] = i32, symbol##_f32[] = f32;
#include "target/engines.def"

const vector_compare_row *vector_compare_row_of(unsigned code)
{
    static const vector_compare_row compares[] = {
#define VECTOR_COMPARE(symbol, code, name, constants, i32, f32, meaning) \
    [VECTOR_COMPARE_##symbol] = {name, \
                                 constants, \
                                 {symbol##_i32, symbol##_f32}, \
                                 {sizeof symbol##_i32 / sizeof(scalar_step), sizeof symbol##_f32 / sizeof(scalar_step)}, \
                                 meaning},
#include "target/engines.def"
    };
    return code < VECTOR_COMPARES ? &compares[code] : NULL;
}

typedef struct guard_writer {
    const vector_comparison *of;
    dtype type;
    const scalar_step *element;
    uint32_t element_steps, count;
    scalar_step *out;
} guard_writer;

static void put(guard_writer *w, scalar_step step)
{
    if (w->count < VECTOR_GUARD_STEPS)
        w->out[w->count] = step;
    w->count++;
}

static void put_comparison(guard_writer *w, unsigned bit)
{
    const vector_compare_row *row = vector_compare_row_of(w->of[bit].compare);
    bool is_float = w->type == DTYPE_F32;
    for (uint32_t i = 0; i < row->step_count[is_float]; i++) {
        const scalar_step *s = &row->steps[is_float][i];
        if (s->op == SCALAR_SOURCE && s->argument == 1)
            put(w, (scalar_step){is_float ? SCALAR_CONSTANT_F32 : SCALAR_CONSTANT_I32, w->of[bit].with});
        else if (s->op != SCALAR_SOURCE)
            put(w, *s);
        for (uint32_t k = 0; s->op == SCALAR_SOURCE && s->argument == 0 && k < w->element_steps; k++)
            put(w, w->element[k]);
    }
}

/* Where the bit is `set`, the set of the bits below it. Returns what put_guard returns. */
static int put_guard(guard_writer *w, unsigned tags, unsigned bit);
static int put_half(guard_writer *w, bool set, unsigned tags, unsigned bit)
{
    uint32_t start = w->count;
    put_comparison(w, bit);
    if (!set)
        put(w, (scalar_step){SCALAR_NOT_BOOL, 0});
    int rest = put_guard(w, tags, bit);
    if (rest == 2)
        put(w, (scalar_step){SCALAR_AND_BOOL, 0});
    else if (rest == 0)
        w->count = start;
    return rest == 0 ? 0 : 2;
}

/* Is the tag in the set, by its bits below `bit`, of which the set has all 2^bit combinations? 0: never; 1: always; 2: what was put says
 * it. */
static int put_guard(guard_writer *w, unsigned tags, unsigned bit)
{
    unsigned all = (unsigned)((UINT64_C(1) << (1u << bit)) - 1);
    if (tags == 0 || tags == all)
        return tags != 0;
    unsigned half = 1u << (bit - 1), half_all = (1u << half) - 1, low = tags & half_all, high = tags >> half;
    vector_compare c = w->of[bit - 1].compare;
    if (low == high || c == VECTOR_COMPARE_FALSE || c == VECTOR_COMPARE_TRUE)
        return put_guard(w, c == VECTOR_COMPARE_TRUE ? high : low, bit - 1);
    int set = put_half(w, true, high, bit - 1), clear = put_half(w, false, low, bit - 1);
    if (set == 2 && clear == 2)
        put(w, (scalar_step){SCALAR_OR_BOOL, 0});
    return set || clear ? 2 : 0;
}

uint32_t vector_guard_steps(unsigned tags, const vector_comparison *of, dtype type, const scalar_step *element, uint32_t element_steps,
                            scalar_step *out, bool *always)
{
    guard_writer w = {of, type, element, element_steps, 0, out};
    int known = put_guard(&w, tags, VECTOR_TAG_BITS);
    *always = known == 1;
    return known == 2 ? w.count : 0;
}

const vector_unknown *vector_unknown_at(size_t index)
{
    static const vector_unknown unknown[] = {
#define VECTOR_UNKNOWN(type, variant) {type, variant},
#include "target/engines.def"
    };
    return index < sizeof unknown / sizeof *unknown ? &unknown[index] : NULL;
}
