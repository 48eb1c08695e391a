/* From configured kernels to the binary's contents.
 *
 * The one idea: a chain of operations becomes a chain of commands in the context in which it runs; contexts run at once,
 * and a wait stands wherever a chain touches bytes that another context's earlier chain has touched. */
#ifndef VISA_CODEGEN_EMIT_H
#define VISA_CODEGEN_EMIT_H

#include "codegen/container.h"
#include "ir/work.h"

typedef struct emit_context {
    arena *arena;
    const target *target;
    uint32_t (*line_of)(void *user, src_range range); /* source line for the lines section */
    void *user;
} emit_context;

/* Of a module without errors; the parts live in the arena. `works`: all work of the kernel as it stands; NULL: it is listed here. */
void emit_kernel(const emit_context *e, const kernel *k, const work_list *works, binary_kernel *out);

#endif
