/* Does an output agree with the reference?
 *
 * The one idea: two logical tensors of one type are compared element by element, each with an allowance of
 * its own that somebody computed (docs/numerics.md); what is kept is what a reader asks: how many differ,
 * where the first one stands, both values, how much of the allowance the worst agreeing element used, and how
 * many there are of which a comparison says nothing. */
#ifndef VISA_RUNTIME_TENSOR_COMPARE_H
#define VISA_RUNTIME_TENSOR_COMPARE_H

#include "runtime/tensor/tensor.h"

typedef struct compare_result {
    int64_t compared; /* elements that could have differed */
    int64_t mismatches;
    int64_t both_nan, both_infinite;    /* not compared: no number on either side, or the same infinity, as all sums are that overflow */
    int64_t unbounded;                  /* nor these: anything is allowed */
    int64_t uncovered;                  /* elements that the output does not hold */
    int64_t first_mismatch;             /* element; -1: none */
    double machine, reference, allowed; /* at the first mismatch */
    double worst_fraction;              /* of its allowance, over the agreeing elements that have a finite one above 0 */
    bool has_allowance;                 /* some allowance was above 0 */
} compare_result;

/* allowed 0: equal; infinity: anything. NaN agrees with NaN, an infinity with the same infinity. */
bool compare_agrees(double machine, double reference, double allowed);

/* `reference` and `machine` are elements of `type`. allowed: absolute, one per element; NULL: exact
 * everywhere. 0: equal values (0 and -0 are); infinity: anything. NaN agrees with NaN, an infinity with the
 * same infinity. covered: one byte per element, 0: do not compare; NULL: all. threads: how many may share
 * the work; the result does not depend on it. */
void compare_elements(const tensor_type *type, const unsigned char *reference, const unsigned char *machine, const double *allowed,
                      const unsigned char *covered, unsigned threads, compare_result *out);

/* "M=3, N=5": coordinates of an element. */
const char *compare_place_text(const tensor_type *type, int64_t element, arena *a);

/* "out: 256 values agree, worst error 0.31 of its bound", "out: 256 values: 250 agree, 4 NaN in both, 2 with an infinite bound" or
 * "out: 3 of 256 values differ, first at M=3, N=5: machine 1.25, reference 1.5, allowed 0.002". */
const char *compare_text(const char *port, const tensor_type *type, const compare_result *r, arena *a);

#endif
