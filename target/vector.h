/* The operations of the Vector Engine, as rows (target/engine/vector.def).
 *
 * The one idea: an operation is a code, the unit that does it, and a scalar expression over its operands (target/scalar.def). The machine
 * computes it by a function of its own (runtime/engine/vector_body.h), the reference by the expression; neither reads the other. */
#ifndef VISA_TARGET_VECTOR_H
#define VISA_TARGET_VECTOR_H

#include "target/scalar.h"

typedef enum vector_alu {
    VECTOR_ALU_NONE,
#define VECTOR_ALU(symbol, name) VECTOR_ALU_##symbol,
#include "target/engines.def"
    VECTOR_ALU_COUNT
} vector_alu;
const char *vector_alu_name(vector_alu a); /* "FxpAdd" */

/* The values are the binary's codes. */
typedef enum vector_op {
#define VECTOR_OP(symbol, code, ...) VECTOR_##symbol = (code),
#include "target/engines.def"
} vector_op;

/* What an operation is called by in the language: a stage has the operations of one. */
typedef enum vector_class {
    VECTOR_CLASS_LOGIC,
    VECTOR_CLASS_FXP,
    VECTOR_CLASS_FXP_TO_FP,
    VECTOR_CLASS_FP_UNARY,
    VECTOR_CLASS_FP_BINARY,
    VECTOR_CLASS_FP_TERNARY,
    VECTOR_CLASS_FP_DIV,
    VECTOR_CLASS_FP_TO_FXP,
    VECTOR_CLASS_CLIP,
    VECTOR_CLASS_REINTERPRET,
    VECTOR_CLASS_REDUCE,
    VECTOR_CLASS_SLICES,
} vector_class;

typedef struct vector_op_row {
    vector_op op;
    const char *name; /* "add_fxp_sat": in dumps */
    vector_class class;
    const char *type, *variant; /* "FxpBinaryOp", "AddFxpSat"; NULL: its stage has no other */
    vector_alu alu;
    unsigned operands; /* 1 to 3 */
    dtype from, to;
    const scalar_step *steps; /* postfix; SCALAR_SOURCE 0, 1, 2: its operands */
    uint32_t step_count;
    const char *meaning;
} vector_op_row;

/* What each operand of an operation is: 0 the stream's element, 1 and 2 what is given to it. */
#define VECTOR_MODE(a, b, c) ((a) | (b) << 2 | (c) << 4)
enum { VECTOR_OPERANDS = 3 };
static inline unsigned vector_mode_of(unsigned mode, unsigned operand)
{
    return mode >> 2 * operand & 3;
}

/* Does the mode make an operand of that number? */
static inline bool vector_mode_names(const vector_op_row *row, unsigned mode, unsigned number)
{
    for (unsigned i = 0; i < row->operands; i++)
        if (vector_mode_of(mode, i) == number)
            return true;
    return false;
}

/* What constants besides the stream are: of its type, but for widths of conversions. */
static inline dtype vector_constant_type(const vector_op_row *row)
{
    return row->class == VECTOR_CLASS_FP_TO_FXP ? DTYPE_I32 : row->from;
}

/* The scalar operation that a reduction folds with. */
static inline scalar_op vector_fold_of(const vector_op_row *row)
{
    return row->steps[row->step_count - 1].op;
}

/* The values are the binary's codes. */
typedef enum valid_count_kind { VALID_COUNT_CLIPPER, VALID_COUNT_SLICE_MAJOR, VALID_COUNT_TIME_MAJOR } valid_count_kind;
const char *valid_count_name(valid_count_kind k); /* "packet clipper" */

/* The values are the binary's codes. */
typedef enum vector_width_kind { VECTOR_SPLIT, VECTOR_TRIM, VECTOR_CONCAT, VECTOR_PAD } vector_width_kind;
const char *vector_width_name(vector_width_kind k); /* "split" */

/* ---- tags and operands by tag ---- */

enum { VECTOR_TAG_BITS = 4, VECTOR_ALL_TAGS = 0xffff, VECTOR_BOTH_GROUPS = 3, VECTOR_MOST_OPERANDS = 4 /* of an operation, by tag */ };

/* The values are the binary's codes. */
typedef enum vector_compare {
#define VECTOR_COMPARE(symbol, code, ...) VECTOR_COMPARE_##symbol = (code),
#include "target/engines.def"
    VECTOR_COMPARES
} vector_compare;

typedef struct vector_compare_row {
    const char *name; /* "LessUnsigned" */
    unsigned constants;
    const scalar_step *steps[2]; /* postfix, of i32 and of f32; SCALAR_SOURCE 0: the element, 1: the constant */
    uint32_t step_count[2];
    const char *meaning;
} vector_compare_row;
/* NULL: no comparison has the code. */
const vector_compare_row *vector_compare_row_of(unsigned code);

/* A bit of the tag. */
typedef struct vector_comparison {
    vector_compare compare;
    uint32_t with; /* a word; 0 where the comparison takes none */
} vector_comparison;

/* What a set of tags is, of tags that are made like this: an expression that is true for its elements. `element` stands for what the tags
 * are of. Fills at most VECTOR_GUARD_STEPS and returns how many; 0: *always says it for all elements. */
enum { VECTOR_GUARD_STEPS = 192 };
uint32_t vector_guard_steps(unsigned tags, const vector_comparison *of, dtype type, const scalar_step *element, uint32_t element_steps,
                            scalar_step *out, bool *always);

/* What VARIANT_OF rows make, for operands by tag. */
enum {
    VECTOR_GIVEN,
    VECTOR_GIVEN_GROUP,
    VECTOR_IMMEDIATE,
    VECTOR_REGISTER,
    VECTOR_GUARD_ALL,
    VECTOR_GUARD_GROUP,
    VECTOR_GUARD_MATCHES,
    VECTOR_GUARD_NOT_MATCHES,
};

/* NULL: no operation has the code. */
const vector_op_row *vector_op_row_of(unsigned code);
/* In the order of the table; NULL past the end. */
const vector_op_row *vector_op_row_at(size_t index);

/* A name that the language has and no machine is known to do; NULL: there are fewer. */
typedef struct vector_unknown {
    const char *type, *variant;
} vector_unknown;
const vector_unknown *vector_unknown_at(size_t index);

#endif
