#include "tools/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/machine/parallel.h"
#include "support/budget.h"
#include "support/choice.h"
#include "support/shown.h"
#include "support/stop.h"
#include "tools/option_row.h"

int tool_usage_error_v(const char *tool, const char *format, va_list args)
{
    arena *a = arena_new();
    if (a && !setjmp(*arena_guard(a)))
        fprintf(stderr, "%s: error: %s\nTry %s --help.\n", tool, shown_text(arena_vprintf(a, format, args), a), tool);
    arena_free(a);
    return EXIT_USAGE;
}

int tool_usage_error(const char *tool, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int status = tool_usage_error_v(tool, format, args);
    va_end(args);
    return status;
}

int tool_unknown_option(const char *tool, const struct option *options, const char *word)
{
    size_t bytes = strcspn(word, "=");
    char name[64] = "";
    if (strncmp(word, "--", 2) == 0 && bytes < sizeof name)
        memcpy(name, word + 2, bytes - 2);
    const char *near = NULL;
    unsigned best = CHOICE_FAR;
    for (; options->name && name[0]; options++)
        if (choice_is_nearer(name, options->name, &best))
            near = options->name;
    return near ? tool_usage_error(tool, "unknown option %s; did you mean --%s?", word, near)
                : tool_usage_error(tool, "unknown option %s", word);
}

int tool_unknown_value(const char *tool, const char *option, const char *given, const char *const *known)
{
    const char *near = choice_near(given, known);
    if (near)
        return tool_usage_error(tool, "unknown %s%s; did you mean %s%s?", option, given, option, near);
    arena *a = arena_new();
    if (a && !setjmp(*arena_guard(a)))
        tool_usage_error(tool, "unknown %s%s; it is one of %s", option, given, choice_list(a, known));
    arena_free(a);
    return EXIT_USAGE;
}

const char *tool_input_name(const char *file)
{
    return strcmp(file, "-") == 0 ? "<stdin>" : file;
}

bool tool_number(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 0);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

bool tool_limit(const char *text, uint64_t *out)
{
    if (!tool_number(text, out))
        return false;
    if (*out == 0)
        *out = UINT64_MAX;
    return true;
}

int tool_check_alone(const char *tool, const tool_check *c, size_t count, const char *const *names)
{
    for (size_t i = 0; c->json && i < count; i++)
        if (names[i] && strcmp(names[i], "-") == 0)
            return tool_usage_error(tool, "--check-format=json fills standard output: nothing else can be written to -");
    return EXIT_DONE;
}

int tool_check_complete(const char *tool, const tool_check *c)
{
    if (c->json && !c->wanted)
        return tool_usage_error(tool, "--check-format belongs to --check");
    if ((c->certificate || c->samples) && !c->algebra)
        return tool_usage_error(tool, "%s belongs to --check or --check=algebra", c->certificate ? "--certificate" : "--samples");
    return EXIT_DONE;
}

int tool_version(const char *tool, const char *version)
{
    printf("%s %s\n", tool, version);
    return tool_printed(tool, EXIT_DONE);
}

int tool_out_of_memory(const char *tool)
{
    unfinished_remove_all();
    parallel_settle();
    fprintf(stderr, "%s: error: out of memory\n", tool);
    return EXIT_INPUT;
}

int tool_printed(const char *tool, int status)
{
    errno = 0;
    if ((!fflush(stdout) && !ferror(stdout)) || status != EXIT_DONE)
        return status;
    fprintf(stderr, "%s: error[E-FILE-WRITE]: cannot write standard output: %s\n", tool, strerror(errno ? errno : EIO));
    return EXIT_INPUT;
}

int tool_refused(const diag_list *diags)
{
    for (size_t i = 0; i < diags->count; i++)
        if (diags->items[i]->id == E_OUTPUT_INPUT || diags->items[i]->id == E_OUTPUT_TWICE || diags->items[i]->id == E_INPUT_TWICE)
            return EXIT_USAGE;
    return EXIT_INPUT;
}

static void print_line(const char *before, const char *text, arena *a)
{
    fprintf(stderr, "%s%s\n", before, shown_text(text, a));
}

void tool_print_diags(const char *tool, const char *file, diag_list *diags)
{
    arena *a = diags->arena;
    diag_list_sort(diags);
    for (size_t i = 0; i < diags->count; i++) {
        const diag *d = diags->items[i];
        const char *place = file ? arena_printf(a, "%s: ", shown_text(file, a)) : "",
                   *severity = d->severity == DIAG_ERROR ? "error" : "warning";
        print_line(arena_printf(a, "%s: %s%s[%s]: ", tool, place, severity, diag_row_of(d->id)->name), d->message, a);
        for (size_t n = 0; n < d->note_count; n++)
            print_line("note: ", d->notes[n].text, a);
        if (d->help)
            print_line("help: ", d->help, a);
    }
}

bool tool_report_make(const tool_report *r, const binary *b, const binary_kernel *k, arena *a, diag_list *diags, strbuf *out)
{
    if (r->wanted) {
        const char *text = report_make(b->target, k, &r->options, a, diags);
        if (!text)
            return false;
        if (r->options.format == REPORT_CSV && out->bytes > 0) /* the names of the columns stand there */
            text = strchr(text, '\n') + 1;
        strbuf_puts(out, text);
    }
    if (!r->trace)
        return true;
    report_options options = r->options;
    options.format = REPORT_TRACE;
    const char *text = report_make(b->target, k, &options, a, diags);
    return text && output_put(r->trace_to, text, strlen(text));
}

tool_run tool_run_new(const char *tool)
{
    return (tool_run){.tool = tool, .seed = 1, .max_cycles = RUN_CYCLES_MAX};
}

bool tool_run_declare(tool_run *r, output_set *files)
{
    return (!r->report.trace || (r->report.trace_to = output_declare(files, r->report.trace))) &&
           (!r->check.certificate || (r->check.certificate_to = output_declare(files, r->check.certificate)));
}

int tool_option_CHECK(void *run, const char *text)
{
    tool_run *r = run;
    r->check.wanted = true;
    r->check.numbers = !text || strcmp(text, "numbers") == 0;
    r->check.algebra = !text || strcmp(text, "algebra") == 0;
    return OPTION_GO_ON;
}

int tool_option_CHECK_FORMAT(void *run, const char *text)
{
    tool_run *r = run;
    r->check.json = strcmp(text, "json") == 0;
    return OPTION_GO_ON;
}

int tool_option_SAMPLES(void *run, const char *text)
{
    enum { MOST = 1 << 20 };
    tool_run *r = run;
    uint64_t samples;
    if (!tool_number(text, &samples) || samples == 0 || samples > MOST)
        return tool_usage_error(r->tool, "--samples takes a number from 1 to %d, not `%s`", MOST, text);
    r->check.samples = (int64_t)samples;
    return OPTION_GO_ON;
}

int tool_option_REFERENCE_ORDER(void *run, const char *text)
{
    tool_run *r = run;
    r->order_given = true;
    r->free_order = strcmp(text, "free") == 0;
    return OPTION_GO_ON;
}

int tool_option_REPORT(void *run, const char *text)
{
    tool_run *r = run;
    r->report.wanted = true;
    r->report.options.format = REPORT_TEXT;
    if (text && !report_format_by_name(text, &r->report.options.format))
        return tool_usage_error(r->tool, "--report=%s is a format that this version does not make", text);
    return OPTION_GO_ON;
}

int tool_option_TIMING(void *run, const char *text)
{
    tool_run *r = run;
    if (!timing_preset_by_name(text, &r->report.options.preset))
        return tool_usage_error(r->tool, "--timing=%s is no preset of this version", text);
    return OPTION_GO_ON;
}
