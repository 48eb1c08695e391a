/* A stream program to read: its machine, tensors, and each operator with its numbers, its edges and what comes out. The compiler shows
 * its graphs so (--emit=ir, --print-after), visa-objdump what it decoded. */
#ifndef VISA_CODEGEN_STEP_TEXT_H
#define VISA_CODEGEN_STEP_TEXT_H

#include "codegen/step_program.h"
#include "support/strbuf.h"

void step_program_print(const step_program *p, strbuf *s);
/* "bf16 tiles 16 x ?", "buffers of 2 dimensions of ..": what a stream carries. */
const char *step_type_text(const step_program *p, uint32_t type, arena *a);

#endif
