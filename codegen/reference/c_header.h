/* The C declaration of a generated function, and what its caller must know. */
#ifndef VISA_CODEGEN_REFERENCE_C_HEADER_H
#define VISA_CODEGEN_REFERENCE_C_HEADER_H

#include <stdio.h>

#include "codegen/reference/plan.h"

void c_header_print(FILE *out, const reference_plan *p, const char *symbol);

#endif
