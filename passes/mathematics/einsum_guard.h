/* What is written only where a number of the launch says so.
 *
 * The one idea: no statement has a condition. What is there and what would be written stand one after the other along an axis of their own,
 * and a gather of one row takes the one of the two that the number says. */
#ifndef VISA_PASSES_MATHEMATICS_EINSUM_GUARD_H
#define VISA_PASSES_MATHEMATICS_EINSUM_GUARD_H

#include "passes/mathematics/einsum_build.h"

typedef struct einsum_choice {
    uint32_t both;
    const axis *axis;
} einsum_choice;

bool einsum_is_guarded(const op *o);
/* The memory as the first of the two. */
einsum_choice einsum_begin_choice(einsum_builder *b, op *o, reference memory);
/* Where the second is written. */
reference einsum_second_of(einsum_builder *b, const einsum_choice *c);
void einsum_finish_choice(einsum_builder *b, op *o, const einsum_choice *c, reference memory);

/* What the view that is written holds. */
void einsum_copy_memory(einsum_builder *b, op *o, reference to, reference memory);
/* `source`: the operation whose value it is, of which not all digits may be held; NULL: a value of the view's own axes. */
void einsum_write_guarded(einsum_builder *b, op *o, reference from, reference memory, const op *source);
/* A number into all of a memory, or of a tile. */
void einsum_generate(einsum_builder *b, op *o);

#endif
