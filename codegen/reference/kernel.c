#include "codegen/reference/kernel.h"

#include <stdlib.h>
#include <time.h>

#include "codegen/reference/compilation.h"
#include "codegen/reference/fault.h"
#include "codegen/reference/generate.h"
#include "codegen/reference/guard.h"
#include "codegen/reference/scalar.h"
#include "codegen/reference/walk.h"

void kernel_release(reference_kernel *k)
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

/* What expressions call: the JIT finds it whether or not the program that loaded this library was linked with the C library's functions. */
static char *define_functions(reference_kernel *k)
{
    enum { MOST = 32 };
    LLVMOrcCSymbolMapPair pairs[MOST];
    size_t count = 0;
    for (scalar_symbol s = scalar_symbol_at(0); s.name && count < MOST; s = scalar_symbol_at(++count)) {
        pairs[count].Name = LLVMOrcLLJITMangleAndIntern(k->jit, s.name);
        pairs[count].Sym.Address = (LLVMOrcExecutorAddress)(uintptr_t)s.address;
        pairs[count].Sym.Flags = (LLVMJITSymbolFlags){LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable, 0};
    }
    LLVMErrorRef error = LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(k->jit), LLVMOrcAbsoluteSymbols(pairs, count));
    return error ? guard_error("JIT", error) : NULL;
}

/* Takes the machine. */
static char *make_jit(compilation *c, reference_kernel *k)
{
    LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
    LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(builder, LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(c->machine));
    c->machine = NULL;
    LLVMErrorRef error = LLVMOrcCreateLLJIT(&k->jit, builder);
    if (error) {
        k->jit = NULL;
        return guard_error("JIT", error);
    }
    /* memset, and what else LLVM's code generator calls */
    LLVMOrcDefinitionGeneratorRef process;
    error = LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(&process, LLVMOrcLLJITGetGlobalPrefix(k->jit), NULL, NULL);
    if (error)
        return guard_error("JIT", error);
    LLVMOrcJITDylibAddGenerator(LLVMOrcLLJITGetMainJITDylib(k->jit), process);
    return c->plan.calls_functions ? define_functions(k) : NULL;
}

/* Takes the module, which shares the context. */
static char *add_module(compilation *c, reference_kernel *k)
{
    LLVMOrcThreadSafeModuleRef module = LLVMOrcCreateNewThreadSafeModule(c->module, c->context);
    c->module = NULL;
    LLVMErrorRef error = LLVMOrcLLJITAddLLVMIRModule(k->jit, LLVMOrcLLJITGetMainJITDylib(k->jit), module);
    return error ? guard_error("JIT", error) : NULL;
}

static char *look_up_one(const compilation *c, const reference_kernel *k, const char *suffix, uintptr_t *at)
{
    LLVMOrcExecutorAddress address;
    char *name = fault_text("%s%s", c->symbol, suffix);
    LLVMErrorRef error = LLVMOrcLLJITLookup(k->jit, &address, name);
    fault_free(name);
    if (error)
        return guard_error("JIT", error);
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
    uintptr_t field = 0;
    if (!fault && forms & REFERENCE_FIELD)
        fault = look_up_one(c, k, GENERATE_FIELD_SUFFIX, &field);
    k->field = (field_function *)field;
    k->step = (step_function *)step;
    k->bounded = (step_function *)bounded;
    return fault;
}

static kernel_form describe_form(const plan_statement *s, bool blocks)
{
    kernel_form f = {.blocks = blocks, .longer = plan_longer(s), .whole = plan_whole(s, blocks)};
    f.packs_rows = blocks && !s->block_tile.rows_in_place;
    f.packs_columns = blocks && (!s->block_tile.columns_in_place || s->block_tile.columns_once);
    return f;
}

/* An exact result has no bound, and the same form computes it. */
static kernel_step describe_step(const reference_plan *p, const plan_statement *s)
{
    kernel_step step = {.clocks = plan_shared_clocks(s), .shared = plan_is_shared(p, s), .dst = s->of->dst, .first = s->first};
    if (!field_shape_of(s, &step.field))
        step.field.batches = -1;
    if (s->of->op != MATH_CONTRACT || s->absorbed)
        return step;
    step.plain = describe_form(s, s->stores_blocks);
    step.bounded = describe_form(s, s->stores_blocks && p->exact[s->of->dst]);
    return step;
}

static char *describe_tensors(const reference_plan *p, reference_kernel *k)
{
    k->tensor_count = p->e->tensor_count;
    k->scratch_bytes = p->scratch_bytes;
    k->plain_scratch_bytes = p->plain_scratch_bytes;
    k->outside = p->has_indices ? p->outside : -1;
    k->step_count = p->e->statement_count;
    k->steps = calloc((size_t)k->step_count + 1, sizeof *k->steps);
    k->tensors = calloc((size_t)k->tensor_count + 1, sizeof *k->tensors);
    if (!k->tensors || !k->steps)
        return fault_text("out of memory");
    for (uint32_t i = 0; i < k->step_count; i++)
        k->steps[i] = describe_step(p, &p->statements[i]);
    k->alone = true;
    for (uint32_t i = 0; i < k->step_count; i++)
        k->alone &= !k->steps[i].shared;
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
    unsigned forms = (call->forms & REFERENCE_VALUES ? GENERATE_STEPS : 0u) | (call->forms & REFERENCE_BOUNDS ? GENERATE_BOUNDED : 0u) |
                     (call->forms & REFERENCE_FIELD ? GENERATE_FIELD : 0u);
    for (uint32_t i = 0; i < call->e->statement_count && call->forms & REFERENCE_FIELD; i++)
        if (call->e->statements[i].op != MATH_COPY && call->e->statements[i].op != MATH_CONTRACT)
            return fault_text("statement %u is neither a copy nor a contraction: it has no form over a field", i);
    char *fault = compilation_make(&c, call->e, call->name, call->cpu, true, forms, call->forms);
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

char *kernel_build(const einsum *e, const char *name, unsigned forms, const char *cpu, reference_kernel **out)
{
    *out = NULL;
    reference_kernel *k = calloc(1, sizeof *k);
    if (!k)
        return fault_text("out of memory");
    pthread_mutex_init(&k->helping, NULL);
    build_call call = {e, name, cpu, forms, k};
    uint64_t start = nanoseconds_now();
    char *fault = guarded(build_guarded, &call);
    k->jit_nanoseconds = nanoseconds_now() - start;
    if (!fault) {
        *out = k;
        return NULL;
    }
    if (!guard_llvm_is_lost())
        kernel_release(k);
    return fault;
}

uint64_t kernel_indices_outside(const reference_kernel *k)
{
    return atomic_load(&k->all_outside);
}

uint64_t kernel_jit_nanoseconds(const reference_kernel *k)
{
    return k->jit_nanoseconds;
}
