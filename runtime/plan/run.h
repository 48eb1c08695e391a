/* Runs a plan, step by step.
 *
 * The one idea: one HBM holds all buffers from the first step to the last. Before the first one runs, all steps are walked once, with every
 * index: what does not fit is reported before a byte moves. */
#ifndef VISA_RUNTIME_PLAN_RUN_H
#define VISA_RUNTIME_PLAN_RUN_H

#include "runtime/machine/cpu.h"
#include "runtime/plan/plan.h"
#include "runtime/timing/timing_preset.h"
#include "support/output.h"

typedef struct plan_options {
    unsigned threads; /* 0: one for each processor */
    cpu_level cpu;
    uint64_t most_cycles; /* of all steps; UINT64_MAX: any number */
    timing_preset preset;
    bool checked;                                                /* each step is compared with its kernel's reference */
    bool free_order;                                             /* of the reference's sums */
    bool rounds;                                                 /* files of f32 are taken for narrower floats */
    void (*progress)(void *context, int64_t done, int64_t runs); /* NULL: nobody asks */
    void *progress_context;
} plan_options;

/* What all runs of a kernel of the plan have in common, and how many there are. */
typedef struct plan_cost {
    const plan_kernel *kernel;
    const struct analysis *analysis; /* of one run */
    const char *binds;
    int64_t runs, first_run;     /* by number, from 0 */
    int64_t compared, differing; /* runs */
} plan_cost;

typedef struct plan_result {
    plan_cost *costs; /* by kernel, as in the plan; those that no step runs have runs 0 */
    size_t cost_count;
    const uint16_t *order; /* the kernel of each run */
    int64_t run_count, cycles;
    bool agrees;
} plan_result;

typedef struct plan_run plan_run;

/* Walks all steps without running them; fills what is known of `result`. NULL with diagnostics. Its memory outside the arena is freed by
 * plan_run_close. */
plan_run *plan_run_open(const plan *p, const plan_options *options, arena *a, diag_list *diags, plan_result *result);
void plan_run_close(plan_run *r);

/* Reads the buffers' files and runs. False with diagnostics: the run could not end. result->agrees is false, with diagnostics, where a
 * checked step differs from its reference (the steps after it are run all the same, until 20 of them differ), and where a check had nothing
 * to compare. */
bool plan_run_all(plan_run *r, plan_result *result, diag_list *diags);

/* Puts output number `i` of the plan, where its file was declared. */
bool plan_run_output(plan_run *r, size_t i, output *to, diag_list *diags);

#endif
