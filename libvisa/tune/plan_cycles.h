/* How long a plan takes, by the timing model's own formulas.
 *
 * The one idea: what a copy or a chain takes follows from the plan's digits, and the loops are a short schedule of three clocks: the DMA
 * engines, the main and the sub context. Choices that are made by such times alone are made here, too. */
#ifndef VISA_LIBVISA_TUNE_PLAN_CYCLES_H
#define VISA_LIBVISA_TUNE_PLAN_CYCLES_H

#include "libvisa/tune/plan.h"

/* Cycles by the timing model's formulas, its schedule approximated: fills p->cycles. What is sure to take `most` or more is not followed:
 * its cycles are those that it takes at least. */
void tune_plan_estimate(const target *t, const tune_question *q, int64_t most, tune_plan *p);

/* Ways to hand on that are worth a try: where copies take the least, and where copies and rings do together. Fills in p->handed and
 * p->hand_parts of each, returns how many there are. */
enum { TUNE_HANDINGS_MAX = 3 };
size_t tune_handings(const target *t, const tune_question *q, const tune_plan *p, tune_plan *out);

/* Of how many slices with the same weights one should get them, to hand them on: of small weights few channels of HBM have something, and
 * copies for many slices wait for each other. 1: each gets them. */
int64_t tune_column_sharers(const target *t, const tune_question *q, const tune_plan *p);

/* Fills in how slices that share rows should get them, of all ways the one with which copy and rings take the least: p->row_sharers and
 * p->row_parts, by the context that is p->rows_by_sub. False: each gets a copy. */
bool tune_share_rows(const target *t, const tune_question *q, tune_plan *p);

/* Of an operand that is turned aside: the cycles of the copy into DM, of the pass that turns it and of the copy back. */
void tune_aside_cycles(const target *t, const tune_question *q, const aside *x, int64_t *in, int64_t *turn, int64_t *out);

#endif
