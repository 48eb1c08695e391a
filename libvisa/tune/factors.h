/* Products of more tensors than the Reducer multiplies, products of two without a sum, and terms that have no axes in common.
 *
 * The one idea: factors stand in any order, so a factor goes to one that has all of its axes, where a pass multiplies them element by
 * element. What is left are the operands of a contraction: two, or three of which two are summed first. So do terms, of which one that
 * has all axes comes first. */
#ifndef VISA_LIBVISA_TUNE_FACTORS_H
#define VISA_LIBVISA_TUNE_FACTORS_H

#include "libvisa/tune/expression.h"

/* Arranges the products of a tree that no kernel has as they stand; `nodes`: all of the expression's. `sums`: those of several factors may
 * become contractions of what a pass has multiplied, which is rounded to the type that is multiplied. The tree is the same where there are
 * none. New nodes live in the arena. */
void tune_factors_arrange(tune_expression *e, tune_node *const *nodes, size_t count, bool sums, arena *a);

#endif
