#include "codegen/reference/guard.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>

#include <llvm-c/Core.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>

#include "codegen/reference/fault.h"

/* A call that is under way: where a fatal error leaves it, and its message. */
typedef struct fatal_call {
    jmp_buf exit;
    char text[256];
} fatal_call;

/* LLVM reports what it cannot go on from by calling a handler that must not return. The handler leaves
 * through the call that is under way in its thread; LLVM's own state is undefined then, so later calls are
 * refused. These two are the library's only mutable globals, and LLVM's handler is global itself. */
static _Thread_local fatal_call *fatal_current;
static atomic_bool llvm_is_lost;

static void on_fatal_error(const char *reason)
{
    atomic_store(&llvm_is_lost, true);
    fatal_call *call = fatal_current;
    if (!call)
        return;
    snprintf(call->text, sizeof call->text, "%s", reason);
    longjmp(call->exit, 1);
}

bool guard_llvm_is_lost(void)
{
    return atomic_load(&llvm_is_lost);
}

static void initialise_llvm(void)
{
    LLVMInstallFatalErrorHandler(on_fatal_error);
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    /* Addresses are emitted as a base and constants already. */
    static const char *const settings[] = {"visa_reference", "-disable-lsr"};
    LLVMParseCommandLineOptions(sizeof settings / sizeof *settings, settings, NULL);
}

char *guarded(char *(*body)(void *), void *argument)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, initialise_llvm);
    if (atomic_load(&llvm_is_lost))
        return fault_text("LLVM failed before and cannot be used again in this process");
    fatal_call call;
    if (setjmp(call.exit)) {
        fatal_current = NULL;
        return fault_text("LLVM: %s", call.text);
    }
    fatal_current = &call;
    char *fault = body(argument);
    fatal_current = NULL;
    return fault;
}

char *guard_message(const char *what, char *message)
{
    char *fault = fault_text("%s: %s", what, message ? message : "no reason given");
    LLVMDisposeMessage(message);
    return fault;
}

char *guard_error(const char *what, LLVMErrorRef error)
{
    char *message = LLVMGetErrorMessage(error);
    char *fault = fault_text("%s: %s", what, message);
    LLVMDisposeErrorMessage(message);
    return fault;
}
