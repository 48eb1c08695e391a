/* Running a compiled kernel.
 *
 * The one idea: a statement's tiles are parts that threads take, each with scratch storage of its own; whatever the caller does not
 * give, intermediates among it, is ours for as long as the run lasts. */
#ifndef VISA_CODEGEN_REFERENCE_RUN_H
#define VISA_CODEGEN_REFERENCE_RUN_H

#include "codegen/reference/reference.h"

char *kernel_run(reference_kernel *k, unsigned char *const *tensors, double *const *bounds, unsigned threads);

#endif
