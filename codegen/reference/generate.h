/* An einsum as an LLVM module.
 *
 * The one idea: every statement is an internal function of the pointers that it touches, emitted in two
 * forms: one that computes values, and one that computes values and bounds. The two exported functions call
 * them in order: void NAME(unsigned char *const *tensors, unsigned char *scratch) void NAME_bounded(unsigned
 * char *const *tensors, double *const *bounds, unsigned char *scratch) with NAME_scratch_bytes bytes of
 * scratch storage, and bounds for every tensor that is not exact (plan.h). */
#ifndef VISA_CODEGEN_REFERENCE_GENERATE_H
#define VISA_CODEGEN_REFERENCE_GENERATE_H

#include "codegen/reference/emitter.h"

/* NAME for a kernel's name, which may be any text: a C identifier that no library uses. Malloc'd, or NULL. */
char *generate_symbol(const char *kernel_name);

/* `fused`: the CPU has a fused multiply-add. */
LLVMModuleRef generate_module(const reference_plan *plan, const char *symbol, bool fused,
                              LLVMContextRef llvm);

#endif
