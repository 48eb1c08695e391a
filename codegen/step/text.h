/* A stream program to read: its machine, tensors, and each operator with its numbers, its edges and what comes out. The compiler shows
 * its graphs so (--emit=ir, --print-after), visa-objdump what it decoded. */
#ifndef VISA_CODEGEN_STEP_TEXT_H
#define VISA_CODEGEN_STEP_TEXT_H

#include "codegen/step/program.h"
#include "support/strbuf.h"

void step_program_print(const step_program *p, strbuf *s);
/* Its parts, without their names: the machine, "read: [4, 3] of bf16 tiles 8 x 4", "repeat, n = 3", "depth 2 values", "[B, 4] of bools". */
const char *step_machine_text(const step_machine *m, arena *a);
const char *step_tensor_text(const step_tensor *t, arena *a);
const char *step_node_text(const step_program *p, const step_node *n, arena *a);
const char *step_depth_text(const step_input *in, arena *a);
const char *step_output_text(const step_program *p, const step_output *o, arena *a);
/* "bf16 tiles 16 x ?", "buffers of 2 dimensions of ..": what a stream carries. */
const char *step_type_text(const step_program *p, uint32_t type, arena *a);

#endif
