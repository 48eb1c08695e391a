/* Results that a copy from DM to DM brings together in front of their store.
 *
 * The one idea: a store is fastest where slices write whole blocks of HBM and every DMN has as many of them, which is another split of the
 * rows, or batches, than the one that they were computed by. */
#ifndef VISA_LIBVISA_TUNE_BROUGHT_H
#define VISA_LIBVISA_TUNE_BROUGHT_H

#include "libvisa/tune/plan.h"
#include "support/memo.h"

/* What brought results take, by what it depends on: few of the plans of a question differ in that. */
typedef struct brought_memo {
    memo *choices;  /* of rows or batches that slices have at once */
    memo *partials; /* of packets and all bytes: blocks that are written in part */
} brought_memo;
brought_memo brought_memo_new(arena *a);

/* Rows of the result that are whole blocks of HBM together. */
int64_t tune_rows_of_blocks(const target *t, const tune_question *q);

/* Fills in the rows of the result, or whole batches of them where a store has several, that a copy from DM to DM should bring into one
 * slice: so that pieces are whole blocks of HBM, slices have as many, and they are under as many DMNs as possible. 0: no copy can. `known`:
 * what was found for other plans of the question. */
void tune_bring_together(const target *t, const tune_question *q, brought_memo *known, tune_plan *p);

/* The store of what is brought. */
int64_t tune_whole_store_cycles(const target *t, const tune_question *q, const tune_plan *p);

/* Bytes of the result for one position of the axis that is moved. */
int64_t tune_brought_bytes(const tune_question *q, tune_role role);

/* How that copy leaves them: as a split of the axis that it moves. */
tune_role tune_brought_role(const tune_question *q, const tune_plan *p);
tune_split tune_brought_split(const tune_question *q, const tune_plan *p);

#endif
