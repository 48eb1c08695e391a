/* Numbers that a launch gives: `HbmScalar<T>`.
 *
 * The one idea: such a parameter is a port of one element in HBM, and what `to_spm` gives of it is no constant but a way to read that
 * element when the kernel runs. A type that the machine's element types lack is its bytes: u32 an i32 of the same bits, what has 64 bits
 * two of them, the low half first. */
#ifndef VISA_FRONTEND_RUNNING_H
#define VISA_FRONTEND_RUNNING_H

#include "frontend/scope.h"

/* What an HbmScalar can be of. */
typedef struct run_type {
    const char *name;
    unsigned bits;
    bool is_signed, is_bool;
} run_type;

/* The number of a port, and what is made of it. */
typedef struct run_number {
    op *port;
    const run_type *type;          /* as it is now */
    const struct run_number *from; /* of which it is made: by a cast, or by adding `more`; NULL: it is the port's */
    int64_t more;
} run_number;

/* `segment`: HbmScalar<T>. NULL: diagnosed. */
const run_type *run_type_of(scope *s, const ast *segment);
/* The port's tensor, in the HBM of so many chips. */
bool run_type_tensor(scope_context *c, const run_type *t, const char *name, int64_t chips, tensor *out);
const run_number *run_number_new(arena *a, const run_type *t, op *port);
/* The tensor, where the number is its only element and an i32; else NULL. */
op *run_number_count(const run_number *n);
/* A usize as a position: the port's number of so many bits, without a sign, and what is added to it; a sum that wraps is no position, nor
 * is that of a negative number. */
typedef struct run_position {
    op *port;
    unsigned bits; /* 32 or 64 */
    int64_t more;  /* at least 0 */
} run_position;
/* False: it is no usize, or made in a way that a sum of the two does not say. */
bool run_number_position(const run_number *n, run_position *out);
/* The number by `as`; NULL: `type` is none of these. */
const run_number *run_number_cast(arena *a, const run_number *n, const char *type);

/* Cases of which one at most holds: work that runs in several stands in the kernel once for each. Each case: guards, all of which hold. */
enum { RUN_MOST_CASES = 64 };
typedef struct run_condition {
    size_t count;
    const run_guard *cases[RUN_MOST_CASES];
} run_condition;

/* What an operator makes of such a number or condition and of something else: a sum with a constant, modulo 2^bits; a comparison with one;
 * `&&` and `||` of conditions. */
value run_binary(scope *s, const ast *n, const char *operator, const value * a, const value *b);
value run_not(scope *s, const ast *n, const value *operand);
/* The condition that a value is: of a bool that it is not 0. NULL: it is none. */
const run_condition *run_condition_of(arena *a, const value *v);
/* Where it does not hold. NULL: that has more than RUN_MOST_CASES cases. */
const run_condition *run_condition_opposite(arena *a, const run_condition *x);
/* Guards in front of those that hold already. */
const run_guard *run_guard_join(arena *a, const run_guard *more, const run_guard *outer);

#endif
