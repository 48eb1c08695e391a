/* What lies where and for how long, and what is issued when: --emit=memory, memory-json, memory-svg and order (docs/memory.md). */
#ifndef VISA_CODEGEN_MEMORY_MAP_H
#define VISA_CODEGEN_MEMORY_MAP_H

#include "codegen/emit.h"

/* Of a module without errors; texts live in the arena. */
const char *memory_text(const emit_context *e, const module *m);
const char *memory_json(const emit_context *e, const module *m);
const char *memory_svg(const emit_context *e, const module *m);
/* `moved_only`: kernels whose work is issued as the text has it are left out. */
const char *order_text(const emit_context *e, const module *m, bool moved_only);

#endif
