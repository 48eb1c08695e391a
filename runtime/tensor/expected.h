/* What the reference says of a kernel's outputs.
 *
 * The one idea: the reference kernel is built from the einsum and run on the logical inputs, in the machine's
 * own order of additions, or in an order of its own ("free") with a bound for each value. For free order an
 * output that is one rounding of sums is split in two, sums and cast, so that judge.h sees the sums; the
 * values and bounds are the same. */
#ifndef VISA_RUNTIME_TENSOR_EXPECTED_H
#define VISA_RUNTIME_TENSOR_EXPECTED_H

#include "codegen/einsum.h"
#include "codegen/reference_load.h"

typedef struct expected_tensor {
    unsigned char *values;
    double *bounds; /* NULL: equal values */
    /* In free order, of an output whose errors are those of independent roundings if the inputs are random:
     * its sums before the cast, their bounds, and the roundings of two sums. NULL: it is none. */
    const float *sums;
    const double *sum_bounds;
    double roundings;
} expected_tensor;

typedef struct expected expected;

/* Compiles the reference of a kernel. is_input: by einsum tensor. Einsum and name outlive it. NULL with a diagnostic. */
expected *expected_open(const einsum *e, const bool *is_input, const char *name, bool machine_order, arena *a, diag_list *diags);
/* The same on a thread of its own, while the caller goes on. Before it is run, expected_ready has to be called, once: false with a
 * diagnostic. */
expected *expected_begin(const einsum *e, const bool *is_input, const char *name, bool machine_order, arena *a);
bool expected_ready(expected *x, diag_list *diags);
/* inputs[t]: the bytes of einsum tensor t, where it is an input. May be called again, with other inputs. */
bool expected_run(expected *x, unsigned char *const *inputs, unsigned threads, diag_list *diags);
/* Of an einsum tensor, after a run. */
expected_tensor expected_of(const expected *x, uint32_t tensor);
double expected_build_milliseconds(const expected *x);
void expected_close(expected *x); /* NULL: nothing */

#endif
