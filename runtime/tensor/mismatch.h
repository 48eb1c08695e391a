/* What the wrong elements of an output have in common.
 *
 * The one idea: a wrong table makes a pattern. The coordinates of all wrong elements are folded axis by axis, and so are the
 * slices, Rows and time steps that wrote them (origin.h); and it reports how far outside its bound the worst one is. */
#ifndef VISA_RUNTIME_TENSOR_MISMATCH_H
#define VISA_RUNTIME_TENSOR_MISMATCH_H

#include "codegen/container.h"
#include "runtime/tensor/tensor.h"

typedef struct mismatch {
    const target *target;
    const binary_kernel *kernel;
    const port *port;
    const tensor *machine; /* logical */
    const unsigned char *reference;
    const double *allowed;        /* as for compare_elements */
    const unsigned char *covered; /* likewise */
} mismatch;

/* Adds notes to the diagnostic: "differing: M all 32, N 3", "written by slice 0, Row 3, time all 32", "worst error ...". */
void mismatch_explain(const mismatch *m, diag_list *diags, diag *d);

/* "cluster 1, slice 3: M=2, N=0": a position of a port's physical layout. */
const char *mismatch_position_text(const binary_kernel *k, const port *p, int64_t position, arena *a);

#endif
