/* An einsum as an LLVM module.
 *
 * The one idea: every statement is an internal function of the pointers that it touches, emitted in two forms: one that computes
 * values, and one that computes values and bounds. Statements that differ only in their tensors and in where these begin (the tiles
 * of an unrolled loop) share a function. The exported functions call them in order:
 *
 *   void NAME(sources..., destinations...), a C function for others, with storage of its own
 *   void NAME_step(unsigned char *const *tensors, double *const *bounds, unsigned char *scratch, const plan_part *part, int64_t statement)
 *   void NAME_bounded, of the same arguments
 *
 * and NAME_field over the field (field.h). The first of these reads no bounds; they are for every tensor that is not exact. Parts of a
 * statement may run at once, each with scratch storage of its own, in which all panels that it reads have been packed, by it or by a part
 * before it. */
#ifndef VISA_CODEGEN_REFERENCE_GENERATE_H
#define VISA_CODEGEN_REFERENCE_GENERATE_H

#include "codegen/reference/emitter.h"

/* NAME for a kernel's name, which may be any text: a C identifier. Malloc'd, or NULL. */
char *generate_symbol(const char *kernel_name);

#define GENERATE_STEPS_SUFFIX "_step"
#define GENERATE_BOUNDED_SUFFIX "_bounded"
#define GENERATE_FIELD_SUFFIX "_field"

enum { GENERATE_C = 1, GENERATE_STEPS = 2, GENERATE_BOUNDED = 4, GENERATE_FIELD = 8 };

/* `forms`: which of the functions. */
LLVMModuleRef generate_module(const reference_plan *plan, const char *symbol, unsigned forms, LLVMContextRef llvm);

#endif
