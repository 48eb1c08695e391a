/* include/visa.h: the stages of a compilation, one after the other. */
#include <stdlib.h>
#include <string.h>

#include "frontend/parse.h"
#include "frontend/sema.h"
#include "libvisa/compilation.h"
#include "libvisa/jobs.h"
#include "libvisa/order.h"
#include "libvisa/recall.h"
#include "libvisa/step/kernels.h"
#include "passes/step/rewrite.h"
#include "support/budget.h"
#include "support/choice.h"
#include "support/shown.h"
#include "support/warning.h"

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

static bool knows_warnings(const char *const *options)
{
    for (; options && *options; options++)
        if (!visa_knows_warning(*options))
            return false;
    return true;
}

static bool knows_names(const visa_options *o)
{
    bool known = knows_pass(o->print_after) && knows_warnings(o->warnings);
    for (size_t i = 0; i < o->step_pass_count && known; i++)
        known = compilation_step_pass(o->step_passes[i], strcspn(o->step_passes[i], ":")) != NULL;
    return known;
}

const ast *compilation_set_parameters(visa_compilation *c, const ast *tree)
{
    for (size_t i = 0; i < c->options->parameter_count; i++) {
        const visa_parameter *p = &c->options->parameters[i];
        c->bindings[i] = (step_binding){p->name, p->values, p->count, NULL};
        if (p->count == 1)
            tree = ast_with_number(tree, p->name, p->values[0], c->arena, &c->is_set[i]);
    }
    c->binding_count = c->options->parameter_count;
    return tree;
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

static bool is_ordered(const visa_compilation *c, const kernel *k)
{
    bool chosen = c->options->order == VISA_ORDER_FREE;
    for (size_t i = 0; i < k->op_count && c->options->order == VISA_ORDER_AUTO; i++)
        chosen = chosen || k->ops[i]->unplaced;
    return chosen && !c->options->editor && !c->is_book;
}

/* Costs that are known when a kernel is ordered, and where its own are kept. Keeping them takes no steps, so that a kernel takes as many
 * whatever was there before it. */
static known_costs *costs_before(visa_compilation *c)
{
    if (!c->costs) {
        budget *account = arena_budget(c->arena);
        uint64_t steps = account->steps;
        c->costs = known_costs_new(c->target, arena_new_inside(c->arena));
        account->steps = steps;
    }
    known_costs_begin(c->costs);
    return c->costs;
}

void compilation_finish_kernel(void *user, kernel *k)
{
    visa_compilation *c = user;
    compilation_took(c, "sema");
    pass_context p = {.mappings = c->mappings,
                      .arena = c->kernel_arena,
                      .target = c->target,
                      .diags = &c->diags,
                      .places_all = c->options->places_all,
                      .keeps_order = c->options->order == VISA_ORDER_SOURCE};
    pipeline_run(&p, k, compilation_after_pass, c);
    const binary_kernel *emitted = NULL;
    if (c->diags.error_count == 0 && is_ordered(c, k)) {
        emit_context e = {.arena = c->binary_only ? c->kernel_arena : NULL, .target = c->target, .line_of = compilation_line_of, .user = c};
        emitted = kernel_order(&p, &e, costs_before(c), k);
        compilation_took(c, "order");
    }
    if (c->has_programs) {
        arena *scratch = arena_new_inside(c->arena);
        emit_context e = {.arena = scratch, .target = c->target, .line_of = compilation_line_of, .user = c};
        step_kernels_add(&c->kernels, k, c->diags.error_count == 0 ? &e : NULL, c->arena);
        arena_free(scratch);
    }
    if (c->recall)
        recall_keep(c, k);
    if (!c->binary_only)
        return;
    if (c->diags.error_count == 0 && !c->write_failed) /* else there will be no file */
        compilation_write_kernel(c, k, emitted, c->kernel_arena);
    kernel_forget(k);
    arena_rewind(c->kernel_arena, c->no_kernel);
    compilation_took(c, "write");
}

/* What visa_compile_again goes back to. The compilation goes on with copies of its diagnostics: it adds notes to them, and leads their
 * places back to where macros were called. */
static void keep(visa_compilation *c)
{
    compilation_read *r = ARENA_NEW(c->arena, compilation_read);
    c->read = r;
    r->sources = source_map_keep(c->sources);
    r->expander = expand_keep(c->expander);
    r->as_read = *c;
    r->steps = arena_budget(c->arena)->steps;
    r->end = arena_mark_here(c->arena);
}

/* The text becomes a tree, which is the same whatever the parameters. False: nobody asks for more. */
static bool read_text(visa_compilation *c, int file)
{
    c->file = jobs_parse(c, file);
    if (!c->file)
        c->file = parse_file(c->sources, file, c->arena, &c->diags);
    c->syntax_errors = c->diags.error_count;
    c->diags_parsed = c->diags.count;
    compilation_took(c, "parse");
    if (c->options->parse_only && c->options->modules)
        compilation_name_modules(c);
    if (c->options->parse_only || (c->recall && !recall_follows(c)))
        return false;
    expand_begin(c->expander);
    c->tree = expand_file(c->expander, c->file);
    const sema_survey *of_parts = c->tree == c->file && !c->recall ? jobs_survey(c) : NULL;
    c->survey = of_parts ? of_parts : sema_survey_of(c->tree, c->recall ? recall_dialects(c->recall) : 0, c->arena);
    if (c->options->again && !c->recall && !c->is_book)
        keep(c);
    return true;
}

/* Beyond what is read of the text this is kept for visa_compile_again, in an arena of its own in front of where that goes back to. */
static known_costs *kept_costs(visa_compilation *c)
{
    enum { MOST_COSTS = 1 << 12 };
    compilation_read *r = c->read;
    budget *account = arena_budget(c->arena);
    uint64_t steps = account->steps;
    if (!r->costs_arena) {
        r->costs_arena = arena_new_inside(c->arena);
        r->costs = NULL;
        r->no_costs = arena_mark_here(r->costs_arena);
        r->end = arena_mark_here(c->arena);
    }
    if (r->costs && known_costs_count(r->costs) > MOST_COSTS) {
        arena_rewind(r->costs_arena, r->no_costs);
        r->costs = NULL;
    }
    if (!r->costs)
        r->costs = known_costs_new(c->target, r->costs_arena);
    account->steps = steps;
    return r->costs;
}

/* --kernel names a kernel or dataflow item, which is read alone, or a stream program, which may map any kernel of its file. */
static void compile_tree(visa_compilation *c)
{
    if (c->read) {
        c->costs = kept_costs(c);
        c->diags = diag_list_copy(&c->diags);
    }
    c->mappings = mapping_context_new(c->arena);
    c->is_set = ARENA_ARRAY(c->arena, bool, c->options->parameter_count + 1);
    c->bindings = ARENA_ARRAY(c->arena, step_binding, c->options->parameter_count + 1);
    c->tree = compilation_set_parameters(c, c->tree);
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
    size_t called_count = 0;
    const char *const *called = c->recall ? recall_called(c, &called_count) : NULL;
    sema_options options = {.only = is_program ? NULL : only,
                            .dialect = one_release ? &release : NULL,
                            .load = c->options->modules ? compilation_load_module : NULL,
                            .user = c,
                            .index = c->index,
                            .done = compilation_finish_kernel,
                            .passes_over = c->recall ? recall_passes_over : NULL,
                            .called = called,
                            .called_count = called_count,
                            .survey = c->survey,
                            .kernels = c->kernel_arena};
    if (!jobs_run(c, &options)) {
        compilation_begin_dumps(c);
        if (c->binary_only)
            compilation_begin_file(c);
        c->module = sema_module(c->tree, c->mappings, c->arena, &c->diags, &options);
        if (c->recall)
            recall_add(c);
        compilation_end_dumps(c);
    }
    if (c->binary_only)
        arena_free(c->kernel_arena);
    compilation_took(c, "sema");
    const step_given given = {c->options->step_compute_tile, c->options->step_onchip_bytes};
    c->programs = step_module_of(c->tree, only, &c->kernels, &given, c->arena, &c->diags);
    for (size_t i = 0; i < c->options->step_pass_count; i++)
        compilation_run_step_pass(c, c->options->step_passes[i]);
    compilation_check_parameters(c);
    compilation_read_sizes(c);
    if (only && visa_kernel_count(c) + c->module->dataflow_count == 0 && c->diags.error_count == 0)
        refuse_kernel(c, programs);
    compilation_took(c, "stream programs");
}

void compilation_run_file(visa_compilation *c, int file)
{
    if (read_text(c, file))
        compile_tree(c);
}

size_t visa_kernel_count(const visa_compilation *c)
{
    return c->exhausted || !c->module ? 0 : c->module->count + c->programs->count;
}

size_t visa_program_count(const visa_compilation *c)
{
    return c->exhausted || !c->module ? 0 : c->programs->count;
}

size_t visa_item_count(const visa_compilation *c)
{
    return c->exhausted || !c->module ? 0 : c->module->dataflow_count;
}

static bool is_markdown(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (strcmp(dot, ".md") == 0 || strcmp(dot, ".markdown") == 0);
}

/* A chapter of a book that nobody called one. */
static void help_book(visa_compilation *c, const char *name)
{
    for (size_t i = 0; i < c->diags_parsed && is_markdown(name); i++)
        if (c->diags.items[i]->severity == DIAG_ERROR && c->diags.items[i]->edit_count == 0) {
            diag_help(&c->diags, c->diags.items[i], "visac --from-markdown compiles the ```rust blocks of a chapter");
            return;
        }
}

/* There is nothing to compile. */
static void refuse_empty(visa_compilation *c, const char *name)
{
    if (!c->module || visa_kernel_count(c) + c->module->dataflow_count + c->blank_count > 0 || c->diags.error_count > 0)
        return;
    diag *d = diag_add(&c->diags, E_NO_KERNEL, (src_range){c->file->range.file, 0, 0}, "%s has no kernel", shown_text(name, c->arena));
    const diag *generic = NULL;
    for (size_t i = 0; i < c->diags.count && !generic; i++)
        generic = c->diags.items[i]->id == W_GENERIC ? c->diags.items[i] : NULL;
    if (generic && generic->help) {
        diag_note(&c->diags, d, generic->range, "this one has parameters, and needs their values");
        diag_help(&c->diags, d, "%s", generic->help);
        return;
    }
    const ast *fn = NULL;
    for (uint32_t i = 0; i < c->file->kid_count && !fn; i++)
        fn = ast_is(c->file->kids[i], AST_FN) ? c->file->kids[i] : NULL;
    if (fn)
        diag_note(&c->diags, d, fn->name_range, "`%s` is none: it has neither #[device] nor tensors as parameters, or others call it",
                  fn->text);
    diag_help(&c->diags, d, "a kernel is a #[device(chip = 1)] function, or a function with tensor parameters");
}

static void run(visa_compilation *c, const char *name, const char *text, size_t bytes)
{
    compilation_clock(c);
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
    help_book(c, name);
    refuse_empty(c, name);
}

static void set_warnings(visa_compilation *c)
{
    c->diags.warnings.errors = c->options->warnings_are_errors;
    for (const char *const *w = c->options->warnings; w && *w; w++)
        warning_option(&c->diags.warnings, *w);
}

/* What every text needs, before the first one is read and before anything is limited: a limit that is reached is reported with these. */
static bool begin(visa_compilation *c)
{
    if (setjmp(*arena_guard(c->arena)))
        return false;
    diag_list_init(&c->diags, c->arena);
    set_warnings(c);
    c->sources = source_map_new(c->arena);
    c->expander = expander_new(c->sources, c->arena, &c->diags);
    strbuf_init(&c->dumps, c->arena);
    strbuf_init(&c->verdicts, c->arena);
    return true;
}

/* Everything that may run out of memory; c and the arena outlive the jump. */
static void guarded_run(visa_compilation *c, const char *name, const char *text, size_t bytes)
{
    if (COMPILATION_STOPS(c))
        return;
    run(c, name, text, bytes);
}

static void set_options(visa_compilation *c, const visa_options *chosen)
{
    c->options = chosen;
    c->error_limit = chosen->error_limit;
    c->is_book = chosen->book;
    c->binary_only = chosen->binary_only;
    c->max_steps = chosen->max_steps ? chosen->max_steps : COMPILE_STEPS_MAX;
    c->max_bytes = chosen->max_bytes ? chosen->max_bytes : COMPILE_BYTES_MAX;
    c->max_milliseconds = chosen->max_milliseconds;
}

visa_compilation *compilation_new(const visa_options *chosen)
{
    const target *t = target_by_name(chosen->target ? chosen->target : "rngd");
    visa_compilation *c = calloc(1, sizeof *c);
    arena *a = arena_new();
    if (!t || !c || !a) {
        free(c);
        arena_free(a);
        return NULL;
    }
    *c = (visa_compilation){.arena = a, .target = t};
    set_options(c, chosen);
    if (begin(c))
        return c;
    visa_free(c);
    return NULL;
}

visa_compilation *compilation_compile(const char *name, const char *text, size_t bytes, const visa_options *options, visa_recall *recall)
{
    static const visa_options defaults;
    const visa_options *chosen = options ? options : &defaults;
    if (!knows_names(chosen))
        return NULL;
    visa_compilation *c = compilation_new(chosen);
    if (!c)
        return NULL;
    c->recall = recall;
    if (recall)
        recall_attend(recall, c->arena);
    guarded_run(c, name, text, bytes);
    c->options = &defaults; /* the caller's need not outlive the call */
    return c;
}

static void guarded_again(visa_compilation *c)
{
    if (COMPILATION_STOPS(c))
        return;
    compilation_clock(c);
    compile_tree(c);
    help_book(c, source_name(c->sources, c->file->range.file));
    refuse_empty(c, source_name(c->sources, c->file->range.file));
}

bool visa_compile_again(visa_compilation *c, const visa_options *options)
{
    static const visa_options defaults;
    const compilation_read *r = c->read;
    if (!r || target_by_name(options->target ? options->target : "rngd") != c->target || options->book || options->editor ||
        options->parse_only || !knows_names(options))
        return false;
    arena_rewind(c->arena, r->end);
    *c = r->as_read;
    source_map_restore(c->sources, r->sources);
    expand_restore(c->expander, r->expander);
    set_options(c, options);
    budget_restart(c->arena, r->steps);
    guarded_again(c);
    c->options = &defaults;
    return true;
}

visa_compilation *visa_compile(const char *name, const char *text, size_t bytes, const visa_options *options)
{
    return compilation_compile(name, text, bytes, options, NULL);
}

void visa_free(visa_compilation *c)
{
    if (!c)
        return;
    jobs_free(c->jobs);
    arena_free(c->arena);
    free(c);
}

const char *visa_module_file(const visa_compilation *c, size_t i)
{
    return i < c->module_file_count ? c->module_files[i] : NULL;
}

const char *visa_verdicts(const visa_compilation *c)
{
    return c->exhausted ? "" : c->verdicts.text;
}
