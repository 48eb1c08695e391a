/* What of a CPU decides the shape of the generated code.
 *
 * The one idea: LLVM's name and feature list of a CPU become numbers (vector width, registers, caches) and the
 * multiply instructions that may be used, and nothing else of it is asked for afterwards. */
#ifndef VISA_CODEGEN_REFERENCE_CPU_H
#define VISA_CODEGEN_REFERENCE_CPU_H

#include <stddef.h>

#include "codegen/reference/plan.h"

/* `features`: "+avx2,-avx512f,..."; `here`: this process runs the code, so its caches count and the tile registers are asked of the
 * kernel. */
plan_machine cpu_machine(const char *triple, const char *features, bool here);

/* May this process use the tile registers? Asks the kernel for them. */
bool cpu_tiles_permitted(void);

/* Of a CPU named in cpu.def; NULL for another. */
const char *cpu_features_of(const char *name);
/* The names there, NULL after the last one. */
const char *cpu_name(size_t number);
/* Are all features of one list in the other? */
bool cpu_has_all(const char *features, const char *wanted);

#endif
