/* Sums of groups that meet their scales: `sum(g) s[n, g] * sum(k) A[m, g, k] * W[n, g, k]`.
 *
 * The one idea: however it is spelt, it is one contraction over the axes of both sums. The Reducer adds what a group has, and each sum of
 * a group meets the scales of its group in the Vector Engine, which adds the products in the same pass. So operands are shared and copied
 * as those of any contraction are. */
#ifndef VISA_LIBVISA_TUNE_SCALED_H
#define VISA_LIBVISA_TUNE_SCALED_H

#include "libvisa/tune/expression.h"

/* The question as a contraction of two tensors, whose scales are out->scales; what is multiplied with all of the sum is done after it. What
 * is subtracted from elements of its operands, `W[n, k] - z[n]`, is a zero point of theirs. False: it is none, or has neither scales in a
 * sum nor zero points. Lives in the arena. */
bool tune_scaled_read(const tune_expression *e, arena *a, tune_expression *out);

/* Such a question with scales as a flow has it, without axes of one position: sums of groups that are multiplied and added, or, `flat`, one
 * sum, in which each scale goes to a factor that has its axes. Lives in the arena. */
tune_expression tune_scaled_flowing(const tune_expression *scaled, bool flat, arena *a);

/* Of such a question the name of an operand, in lower case. */
const char *tune_scaled_operand(const tune_expression *scaled);

#endif
