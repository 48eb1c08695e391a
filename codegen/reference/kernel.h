/* A compiled kernel.
 *
 * The one idea: what a run needs of the plan (sizes, which tensors are written, how long statements take) is written down next to the
 * code, and the einsum is no longer needed. */
#ifndef VISA_CODEGEN_REFERENCE_KERNEL_H
#define VISA_CODEGEN_REFERENCE_KERNEL_H

#include <pthread.h>
#include <stdatomic.h>

#include <llvm-c/LLJIT.h>

#include "codegen/reference/field.h"
#include "codegen/reference/plan.h"
#include "codegen/reference/reference.h"
#include "codegen/reference/team.h"

typedef void step_function(unsigned char *const *tensors, double *const *bounds, unsigned char *scratch, const plan_part *part,
                           int64_t statement);

typedef struct kernel_tensor {
    int64_t bytes, elements;
    bool assigned, used, exact;
} kernel_tensor;

/* A form of a statement. */
typedef struct kernel_form {
    bool blocks;                    /* it stores blocks: what one part packed, the next one may read */
    bool packs_rows, packs_columns; /* such a form; or reads them once, and then twice where rows are divided */
    plan_group longer;
    plan_part whole;
} kernel_form;

/* A statement: about how many clocks its products take, whether threads may share it, and how each form can be divided then. */
typedef struct kernel_step {
    double clocks;
    bool shared;
    kernel_form plain, bounded;
    field_shape field;
    uint32_t dst;
    bool first; /* the statement that assigns it first */
} kernel_step;

/* Scratch storage after its size. */
typedef struct run_scratch {
    _Alignas(64) int64_t bytes;
    _Alignas(64) unsigned char data[];
} run_scratch;

struct reference_kernel {
    LLVMOrcLLJITRef jit;
    step_function *step, *bounded;
    field_function *field;
    kernel_tensor *tensors;
    uint32_t tensor_count;
    kernel_step *steps;
    uint32_t step_count;
    bool alone; /* no step is worth a second thread */
    int64_t scratch_bytes, plain_scratch_bytes;
    uint64_t jit_nanoseconds;
    int64_t outside; /* bytes into the scratch storage: of a run, how many elements had an index outside; -1: there are no indices */
    _Atomic(uint64_t) all_outside; /* of all runs */
    _Atomic(run_scratch *) spare;  /* of the last run, for the next one: fresh pages cost more than a small product */
    pthread_mutex_t helping;       /* the run that has the threads' help */
    team *helpers;                 /* NULL before the first run in threads */
    uint64_t helped_until;         /* ns: when the last run ended that they could have helped */
};

char *kernel_build(const einsum *e, const char *name, unsigned forms, const char *cpu, reference_kernel **out);
void kernel_release(reference_kernel *k);
uint64_t kernel_indices_outside(const reference_kernel *k);
uint64_t kernel_jit_nanoseconds(const reference_kernel *k);

#endif
