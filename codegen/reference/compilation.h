/* From an einsum to an LLVM module for a CPU.
 *
 * The one idea: a plan, a target machine and the module that is generated for it belong together; who asks for them runs or writes
 * them (kernel.h, output.h). */
#ifndef VISA_CODEGEN_REFERENCE_COMPILATION_H
#define VISA_CODEGEN_REFERENCE_COMPILATION_H

#include <llvm-c/Orc.h>
#include <llvm-c/TargetMachine.h>

#include "codegen/reference/plan.h"

typedef struct compilation {
    reference_plan plan;
    LLVMOrcThreadSafeContextRef context;
    LLVMModuleRef module;
    LLVMTargetMachineRef machine;
    char *symbol;
} compilation;

/* `cpu`: NULL and "native" are the CPU that this process runs on; `here`: this process will run the code. `forms`: which functions
 * (generate.h); `how`: REFERENCE_QUICK, REFERENCE_MACHINE_ORDER. Inside `guarded`. */
char *compilation_make(compilation *c, const einsum *e, const char *name, const char *cpu, bool here, unsigned forms, unsigned how);
void compilation_free(compilation *c);

#endif
