/* include/visa.h: the stages of a compilation, one after the other. */
#include "include/visa.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/container.h"
#include "codegen/draw.h"
#include "codegen/emit.h"
#include "codegen/memory_map.h"
#include "codegen/step/emit.h"
#include "codegen/step/report.h"
#include "codegen/step/text.h"
#include "codegen/tables.h"
#include "frontend/format.h"
#include "frontend/parse.h"
#include "frontend/render.h"
#include "frontend/sema.h"
#include "frontend/step/program.h"
#include "ir/print.h"
#include "libvisa/compilation.h"
#include "libvisa/order.h"
#include "libvisa/step/kernels.h"
#include "libvisa/step/sizes.h"
#include "passes/pass.h"
#include "passes/step/metrics.h"
#include "passes/step/rewrite.h"
#include "support/budget.h"
#include "support/choice.h"
#include "support/file.h"
#include "support/shown.h"
#include "support/warning.h"

static const char out_of_memory_text[] = "error: out of memory\n";

static void start_clock(visa_compilation *c)
{
    clock_gettime(CLOCK_MONOTONIC, &c->clock);
}

/* A step of the compilation, of all kernels together. */
struct timed_step {
    const char *what;
    double us;
};

static double *time_of(visa_compilation *c, const char *what)
{
    for (size_t i = 0; i < c->time_count; i++)
        if (c->times[i].what == what)
            return &c->times[i].us;
    struct timed_step s = {.what = what};
    ARENA_PUSH(c->arena, c->times, c->time_count, c->time_capacity, s);
    return &c->times[c->time_count - 1].us;
}

static void stop_clock(visa_compilation *c, const char *what)
{
    if (!c->options->time_report)
        return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *time_of(c, what) += (double)(now.tv_sec - c->clock.tv_sec) * 1e6 + (double)(now.tv_nsec - c->clock.tv_nsec) / 1e3;
    c->clock = now;
}

static bool is_printed(const visa_compilation *c, const char *pass_name)
{
    const char *wanted = c->options->print_after;
    return wanted && (strcmp(wanted, "all") == 0 || strcmp(wanted, pass_name) == 0);
}

static void after_pass(void *user, const pass *done, const kernel *k)
{
    visa_compilation *c = user;
    stop_clock(c, done->name);
    if (is_printed(c, done->name))
        kernel_print(k, &c->pass_dumps[done - pipeline]);
}

static size_t pass_count(void)
{
    size_t count = 0;
    while (pipeline[count].name)
        count++;
    return count;
}

static void begin_dumps(visa_compilation *c)
{
    c->pass_dumps = ARENA_ARRAY(c->arena, strbuf, pass_count());
    for (size_t i = 0; i < pass_count(); i++)
        if (is_printed(c, pipeline[i].name))
            strbuf_init(&c->pass_dumps[i], c->arena);
}

static void end_dumps(visa_compilation *c)
{
    for (size_t i = 0; i < pass_count(); i++)
        if (is_printed(c, pipeline[i].name))
            strbuf_printf(&c->dumps, "// after %s: %s\n%s", pipeline[i].name, pipeline[i].summary, c->pass_dumps[i].text);
}

static bool knows_pass(const char *name)
{
    if (!name || strcmp(name, "all") == 0)
        return true;
    for (size_t i = 0; pipeline[i].name; i++)
        if (strcmp(pipeline[i].name, name) == 0)
            return true;
    for (const step_pass *p = step_passes; p->name; p++)
        if (strcmp(p->name, name) == 0)
            return true;
    return false;
}

bool visa_knows_warning(const char *option)
{
    warning_levels levels = {0};
    return warning_option(&levels, option);
}

static bool knows_warnings(const char *const *options)
{
    for (; options && *options; options++)
        if (!visa_knows_warning(*options))
            return false;
    return true;
}

/* Where `mod NAME;` of a file may be: next to it, in a folder of its name, or in the folder of the module it is. */
static const char *module_path(visa_compilation *c, const ast *n, int i)
{
    static const char *const forms[] = {"%.*s%s.vm", "%.*s%s.rs", "%.*s%s/mod.vm", "%.*s%s/mod.rs"};
    const char *file = source_name(c->sources, n->range.file), *slash = strrchr(file, '/');
    int folder = slash ? (int)(slash - file) + 1 : 0;
    const char *dot = strrchr(file + folder, '.');
    if (i < 4)
        return arena_printf(c->arena, forms[i], folder, file, n->text);
    if (i >= 8 || !dot)
        return NULL;
    const char *inner = arena_printf(c->arena, "%.*s/", (int)(dot - file), file);
    return arena_printf(c->arena, forms[i - 4], (int)strlen(inner), inner, n->text);
}

static int add_module_file(visa_compilation *c, const char *path)
{
    size_t bytes;
    const char *open;
    if (c->options->open_text && c->options->open_text(c->options->user, path, &open, &bytes))
        return source_map_add(c->sources, path, open, bytes);
    unsigned char *text = file_read_all(path, &bytes, &c->diags);
    int file = text ? source_map_add(c->sources, path, (const char *)text, bytes) : -1;
    free(text);
    ARENA_PUSH(c->arena, c->module_files, c->module_file_count, c->module_file_capacity, path);
    return file;
}

static const ast *load_module(void *user, const ast *n)
{
    visa_compilation *c = user;
    for (int i = 0; i < 8; i++) {
        const char *path = module_path(c, n, i);
        if (!path || access(path, R_OK) != 0)
            continue;
        for (int f = 0; f < source_map_count(c->sources); f++)
            if (strcmp(source_name(c->sources, f), path) == 0) {
                diag_add(&c->diags, E_DUPLICATE, n->name_range, "%s is a module already", shown_text(path, c->arena));
                return NULL;
            }
        int file = add_module_file(c, path);
        return file < 0 ? NULL : expand_file(c->expander, parse_file(c->sources, file, c->arena, &c->diags));
    }
    diag *d = diag_add(&c->diags, E_NAME, n->name_range, "module `%s` has no file", n->text);
    diag_help(&c->diags, d, "write %s, or the module's items in { }", shown_text(module_path(c, n, 0), c->arena));
    return NULL;
}

/* ---- numbers from outside ---- */

/* The tree with another number for each constant and axis that is named. */
static void set_parameters(visa_compilation *c)
{
    for (size_t i = 0; i < c->options->parameter_count; i++) {
        const visa_parameter *p = &c->options->parameters[i];
        c->bindings[i] = (step_binding){p->name, p->values, p->count, NULL};
        if (p->count == 1)
            c->tree = ast_with_number(c->tree, p->name, p->values[0], c->arena, &c->is_set[i]);
    }
    c->binding_count = c->options->parameter_count;
}

/* ---- transformations of stream programs ---- */

static const step_pass *step_pass_named(const char *name, size_t bytes)
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

static void print_programs(const emit_context *e, const visa_compilation *c, strbuf *out);

static void run_step_pass(visa_compilation *c, const char *text)
{
    size_t bytes = strcspn(text, ":");
    step_pass_call call = {.pass = step_pass_named(text, bytes)};
    read_arguments(c, text + bytes + (text[bytes] == ':'), &call);
    for (size_t i = 0; i < c->programs->count; i++)
        if (!c->programs->graphs[i]->bad) {
            step_graph *made = step_pass_run(&call, c->programs->graphs[i]);
            c->programs->graphs[i]->bad = !made;
            c->programs->graphs[i] = made ? made : c->programs->graphs[i];
        }
    stop_clock(c, call.pass->name);
    if (c->diags.error_count > 0 || !is_printed(c, call.pass->name))
        return;
    strbuf_printf(&c->dumps, "// after %s: %s\n", call.pass->name, call.pass->summary);
    print_programs(&(emit_context){.arena = c->arena, .target = c->target, .line_of = compilation_line_of, .user = c}, c, &c->dumps);
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

/* What is no constant and no axis gives its number to a size of a stream program. */
static void check_parameters(visa_compilation *c)
{
    for (size_t i = 0; i < c->programs->count && c->binding_count > 0; i++)
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
        if (c->programs->count > 0)
            diag_help(&c->diags, d, "--emit=step-report lists the sizes of stream programs");
    }
}

/* What --kernel may name, when it names nothing of it. */
static void refuse_kernel(visa_compilation *c, const char *const *programs)
{
    const char **known = NULL;
    size_t count = 0, capacity = 0;
    for (size_t i = 0; i < c->module->left_out_count; i++)
        ARENA_PUSH(c->arena, known, count, capacity, c->module->left_out[i]);
    for (; *programs; programs++)
        ARENA_PUSH(c->arena, known, count, capacity, *programs);
    ARENA_PUSH(c->arena, known, count, capacity, NULL);
    choice_refuse_kernel(&c->diags, shown_text(source_name(c->sources, c->file->range.file), c->arena), c->options->kernel, known);
}

/* Those of a run; what was given by name comes first. */
static void read_sizes(visa_compilation *c)
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

static void begin_file(visa_compilation *c)
{
    diag_list_init(&c->write_diags, c->arena);
    c->writer = binary_writer_new(c->target, c->arena, &c->write_diags);
}

static void write_kernel(visa_compilation *c, const kernel *k, arena *scratch)
{
    emit_context e = {.arena = scratch, .target = c->target, .line_of = compilation_line_of, .user = c};
    binary_kernel b;
    emit_kernel(&e, k, &b);
    c->write_failed = c->write_failed || !binary_writer_kernel(c->writer, &b, scratch);
}

static bool is_ordered(const visa_compilation *c, const kernel *k)
{
    bool chosen = c->options->order == VISA_ORDER_FREE;
    for (size_t i = 0; i < k->op_count && c->options->order == VISA_ORDER_AUTO; i++)
        chosen = chosen || k->ops[i]->unplaced;
    return chosen && !c->options->editor && !c->is_book;
}

static void finish_kernel(void *user, kernel *k)
{
    visa_compilation *c = user;
    stop_clock(c, "sema");
    pass_context p = {
        .mappings = c->mappings, .arena = c->kernel_arena, .target = c->target, .diags = &c->diags, .places_all = c->options->places_all};
    pipeline_run(&p, k, after_pass, c);
    if (c->diags.error_count == 0 && is_ordered(c, k)) {
        emit_context e = {.target = c->target, .line_of = compilation_line_of, .user = c};
        kernel_order(&p, &e, k);
        stop_clock(c, "order");
    }
    if (c->has_programs)
        step_kernels_add(&c->kernels, k, c->arena);
    if (!c->binary_only)
        return;
    if (c->diags.error_count == 0 && !c->write_failed) /* else there will be no file */
        write_kernel(c, k, c->kernel_arena);
    kernel_forget(k);
    arena_rewind(c->kernel_arena, c->no_kernel);
    stop_clock(c, "write");
}

/* --kernel names a kernel or dataflow item, which is read alone, or a stream program, which may map any kernel of its file. */
void compilation_run_file(visa_compilation *c, int file)
{
    c->file = parse_file(c->sources, file, c->arena, &c->diags);
    c->syntax_errors = c->diags.error_count;
    stop_clock(c, "parse");
    if (c->options->parse_only)
        return;
    expand_begin(c->expander);
    c->tree = expand_file(c->expander, c->file);
    set_parameters(c);
    c->index = c->options->editor ? ARENA_NEW(c->arena, source_index) : NULL;
    const char *only = c->options->kernel;
    const char *const *programs = step_program_names(c->tree, c->arena);
    bool is_program = false;
    for (size_t i = 0; only && programs[i]; i++)
        is_program = is_program || strcmp(programs[i], only) == 0;
    c->has_programs = programs[0] != NULL;
    c->kernels = (step_kernels){0};
    c->kernel_arena = c->binary_only ? arena_new_inside(c->arena) : c->arena;
    c->no_kernel = arena_mark_here(c->kernel_arena);
    dialect release;
    bool one_release = c->options->dialect && dialect_by_name(c->options->dialect, &release);
    sema_options options = {.only = is_program ? NULL : only,
                            .dialect = one_release ? &release : NULL,
                            .load = c->options->modules ? load_module : NULL,
                            .user = c,
                            .index = c->index,
                            .done = finish_kernel,
                            .kernels = c->kernel_arena};
    begin_dumps(c);
    if (c->binary_only)
        begin_file(c);
    c->module = sema_module(c->tree, c->mappings, c->arena, &c->diags, &options);
    end_dumps(c);
    if (c->binary_only)
        arena_free(c->kernel_arena);
    stop_clock(c, "sema");
    c->programs = step_module_of(c->tree, only, &c->kernels, c->arena, &c->diags);
    for (size_t i = 0; i < c->options->step_pass_count; i++)
        run_step_pass(c, c->options->step_passes[i]);
    check_parameters(c);
    read_sizes(c);
    if (only && visa_kernel_count(c) + c->module->dataflow_count == 0 && c->diags.error_count == 0)
        refuse_kernel(c, programs);
    stop_clock(c, "stream programs");
}

size_t visa_kernel_count(const visa_compilation *c)
{
    return c->exhausted || !c->module ? 0 : c->module->count + c->programs->count;
}

static void run(visa_compilation *c, const char *name, const char *text, size_t bytes)
{
    start_clock(c);
    if (c->options->book) {
        compilation_run_book(c, name, text, bytes);
        return;
    }
    int file = source_map_add(c->sources, name, text, bytes);
    if (file < 0) {
        diag_add(&c->diags, E_LEX, SRC_NOWHERE, "%s is larger than %zu bytes", shown_text(name, c->arena), SOURCE_BYTES_MAX);
        return;
    }
    compilation_run_file(c, file);
    if (c->module && visa_kernel_count(c) + c->module->dataflow_count == 0 && c->diags.error_count == 0) {
        diag *d = diag_add(&c->diags, E_NO_KERNEL, (src_range){file, 0, 0}, "%s has no kernel", shown_text(name, c->arena));
        const ast *fn = NULL;
        for (uint32_t i = 0; c->file && i < c->file->kid_count && !fn; i++)
            fn = ast_is(c->file->kids[i], AST_FN) ? c->file->kids[i] : NULL;
        if (fn)
            diag_note(&c->diags, d, fn->name_range, "`%s` is none: it has neither #[device] nor tensors as parameters, or others call it",
                      fn->text);
        diag_help(&c->diags, d, "a kernel is a #[device(chip = 1)] function, or a function with tensor parameters");
    }
}

static void set_warnings(visa_compilation *c)
{
    c->diags.warnings.errors = c->options->warnings_are_errors;
    for (const char *const *w = c->options->warnings; w && *w; w++)
        warning_option(&c->diags.warnings, *w);
}

/* What was too much, and where. */
static void refuse_budget(visa_compilation *c, const budget *spent)
{
    unsigned long long steps = spent->steps, most_steps = spent->max_steps, bytes = spent->bytes, most_bytes = spent->max_bytes;
    diag *d;
    switch (spent->end) {
    case BUDGET_NESTING:
        d = diag_add(&c->diags, E_NESTING, spent->at, "calls, definitions and expressions nest more than %d levels deep here", NESTING_MAX);
        diag_help(&c->diags, d, "let functions call each other less deeply, or write out what the innermost definitions stand for");
        break;
    case BUDGET_STEPS:
        d = diag_add(&c->diags, E_BUDGET, spent->at, "this takes more than %llu steps of work; %llu bytes of memory are in use", most_steps,
                     bytes);
        diag_help(&c->diags, d,
                  "let an axis of Time count where a loop, a call or a constant is repeated, or raise the limit: --max-steps=%llu",
                  10 * most_steps);
        break;
    case BUDGET_BYTES:
        d = diag_add(&c->diags, E_BUDGET, spent->at, "this takes more than %llu bytes of memory, after %llu steps of work", most_bytes,
                     steps);
        diag_help(&c->diags, d, "let an axis of Time count where a loop or a call is repeated, or raise the limit: --max-bytes=%llu",
                  10 * most_bytes);
        break;
    default:
        d = diag_add(&c->diags, E_BUDGET, spent->at,
                     "given up after %llu milliseconds, %llu steps and %llu bytes: what is wrong behind this is not said",
                     (unsigned long long)c->max_milliseconds, steps, bytes);
        diag_help(&c->diags, d, "visac has no limit of time: it says all of it");
    }
}

/* What was being made may be half made: nothing but its diagnostics, its texts and its tree is looked at from here on. */
bool compilation_unwound(visa_compilation *c)
{
    const budget *account = c->exhausted ? NULL : arena_budget(c->arena);
    if (!account || account->end == BUDGET_MEMORY) {
        c->exhausted = true;
        return true;
    }
    budget spent = *account;
    budget_lift(c->arena);
    c->max_steps = c->max_bytes = UINT64_MAX;
    if (setjmp(*arena_guard(c->arena))) {
        c->exhausted = true;
        return true;
    }
    c->module = NULL;
    c->index = NULL;
    c->gave_up = spent.end != BUDGET_NESTING;
    c->diags.repeating = 0;
    refuse_budget(c, &spent);
    return true;
}

void compilation_ask(visa_compilation *c)
{
    budget_limit(c->arena, c->max_steps, c->max_bytes, c->max_milliseconds);
}

void visa_ask(visa_compilation *c, uint64_t max_steps, uint64_t max_milliseconds)
{
    if (c->exhausted)
        return;
    uint64_t spent = arena_budget(c->arena)->steps, most = max_steps ? max_steps : COMPILE_STEPS_MAX;
    c->max_steps = most < UINT64_MAX - spent ? spent + most : UINT64_MAX;
    c->max_milliseconds = max_milliseconds;
    budget_clock(c->arena);
}

uint64_t visa_steps(const visa_compilation *c)
{
    return arena_budget(c->arena)->steps;
}

bool visa_gave_up(const visa_compilation *c)
{
    return c->gave_up;
}

/* Everything that may run out of memory; c and the arena outlive the jump. */
static void guarded_run(visa_compilation *c, const char *name, const char *text, size_t bytes)
{
    diag_list_init(&c->diags, c->arena);
    if (COMPILATION_STOPS(c))
        return;
    set_warnings(c);
    c->sources = source_map_new(c->arena);
    c->expander = expander_new(c->sources, c->arena, &c->diags);
    c->mappings = mapping_context_new(c->arena);
    c->is_set = ARENA_ARRAY(c->arena, bool, c->options->parameter_count + 1);
    c->bindings = ARENA_ARRAY(c->arena, step_binding, c->options->parameter_count + 1);
    strbuf_init(&c->dumps, c->arena);
    strbuf_init(&c->verdicts, c->arena);
    run(c, name, text, bytes);
}

visa_compilation *visa_compile(const char *name, const char *text, size_t bytes, const visa_options *options)
{
    static const visa_options defaults;
    const visa_options *chosen = options ? options : &defaults;
    const target *t = target_by_name(chosen->target ? chosen->target : "rngd");
    if (!t || !knows_pass(chosen->print_after) || !knows_warnings(chosen->warnings))
        return NULL;
    for (size_t i = 0; i < chosen->step_pass_count; i++)
        if (!step_pass_named(chosen->step_passes[i], strcspn(chosen->step_passes[i], ":")))
            return NULL;
    visa_compilation *c = calloc(1, sizeof *c);
    arena *a = arena_new();
    if (!c || !a) {
        free(c);
        arena_free(a);
        return NULL;
    }
    *c = (visa_compilation){.arena = a,
                            .target = t,
                            .options = chosen,
                            .error_limit = chosen->error_limit,
                            .is_book = chosen->book,
                            .binary_only = chosen->binary_only,
                            .max_steps = chosen->max_steps ? chosen->max_steps : COMPILE_STEPS_MAX,
                            .max_bytes = chosen->max_bytes ? chosen->max_bytes : COMPILE_BYTES_MAX,
                            .max_milliseconds = chosen->max_milliseconds};
    guarded_run(c, name, text, bytes);
    c->options = &defaults; /* the caller's need not outlive the call */
    return c;
}

void visa_free(visa_compilation *c)
{
    if (!c)
        return;
    arena_free(c->arena);
    free(c);
}

size_t visa_error_count(const visa_compilation *c)
{
    return c->exhausted ? 1 : c->diags.error_count;
}

const char *visa_module_file(const visa_compilation *c, size_t i)
{
    return i < c->module_file_count ? c->module_files[i] : NULL;
}

void visa_add_error(visa_compilation *c, const char *id, const char *message, const char *const *notes, size_t note_count, const char *help)
{
    if (c->exhausted || setjmp(*arena_guard(c->arena)))
        return;
    diag *d = diag_add(&c->diags, diag_id_by_name(id), SRC_NOWHERE, "%s", message);
    for (size_t i = 0; i < note_count; i++)
        diag_note(&c->diags, d, SRC_NOWHERE, "%s", notes[i]);
    if (help)
        diag_help(&c->diags, d, "%s", help);
}

bool visa_has_system_fault(const visa_compilation *c)
{
    bool found = c->exhausted;
    for (size_t i = 0; !found && i < c->diags.count; i++)
        found = c->diags.items[i]->id == E_FILE_READ || c->diags.items[i]->id == E_FILE_WRITE;
    return found;
}

size_t visa_warning_count(const visa_compilation *c)
{
    return c->exhausted ? 0 : c->diags.count - c->diags.error_count;
}

/* The list as far as the limit lets it be shown, and after it how much is missing. */
static void limit_diagnostics(visa_compilation *c)
{
    size_t errors = 0, end = 0;
    c->said = c->diags;
    c->said_count = c->diags.count;
    while (end < c->said.count && (errors < c->error_limit || c->said.items[end]->severity != DIAG_ERROR))
        errors += c->said.items[end++]->severity == DIAG_ERROR;
    if (c->error_limit == 0 || end == c->said.count)
        return;
    diag_list_init(&c->said, c->arena);
    for (size_t i = 0; i < end; i++)
        ARENA_PUSH(c->arena, c->said.items, c->said.count, c->said.capacity, c->diags.items[i]);
    diag *d = diag_add(&c->said, E_ERROR_LIMIT, SRC_NOWHERE, "%zu of %zu errors are shown", errors, c->diags.error_count);
    diag_help(&c->said, d, "-ferror-limit=0 shows all of them");
}

const diag_list *compilation_said(visa_compilation *c)
{
    if (c->said_count == c->diags.count && c->said_count > 0)
        return &c->said;
    expand_settle(c->expander, &c->diags);
    diag_list_sort(&c->diags);
    limit_diagnostics(c);
    return &c->said;
}

const char *visa_diagnostics(visa_compilation *c, visa_diagnostics_format format)
{
    if (c->exhausted || (budget_lift(c->arena), setjmp(*arena_guard(c->arena)))) /* the limits are not for saying what went wrong */
        return out_of_memory_text;
    const diag_list *said = compilation_said(c);
    if (format == VISA_DIAGNOSTICS_JSON)
        return render_json(said, c->sources, c->arena);
    if (format == VISA_DIAGNOSTICS_SARIF)
        return render_sarif(said, c->sources, VISA_VERSION, c->arena);
    return render_text(said, c->sources, format == VISA_DIAGNOSTICS_COLOUR, c->arena);
}

uint32_t compilation_line_of(void *user, src_range range)
{
    const visa_compilation *c = user;
    src_range call;
    range = expand_place(c->expander, range, &call);
    return range.file < 0 ? 0 : source_locate(c->sources, range.file, range.begin).line;
}

static bool emit_text(const char *text, const unsigned char **data, size_t *size)
{
    *data = (const unsigned char *)text;
    *size = text ? strlen(text) : 0;
    return text != NULL;
}

/* Of kernels that are there still, and what stands after kernels. */
static bool write_rest(visa_compilation *c)
{
    arena *scratch = arena_new_inside(c->arena);
    emit_context e = {.arena = scratch, .target = c->target, .line_of = compilation_line_of, .user = c};
    arena_mark empty = arena_mark_here(scratch);
    if (!c->binary_only)
        begin_file(c);
    for (size_t i = 0; i < c->module->count && !c->binary_only && !c->write_failed; i++) {
        write_kernel(c, c->module->kernels[i], scratch);
        arena_rewind(scratch, empty);
    }
    for (size_t i = 0; i < c->programs->count && !c->write_failed; i++)
        c->write_failed = !binary_writer_program(c->writer, step_emit(&e, c->programs->graphs[i]), scratch);
    arena_free(scratch);
    return !c->write_failed;
}

/* The same bytes however often they are asked for. */
static bool write_file(visa_compilation *c, const unsigned char **data, size_t *size)
{
    if (!c->image && (!write_rest(c) || !binary_writer_finish(c->writer, &c->image, &c->image_bytes))) {
        diag_list_append(&c->diags, &c->write_diags);
        return false;
    }
    *data = c->image;
    *size = c->image_bytes;
    return true;
}

static void print_programs(const emit_context *e, const visa_compilation *c, strbuf *out)
{
    for (size_t i = 0; i < c->programs->count; i++) {
        strbuf_puts(out, i > 0 || c->module->count > 0 ? "\n" : "");
        step_program_print(step_emit(e, c->programs->graphs[i]), out);
    }
}

bool visa_emit(visa_compilation *c, visa_emit_kind kind, const unsigned char **data, size_t *size)
{
    if (COMPILATION_STOPS(c))
        return false;
    if (c->is_book)
        return false;
    if (kind == VISA_EMIT_AST)
        return c->file && emit_text(ast_text(c->file, c->arena), data, size);
    if (c->diags.error_count > 0 || !c->module || (c->binary_only && kind != VISA_EMIT_BINARY))
        return false;
    emit_context e = {.arena = c->arena, .target = c->target, .line_of = compilation_line_of, .user = c};
    step_cost_report report = {c->programs->graphs, c->programs->count, c->bindings, c->binding_count};
    strbuf text;
    switch (kind) {
    case VISA_EMIT_TABLES:
        strbuf_init(&text, c->arena);
        strbuf_puts(&text, tables_text(&e, c->module));
        for (size_t i = 0; i < c->programs->count; i++)
            strbuf_printf(&text, "%sstream program %s: --emit=ir has its graph, --emit=step-report its costs\n",
                          i > 0 || c->module->count > 0 ? "\n" : "", c->programs->graphs[i]->name);
        return emit_text(text.text, data, size);
    case VISA_EMIT_JSON: return emit_text(tables_json(&e, c->module), data, size);
    case VISA_EMIT_IR:
        strbuf_init(&text, c->arena);
        module_print(c->module, &text);
        print_programs(&e, c, &text);
        return emit_text(text.text, data, size);
    case VISA_EMIT_MEMORY: return emit_text(memory_text(&e, c->module), data, size);
    case VISA_EMIT_MEMORY_JSON: return emit_text(memory_json(&e, c->module), data, size);
    case VISA_EMIT_MEMORY_SVG: return emit_text(memory_svg(&e, c->module), data, size);
    case VISA_EMIT_ORDER: return emit_text(order_text(&e, c->module), data, size);
    case VISA_EMIT_STEP_REPORT: return emit_text(step_cost_text(&e, &report), data, size);
    case VISA_EMIT_STEP_JSON: return emit_text(step_cost_json(&e, &report), data, size);
    default: return write_file(c, data, size);
    }
}

bool visa_format(visa_compilation *c, const char **data, size_t *size)
{
    if (COMPILATION_STOPS(c) || !c->file || c->syntax_errors > 0)
        return false;
    strbuf text;
    strbuf_init(&text, c->arena);
    format_file(c->sources, c->file, &text);
    *data = text.text;
    *size = text.bytes;
    return true;
}

bool visa_draw(visa_compilation *c, const char *what, const unsigned char **data, size_t *size)
{
    if (COMPILATION_STOPS(c) || c->diags.error_count > 0 || c->is_book || c->binary_only || !c->module)
        return false;
    emit_context e = {.arena = c->arena, .target = c->target, .line_of = compilation_line_of, .user = c};
    return emit_text(draw_svg(&e, c->module, what, &c->diags), data, size);
}

bool visa_pictures(visa_compilation *c, const char *name, const unsigned char **data, size_t *size)
{
    if (COMPILATION_STOPS(c) || c->diags.error_count > 0 || c->is_book || c->binary_only || !c->module)
        return false;
    emit_context e = {.arena = c->arena, .target = c->target, .line_of = compilation_line_of, .user = c};
    for (size_t i = 0; i < c->module->count; i++)
        if (strcmp(c->module->kernels[i]->name, name) == 0)
            return emit_text(draw_kernel(&e, c->module->kernels[i]), data, size);
    return false;
}

const char *visa_verdicts(const visa_compilation *c)
{
    return c->exhausted ? "" : c->verdicts.text;
}

const char *visa_pass_dumps(const visa_compilation *c)
{
    return c->exhausted ? "" : c->dumps.text;
}

const char *visa_time_report(visa_compilation *c)
{
    if (c->exhausted || (budget_lift(c->arena), setjmp(*arena_guard(c->arena))))
        return "";
    strbuf text;
    strbuf_init(&text, c->arena);
    for (size_t i = 0; i < c->time_count; i++)
        strbuf_printf(&text, "%10.1f us  %s\n", c->times[i].us, c->times[i].what);
    if (c->time_count > 0) {
        const budget *spent = arena_budget(c->arena);
        strbuf_printf(&text, "%10" PRIu64 " steps\n%10" PRIu64 " bytes\n", spent->steps, spent->bytes);
    }
    return text.text;
}

const char *visa_explain(const char *id, const char **title)
{
    diag_id found = diag_id_by_name(id);
    if (found == DIAG_ID_COUNT)
        return NULL;
    if (title)
        *title = diag_row_of(found)->title;
    return diag_row_of(found)->explanation;
}

const char *visa_dialect_name(size_t i)
{
    return i < DIALECT_COUNT ? dialect_name((dialect)i) : NULL;
}

bool visa_knows_dialect(const char *name)
{
    dialect d;
    return dialect_by_name(name, &d);
}

const char *visa_target_name(size_t i)
{
    return target_name(i);
}

const char *visa_step_pass_name(size_t i, const char **summary, const char **parameters)
{
    for (size_t k = 0; k <= i; k++)
        if (!step_passes[k].name)
            return NULL;
    *summary = step_passes[i].summary;
    *parameters = step_passes[i].parameters;
    return step_passes[i].name;
}

const char *visa_pass_name(size_t i, const char **summary)
{
    for (size_t k = 0; k <= i; k++)
        if (!pipeline[k].name)
            return NULL;
    if (summary)
        *summary = pipeline[i].summary;
    return pipeline[i].name;
}

const char *visa_version(void)
{
    return VISA_VERSION;
}
