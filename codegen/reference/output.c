#include "codegen/reference/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llvm-c/BitWriter.h>
#include <llvm-c/Core.h>

#include "codegen/reference/c_header.h"
#include "codegen/reference/compilation.h"
#include "codegen/reference/cpu.h"
#include "codegen/reference/fault.h"
#include "codegen/reference/generate.h"
#include "codegen/reference/guard.h"

typedef struct emit_call {
    const einsum *e;
    const char *name, *cpu;
    unsigned forms;
    reference_output kind;
    char *bytes;
    size_t byte_count;
} emit_call;

static char *emit_take(emit_call *call, const char *bytes, size_t byte_count)
{
    call->bytes = malloc(byte_count + 1);
    if (!call->bytes)
        return fault_text("out of memory");
    memcpy(call->bytes, bytes, byte_count);
    call->bytes[byte_count] = '\0';
    call->byte_count = byte_count;
    return NULL;
}

static char *emit_text(emit_call *call, const compilation *c)
{
    char *text = LLVMPrintModuleToString(c->module);
    char *fault = emit_take(call, text, strlen(text));
    LLVMDisposeMessage(text);
    return fault;
}

static char *emit_bitcode(emit_call *call, const compilation *c)
{
    LLVMMemoryBufferRef buffer = LLVMWriteBitcodeToMemoryBuffer(c->module);
    char *fault = emit_take(call, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
    LLVMDisposeMemoryBuffer(buffer);
    return fault;
}

static char *emit_machine_code(emit_call *call, const compilation *c)
{
    LLVMMemoryBufferRef buffer;
    char *message = NULL;
    LLVMCodeGenFileType type = call->kind == REFERENCE_OBJECT ? LLVMObjectFile : LLVMAssemblyFile;
    if (LLVMTargetMachineEmitToMemoryBuffer(c->machine, c->module, type, &message, &buffer))
        return guard_message("code generation", message);
    char *fault = emit_take(call, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
    LLVMDisposeMemoryBuffer(buffer);
    return fault;
}

static char *emit_header(emit_call *call, const compilation *c)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return fault_text("out of memory");
    c_header_print(out, &c->plan, c->symbol);
    bool failed = ferror(out);
    failed |= fclose(out) != 0;
    char *fault = failed ? fault_text("out of memory") : emit_take(call, text, bytes);
    free(text);
    return fault;
}

static char *emit_guarded(void *argument)
{
    emit_call *call = argument;
    compilation c = {0};
    char *fault = compilation_make(&c, call->e, call->name, call->cpu ? call->cpu : cpu_name(0), false, GENERATE_C, call->forms);
    if (!fault && call->kind == REFERENCE_LLVM)
        fault = emit_text(call, &c);
    else if (!fault && call->kind == REFERENCE_BITCODE)
        fault = emit_bitcode(call, &c);
    else if (!fault && call->kind == REFERENCE_HEADER)
        fault = emit_header(call, &c);
    else if (!fault)
        fault = emit_machine_code(call, &c);
    compilation_free(&c);
    return fault;
}

char *kernel_emit(const einsum *e, const char *name, unsigned forms, const char *cpu, reference_output kind, unsigned char **bytes,
                  size_t *byte_count)
{
    *bytes = NULL;
    *byte_count = 0;
    if (kind < REFERENCE_LLVM || kind > REFERENCE_HEADER)
        return fault_text("output kind %d is not known", (int)kind);
    emit_call call = {.e = e, .name = name, .forms = forms, .cpu = cpu, .kind = kind};
    char *fault = guarded(emit_guarded, &call);
    if (fault)
        return fault;
    *bytes = (unsigned char *)call.bytes;
    *byte_count = call.byte_count;
    return NULL;
}
