/* The einsum while it is built, for its three parts: statements (einsum.c), the digits that a statement walks
 * (einsum_digits.c), and which of them each operand holds (einsum_sources.c). */
#ifndef VISA_PASSES_EINSUM_BUILD_H
#define VISA_PASSES_EINSUM_BUILD_H

#include "passes/einsum.h"

/* What an operation's tensor is: a value, seen through the tiles of a view. */
typedef struct reference {
    uint32_t value;
    const tile_window *window; /* NULL: the whole value */
} reference;

typedef struct einsum_builder {
    pass_context *context;
    kernel *kernel;
    kernel_einsum *e;
    reference *of;  /* by operation */
    uint32_t *uses; /* by operation: how often the memory or stream is used */
} einsum_builder;

/* Is the axis one by which the value is indexed? */
bool einsum_value_has(const einsum_value *v, const axis *a);

/* The digits of a copy whose destination is `t`. */
void einsum_copy_digits(einsum_builder *b, einsum_step *step, op *o, const tensor *t);
/* The digits of a contraction, from the computation mapping in front of it; accumulate: NULL when the kernel ends behind contract. */
void einsum_contract_digits(einsum_builder *b, einsum_step *step, op *contract, const op *accumulate);

/* Cuts the digits where the operands `a` and `b` (NULL: a copy) cut them, says which of them each operand repeats, and refuses what
 * operands cannot be indexed by. */
void einsum_settle_sources(einsum_builder *b, einsum_step *step, op *o, const op *a, const op *other);
/* Does the operand hold every digit of t, so that nothing of it is repeated there? */
bool einsum_source_holds(einsum_builder *b, op *o, const op *source, const tensor *t);

#endif
