/* Are the differences of an output, taken together, what rounding explains?
 *
 * The one idea: a bound holds for the worst case, in which every rounding of a sum goes the same way as far
 * as it can; for a sum of 4096 terms that is some thousand times what happens. Where inputs are random,
 * roundings are like throws of a coin, and how far so many of them go is known up to any probability wanted.
 * So a second judge looks at each value, and at all values and those of each index of each axis together, and
 * speaks against an output that no luck explains: how likely it is to be wrong about that is computed.
 *
 * The model. Two sums of the n terms p_j of an output, in any two orders, have at most R = 2 (n - 1)
 * roundings between them. Each adds d_k s_k, where s_k is an exact partial sum up to factors 1 + O(n u),
 * |d_k| <= u = 2^-24, and, whatever came before it, d_k is 0 in the mean (A1). Then the difference e of the
 * two sums is a martingale with steps of at most u |s_k|, and by Azuma and Hoeffding
 *
 *     E exp(x e) <= exp(x^2 V / 2),   V = u^2 sum s_k^2 <= R u^2 S^2,   S >= |s_k|      (1)
 *
 * S is M = sum |p_j|, which the bound b = R u M holds. It is less where one source gives each term a factor
 * of its own, of a random sign (A2): then s_k is a sum with random signs, of variance sum p_j^2 <= M since
 * |p_j| <= 1, and all R N partial sums of N outputs are at most t sqrt(M) but with probability 2 R N exp(-t^2
 * / 2), which is a quarter of what may go wrong. So V = min(b^2 / R, u t^2 b).
 *
 * With z = e / sqrt(V), (1) is E exp(x z) <= exp(x^2 / 2); roundings of different outputs are independent as
 * well (A1, where no two outputs sum the same terms), so that for any group of outputs and fixed weights w
 *
 *     value    P(|z| > t)                      <= 2 exp(-t^2 / 2)
 *     bias     P(|sum z| > t sqrt(m))          <= 2 exp(-t^2 / 2)
 *     scale    P(|sum w z| > t sqrt(sum w^2))  <= 2 exp(-t^2 / 2)
 *     spread   P(sum z^2 > m (1 + y))          <= exp(-m (y - ln(1 + y)) / 2)
 *
 * with m outputs and w = value / sqrt(V), so that scale is the slope of e over the value (the last from E
 * exp(x z^2) <= (1 - 2 x)^(-1/2), which is (1) in the mean over a normal factor.) All tests of a check share
 * what may go wrong equally, in four quarters: the partial sums, values, groups, and the next one. The value
 * that weighs a slope is the reference's, which has an error r itself: by Cauchy and Schwarz it moves the sum
 * by at most sqrt(sum z^2 sum r^2/V), and r^2/V, with half of V, has a spread as above.
 *
 * After a cast e is not seen. What is seen is that the sum lies among those that the cast takes to the
 * output's value; e is at least as far as the nearest of these is from the reference's sum, and in that
 * direction. That distance takes the place of e: it is smaller, so that value and spread hold as they are;
 * for bias and scale it is 0 in the mean as e is, where a sum is as likely to be just above a value's border
 * as just below the other one (A3).
 *
 * A1 and A2 are what random inputs give: expected.h says which outputs have them, others have their bounds
 * alone. They fail for constant inputs, where the same rounding is made again and again. */
#ifndef VISA_RUNTIME_TENSOR_JUDGE_H
#define VISA_RUNTIME_TENSOR_JUDGE_H

#include "runtime/tensor/tensor.h"

/* How likely a check of a kernel that is right may speak against it, under the model. */
#define JUDGE_FALSE_ALARM 1e-9

typedef struct judge_case {
    const tensor_type *type;      /* of the output */
    const unsigned char *machine; /* its elements */
    const float *sums;            /* the reference's, before the cast */
    const double *bounds;         /* of the sums: b */
    const unsigned char *covered; /* as for compare_elements */
    double roundings;             /* R */
    double false_alarm;           /* this output's share */
} judge_case;

typedef enum judge_test { JUDGE_VALUE, JUDGE_BIAS, JUDGE_SCALE, JUDGE_SPREAD, JUDGE_TESTS } judge_test;

typedef struct judge_verdict {
    int64_t values;  /* that have an error to judge */
    int64_t outside; /* of them, each for itself off by more than rounding explains */
    double worst;    /* of all tests: what was found, of what rounding explains; above 1: it does not */
    judge_test test;
    int axis;      /* of the group that it is of; -1: all */
    int64_t index; /* along the axis; of JUDGE_VALUE the element */
    double slope;  /* of the error over the value, over all */
} judge_verdict;

/* False: no memory. */
bool judge_output(const judge_case *c, judge_verdict *out);

/* "together 0.12 of what rounding explains"; or what speaks against the output: "off by 14 times what
 * rounding explains, in scale at M=3". */
const char *judge_text(const judge_case *c, const judge_verdict *v, arena *a);

#endif
