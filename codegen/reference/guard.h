/* LLVM's failures as texts.
 *
 * The one idea: LLVM reports what it cannot go on from by calling a handler that must not return; whatever uses LLVM runs inside
 * `guarded`, which the handler leaves to. */
#ifndef VISA_CODEGEN_REFERENCE_GUARD_H
#define VISA_CODEGEN_REFERENCE_GUARD_H

#include <stdbool.h>

#include <llvm-c/Error.h>

/* Runs `body` so that a fatal error of LLVM becomes a text. What the body held is leaked in that case. */
char *guarded(char *(*body)(void *), void *argument);
/* After a fatal error: nothing of LLVM's may be touched any more. */
bool guard_llvm_is_lost(void);

/* LLVM's own texts, which are freed. */
char *guard_message(const char *what, char *message);
char *guard_error(const char *what, LLVMErrorRef error);

#endif
