/* A kernel as bytes of a file. */
#ifndef VISA_CODEGEN_REFERENCE_OUTPUT_H
#define VISA_CODEGEN_REFERENCE_OUTPUT_H

#include <stddef.h>

#include "codegen/reference/reference.h"

char *kernel_emit(const einsum *e, const char *name, unsigned forms, const char *cpu, reference_output kind, unsigned char **bytes,
                  size_t *byte_count);

#endif
