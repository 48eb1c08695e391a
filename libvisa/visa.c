/* include/visa.h: the stages of a compilation, one after the other. */
#include "include/visa.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/container.h"
#include "codegen/draw.h"
#include "codegen/emit.h"
#include "codegen/step_emit.h"
#include "codegen/tables.h"
#include "frontend/parse.h"
#include "frontend/render.h"
#include "frontend/sema.h"
#include "frontend/step/program.h"
#include "ir/print.h"
#include "libvisa/compilation.h"
#include "passes/pass.h"
#include "support/file.h"
#include "support/warning.h"

static const char out_of_memory_text[] = "error: out of memory\n";

static void start_clock(visa_compilation *c)
{
    clock_gettime(CLOCK_MONOTONIC, &c->clock);
}

static void stop_clock(visa_compilation *c, const char *what)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double us = (double)(now.tv_sec - c->clock.tv_sec) * 1e6 + (double)(now.tv_nsec - c->clock.tv_nsec) / 1e3;
    if (c->options->time_report)
        strbuf_printf(&c->times, "%10.1f us  %s\n", us, what);
    c->clock = now;
}

static void after_pass(void *user, const pass *done, const module *m)
{
    visa_compilation *c = user;
    stop_clock(c, done->name);
    if (!c->options->print_after || (strcmp(c->options->print_after, "all") != 0 && strcmp(c->options->print_after, done->name) != 0))
        return;
    strbuf_printf(&c->dumps, "// after %s: %s\n", done->name, done->summary);
    module_print(m, &c->dumps);
}

static bool knows_pass(const char *name)
{
    if (!name || strcmp(name, "all") == 0)
        return true;
    for (size_t i = 0; pipeline[i].name; i++)
        if (strcmp(pipeline[i].name, name) == 0)
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

static const ast *load_module(void *user, const ast *n)
{
    visa_compilation *c = user;
    for (int i = 0; i < 8; i++) {
        const char *path = module_path(c, n, i);
        if (!path || access(path, R_OK) != 0)
            continue;
        for (int f = 0; f < source_map_count(c->sources); f++)
            if (strcmp(source_name(c->sources, f), path) == 0) {
                diag_add(&c->diags, E_DUPLICATE, n->name_range, "%s is a module already", path);
                return NULL;
            }
        size_t bytes;
        unsigned char *text = file_read_all(path, &bytes, &c->diags);
        int file = text ? source_map_add(c->sources, path, (const char *)text, bytes) : -1;
        free(text);
        return file < 0 ? NULL : parse_file(c->sources, file, c->arena, &c->diags);
    }
    diag *d = diag_add(&c->diags, E_NAME, n->name_range, "module `%s` has no file", n->text);
    diag_help(&c->diags, d, "write %s, or the module's items in { }", module_path(c, n, 0));
    return NULL;
}

static bool knows_kernel(void *user, const char *name, int64_t *cycles)
{
    const visa_compilation *c = user;
    *cycles = 0;
    for (size_t i = 0; i < c->module->count; i++)
        if (strcmp(c->module->kernels[i]->name, name) == 0)
            return true;
    return false;
}

/* The tree with another number for a constant or an axis. */
static void set_parameter(visa_compilation *c, const visa_parameter *p)
{
    bool found = false;
    c->file = ast_with_number(c->file, p->name, p->value, c->arena, &found);
    if (!found)
        diag_add(&c->diags, E_NAME, SRC_NOWHERE, "there is no constant and no axis `%s` to set", p->name);
}

void compilation_run_file(visa_compilation *c, int file)
{
    c->file = parse_file(c->sources, file, c->arena, &c->diags);
    stop_clock(c, "parse");
    for (size_t i = 0; i < c->options->parameter_count; i++)
        set_parameter(c, &c->options->parameters[i]);
    sema_options options = {.only = c->options->kernel, .load = c->options->modules ? load_module : NULL, .user = c};
    c->module = sema_module(c->file, c->mappings, c->arena, &c->diags, &options);
    stop_clock(c, "sema");
    c->programs = step_module_of(c->file, c->arena, &c->diags, &(step_options){.kernel = knows_kernel, .user = c});
    stop_clock(c, "stream programs");
    pass_context p = {.mappings = c->mappings, .arena = c->arena, .target = c->target, .diags = &c->diags};
    pipeline_run(&p, c->module, after_pass, c);
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
        diag_add(&c->diags, E_LEX, SRC_NOWHERE, "%s is larger than %zu bytes", name, SOURCE_BYTES_MAX);
        return;
    }
    compilation_run_file(c, file);
    if (visa_kernel_count(c) + c->module->dataflow_count == 0 && c->diags.error_count == 0) {
        diag *d = diag_add(&c->diags, E_NO_KERNEL, (src_range){file, 0, 0}, "%s has no kernel", name);
        diag_help(&c->diags, d, "a kernel is a function with tensor parameters");
    }
}

static void set_warnings(visa_compilation *c)
{
    c->diags.warnings.errors = c->options->warnings_are_errors;
    for (const char *const *w = c->options->warnings; w && *w; w++)
        warning_option(&c->diags.warnings, *w);
}

/* Everything that may run out of memory; c and the arena outlive the jump. */
static void guarded_run(visa_compilation *c, const char *name, const char *text, size_t bytes)
{
    if (setjmp(*arena_guard(c->arena))) {
        c->exhausted = true;
        return;
    }
    diag_list_init(&c->diags, c->arena);
    set_warnings(c);
    c->sources = source_map_new(c->arena);
    c->mappings = mapping_context_new(c->arena);
    strbuf_init(&c->dumps, c->arena);
    strbuf_init(&c->times, c->arena);
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
    visa_compilation *c = calloc(1, sizeof *c);
    arena *a = arena_new();
    if (!c || !a) {
        free(c);
        arena_free(a);
        return NULL;
    }
    *c = (visa_compilation){.arena = a, .target = t, .options = chosen, .error_limit = chosen->error_limit, .is_book = chosen->book};
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

size_t visa_warning_count(const visa_compilation *c)
{
    return c->exhausted ? 0 : c->diags.count - c->diags.error_count;
}

/* The list as far as the limit lets it be said, and behind it how much is missing. */
static diag_list said_diagnostics(const visa_compilation *c)
{
    diag_list said = c->diags;
    size_t errors = 0, end = 0;
    while (end < said.count && (errors < c->error_limit || said.items[end]->severity != DIAG_ERROR))
        errors += said.items[end++]->severity == DIAG_ERROR;
    if (c->error_limit == 0 || end == said.count)
        return said;
    diag_list_init(&said, c->arena);
    for (size_t i = 0; i < end; i++)
        ARENA_PUSH(c->arena, said.items, said.count, said.capacity, c->diags.items[i]);
    diag *d = diag_add(&said, E_ERROR_LIMIT, SRC_NOWHERE, "%zu of %zu errors are shown", errors, c->diags.error_count);
    diag_help(&said, d, "-ferror-limit=0 shows all of them");
    return said;
}

const char *visa_diagnostics(visa_compilation *c, visa_diagnostics_format format)
{
    if (c->exhausted || setjmp(*arena_guard(c->arena)))
        return out_of_memory_text;
    diag_list_sort(&c->diags);
    diag_list said = said_diagnostics(c);
    if (format == VISA_DIAGNOSTICS_JSON)
        return render_json(&said, c->sources, c->arena);
    if (format == VISA_DIAGNOSTICS_SARIF)
        return render_sarif(&said, c->sources, VISA_VERSION, c->arena);
    return render_text(&said, c->sources, format == VISA_DIAGNOSTICS_COLOUR, c->arena);
}

static uint32_t line_of(void *user, src_range range)
{
    const visa_compilation *c = user;
    return range.file < 0 ? 0 : source_locate(c->sources, range.file, range.begin).line;
}

static bool emit_text(const char *text, const unsigned char **data, size_t *size)
{
    *data = (const unsigned char *)text;
    *size = text ? strlen(text) : 0;
    return text != NULL;
}

static void emit_programs(const emit_context *e, const visa_compilation *c, binary *b)
{
    step_program *programs = ARENA_ARRAY(e->arena, step_program, c->programs->count + 1);
    for (size_t i = 0; i < c->programs->count; i++)
        programs[i] = *step_emit(e, c->programs->graphs[i]);
    b->programs = programs;
    b->program_count = c->programs->count;
}

bool visa_emit(visa_compilation *c, visa_emit_kind kind, const unsigned char **data, size_t *size)
{
    if (c->exhausted || setjmp(*arena_guard(c->arena)))
        return false;
    if (c->is_book)
        return false;
    if (kind == VISA_EMIT_AST)
        return c->file && emit_text(ast_text(c->file, c->arena), data, size);
    if (c->diags.error_count > 0)
        return false;
    emit_context e = {.arena = c->arena, .target = c->target, .line_of = line_of, .user = c};
    strbuf text;
    binary b;
    switch (kind) {
    case VISA_EMIT_TABLES:
        return emit_text(tables_text(&e, c->module), data, size);
    case VISA_EMIT_JSON:
        return emit_text(tables_json(&e, c->module), data, size);
    case VISA_EMIT_IR:
        strbuf_init(&text, c->arena);
        module_print(c->module, &text);
        return emit_text(text.text, data, size);
    default:
        emit_binary(&e, c->module, &b);
        emit_programs(&e, c, &b);
        return binary_write(&b, c->arena, &c->diags, data, size);
    }
}

bool visa_draw(visa_compilation *c, const char *what, const unsigned char **data, size_t *size)
{
    if (c->exhausted || setjmp(*arena_guard(c->arena)) || c->diags.error_count > 0 || c->is_book)
        return false;
    emit_context e = {.arena = c->arena, .target = c->target, .line_of = line_of, .user = c};
    return emit_text(draw_svg(&e, c->module, what, &c->diags), data, size);
}

bool visa_pictures(visa_compilation *c, const char *name, const unsigned char **data, size_t *size)
{
    if (c->exhausted || setjmp(*arena_guard(c->arena)) || c->diags.error_count > 0 || c->is_book)
        return false;
    emit_context e = {.arena = c->arena, .target = c->target, .line_of = line_of, .user = c};
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

const char *visa_time_report(const visa_compilation *c)
{
    return c->exhausted ? "" : c->times.text;
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

const char *visa_target_name(size_t i)
{
    return target_name(i);
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
