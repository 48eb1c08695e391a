/* The plugin's API: compile in memory with ORC, or write a file's bytes. */
#include <ctype.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <llvm-c/Analysis.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

#include "codegen/reference/cpu.h"
#include "codegen/reference/fault.h"
#include "codegen/reference/generate.h"
#include "codegen/reference/reference.h"
#include "codegen/reference/team.h"
#include "codegen/reference/walk.h"

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
    /* Addresses are emitted as a base and constants already. */
    static const char *const settings[] = {"visa_reference", "-disable-lsr"};
    LLVMParseCommandLineOptions(sizeof settings / sizeof *settings, settings, NULL);
}

/* Runs `body` so that a fatal error of LLVM becomes a text. What the body held is leaked in that case. */
static char *guarded(char *(*body)(void *), void *argument)
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

static char *take_message(const char *what, char *message)
{
    char *fault = fault_text("%s: %s", what, message ? message : "no reason given");
    LLVMDisposeMessage(message);
    return fault;
}

static char *take_error(const char *what, LLVMErrorRef error)
{
    char *message = LLVMGetErrorMessage(error);
    char *fault = fault_text("%s: %s", what, message);
    LLVMDisposeErrorMessage(message);
    return fault;
}

/* ---- the CPU ---- */

/* What code is generated for. */
typedef struct chosen_cpu {
    char *name, *features; /* LLVM's, malloc'd by it */
    bool here;             /* this process will run it */
} chosen_cpu;

static void cpu_free(chosen_cpu *c)
{
    LLVMDisposeMessage(c->name);
    LLVMDisposeMessage(c->features);
}

static char *refuse_cpu(const char *name)
{
    char *names = NULL;
    size_t bytes;
    FILE *out = open_memstream(&names, &bytes);
    for (size_t i = 0; out && cpu_name(i); i++)
        fprintf(out, " %s", cpu_name(i));
    if (!out || fclose(out) != 0)
        return fault_text("out of memory");
    char *fault = fault_text("the CPU %s is not known; there are: native%s", name, names);
    free(names);
    return fault;
}

/* NULL and "native" are the CPU that this process runs on. */
static char *cpu_find(const char *name, bool here, chosen_cpu *out)
{
    char *host = LLVMGetHostCPUFeatures();
    if (!name || strcmp(name, "native") == 0) {
        *out = (chosen_cpu){LLVMGetHostCPUName(), host, here};
        return NULL;
    }
    const char *features = cpu_features_of(name);
    bool runs = features && (!here || cpu_has_all(host, features));
    LLVMDisposeMessage(host);
    if (!features)
        return refuse_cpu(name);
    if (!runs)
        return fault_text("code for %s does not run on this CPU", name);
    *out = (chosen_cpu){LLVMCreateMessage(name), LLVMCreateMessage(features), here};
    return NULL;
}

/* ---- from einsum to module ---- */

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

static char *make_machine(compilation *c, const char *triple, const char *cpu_name, const char *features, LLVMCodeGenOptLevel level)
{
    char *message = NULL;
    LLVMTargetRef family;
    if (LLVMGetTargetFromTriple(triple, &family, &message))
        return take_message("target", message);
    c->machine = LLVMCreateTargetMachine(family, triple, cpu_name, features, level,
                                         LLVMRelocPIC, LLVMCodeModelDefault);
    return c->machine ? NULL : fault_text("target %s: no machine", triple);
}

/* The module is tiled, unrolled and vectorised as it is emitted: it goes to the code generator as it is. */
static char *make_module(compilation *c, unsigned forms)
{
    c->context = LLVMOrcCreateNewThreadSafeContext();
    c->module = generate_module(&c->plan, c->symbol, forms, LLVMOrcThreadSafeContextGetContext(c->context));
    if (!c->module)
        return fault_text("out of memory");
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
    return NULL;
}

static char *compile_for(compilation *c, const einsum *e, const char *name, const chosen_cpu *for_cpu, unsigned forms, unsigned how)
{
    char *triple = LLVMGetDefaultTargetTriple();
    char *fault = plan_build(e, cpu_machine(triple, for_cpu->features, for_cpu->here), how & REFERENCE_MACHINE_ORDER, &c->plan);
    c->symbol = generate_symbol(name);
    if (!fault && !c->symbol)
        fault = fault_text("out of memory");
    if (!fault)
        fault = make_machine(c, triple, for_cpu->name, for_cpu->features, how & REFERENCE_QUICK ? LLVMCodeGenLevelNone : LLVMCodeGenLevelDefault);
    LLVMDisposeMessage(triple);
    return fault ? fault : make_module(c, forms);
}

static char *compile_named(compilation *c, const einsum *e, const char *name, const char *cpu_name, bool here, unsigned forms, unsigned how)
{
    chosen_cpu found;
    char *fault = cpu_find(cpu_name, here, &found);
    if (fault)
        return fault;
    fault = compile_for(c, e, name, &found, forms, how);
    cpu_free(&found);
    return fault;
}

/* ---- compiled kernels ---- */

typedef void step_function(unsigned char *const *tensors, unsigned char *scratch, int64_t statement, int64_t part, int64_t parts);
typedef void bounded_function(unsigned char *const *tensors, double *const *bounds, unsigned char *scratch);

typedef struct kernel_tensor {
    int64_t bytes, elements;
    bool assigned, used, exact;
} kernel_tensor;

/* A statement: about how many clocks its products take, and whether threads may share it. */
typedef struct kernel_step {
    double clocks;
    bool shared;
} kernel_step;

/* Scratch storage behind its size. */
typedef struct run_scratch {
    _Alignas(64) int64_t bytes;
    _Alignas(64) unsigned char data[];
} run_scratch;

struct reference_kernel {
    LLVMOrcLLJITRef jit;
    step_function *step;
    bounded_function *bounded;
    kernel_tensor *tensors;
    uint32_t tensor_count;
    kernel_step *steps;
    uint32_t step_count;
    int64_t scratch_bytes, plain_scratch_bytes;
    uint64_t jit_nanoseconds;
    _Atomic(run_scratch *) spare; /* of the last run, for the next one: fresh pages cost more than a small product */
    pthread_mutex_t helping;      /* the run that has the threads' help */
    team *helpers;                /* NULL before the first run in threads */
};

static void kernel_release(reference_kernel *k)
{
    if (!k)
        return;
    if (k->jit)
        LLVMConsumeError(LLVMOrcDisposeLLJIT(k->jit));
    free(k->tensors);
    free(k->steps);
    free(atomic_load(&k->spare));
    team_free(k->helpers);
    pthread_mutex_destroy(&k->helping);
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

static char *look_up_one(const compilation *c, const reference_kernel *k, const char *suffix, uintptr_t *at)
{
    LLVMOrcExecutorAddress address;
    char *name = fault_text("%s%s", c->symbol, suffix);
    LLVMErrorRef error = LLVMOrcLLJITLookup(k->jit, &address, name);
    fault_free(name);
    if (error)
        return take_error("JIT", error);
    *at = (uintptr_t)address;
    return NULL;
}

static char *look_up(const compilation *c, reference_kernel *k, unsigned forms)
{
    uintptr_t step = 0, bounded = 0;
    char *fault = NULL;
    if (forms & REFERENCE_VALUES)
        fault = look_up_one(c, k, GENERATE_STEPS_SUFFIX, &step);
    if (!fault && forms & REFERENCE_BOUNDS)
        fault = look_up_one(c, k, GENERATE_BOUNDED_SUFFIX, &bounded);
    k->step = (step_function *)step;
    k->bounded = (bounded_function *)bounded;
    return fault;
}

static kernel_step describe_step(const plan_statement *s)
{
    enum { VECTORS_A_CLOCK = 2, TILE_REGISTERS_GAIN = 8 };
    kernel_step step = {.clocks = 1, .shared = plan_is_shared(s)};
    for (int g = 0; g < PLAN_GROUP_COUNT; g++)
        step.clocks *= (double)s->digits[g].combinations;
    if (step.shared)
        step.clocks /= (double)(s->tile.lanes * s->tile.per) * VECTORS_A_CLOCK * (plan_in_tile_registers(&s->tile) ? TILE_REGISTERS_GAIN : 1);
    return step;
}

static char *describe_tensors(const reference_plan *p, reference_kernel *k)
{
    k->tensor_count = p->e->tensor_count;
    k->scratch_bytes = p->scratch_bytes;
    k->plain_scratch_bytes = p->plain_scratch_bytes;
    k->step_count = p->e->statement_count;
    k->steps = calloc((size_t)k->step_count + 1, sizeof *k->steps);
    k->tensors = calloc((size_t)k->tensor_count + 1, sizeof *k->tensors);
    if (!k->tensors || !k->steps)
        return fault_text("out of memory");
    for (uint32_t i = 0; i < k->step_count; i++)
        k->steps[i] = describe_step(&p->statements[i]);
    for (uint32_t i = 0; i < k->tensor_count; i++)
        k->tensors[i] = (kernel_tensor){.bytes = walk_bytes(p->e, i),
                                        .elements = walk_elements(p->e, i),
                                        .assigned = p->assigned[i],
                                        .used = p->used[i],
                                        .exact = p->exact[i]};
    return NULL;
}

typedef struct build_call {
    const einsum *e;
    const char *name, *cpu;
    unsigned forms;
    reference_kernel *kernel;
} build_call;

static char *build_guarded(void *argument)
{
    build_call *call = argument;
    compilation c = {0};
    unsigned forms = (call->forms & REFERENCE_VALUES ? GENERATE_STEPS : 0u) | (call->forms & REFERENCE_BOUNDS ? GENERATE_BOUNDED : 0u);
    char *fault = compile_named(&c, call->e, call->name, call->cpu, true, forms, call->forms);
    if (!fault)
        fault = describe_tensors(&c.plan, call->kernel);
    if (!fault)
        fault = make_jit(&c, call->kernel);
    if (!fault)
        fault = add_module(&c, call->kernel);
    if (!fault)
        fault = look_up(&c, call->kernel, call->forms);
    compilation_free(&c);
    return fault;
}

static uint64_t nanoseconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static char *kernel_build(const einsum *e, const char *name, unsigned forms, const char *cpu_name, reference_kernel **out)
{
    *out = NULL;
    reference_kernel *k = calloc(1, sizeof *k);
    if (!k)
        return fault_text("out of memory");
    pthread_mutex_init(&k->helping, NULL);
    build_call call = {e, name, cpu_name, forms, k};
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

static int64_t scratch_of_part(int64_t bytes)
{
    return (bytes + 127) / 64 * 64;
}

enum { FEW_TENSORS = 8 };

/* Storage of one run: the caller's where there is some, and our own for the rest. */
typedef struct run_storage {
    unsigned char **tensors, **own_tensors;
    double **bounds, **own_bounds;
    run_scratch *scratch;
    void *few[4 * FEW_TENSORS]; /* the pointers above point here: a small product takes less time than malloc */
} run_storage;

static run_scratch *take_scratch(reference_kernel *k, int64_t bytes)
{
    run_scratch *s = atomic_exchange(&k->spare, NULL);
    if (s && s->bytes >= bytes)
        return s;
    free(s);
    s = aligned_alloc(64, sizeof *s + (size_t)(bytes + 63) / 64 * 64);
    if (s)
        s->bytes = bytes;
    return s;
}

static void run_storage_free(reference_kernel *k, run_storage *r)
{
    for (uint32_t i = 0; r->tensors && i < k->tensor_count; i++) {
        free(r->own_tensors[i]);
        free(r->own_bounds[i]);
    }
    if ((void **)r->tensors != r->few)
        free(r->tensors);
    if (r->scratch)
        free(atomic_exchange(&k->spare, r->scratch));
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

static char *run_storage_make(reference_kernel *k, unsigned char *const *tensors, double *const *bounds,
                              int64_t scratch_bytes, run_storage *r)
{
    size_t count = k->tensor_count;
    void **pointers = count <= FEW_TENSORS ? r->few : calloc(4 * count, sizeof *pointers);
    r->scratch = take_scratch(k, scratch_bytes);
    r->tensors = (unsigned char **)pointers;
    if (!pointers || !r->scratch)
        return fault_text("out of memory");
    r->own_tensors = r->tensors + count;
    r->bounds = (double **)(pointers + 2 * count);
    r->own_bounds = r->bounds + count;
    for (uint32_t i = 0; i < k->tensor_count; i++) {
        if (!tensors[i] && !k->tensors[i].assigned && k->tensors[i].used)
            return fault_text("tensor %u is read and was not given", i);
        if (!tensors[i] && !k->tensors[i].assigned)
            continue;
        if (!run_tensor(k, r, i, tensors[i]) || (bounds && !run_bound(k, r, i, bounds[i])))
            return fault_text("out of memory");
    }
    return NULL;
}

/* ---- parts in threads ---- */

enum { MOST_PARTS = 64 };

typedef struct run_step {
    const reference_kernel *kernel;
    const run_storage *storage;
    int64_t step, parts, scratch_each;
} run_step;

static void run_part(void *argument, unsigned part)
{
    const run_step *r = argument;
    r->kernel->step(r->storage->tensors, r->storage->scratch->data + part * r->scratch_each, r->step, part, r->parts);
}

static unsigned parts_of(const kernel_step *s, unsigned threads)
{
    static const double worth_a_thread = 1e5; /* clocks; waking one costs some ten thousand */
    unsigned most = threads < MOST_PARTS ? threads : MOST_PARTS;
    return !s->shared || s->clocks < worth_a_thread * most ? 1 : most;
}

/* Of several runs at once, one has help; another one computes its parts alone, which gives the same. */
static void run_steps(reference_kernel *k, const run_storage *r, unsigned most_threads, int64_t scratch_each)
{
    unsigned most = 1;
    for (uint32_t i = 0; i < k->step_count; i++) {
        unsigned parts = parts_of(&k->steps[i], most_threads);
        most = parts > most ? parts : most;
    }
    bool helped = most > 1 && pthread_mutex_trylock(&k->helping) == 0;
    if (helped && team_count(k->helpers) + 1 < most) {
        team_free(k->helpers);
        k->helpers = team_new(most - 1);
    }
    for (uint32_t i = 0; i < k->step_count; i++) {
        unsigned parts = parts_of(&k->steps[i], most_threads);
        run_step step = {k, r, i, parts, scratch_each};
        team_run(helped ? k->helpers : NULL, parts, run_part, &step);
    }
    if (helped)
        pthread_mutex_unlock(&k->helping);
}

static char *kernel_run(reference_kernel *k, unsigned char *const *tensors, double *const *bounds, unsigned threads)
{
    run_storage r = {0};
    if (bounds ? !k->bounded : !k->step)
        return fault_text("the kernel was built without this form");
    int64_t scratch_each = scratch_of_part(bounds ? k->scratch_bytes : k->plain_scratch_bytes);
    char *fault = run_storage_make(k, tensors, bounds, scratch_each * (threads > 1 ? threads : 1), &r);
    if (!fault && bounds)
        k->bounded(r.tensors, r.bounds, r.scratch->data);
    if (!fault && !bounds)
        run_steps(k, &r, threads, scratch_each);
    run_storage_free(k, &r);
    return fault;
}

/* ---- files ---- */

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

/* A parameter's C type, without const and *. */
static const char *c_type(dtype t)
{
    const dtype_row *row = dtype_row_of(t);
    if (t == DTYPE_F32)
        return "float";
    if (row->kind == DTYPE_KIND_INT && row->bits >= 8)
        return row->bits == 8 ? "int8_t" : row->bits == 16 ? "int16_t" : "int32_t";
    return row->bits <= 8 ? "uint8_t" : "uint16_t";
}

static void print_tensor(FILE *out, const reference_plan *p, uint32_t number)
{
    const einsum_tensor *t = &p->e->tensors[number];
    fputs(" *   ", out);
    print_name(out, t->name);
    fprintf(out, ": %s[", dtype_row_of(t->dtype)->name);
    for (uint32_t i = 0; i < t->rank; i++) {
        fputs(i ? ", " : "", out);
        print_name(out, p->e->axes[t->axes[i]].name);
        fprintf(out, " = %lld", (long long)p->e->axes[t->axes[i]].size);
    }
    fprintf(out, "], %lld bytes, %s\n", (long long)walk_bytes(p->e, number), p->assigned[number] ? "written" : "read");
}

/* A name of a file may be no identifier. */
static void print_parameter(FILE *out, const reference_plan *p, uint32_t number, bool first)
{
    const einsum_tensor *t = &p->e->tensors[number];
    fprintf(out, "%s%s%s *t%u_", first ? "" : ", ", p->assigned[number] ? "" : "const ", c_type(t->dtype), number);
    for (const char *at = t->name; at && *at; at++)
        fputc(isalnum((unsigned char)*at) ? *at : '_', out);
}

/* In the order of emit_c_entry: what is read, then what is written. */
static void print_parameters(FILE *out, const reference_plan *p, void (*print)(FILE *, const reference_plan *, uint32_t, bool))
{
    bool first = true;
    for (int assigned = 0; assigned < 2; assigned++)
        for (uint32_t i = 0; i < p->e->tensor_count; i++)
            if (plan_is_parameter(p, i) && p->assigned[i] == assigned) {
                print(out, p, i, first);
                first = false;
            }
}

static void print_tensor_line(FILE *out, const reference_plan *p, uint32_t number, bool first)
{
    (void)first;
    print_tensor(out, p, number);
}

static void print_header(FILE *out, const compilation *c)
{
    fputs("/* Reference kernel, generated by visac: ", out);
    print_name(out, c->plan.e->text);
    fputs("\n *\n * Tensors, little-endian, row-major and packed; bf16 and 8-bit floats are bit patterns, i4 stand two in a byte:\n", out);
    print_parameters(out, &c->plan, print_tensor_line);
    fputs(" *\n * No tensor may overlap another. Storage for large products comes from aligned_alloc; without memory it aborts. */\n", out);
    fputs("#pragma once\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n", out);
    fprintf(out, "void %s(", c->symbol);
    print_parameters(out, &c->plan, print_parameter);
    fputs(");\n#ifdef __cplusplus\n}\n#endif\n", out);
}

static char *emit_header(emit_call *call, const compilation *c)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return fault_text("out of memory");
    print_header(out, c);
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
    char *fault = compile_named(&c, call->e, call->name, call->cpu ? call->cpu : cpu_name(0), false, GENERATE_C, call->forms);
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

static char *kernel_emit(const einsum *e, const char *name, unsigned forms, const char *cpu_name, reference_output kind, unsigned char **bytes,
                         size_t *byte_count)
{
    *bytes = NULL;
    *byte_count = 0;
    if (kind < REFERENCE_LLVM || kind > REFERENCE_HEADER)
        return fault_text("output kind %d is not known", (int)kind);
    emit_call call = {.e = e, .name = name, .forms = forms, .cpu = cpu_name, .kind = kind};
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
        .release_bytes = fault_free,
    };
    return version == REFERENCE_API_VERSION ? &api : NULL;
}
