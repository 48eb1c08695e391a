/* What functions of higher-order operators make of data types, and what one application is worth in FLOPs.
 *
 * The one idea: a function is typed with symbolic tile sizes, so that a tile whose rows are only known when it runs (a retiled group)
 * is as good as any other, and sizes that have to agree agree as expressions. */
#ifndef VISA_IR_STEP_TYPE_H
#define VISA_IR_STEP_TYPE_H

#include "ir/step/graph.h"

/* A pair of these two. */
step_data step_data_pair(const step_data *first, const step_data *second);
bool step_data_equal(const step_data *a, const step_data *b);

/* The data type of the result. `folded`: of accum, how many values one result folds; NULL for others. NULL with a reason in *why. */
const step_data *step_function_type(step_graph *g, const step_spec *s, const step_expr *folded, const char **why);

/* The function's operand number `i`, the accumulator not counted: a pair stands for its two parts. NULL: it has fewer. */
const step_data *step_operand(const step_spec *s, uint32_t i);

/* Of a flat_map: how many values each value becomes, when that is fixed; else NULL. */
const step_expr *step_function_size(step_graph *g, const step_spec *s);

/* "1 value", "2 values", "1 to 3 values". */
const char *step_count_text(arena *a, unsigned least, unsigned most, const char *what);

#endif
