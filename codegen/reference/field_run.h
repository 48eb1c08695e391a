/* Running a kernel over the field. */
#ifndef VISA_CODEGEN_REFERENCE_FIELD_RUN_H
#define VISA_CODEGEN_REFERENCE_FIELD_RUN_H

#include "codegen/reference/reference.h"

char *kernel_run_field(reference_kernel *k, uint64_t *const *tensors, unsigned threads);

#endif
