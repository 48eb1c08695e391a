/* Expressions over single values, in postfix.
 *
 * The one idea: an expression computes in i32, f32 and truth values only; elements of the sources are widened
 * to the first two and the result is narrowed to the destination's type. Each operation is a row of
 * scalar.def, and whoever executes one has a function of the row's name. */
#ifndef VISA_TARGET_SCALAR_H
#define VISA_TARGET_SCALAR_H

#include "target/target.h"

typedef enum scalar_type { SCALAR_NONE, SCALAR_I32, SCALAR_F32, SCALAR_BOOL } scalar_type;
const char *scalar_type_name(scalar_type t);
/* What an element of the type is widened to. */
scalar_type scalar_type_of(dtype t);

/* The values are the binary's codes. */
typedef enum scalar_op {
    SCALAR_SOURCE = 1,       /* the element of source number `argument`, widened */
    SCALAR_CONSTANT_I32 = 2, /* `argument` */
    SCALAR_CONSTANT_F32 = 3, /* the f32 of the bits `argument` */
#define SCALAR(symbol, code, name, a, b, c, result, flags, identity, bound, ulps, text, meaning) SCALAR_##symbol = (code),
#include "target/scalar.def"
#undef SCALAR
} scalar_op;

enum { SCALAR_FOLDS = 1, SCALAR_COMMUTES = 2, SCALAR_ASSOCIATES = 4 };

/* How an error of the operands passes through an operation. */
typedef enum scalar_bound {
    BOUND_NONE, /* no rule: anything, where an operand has an error */
    BOUND_SUM,
    BOUND_PRODUCT,
    BOUND_QUOTIENT,
    BOUND_FUSED,
    BOUND_MOST,      /* the largest of the operands' errors */
    BOUND_MONOTONE,  /* the results at both ends */
    BOUND_LIPSCHITZ, /* no steeper than 1 */
    BOUND_COMPARE,
    BOUND_SELECT,
} scalar_bound;

enum { SCALAR_OPERANDS = 3 };

typedef struct scalar_row {
    scalar_op op;
    const char *name;
    scalar_type operands[SCALAR_OPERANDS], result;
    unsigned flags;
    uint32_t identity; /* bits */
    scalar_bound bound;
    unsigned ulps;
    const char *text; /* $ for each operand */
    const char *meaning;
} scalar_row;

/* NULL: no operation has the code (leaves have no row). */
const scalar_row *scalar_row_of(unsigned code);
/* In the order of the table; NULL past the end. */
const scalar_row *scalar_row_at(size_t index);
unsigned scalar_arity(const scalar_row *row);

typedef struct scalar_step {
    scalar_op op;
    uint32_t argument; /* of a leaf; else 0 */
} scalar_step;

/* An expression has at most so many steps, and never more values at once on its stack. */
/* What is negative, -0 too, is +0; else the number itself, a NaN too. */
enum { SCALAR_RELU_STEPS = 6 };
extern const scalar_step scalar_relu_steps[SCALAR_RELU_STEPS];

enum { SCALAR_MAX_STEPS = 256, SCALAR_MAX_DEPTH = 32 };

/* What a walk over an expression knows: the types of the values on the stack. */
typedef struct scalar_stack {
    scalar_type types[SCALAR_MAX_DEPTH];
    unsigned depth;
} scalar_stack;

/* Takes one step; NULL, or what is wrong with it. `sources`: types of the sources' elements. */
const char *scalar_take(scalar_stack *s, const scalar_step *step, const dtype *sources, uint32_t source_count);
/* The result of all steps; SCALAR_NONE: this is no expression of one number. */
scalar_type scalar_result(const scalar_step *steps, uint32_t count, const dtype *sources, uint32_t source_count);

#endif
