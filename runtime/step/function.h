/* The functions of higher-order operators: values in, a value out, and what it costs.
 *
 * The one idea: a function knows no stream and no time. It says how many FLOPs it is worth (reference/step.md section 5: a product
 * of tiles 2 MKN, an element-wise one 1 for each element of the result, SiLU 8, exp 4, a sum of rows 1 for each element taken); the engine
 * turns them into cycles. Sums run in the order of k in f32; a result is rounded to the type of the stream that it goes to. */
#ifndef VISA_RUNTIME_STEP_FUNCTION_H
#define VISA_RUNTIME_STEP_FUNCTION_H

#include "runtime/step/value.h"

typedef struct step_cost {
    int64_t flops;
    int64_t cycles; /* that it takes whatever the bandwidth */
} step_cost;

enum { STEP_FAULT_BYTES = 200 };

/* Where a function leaves why it could not be applied. */
typedef struct step_fault {
    bool set;
    char text[STEP_FAULT_BYTES];
} step_fault;

/* Always returns NULL, so that `return step_fail(...)` reads well. */
step_value *step_fail(step_fault *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct step_kernel_run;

/* What the result has to be: the type of the node's first output. */
typedef struct step_call {
    step_fn fn;
    const step_type *type;
    int64_t n, first;                     /* addresses of one value; the first one of the value 0. FLOPs of a kernel */
    const struct step_kernel_run *kernel; /* of the function `kernel` */
    step_value **kept;                    /* its inputs that are the same for all calls, by number; filled by the first call */
    const step_formula *formula;          /* of the function `formula` */
    const step_type *types;               /* of the program */
    step_pool *pool;
    step_fault *fault;
} step_call;

/* A new reference, or NULL with a fault. Takes no reference of `in` over. */
step_value *step_map(const step_call *c, step_value *const *in, uint32_t count, step_cost *cost);

/* accumulator (NULL: nothing was taken yet) and values to the next accumulator; takes the accumulator's reference over. It is not rounded.
 */
step_value *step_update(const step_call *c, step_value *accumulator, step_value *const *in, uint32_t count, step_cost *cost);
/* What an accumulator shows: rounded; for NULL the initial value, a tile that changes nothing: of zeros, of ones for `mul`, of -inf for
 * `max` (without rows where they are only known when it runs). Takes no reference over. */
step_value *step_shown(const step_call *c, const step_value *accumulator);

/* The i-th value of the stream that a value becomes, or NULL at its end (or with a fault). */
step_value *step_flat(const step_call *c, step_value *const *in, uint32_t count, int64_t i, step_cost *cost);

#endif
