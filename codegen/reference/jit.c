/* The plugin's API: compile in memory with ORC, or write a file's bytes. */
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include "codegen/reference/generate.h"
#include "codegen/reference/reference.h"

/* ---- LLVM's fatal errors ---- */

/* A call that is under way: where a fatal error leaves it, and what it said. */
typedef struct fatal_call {
    jmp_buf exit;
    char text[256];
} fatal_call;

/* LLVM reports what it cannot go on from by calling a handler that must not return. The handler leaves
 * through the call that is under way in its thread; LLVM's own state is lost then, so later calls are
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

static void initialise_llvm(void)
{
    LLVMInstallFatalErrorHandler(on_fatal_error);
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
}

/* Runs `body` so that a fatal error of LLVM becomes a text. What the body held is leaked in that case. */
static char *guarded(char *(*body)(void *), void *argument)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, initialise_llvm);
    if (atomic_load(&llvm_is_lost))
        return plan_fault("LLVM failed before and cannot be used again in this process");
    fatal_call call;
    if (setjmp(call.exit)) {
        fatal_current = NULL;
        return plan_fault("LLVM: %s", call.text);
    }
    fatal_current = &call;
    char *fault = body(argument);
    fatal_current = NULL;
    return fault;
}

static char *take_message(const char *what, char *message)
{
    char *fault = plan_fault("%s: %s", what, message ? message : "no reason given");
    LLVMDisposeMessage(message);
    return fault;
}

static char *take_error(const char *what, LLVMErrorRef error)
{
    char *message = LLVMGetErrorMessage(error);
    char *fault = plan_fault("%s: %s", what, message);
    LLVMDisposeErrorMessage(message);
    return fault;
}

/* ---- the CPU ---- */

static bool has_feature(const char *features, const char *name)
{
    size_t bytes = strlen(name);
    for (const char *at = strstr(features, name); at; at = strstr(at + 1, name))
        if (at > features && at[-1] == '+' && (at[bytes] == ',' || at[bytes] == '\0'))
            return true;
    return false;
}

typedef struct cpu {
    plan_machine machine;
    bool fused;
} cpu;

static cpu cpu_of(const char *triple, const char *features)
{
    if (strncmp(triple, "aarch64", 7) == 0 || strncmp(triple, "arm64", 5) == 0)
        return (cpu){{4, 32}, true};
    bool fused = has_feature(features, "fma");
    if (has_feature(features, "avx512f"))
        return (cpu){{16, 32}, fused};
    return (cpu){{has_feature(features, "avx") ? 8 : 4, 16}, fused};
}

/* ---- from einsum to optimised module ---- */

typedef struct compilation {
    reference_plan plan;
    LLVMOrcThreadSafeContextRef context;
    LLVMModuleRef module;
    LLVMTargetMachineRef machine;
    char *symbol;
    bool quick;
} compilation;

static void compilation_free(compilation *c)
{
    if (c->module)
        LLVMDisposeModule(c->module);
    if (c->context)
        LLVMOrcDisposeThreadSafeContext(c->context);
    if (c->machine)
        LLVMDisposeTargetMachine(c->machine);
    plan_free(&c->plan);
    free(c->symbol);
    *c = (compilation){0};
}

static char *make_machine(compilation *c, const char *triple, const char *cpu_name, const char *features)
{
    char *message = NULL;
    LLVMTargetRef family;
    if (LLVMGetTargetFromTriple(triple, &family, &message))
        return take_message("target", message);
    c->machine = LLVMCreateTargetMachine(family, triple, cpu_name, features,
                                         c->quick ? LLVMCodeGenLevelNone : LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelDefault);
    return c->machine ? NULL : plan_fault("target %s: no machine", triple);
}

/* What the generated loops gain from, at half the compile time of default<O2> and the same speed: register
 * tiles are vectors already, and packing and results are single loops over hoisted addresses. */
static char *optimise(compilation *c)
{
    static const char passes[] = "function(early-cse,instcombine<no-verify-fixpoint>,loop-mssa(licm),loop-vectorize,instcombine<no-verify-fixpoint>,"
                                 "loop-mssa(licm),early-cse,simplifycfg),globaldce";
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(c->module, passes, c->machine, options);
    LLVMDisposePassBuilderOptions(options);
    return error ? take_error("optimisation", error) : NULL;
}

static char *make_module(compilation *c, bool fused)
{
    c->context = LLVMOrcCreateNewThreadSafeContext();
    c->module = generate_module(&c->plan, c->symbol, fused, LLVMOrcThreadSafeContextGetContext(c->context));
    if (!c->module)
        return plan_fault("out of memory");
    char *triple = LLVMGetTargetMachineTriple(c->machine);
    LLVMSetTarget(c->module, triple);
    LLVMDisposeMessage(triple);
    LLVMTargetDataRef data = LLVMCreateTargetDataLayout(c->machine);
    LLVMSetModuleDataLayout(c->module, data);
    LLVMDisposeTargetData(data);
    char *message = NULL;
    if (LLVMVerifyModule(c->module, LLVMReturnStatusAction, &message))
        return take_message("the generated module is not valid", message);
    LLVMDisposeMessage(message);
    return c->quick ? NULL : optimise(c);
}

static char *compile_for(compilation *c, const einsum *e, const char *name, const char *cpu_name,
                         const char *features)
{
    char *triple = LLVMGetDefaultTargetTriple();
    cpu host = cpu_of(triple, features);
    if (c->quick)
        host.machine = (plan_machine){1, 8}; /* scalars, in small tiles: the least code */
    char *fault = plan_build(e, host.machine, &c->plan);
    c->symbol = generate_symbol(name);
    if (!fault && !c->symbol)
        fault = plan_fault("out of memory");
    if (!fault)
        fault = make_machine(c, triple, cpu_name, features);
    LLVMDisposeMessage(triple);
    return fault ? fault : make_module(c, host.fused);
}

static char *compile_for_host(compilation *c, const einsum *e, const char *name)
{
    char *cpu_name = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures();
    char *fault = compile_for(c, e, name, cpu_name, features);
    LLVMDisposeMessage(cpu_name);
    LLVMDisposeMessage(features);
    return fault;
}

/* ---- compiled kernels ---- */

typedef void plain_function(unsigned char *const *tensors, unsigned char *scratch);
typedef void bounded_function(unsigned char *const *tensors, double *const *bounds, unsigned char *scratch);

typedef struct kernel_tensor {
    int64_t bytes, elements;
    bool assigned, used, exact;
} kernel_tensor;

struct reference_kernel {
    LLVMOrcLLJITRef jit;
    plain_function *plain;
    bounded_function *bounded;
    kernel_tensor *tensors;
    uint32_t tensor_count;
    int64_t scratch_bytes;
    uint64_t jit_nanoseconds;
};

static void kernel_release(reference_kernel *k)
{
    if (!k)
        return;
    if (k->jit)
        LLVMConsumeError(LLVMOrcDisposeLLJIT(k->jit));
    free(k->tensors);
    free(k);
}

/* Takes the machine. */
static char *make_jit(compilation *c, reference_kernel *k)
{
    LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
    LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(
        builder, LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(c->machine));
    c->machine = NULL;
    LLVMErrorRef error = LLVMOrcCreateLLJIT(&k->jit, builder);
    if (error) {
        k->jit = NULL;
        return take_error("JIT", error);
    }
    /* memset, and what else LLVM's code generator calls */
    LLVMOrcDefinitionGeneratorRef process;
    error = LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
        &process, LLVMOrcLLJITGetGlobalPrefix(k->jit), NULL, NULL);
    if (error)
        return take_error("JIT", error);
    LLVMOrcJITDylibAddGenerator(LLVMOrcLLJITGetMainJITDylib(k->jit), process);
    return NULL;
}

/* Takes the module, which shares the context. */
static char *add_module(compilation *c, reference_kernel *k)
{
    LLVMOrcThreadSafeModuleRef module = LLVMOrcCreateNewThreadSafeModule(c->module, c->context);
    c->module = NULL;
    LLVMErrorRef error = LLVMOrcLLJITAddLLVMIRModule(k->jit, LLVMOrcLLJITGetMainJITDylib(k->jit), module);
    return error ? take_error("JIT", error) : NULL;
}

static char *look_up(compilation *c, reference_kernel *k)
{
    LLVMOrcExecutorAddress plain, bounded;
    char *name = plan_fault("%s_bounded", c->symbol);
    LLVMErrorRef error = LLVMOrcLLJITLookup(k->jit, &plain, c->symbol);
    if (!error)
        error = LLVMOrcLLJITLookup(k->jit, &bounded, name);
    plan_fault_free(name);
    if (error)
        return take_error("JIT", error);
    k->plain = (plain_function *)(uintptr_t)plain;
    k->bounded = (bounded_function *)(uintptr_t)bounded;
    return NULL;
}

static char *describe_tensors(const reference_plan *p, reference_kernel *k)
{
    k->tensor_count = p->e->tensor_count;
    k->scratch_bytes = p->scratch_bytes;
    k->tensors = calloc((size_t)k->tensor_count + 1, sizeof *k->tensors);
    if (!k->tensors)
        return plan_fault("out of memory");
    for (uint32_t i = 0; i < k->tensor_count; i++)
        k->tensors[i] = (kernel_tensor){.bytes = plan_tensor_bytes(p->e, i),
                                        .elements = plan_tensor_elements(p->e, i),
                                        .assigned = p->assigned[i],
                                        .used = p->used[i],
                                        .exact = p->exact[i]};
    return NULL;
}

typedef struct build_call {
    const einsum *e;
    const char *name;
    bool quick;
    reference_kernel *kernel;
} build_call;

static char *build_guarded(void *argument)
{
    build_call *call = argument;
    compilation c = {.quick = call->quick};
    char *fault = compile_for_host(&c, call->e, call->name);
    if (!fault)
        fault = describe_tensors(&c.plan, call->kernel);
    if (!fault)
        fault = make_jit(&c, call->kernel);
    if (!fault)
        fault = add_module(&c, call->kernel);
    if (!fault)
        fault = look_up(&c, call->kernel);
    compilation_free(&c);
    return fault;
}

static uint64_t nanoseconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static char *kernel_build(const einsum *e, const char *name, bool quick, reference_kernel **out)
{
    *out = NULL;
    reference_kernel *k = calloc(1, sizeof *k);
    if (!k)
        return plan_fault("out of memory");
    build_call call = {e, name, quick, k};
    uint64_t start = nanoseconds_now();
    char *fault = guarded(build_guarded, &call);
    k->jit_nanoseconds = nanoseconds_now() - start;
    if (!fault) {
        *out = k;
        return NULL;
    }
    if (!atomic_load(&llvm_is_lost))
        kernel_release(k);
    return fault;
}

static uint64_t kernel_jit_nanoseconds(const reference_kernel *k)
{
    return k->jit_nanoseconds;
}

/* ---- running ---- */

/* Storage of one run: the caller's where there is some, and our own for the rest. */
typedef struct run_storage {
    unsigned char **tensors, **own_tensors;
    double **bounds, **own_bounds;
    unsigned char *scratch;
} run_storage;

static void run_storage_free(const reference_kernel *k, run_storage *r)
{
    for (uint32_t i = 0; i < k->tensor_count; i++) {
        if (r->own_tensors)
            free(r->own_tensors[i]);
        if (r->own_bounds)
            free(r->own_bounds[i]);
    }
    free(r->tensors);
    free(r->own_tensors);
    free(r->bounds);
    free(r->own_bounds);
    free(r->scratch);
}

static bool run_tensor(const reference_kernel *k, run_storage *r, uint32_t i, unsigned char *given)
{
    if (!given && k->tensors[i].assigned)
        given = r->own_tensors[i] = malloc((size_t)k->tensors[i].bytes);
    return (r->tensors[i] = given) != NULL;
}

static bool run_bound(const reference_kernel *k, run_storage *r, uint32_t i, double *given)
{
    const kernel_tensor *t = &k->tensors[i];
    size_t bytes = (size_t)t->elements * sizeof(double);
    if (t->exact && given)
        memset(given, 0, bytes);
    if (!t->exact && !given)
        given = r->own_bounds[i] = malloc(bytes);
    r->bounds[i] = given;
    return given || t->exact;
}

static char *run_storage_make(const reference_kernel *k, unsigned char *const *tensors, double *const *bounds,
                              run_storage *r)
{
    size_t count = (size_t)k->tensor_count + 1;
    r->tensors = calloc(count, sizeof *r->tensors);
    r->own_tensors = calloc(count, sizeof *r->own_tensors);
    r->bounds = calloc(count, sizeof *r->bounds);
    r->own_bounds = calloc(count, sizeof *r->own_bounds);
    r->scratch = aligned_alloc(64, (size_t)(k->scratch_bytes + 63) / 64 * 64 + 64);
    if (!r->tensors || !r->own_tensors || !r->bounds || !r->own_bounds || !r->scratch)
        return plan_fault("out of memory");
    for (uint32_t i = 0; i < k->tensor_count; i++) {
        if (!tensors[i] && !k->tensors[i].assigned && k->tensors[i].used)
            return plan_fault("tensor %u is read and was not given", i);
        if (!tensors[i] && !k->tensors[i].assigned)
            continue;
        if (!run_tensor(k, r, i, tensors[i]) || (bounds && !run_bound(k, r, i, bounds[i])))
            return plan_fault("out of memory");
    }
    return NULL;
}

static char *kernel_run(const reference_kernel *k, unsigned char *const *tensors, double *const *bounds)
{
    run_storage r = {0};
    char *fault = run_storage_make(k, tensors, bounds, &r);
    if (!fault && bounds)
        k->bounded(r.tensors, r.bounds, r.scratch);
    else if (!fault)
        k->plain(r.tensors, r.scratch);
    run_storage_free(k, &r);
    return fault;
}

/* ---- files ---- */

typedef struct emit_call {
    const einsum *e;
    const char *name;
    reference_output kind;
    char *bytes;
    size_t byte_count;
} emit_call;

static char *emit_take(emit_call *call, const char *bytes, size_t byte_count)
{
    call->bytes = malloc(byte_count + 1);
    if (!call->bytes)
        return plan_fault("out of memory");
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

static char *emit_machine_code(emit_call *call, const compilation *c)
{
    LLVMMemoryBufferRef buffer;
    char *message = NULL;
    LLVMCodeGenFileType type = call->kind == REFERENCE_OBJECT ? LLVMObjectFile : LLVMAssemblyFile;
    if (LLVMTargetMachineEmitToMemoryBuffer(c->machine, c->module, type, &message, &buffer))
        return take_message("code generation", message);
    char *fault = emit_take(call, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
    LLVMDisposeMemoryBuffer(buffer);
    return fault;
}

/* Names come from a file: what could end the comment or the line becomes '?'. */
static void print_name(FILE *out, const char *name)
{
    for (; name && *name; name++)
        fputc(*name >= ' ' && *name <= '~' && *name != '*' && *name != '/' ? *name : '?', out);
}

static void print_tensor(FILE *out, const reference_plan *p, uint32_t number)
{
    const einsum_tensor *t = &p->e->tensors[number];
    fprintf(out, " *   %u: ", number);
    print_name(out, t->name);
    fprintf(out, ", %s[", dtype_row_of(t->dtype)->name);
    for (uint32_t i = 0; i < t->rank; i++) {
        fputs(i ? ", " : "", out);
        print_name(out, p->e->axes[t->axes[i]].name);
        fprintf(out, " = %lld", (long long)p->e->axes[t->axes[i]].size);
    }
    fprintf(out, "], %lld bytes, %s, %s\n", (long long)plan_tensor_bytes(p->e, number),
            p->assigned[number] ? "written" : "read",
            p->exact[number] ? "exact: needs no bounds" : "has bounds");
}

static void print_header(FILE *out, const compilation *c)
{
    const char *s = c->symbol;
    fputs("/* Reference kernel, generated by visac: ", out);
    print_name(out, c->plan.e->text);
    fputs("\n * Tensors, little-endian, row-major and packed:\n", out);
    for (uint32_t i = 0; i < c->plan.e->tensor_count; i++)
        print_tensor(out, &c->plan, i);
    fprintf(out, " * The scratch storage has %s_scratch_bytes bytes. Bounds are one double per element. */\n",
            s);
    fputs("#pragma once\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n", out);
    fprintf(out, "extern const int64_t %s_scratch_bytes;\n", s);
    fprintf(out, "void %s(unsigned char *const *tensors, unsigned char *scratch);\n", s);
    fprintf(
        out,
        "void %s_bounded(unsigned char *const *tensors, double *const *bounds, unsigned char *scratch);\n",
        s);
    fputs("#ifdef __cplusplus\n}\n#endif\n", out);
}

static char *emit_header(emit_call *call, const compilation *c)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return plan_fault("out of memory");
    print_header(out, c);
    bool failed = ferror(out);
    failed |= fclose(out) != 0;
    char *fault = failed ? plan_fault("out of memory") : emit_take(call, text, bytes);
    free(text);
    return fault;
}

static const char *portable_cpu(void)
{
#if defined(__x86_64__)
    return "x86-64";
#else
    return "generic";
#endif
}

static char *emit_guarded(void *argument)
{
    emit_call *call = argument;
    compilation c = {0};
    char *fault = compile_for(&c, call->e, call->name, portable_cpu(), "");
    if (!fault && call->kind == REFERENCE_LLVM)
        fault = emit_text(call, &c);
    else if (!fault && call->kind == REFERENCE_HEADER)
        fault = emit_header(call, &c);
    else if (!fault)
        fault = emit_machine_code(call, &c);
    compilation_free(&c);
    return fault;
}

static char *kernel_emit(const einsum *e, const char *name, reference_output kind, unsigned char **bytes,
                         size_t *byte_count)
{
    *bytes = NULL;
    *byte_count = 0;
    if (kind < REFERENCE_LLVM || kind > REFERENCE_HEADER)
        return plan_fault("output kind %d is not known", (int)kind);
    emit_call call = {.e = e, .name = name, .kind = kind};
    char *fault = guarded(emit_guarded, &call);
    if (fault)
        return fault;
    *bytes = (unsigned char *)call.bytes;
    *byte_count = call.byte_count;
    return NULL;
}

/* ---- the exported symbol ---- */

__attribute__((visibility("default"))) const reference_api *visa_reference_api(int version)
{
    static const reference_api api = {
        .version = REFERENCE_API_VERSION,
        .build = kernel_build,
        .run = kernel_run,
        .jit_nanoseconds = kernel_jit_nanoseconds,
        .release = kernel_release,
        .emit = kernel_emit,
        .release_bytes = plan_fault_free,
    };
    return version == REFERENCE_API_VERSION ? &api : NULL;
}
