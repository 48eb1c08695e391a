/* Operations on elements as statements: expressions over the elements of what an operation reads.
 *
 * The one idea: an operation's row has its expression (target/scalar.def), and one whose stream nothing else needs is put in the place of
 * the element in the expression of the next, so that a chain of them is one statement. */
#ifndef VISA_PASSES_MATHEMATICS_EINSUM_MAP_H
#define VISA_PASSES_MATHEMATICS_EINSUM_MAP_H

#include "passes/mathematics/einsum_build.h"

typedef struct einsum_expression {
    scalar_step steps[SCALAR_MAX_STEPS];
    uint32_t count; /* SCALAR_MAX_STEPS + 1: too long */
} einsum_expression;

void einsum_append(einsum_expression *x, const scalar_step *steps, uint32_t count);
void einsum_set_expression(einsum_builder *b, einsum_step *step, const einsum_expression *x, dtype result);

void einsum_map(einsum_builder *b, op *o);
/* The operation on elements of both streams. */
void einsum_zip(einsum_builder *b, op *o);
/* Each stream is the value at one place of the axis that tells them apart. */
void einsum_unzip(einsum_builder *b, op *o);
/* A reduction: what it folds are the elements that arrive. */
void einsum_reduce(einsum_builder *b, op *o, const vector_op_row *row, void (*digits)(einsum_builder *, einsum_step *, op *));
/* Two tensors by turns: a value with the axis that tells them apart, written in two parts. */
void einsum_interleave(einsum_builder *b, op *o);
/* What a fetch reads, less a zero point. */
void einsum_difference(einsum_builder *b, op *o);
/* What is committed is narrowed on the way, after a relu. */
void einsum_relu(einsum_builder *b, op *o);

#endif
