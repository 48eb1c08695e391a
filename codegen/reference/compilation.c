#include "codegen/reference/compilation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>

#include "codegen/reference/cpu.h"
#include "codegen/reference/fault.h"
#include "codegen/reference/field.h"
#include "codegen/reference/generate.h"
#include "codegen/reference/guard.h"
#include "codegen/reference/reference.h"

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

/* ---- the module ---- */

void compilation_free(compilation *c)
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
        return guard_message("target", message);
    c->machine = LLVMCreateTargetMachine(family, triple, cpu_name, features, level, LLVMRelocPIC, LLVMCodeModelDefault);
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
        return guard_message("the generated module is not valid", message);
    LLVMDisposeMessage(message);
    return NULL;
}

/* Does code that is not optimised, which takes about a third of the time to compile, cost less than it saves in one run? At so many
 * clocks the reference of a check of f32 takes 111 ms with it and 121 ms without (AVX-512); code in tile registers loses little of its
 * speed. */
static bool is_small(const reference_plan *p, unsigned forms)
{
    static const double most_clocks = 1 << 25;
    double clocks = 0;
    for (uint32_t i = 0; i < p->e->statement_count; i++)
        clocks += forms & GENERATE_FIELD
                      ? field_clocks(&p->statements[i])
                      : plan_clocks(&p->statements[i]) + (forms & GENERATE_BOUNDED ? plan_bound_clocks(p, &p->statements[i]) : 0);
    return clocks < most_clocks;
}

static char *compile_for(compilation *c, const einsum *e, const char *name, const chosen_cpu *for_cpu, unsigned forms, unsigned how)
{
    char *triple = LLVMGetDefaultTargetTriple();
    plan_purpose purpose = {
        .machine_order = how & REFERENCE_MACHINE_ORDER, .whole = forms & GENERATE_FIELD, .runs_once = how & REFERENCE_QUICK};
    char *fault = plan_build(e, cpu_machine(triple, for_cpu->features, for_cpu->here), purpose, &c->plan);
    c->symbol = generate_symbol(name);
    if (!fault && !c->symbol)
        fault = fault_text("out of memory");
    bool quick = !fault && how & REFERENCE_QUICK && is_small(&c->plan, forms);
    if (!fault)
        fault = make_machine(c, triple, for_cpu->name, for_cpu->features, quick ? LLVMCodeGenLevelNone : LLVMCodeGenLevelDefault);
    LLVMDisposeMessage(triple);
    return fault ? fault : make_module(c, forms);
}

char *compilation_make(compilation *c, const einsum *e, const char *name, const char *cpu, bool here, unsigned forms, unsigned how)
{
    chosen_cpu found = {0};
    char *fault = cpu_find(cpu, here, &found);
    if (fault)
        return fault;
    fault = compile_for(c, e, name, &found, forms, how);
    cpu_free(&found);
    return fault;
}
