/* A plan as a .vm file that a person could have written: each choice with its reason, each piece of work with its cycles. */
#ifndef VISA_LIBVISA_TUNE_WRITE_H
#define VISA_LIBVISA_TUNE_WRITE_H

#include "libvisa/tune/plan.h"
#include "support/strbuf.h"

/* What a kernel does, in the order of its text; not every kernel has all of it. */
typedef enum tune_step {
    TUNE_LOAD_WEIGHTS,
    TUNE_TURN_WEIGHTS, /* of a tensor that lies turned */
    TUNE_STORE_WEIGHTS,
    TUNE_LOAD_ROWS,
    TUNE_TURN_ROWS,
    TUNE_MULTIPLY,
    TUNE_SUMS,        /* those of the parts before this one, for the Vector Engine */
    TUNE_MULTIPLY_ON, /* parts of the sum after the first one, */
    TUNE_FINISH,      /* the last one into the result */
    TUNE_LOAD_EXTRA,  /* operands of what is done to the sums, one after the other */
    TUNE_KEEP_EXTRA = TUNE_LOAD_EXTRA + TUNE_EXTRAS_MAX,
    TUNE_PASS = TUNE_KEEP_EXTRA + TUNE_EXTRAS_MAX, /* over values in DM */
    TUNE_REGROUP = TUNE_PASS + TUNE_PASSES_MAX,
    TUNE_STORE,
    TUNE_STEPS
} tune_step;

/* Lines of the text, from 1, and what a run of each step takes. */
typedef struct tune_step_place {
    uint32_t first, last; /* 0: the kernel has no such step */
    int64_t cycles;       /* 0: not known yet */
} tune_step_place;

typedef struct tune_text {
    strbuf text;
    tune_step_place steps[TUNE_STEPS];
} tune_text;

/* `found`: what a compilation said of the same plan, for the comments, NULL: none yet. `head` stands in front of everything. */
void tune_write(const tune_question *q, const tune_plan *p, const target *t, const char *head, const tune_text *found, arena *a,
                tune_text *out);

/* "M # 128 / 32 % 4": the digit with that stride of a role's axis, NULL where it has one position only. */
const char *tune_digit(const tune_question *q, tune_role role, int64_t padded, int64_t stride, int64_t count, arena *a);

#endif
