/* vISA kernels as functions of tiles: the simulated machine runs the kernel's bytes on them.
 *
 * The one idea: all kernels of a program share one machine, on which each operator has DM of its own. A call is a run of the kernel, whose
 * values are those of a session of its own (runtime/machine/session.h), and whose time is that of its schedule, whatever the values are:
 * the first one loads every input, those after it leave out what is the same for all (runtime/timing/calls.h), and where DM has room for
 * two calls of each operator, one begins with its copies while the one before it computes. */
#ifndef VISA_RUNTIME_STEP_KERNEL_H
#define VISA_RUNTIME_STEP_KERNEL_H

#include "codegen/container.h"
#include "runtime/step/call_cost.h"
#include "runtime/step/function.h"
#include "runtime/timing/calls.h"
#include "runtime/timing/timing_preset.h"

/* Of the nodes of a program, those that run a kernel: the kernel, checked against their tiles. */
typedef struct step_kernel_run {
    const binary *binary;
    const binary_kernel *kernel;
    uint32_t kept; /* a bit for each input that stays in DM from call to call */
    call_facts facts;
    step_call_cost cost;
    uint32_t rows_of[STEP_MAP_INPUTS]; /* by output: a bit for each input whose rows are those of the output, of its first axis */
    arena *arena;                      /* what a run needs is forgotten after it */
} step_kernel_run;

/* By node, NULL for nodes without a kernel. NULL with a diagnostic when ports are not what the node takes and gives, or the kernel has no
 * schedule. */
const step_kernel_run *const *step_kernel_runs_of(const binary *b, const step_program *p, timing_preset timing, arena *a, diag_list *diags);

/* A new tile, of several outputs a pair of the first one and the others, or NULL with a fault. Its rows are real where those of all inputs
 * with the same rows are. */
step_value *step_kernel_apply(const step_kernel_run *r, const step_call *c, step_value *const *in, uint32_t count);

#endif
