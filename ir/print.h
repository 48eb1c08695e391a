/* The text form of kernels: what --emit=ir and --print-after show. One operation per line, mappings in their shortest
 * form, so that two dumps differ where the kernels do. */
#ifndef VISA_IR_PRINT_H
#define VISA_IR_PRINT_H

#include "ir/kernel.h"

void kernel_print(const kernel *k, strbuf *out);
void module_print(const module *m, strbuf *out);

#endif
