/* How a statement is divided among threads.
 *
 * The one idea: parts have nothing to do with each other. Each packs what it reads into storage of the thread that computes it, because a
 * line that another processor has written comes as slowly as one from memory; what every part reads of the side that is not divided is
 * packed once by each thread. So there is nothing to wait for but the end, and there are more parts than threads: a processor that is taken
 * away, or comes late, costs a part and not its half of the product. */
#ifndef VISA_CODEGEN_REFERENCE_DIVISION_H
#define VISA_CODEGEN_REFERENCE_DIVISION_H

#include "codegen/reference/kernel.h"

typedef struct division {
    plan_part whole;
    plan_range panels, tiles; /* that are divided; both are PLAN_BATCHES for batches */
    plan_range kept;          /* panels that a thread packs with its first part only; PLAN_BATCHES: none */
    int64_t each;
    unsigned count;
} division;

division division_make(const kernel_form *f, double clocks, unsigned members);
/* `first`: of those that a thread computes. */
plan_part division_part(const division *d, unsigned number, bool first);

#endif
