/* What a kernel computes (target/einsum.h), and which axes its numbers mean.
 *
 * The one idea: it is derived from the tensors' types alone (passes/mathematics/einsum.c); the binary's section is the
 * same with the numbers of the binary's axis table (codegen/emit.c). */
#ifndef VISA_IR_EINSUM_H
#define VISA_IR_EINSUM_H

#include "ir/mapping/mapping.h"
#include "target/einsum.h"

/* Of a tensor; of a statement while it is built. */
enum { EINSUM_MAX_AXES = 32, EINSUM_MAX_DIGITS = 64 };

typedef struct kernel_einsum {
    einsum e;                /* its windows: axes that a reshape names anew */
    const axis *const *axes; /* by number */
} kernel_einsum;

#endif
