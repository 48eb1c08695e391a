/* What a kernel computes, over axis digits (ir/einsum.h), from the tensors of its operations.
 *
 * The one idea: every move is the identity on the tensor, so only conversions and contractions are statements. A
 * contraction's digits are those of the computation mapping; which of them are kept is stated by the tensors after
 * contract and accumulate, and which of them an operand holds by the tensors in front of align. Nothing here looks at a
 * configuration of the data path but the loops' kept/summed marks and how many steps tile. */
#ifndef VISA_PASSES_MATHEMATICS_EINSUM_H
#define VISA_PASSES_MATHEMATICS_EINSUM_H

#include "passes/pass.h"

void pass_einsum(pass_context *p, kernel *k);

#endif
