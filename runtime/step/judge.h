/* Is what left a stream program what its graph says?
 *
 * The one idea: the graph is read as mathematics. A stream is a whole nested list (runtime/step/nested.h), an operator a statement about
 * such lists, a function one about real numbers (runtime/step/mathematics.h), a kernel its einsum section. There is no token, no queue and
 * no time in it, and nothing of the simulator's operators. Only in what order chunks came where several may come first (eager_merge,
 * reassemble) is taken from the run: it depends on time. Loads see what lay in memory before the run. */
#ifndef VISA_RUNTIME_STEP_JUDGE_H
#define VISA_RUNTIME_STEP_JUDGE_H

#include "codegen/container.h"
#include "runtime/step/engine.h"
#include "runtime/tensor/finding.h"

/* What went in, besides the run's sources. */
typedef struct step_judge_input {
    const binary *binary;  /* kernels */
    const step_run *run;   /* after it, with its arrivals */
    float *const *tensors; /* by tensor: before the run */
} step_judge_input;

/* True: every output was compared and is what it has to be. False with diagnostics: E_CHECK_MISMATCH for each output that is not,
 * E_CHECK_NOTHING for what cannot be judged. *report: a line for each output; *found: the same as data. */
bool step_judge(const step_judge_input *in, arena *a, const char **report, finding_list *found, diag_list *diags);

#endif
