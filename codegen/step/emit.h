/* From a graph of the compiler to the program of the binary. */
#ifndef VISA_CODEGEN_STEP_EMIT_H
#define VISA_CODEGEN_STEP_EMIT_H

#include "codegen/emit.h"
#include "codegen/step/program.h"
#include "ir/step/graph.h"

/* The graph has no errors. */
step_program *step_emit(const emit_context *e, const step_graph *g);

#endif
