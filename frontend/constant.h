/* Host constants: integers, conditions, ranges, tuples and arrays.
 *
 * The one idea: whatever in a kernel is no tensor is known when it is compiled, so a loop is a list of values and an operator
 * is carried out at once. Every function gives a value or has diagnosed why not (VALUE_ERROR). */
#ifndef VISA_FRONTEND_CONSTANT_H
#define VISA_FRONTEND_CONSTANT_H

#include "frontend/scope.h"

/* Loop iterations, calls and elements of one kernel's constants; and stage calls of one kernel. */
#define UNROLL_MAX ((size_t)1000000)

/* `n`: where it stands; the operator is not its text in `x += 1`. */
value constant_binary(scope *s, const ast *n, const char *operator, const value * a, const value *b);
/* Is the value of `a && b` or `a || b` that of `a`, whatever b is? */
bool constant_decides(const char *operator, const value * a);
value constant_unary(scope *s, const ast *n, const value *operand);
/* `a as usize` */
value constant_cast(scope *s, const ast *n, const value *v);
/* A literal with a fraction. */
value constant_float(scope *s, const ast *n);
/* Is `type::function(x)` a number turned into an element: `bf16::from_f32`, `i4::from_i32`? Then its value: the nearest one, ties to even,
 * or the integer itself. What does not fit is refused. `n`: the call. */
bool constant_is_element(const char *type, const char *function);
value constant_element(scope *s, const ast *n, const char *type, const char *function, const value *v);
value constant_range(scope *s, const ast *n, const value *first, const value *end);
value constant_index(scope *s, const ast *n, const value *list, const value *index);

/* `.iter()`, `.enumerate()`, `.rev()`, `.step_by(n)`, `.len()` and the like on a range or list. */
value constant_method(scope *s, const ast *n, const value *receiver, const value *args, size_t arg_count);

/* A method of an integer: `.min(n)`, `.pow(n)`, `.div_ceil(n)`, `.is_power_of_two()` and the like. */
bool constant_has_method(const char *name);
value constant_integer_method(scope *s, const ast *n, int64_t receiver, const value *args, size_t arg_count);

/* What `for` runs through. */
bool value_is_sequence(const value *v);
value value_item(const value *sequence, size_t i);
value value_list(arena *a, const value *items, size_t count);
/* "an integer" */
const char *value_kind_name(const value *v);

#endif
