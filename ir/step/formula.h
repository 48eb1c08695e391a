/* Sizes and FLOPs of a user function, from the sizes of the tiles that it takes. */
#ifndef VISA_IR_STEP_FORMULA_H
#define VISA_IR_STEP_FORMULA_H

#include "ir/step/graph.h"

/* The tiles that a formula takes of these streams, parts of pairs one by one. How many there are; more than `most`: too many. False:
 * something that is no tile. */
bool step_formula_leaves(const step_stream *const *inputs, uint32_t input_count, const step_data **leaves, uint32_t *count);
/* The data type of its result; NULL with a reason in *why. */
const step_data *step_formula_type(step_graph *g, const step_spec *s, const char **why);
/* FLOPs of one application. */
const step_expr *step_formula_flops(step_graph *g, const step_spec *s);

#endif
