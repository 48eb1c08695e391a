/* Scalar expressions over the field.
 *
 * The one idea: sums, differences, products and signs are the field's; any other operation is a function of its operands that nothing else
 * is known of, a keyed hash of the operation and of their values. Two expressions over equal values are equal where they are the same
 * expression, up to the laws of the field; where they are not, they differ but with a chance of about 2^-60. */
#ifndef VISA_RUNTIME_FIELD_FUNCTION_H
#define VISA_RUNTIME_FIELD_FUNCTION_H

#include "runtime/field/value.h"
#include "target/scalar.h"

/* The value of a constant, by its bits. */
field_value field_constant(uint64_t seed, dtype type, uint32_t bits);
/* A postfix expression; SCALAR_SOURCE n is operands[n]. */
field_value field_expression(uint64_t seed, const scalar_step *steps, uint32_t count, const field_value *operands);

#endif
