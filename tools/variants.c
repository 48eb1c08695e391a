#include "tools/variants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/step/diff.h"
#include "runtime/step/sweep.h"
#include "runtime/timing/kernel_diff.h"
#include "support/budget.h"
#include "support/file.h"
#include "support/shown.h"
#include "support/strbuf.h"
#include "tools/options.h"

static uint64_t steps_of(const variants *v)
{
    return v->options.max_steps ? v->options.max_steps : COMPILE_STEPS_MAX;
}

/* Rows of kernels and those of stream programs, which have other columns. */
typedef struct sweep_tables {
    strbuf kernels, programs;
    bool any_kernel, any_program; /* was legal */
    uint64_t left;                /* steps, for all of the sweep */
} sweep_tables;

/* One value of a sweep: a row of the table. False: not even that. */
static bool sweep_row(const variants *v, const char *text, size_t bytes, const visa_parameter *p, sweep_tables *tables, diag_list *diags)
{
    strbuf *out = &tables->kernels;
    uint64_t *left = &tables->left;
    visa_options options = v->options;
    visa_parameter *all = ARENA_ARRAY(out->arena, visa_parameter, options.parameter_count + 1); /* the last of a name counts */
    for (size_t i = 0; i < options.parameter_count; i++)
        all[i] = options.parameters[i];
    all[options.parameter_count++] = *p;
    options.parameters = all;
    options.max_steps = *left;
    visa_compilation *c = visa_compile(tool_input_name(v->before), text, bytes, &options);
    if (!c) {
        fprintf(stderr, "%s: error: out of memory\n", v->tool);
        return false;
    }
    if (*left != UINT64_MAX)
        *left -= visa_steps(c) < *left ? visa_steps(c) : *left - 1;
    if (visa_gave_up(c)) {
        diag *d = diag_add(diags, E_BUDGET, SRC_NOWHERE, "--sweep takes more than %llu steps of work with the values up to %s = %lld",
                           (unsigned long long)steps_of(v), p->name, (long long)p->values[0]);
        diag_help(diags, d, "give fewer values at once, or no limit: --max-steps=0");
        visa_free(c);
        return false;
    }
    const unsigned char *data;
    size_t size;
    binary b;
    report_figures f;
    bool legal = visa_emit(c, VISA_EMIT_BINARY, &data, &size) && binary_read(data, size, out->arena, diags, &b);
    bool ok = legal || !visa_has_system_fault(c);
    if (!ok)
        fputs(visa_diagnostics(c, v->format), stderr);
    if (!legal && ok) {
        const char *why = visa_diagnostics(c, VISA_DIAGNOSTICS_TEXT);
        strbuf_printf(out, "%10lld  refused  %.*s\n", (long long)p->values[0], (int)strcspn(why, "\n"), why);
    }
    tables->any_kernel |= legal && b.kernel_count > 0;
    tables->any_program |= legal && b.program_count > 0;
    if (legal && ok && b.program_count > 0 && visa_emit(c, VISA_EMIT_STEP_JSON, &data, &size))
        strbuf_puts(&tables->programs, step_sweep_rows((const char *)data, (long long)p->values[0], out->arena));
    for (size_t i = 0; legal && ok && i < b.kernel_count; i++) {
        ok = report_figures_of(b.target, &b.kernels[i], v->preset, out->arena, diags, &f);
        if (ok)
            strbuf_printf(out, "%10lld  legal    %-16s %10lld %12lld %12lld  %s: %s\n", (long long)p->values[0], b.kernels[i].name,
                          (long long)f.cycles, (long long)f.dm_bytes, (long long)f.lower_bound, f.command, f.binds);
    }
    visa_free(c);
    return ok;
}

int variants_sweep(const variants *v, arena *memory, diag_list *diags)
{
    const char *equals = strchr(v->sweep, '=');
    if (!equals || equals == v->sweep || !equals[1])
        return tool_usage_error(v->tool, "--sweep is NAME=VALUE,VALUE, not `%s`", v->sweep);
    size_t size;
    unsigned char *text = file_read_all(v->before, &size, diags);
    if (!text)
        return EXIT_INPUT;
    const char *source = arena_strndup(memory, (const char *)text, size);
    free(text);
    sweep_tables tables = {.left = steps_of(v)};
    strbuf_init(&tables.kernels, memory);
    strbuf_init(&tables.programs, memory);
    int64_t tried;
    visa_parameter p = {.values = &tried, .count = 1, .name = arena_strndup(memory, v->sweep, (size_t)(equals - v->sweep))};
    for (size_t i = 0; i < v->options.parameter_count; i++)
        if (strcmp(v->options.parameters[i].name, p.name) == 0)
            return tool_usage_error(v->tool, "`%s` has a value from -D and those of --sweep: give one of them", p.name);
    for (const char *at = equals; *at; at += strcspn(at + 1, ",") + 1) {
        uint64_t value;
        const char *word = arena_strndup(memory, at + 1, strcspn(at + 1, ","));
        if (!tool_number(word, &value) || value > INT64_MAX)
            return tool_usage_error(v->tool, "--sweep: `%s` is not a number", word);
        tried = (int64_t)value;
        if (!sweep_row(v, source, size, &p, &tables, diags))
            return EXIT_INPUT;
    }
    const char *out = tables.kernels.text;
    if (tables.any_kernel || !tables.any_program)
        out = arena_printf(memory, "%10s           kernel               cycles  DM bytes up  lower bound  longest command: what binds\n%s",
                           p.name, out);
    if (tables.any_program)
        out = arena_printf(memory, "%s%s%s", out, step_sweep_head(p.name, memory), tables.programs.text);
    bool written = output_put(v->to, out, strlen(out)) && output_set_commit(v->files);
    return written && (tables.any_kernel || tables.any_program) ? EXIT_DONE : EXIT_INPUT;
}

/* A binary from either kind of file; of a source also the costs of its stream programs. */
static bool load_kernels(const variants *v, const char *file, arena *memory, diag_list *diags, binary *out, const char **costs)
{
    *costs = NULL;
    size_t size;
    unsigned char *bytes = file_read_all(file, &size, diags);
    if (!bytes)
        return false;
    bool is_binary = size >= 4 && memcmp(bytes,
                                         "\x7f"
                                         "ELF",
                                         4) == 0,
         ok;
    if (is_binary) {
        size_t before = diags->count;
        ok = binary_read(bytes, size, memory, diags, out);
        for (size_t i = before; i < diags->count; i++) /* of which of the two files */
            diags->items[i]->message = arena_printf(memory, "%s: %s", shown_text(file, memory), diags->items[i]->message);
    } else {
        const unsigned char *data;
        size_t data_size;
        visa_compilation *c = visa_compile(tool_input_name(file), (const char *)bytes, size, &v->options);
        ok = c && visa_emit(c, VISA_EMIT_BINARY, &data, &data_size) && binary_read(data, data_size, memory, diags, out);
        if (ok && out->program_count > 0 && visa_emit(c, VISA_EMIT_STEP_JSON, &data, &data_size))
            *costs = arena_strndup(memory, (const char *)data, data_size);
        if (!c)
            fprintf(stderr, "%s: error: out of memory\n", v->tool);
        else if (visa_error_count(c) > 0)
            fputs(visa_diagnostics(c, v->format), stderr);
        visa_free(c);
    }
    free(bytes);
    return ok;
}

int variants_diff(const variants *v, arena *memory, diag_list *diags)
{
    binary before, after;
    const char *costs_before, *costs_after;
    bool loaded = load_kernels(v, v->before, memory, diags, &before, &costs_before);
    if (!load_kernels(v, v->after, memory, diags, &after, &costs_after) || !loaded)
        return EXIT_INPUT;
    const char *text = kernel_diff(&before, &after, v->preset, memory, diags);
    if (text)
        text = arena_printf(memory, "%s%s", text,
                            step_diff((step_diff_side){&before, costs_before}, (step_diff_side){&after, costs_after}, memory));
    return text && output_put(v->to, text, strlen(text)) && output_set_commit(v->files) ? EXIT_DONE : EXIT_INPUT;
}
