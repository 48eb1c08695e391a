/* Stream programs of a file: transformations that the command line asks for, and numbers for their sizes. */
#include <inttypes.h>
#include <string.h>

#include "codegen/step/emit.h"
#include "codegen/step/text.h"
#include "libvisa/compilation.h"
#include "libvisa/step/sizes.h"
#include "passes/step/metrics.h"
#include "passes/step/rewrite.h"
#include "support/choice.h"

const step_pass *compilation_step_pass(const char *name, size_t bytes)
{
    for (const step_pass *p = step_passes; p->name; p++)
        if (strlen(p->name) == bytes && strncmp(p->name, name, bytes) == 0)
            return p;
    return NULL;
}

/* "name=value,name=value" */
static void read_arguments(visa_compilation *c, const char *text, step_pass_call *call)
{
    size_t capacity = 0;
    step_pass_argument *list = NULL;
    while (*text) {
        size_t bytes = strcspn(text, ","), name = strcspn(text, "=,");
        step_pass_argument one = {arena_strndup(c->arena, text, name),
                                  arena_strndup(c->arena, text + name + (name < bytes), bytes - name - (name < bytes))};
        ARENA_PUSH(c->arena, list, call->argument_count, capacity, one);
        text += bytes + (text[bytes] == ',');
    }
    call->arguments = list;
}

void compilation_run_step_pass(visa_compilation *c, const char *text)
{
    size_t bytes = strcspn(text, ":");
    step_pass_call call = {.pass = compilation_step_pass(text, bytes)};
    diag *refusal = NULL;
    const step_graph *legal = NULL;
    read_arguments(c, text + bytes + (text[bytes] == ':'), &call);
    for (size_t i = 0; i < c->programs->count; i++)
        if (!c->programs->graphs[i]->bad) {
            step_graph *made = step_pass_run(&call, c->programs->graphs[i]);
            c->programs->graphs[i]->bad = !made;
            c->programs->graphs[i] = made ? made : c->programs->graphs[i];
            legal = legal ? legal : made;
            refusal = refusal || made ? refusal : c->diags.items[c->diags.count - 1];
        }
    if (refusal && legal) /* which one was meant */
        diag_note(&c->diags, refusal, legal->range,
                  "a pass is for all stream programs of the file, and legal for `%s`: --kernel=%s is that one alone", legal->name,
                  legal->name);
    compilation_took(c, call.pass->name);
    if (c->diags.error_count > 0 || !compilation_prints(c, call.pass->name))
        return;
    strbuf_printf(&c->dumps, "// after %s: %s\n", call.pass->name, call.pass->summary);
    compilation_print_programs(&(emit_context){.arena = c->arena, .target = c->target, .line_of = compilation_line_of, .user = c}, c,
                               &c->dumps);
}

static bool is_size(const visa_compilation *c, const char *name)
{
    for (size_t i = 0; i < c->programs->count; i++)
        if (step_expr_knows(c->programs->graphs[i]->exprs, name))
            return true;
    return false;
}

/* As many sizes as there are places. */
static void check_sizes(visa_compilation *c, const step_binding *given)
{
    for (size_t i = 0; i < c->programs->count; i++) {
        step_bindings all = {c->programs->graphs[i], c->bindings, c->binding_count};
        int64_t places;
        if (c->programs->graphs[i]->bad || step_bind_fits(&all, given, &places))
            continue;
        diag *d = places < 0
                      ? diag_add(&c->diags, E_STEP_NUMBER, c->programs->graphs[i]->range, "%zu sizes for `%s` of `%s`, which is one size",
                                 given->count, given->name, c->programs->graphs[i]->name)
                      : diag_add(&c->diags, E_STEP_NUMBER, c->programs->graphs[i]->range,
                                 "%zu sizes for `~%s` of `%s`, which has %" PRId64 " place%s", given->count, given->name,
                                 c->programs->graphs[i]->name, places, places == 1 ? "" : "s");
        diag_help(&c->diags, d,
                  places < 0 ? "a size that differs from place to place is a `const %s: Ragged`"
                             : "give one for each place in the order of the stream, or their sum: -D 'sum(~%s)=..'",
                  given->name);
        return;
    }
}

/* What kernels keep on the chip never leaves it. */
static void check_room(visa_compilation *c, step_graph *g)
{
    int64_t holds = g->machine.onchip_bytes, room = holds > 0 && !g->bad ? step_kernel_room(g) : 0;
    if (room <= holds)
        return;
    diag *d = diag_add(&c->diags, E_STEP_NUMBER, g->range, "kernels of `%s` keep %" PRId64 " bytes on the chip, and it holds %" PRId64,
                       g->name, room, holds);
    diag_help(&c->diags, d, "give it `--onchip-bytes=%" PRId64 "` or more", room);
}

/* Names that -D may give a number. */
static const char *names_known(visa_compilation *c, const char *name)
{
    enum { SHOWN_MAX = 16 };
    const char *const *numbers = ast_number_names(c->tree, c->arena), *near = choice_near(name, numbers);
    for (size_t i = 0; i < c->programs->count && !near; i++)
        near = choice_near(name, step_expr_names(c->programs->graphs[i]->exprs, c->arena));
    if (near)
        return arena_printf(c->arena, "did you mean `%s`?", near);
    const char *sizes = c->programs->count > 0 ? "--emit=step-report lists the sizes of stream programs" : "", *known = "";
    const char *shown[SHOWN_MAX + 1] = {NULL};
    size_t count = 0;
    for (; *numbers && count < SHOWN_MAX; numbers++) {
        bool is_new = true;
        for (size_t i = 0; i < count; i++)
            is_new = is_new && strcmp(shown[i], *numbers) != 0;
        if (is_new)
            shown[count++] = *numbers;
    }
    known = arena_printf(c->arena, "%s%s", choice_list(c->arena, shown), *numbers ? ", .." : "");
    return count == 0 ? sizes : arena_printf(c->arena, "there are %s%s%s", known, *sizes ? "; " : "", sizes);
}

/* What is no constant and no axis gives its number to a size of a stream program. */
void compilation_check_parameters(visa_compilation *c)
{
    bool sizes = false; /* are given: names that are neither constants nor axes */
    for (size_t i = 0; i < c->programs->count; i++)
        check_room(c, c->programs->graphs[i]);
    for (size_t i = 0; i < c->binding_count; i++)
        sizes = sizes || !c->is_set[i];
    for (size_t i = 0; i < c->programs->count && sizes; i++)
        if (!c->programs->graphs[i]->bad)
            step_measure(c->programs->graphs[i]); /* makes the sums that may be given */
    for (size_t i = 0; i < c->binding_count; i++) {
        const char *name = c->bindings[i].name;
        if (!c->is_set[i] && is_size(c, name))
            check_sizes(c, &c->bindings[i]);
        if (c->is_set[i] || is_size(c, name))
            continue;
        bool several = c->bindings[i].count > 1;
        diag *d = diag_add(&c->diags, E_NAME, SRC_NOWHERE,
                           several ? "there is no ragged dimension `%s` to set; a constant or an axis has one value"
                                   : "there is no constant and no axis `%s` to set",
                           name);
        const char *help = names_known(c, name);
        if (*help)
            diag_help(&c->diags, d, "%s", help);
    }
}

/* Those of a run; what was given by name comes first. */
void compilation_read_sizes(visa_compilation *c)
{
    step_size_list list = {0};
    if (!c->options->step_sizes ||
        !step_sizes_read(c->options->step_sizes, c->programs->graphs, c->programs->count, &list, c->arena, &c->diags))
        return;
    step_binding *all = ARENA_ARRAY(c->arena, step_binding, c->binding_count + list.count + 1);
    memcpy(all, c->bindings, c->binding_count * sizeof *all);
    if (list.count > 0)
        memcpy(all + c->binding_count, list.items, list.count * sizeof *all);
    c->bindings = all;
    c->binding_count += list.count;
}

void compilation_print_programs(const emit_context *e, const visa_compilation *c, strbuf *out)
{
    for (size_t i = 0; i < c->programs->count; i++) {
        strbuf_puts(out, i > 0 || c->module->count > 0 ? "\n" : "");
        step_program_print(step_emit(e, c->programs->graphs[i]), out);
    }
}
