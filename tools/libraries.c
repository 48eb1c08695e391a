/* Of visac-plugins, which does it. */
#include "tools/libraries.h"

#include <stdio.h>
#include <string.h>

#include "codegen/reference_load.h"
#include "runtime/machine/session.h"
#include "runtime/step/session.h"
#include "tools/checking.h"
#include "tools/heap.h"
#include "tools/tune_programs.h"
#include "tools/visac_arguments.h"

/* From the einsum section of the binary, never from anything else. */
static bool emit_reference(const arguments *a, const binary *b, arena *memory, diag_list *diags, const unsigned char **data, size_t *size)
{
    static const reference_output kinds[] = {[EMIT_LLVM] = REFERENCE_LLVM,
                                             [EMIT_BITCODE] = REFERENCE_BITCODE,
                                             [EMIT_ASM] = REFERENCE_ASSEMBLY,
                                             [EMIT_OBJ] = REFERENCE_OBJECT,
                                             [EMIT_HEADER] = REFERENCE_HEADER};
    const binary_kernel *k = binary_choose_kernel(b, a->run.kernel, diags);
    if (!k)
        return false;
    const reference_api *api = reference_load(diags);
    unsigned char *bytes;
    if (!api || !reference_emit(api, &k->einsum, k->name, a->run.order_given && !a->run.free_order ? REFERENCE_MACHINE_ORDER : 0, a->mcpu,
                                kinds[a->emit], memory, &bytes, size, diags))
        return false;
    *data = bytes;
    return true;
}

/* One kernel: by numbers, by algebra, or both; the algebra says which terms differ, too. */
static int check_kernel(arguments *a, const binary *b, const binary_kernel *k, arena *memory, diag_list *diags)
{
    bool agrees = true, ok = true;
    const char *report = "", *proof = "";
    verdict_item item = {.name = k->name};
    if (a->run.check.numbers) {
        session *s = session_open(b, k->name, memory, diags);
        tool_check_begin(&a->run.check, b->target, k, a->run.seed, 0);
        ok = s && tool_run_length("visac", s, k->name, a->run.max_cycles, diags);
        if (ok)
            session_expect(s, !a->run.free_order);
        ok = ok && session_fill(s, a->run.seed, diags) && session_run(s, true, diags) &&
             session_check(s, !a->run.free_order, &agrees, &report, diags);
        item.numbers = s ? session_findings(s) : NULL;
        session_close(s);
    }
    bool differs = !ok && session_found_mismatch(diags);
    tool_check_say(&a->run.check, report, stdout);
    if (!ok && !differs) {
        tool_check_drop(&a->run.check);
        return EXIT_INPUT;
    }
    ok = tool_check_algebra(&a->run.check, b->target, k, a->run.seed, 0, memory, diags, &agrees, &proof);
    tool_check_say(&a->run.check, proof, stdout);
    item.algebra = ok ? tool_check_last(&a->run.check, k) : NULL;
    item.differs = differs;
    tool_check_add(&a->run.check, &item, memory);
    return !ok ? EXIT_INPUT : differs || !agrees ? EXIT_MISMATCH : EXIT_DONE;
}

/* A stream program whose tensors are seeded; what it takes as streams nobody can make up. */
static int check_program(arguments *a, const binary *b, const step_program *p, arena *memory, diag_list *diags)
{
    step_session_options options = {
        .seed = a->run.seed, .checked = true, .max_cycles = a->run.max_cycles < INT64_MAX ? (int64_t)a->run.max_cycles : 0};
    const char *report = "";
    bool agrees = false;
    step_session *s = step_session_open(b, p, &options, memory, diags);
    bool ok = s && step_session_run(s, diags) && step_session_check(s, &agrees, &report, diags);
    tool_check_say(&a->run.check, report, stdout);
    tool_check_add(&a->run.check, &(verdict_item){.name = p->name, .is_program = true, .numbers = s ? step_session_findings(s) : NULL},
                   memory);
    step_session_close(s);
    return ok && agrees ? EXIT_DONE : !ok && !session_found_mismatch(diags) ? EXIT_INPUT : EXIT_MISMATCH;
}

static const char *first_source(const step_program *p)
{
    for (uint32_t i = 0; i < p->node_count; i++)
        if (p->nodes[i].op == STEP_SOURCE)
            return p->nodes[i].name;
    return NULL;
}

static void leave_out(arguments *a, const char *name, bool is_program, const char *why, arena *memory)
{
    tool_check_say(&a->run.check, arena_printf(memory, "%s: not checked: %s\n", name, why), stdout);
    tool_check_add(&a->run.check, &(verdict_item){.name = name, .is_program = is_program, .left_out = why}, memory);
}

/* Checks one kernel or stream program, or all of the binary. */
static int check_all(arguments *a, const binary *b, const unsigned char *bytes, size_t size, arena *memory, diag_list *diags)
{
    int status = EXIT_DONE;
    size_t checked = 0;
    for (size_t i = 0; i < b->program_count; i++) {
        const step_program *p = &b->programs[i];
        const char *source = first_source(p);
        if (a->run.kernel && strcmp(a->run.kernel, p->name) != 0)
            continue;
        if (source || !a->run.check.numbers) {
            const char *why = source ? arena_printf(memory, "its stream `%s` has no tokens here; visa-run --check takes them", source)
                                     : "a stream program is checked by numbers";
            leave_out(a, p->name, true, why, memory);
            continue;
        }
        int of_program = check_program(a, b, p, memory, diags);
        if (of_program == EXIT_INPUT)
            return EXIT_INPUT;
        status = of_program == EXIT_DONE ? status : of_program;
        checked++;
    }
    for (size_t i = 0; i < b->kernel_count; i++) {
        if (a->run.kernel && strcmp(a->run.kernel, b->kernels[i].name) != 0)
            continue;
        if (!tool_has_output(&b->kernels[i])) {
            leave_out(a, b->kernels[i].name, false, "it has no output", memory);
            continue;
        }
        int of_kernel = check_kernel(a, b, &b->kernels[i], memory, diags);
        if (of_kernel == EXIT_INPUT)
            return EXIT_INPUT;
        status = of_kernel == EXIT_DONE ? status : of_kernel;
        checked++;
    }
    if (checked == 0) {
        diag_help(diags, diag_add(diags, E_CHECK_NOTHING, SRC_NOWHERE, "there is no kernel to check"),
                  "visa-run --check takes the tokens of stream programs; a kernel is a function of a Context or of streams");
        return EXIT_MISMATCH;
    }
    return tool_check_certify(&a->run.check, a->input, bytes, size, memory) ? status : EXIT_INPUT;
}

static int check(arguments *a, const binary *b, const unsigned char *bytes, size_t size, arena *memory, diag_list *diags)
{
    heap_prepare();
    return tool_check_print(&a->run, a->input, check_all(a, b, bytes, size, memory, diags), diags);
}

const library_work *library_work_begin(char **argv, diag_list *diags)
{
    static const library_work work = {check, emit_reference, ranks_begin, tune_programs};
    (void)argv, (void)diags;
    return &work;
}
