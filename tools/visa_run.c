/* visa-run: runs a kernel of a binary on the simulated machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/machine/session.h"
#include "runtime/plan/report.h"
#include "runtime/step/session.h"
#include "runtime/tensor/port_data.h"
#include "runtime/tensor/tensor_file.h"
#include "support/budget.h"
#include "support/file.h"
#include "support/integer.h"
#include "support/output.h"
#include "support/shown.h"
#include "support/stop.h"
#include "tools/checking.h"
#include "tools/heap.h"
#include "tools/option_row.h"
#include "tools/options.h"
#include "tools/progress.h"

enum { MOST_THREADS = 1024 };

typedef struct arguments {
    tool_run run;
    const char *file, *sizes;
    const char **inputs, **outputs;
    size_t input_count, output_count;
    output **to; /* of each output */
    output *sizes_to;
    output_set *files;
    bool given[OPTION_ROWS_MAX]; /* of each row of visa_run.def */
    bool list, list_json, plan, converts, timing_only, unbounded, dump_field;
    unsigned threads;
    uint64_t onchip_bytes;
    cpu_level cpu;
} arguments;

#define OPTIONS "tools/visa_run.def"
#include "tools/option_table.h"

static int option_INPUT(void *of, const char *text)
{
    arguments *a = of;
    a->inputs[a->input_count++] = text;
    return OPTION_GO_ON;
}

static int option_OUTPUT(void *of, const char *text)
{
    arguments *a = of;
    a->outputs[a->output_count++] = text;
    return OPTION_GO_ON;
}

static int option_THREADS(void *of, const char *text)
{
    arguments *a = of;
    uint64_t threads;
    if (!tool_number(text, &threads) || threads == 0 || threads > MOST_THREADS)
        return tool_usage_error("visa-run", "--threads takes a number from 1 to 1024, not `%s`", text);
    a->threads = (unsigned)threads;
    return OPTION_GO_ON;
}

static int option_LIST(void *of, const char *text)
{
    arguments *a = of;
    a->list = true;
    a->list_json = text && strcmp(text, "json") == 0;
    return OPTION_GO_ON;
}

static int option_CPU(void *of, const char *text)
{
    arguments *a = of;
    if (!cpu_level_named(text, &a->cpu))
        return tool_usage_error("visa-run", "--cpu=%s is no level of this version", text);
    return OPTION_GO_ON;
}

static int option_VERSION(void *of, const char *text)
{
    (void)of, (void)text;
    puts("visa-run " VISA_VERSION);
    return EXIT_DONE;
}

static int option_HELP(void *of, const char *text)
{
    (void)of, (void)text;
    option_rows_print("visa-run", option_rows, OPTION_ROWS);
    return EXIT_DONE;
}

/* OPTION_GO_ON, else the exit status. */
static int parse_arguments(int argc, char **argv, arguments *a)
{
    int status = option_rows_parse("visa-run", option_rows, OPTION_ROWS, argc, argv, a, a->given);
    if (status != OPTION_GO_ON)
        return status;
    if (optind == argc)
        return tool_usage_error("visa-run", "no input file");
    if (optind + 1 < argc)
        return tool_usage_error("visa-run", "more than one input file: %s", argv[optind + 1]);
    a->file = argv[optind];
    if (!a->dump_field && tool_check_complete("visa-run", &a->run.check) != EXIT_DONE)
        return EXIT_USAGE;
    if (a->onchip_bytes > (uint64_t)STEP_ONCHIP_BYTES_MAX)
        return tool_usage_error("visa-run", "--onchip-bytes takes at most 2^50 bytes");
    if (a->run.check.json && (a->run.report.wanted || a->list || a->dump_field))
        return tool_usage_error("visa-run", "--check-format=json fills standard output: no --report, --list or --dump-field with it");
    return OPTION_GO_ON;
}

/* Says what is read and what will be written. */
static bool declare(arguments *a, arena *memory)
{
    bool good = output_set_reads(a->files, a->file);
    for (size_t i = 0; i < a->input_count && good; i++)
        good = output_set_reads(a->files, session_file(a->inputs[i], memory));
    for (size_t i = 0; i < a->output_count && good && !a->list; i++)
        good = (a->to[i] = output_declare(a->files, session_file(a->outputs[i], memory))) != NULL;
    if (a->sizes && good)
        good = (a->sizes_to = output_declare(a->files, a->sizes)) != NULL;
    return good && tool_run_declare(&a->run, a->files);
}

static const binary_kernel *kernel_of(const arguments *a, const binary *b)
{
    return a->run.kernel ? binary_kernel_by_name(b, a->run.kernel) : &b->kernels[0];
}

static int dump_field(const arguments *a, const binary *b, arena *memory, diag_list *diags)
{
    field_options options = {.seed = a->run.seed, .threads = a->threads, .samples = a->run.check.samples};
    const char *text = "";
    if (!field_dump(b->target, kernel_of(a, b), &options, memory, diags, &text))
        return EXIT_INPUT;
    fputs(text, stdout);
    return EXIT_DONE;
}

static bool print_report(const arguments *a, const binary *b, arena *memory, diag_list *diags)
{
    const binary_kernel *k = kernel_of(a, b);
    strbuf text;
    strbuf_init(&text, memory);
    bool ok = tool_report_make(&a->run.report, b, k, memory, diags, &text);
    fputs(ok ? text.text : "", stdout);
    return ok;
}

/* NULL: there was no memory for them. */
static int print_ports(const char *ports)
{
    fputs(ports ? ports : "visa-run: error: out of memory\n", ports ? stdout : stderr);
    return ports ? EXIT_DONE : EXIT_INPUT;
}

/* Are its ports so large that its run takes megabytes of the heap? Of a small one preparing it would be a tenth. */
static bool is_large(const binary_kernel *k)
{
    enum { LARGE_ELEMENTS = 1 << 20 };
    int64_t elements = 0;
    for (uint32_t i = 0; i < k->port_count && elements < LARGE_ELEMENTS; i++)
        elements += smaller(port_physical_elements(&k->ports[i], k->axes), LARGE_ELEMENTS);
    return elements >= LARGE_ELEMENTS;
}

static int run(arguments *a, const binary *b, session *s, const unsigned char *bytes, size_t size, arena *memory, diag_list *diags)
{
    if (a->list) {
        return print_ports(a->list_json ? session_describe_json(s) : session_describe(s));
    }
    if (a->dump_field)
        return dump_field(a, b, memory, diags);
    if (!tool_run_length("visa-run", s, kernel_of(a, b)->name, a->run.max_cycles, diags))
        return EXIT_INPUT;
    if (a->run.check.numbers || is_large(kernel_of(a, b)))
        heap_prepare();
    progress line = progress_begin(a->file);
    session_set_options(s, &(session_options){.threads = a->threads,
                                              .cpu = a->cpu,
                                              .rounds = a->converts,
                                              .progress = line.shown ? progress_show : NULL,
                                              .progress_context = &line});
    bool ok = true;
    for (size_t i = 0; i < a->input_count; i++)
        ok = session_input(s, a->inputs[i], diags) && ok;
    for (size_t i = 0; i < a->output_count; i++)
        ok = session_has_output(s, a->outputs[i], diags) && ok;
    bool runs = a->run.check.numbers || !a->run.check.wanted || a->output_count > 0, agrees = true, proves;
    if (ok && a->run.check.numbers) {
        tool_check_begin(&a->run.check, b->target, kernel_of(a, b), a->run.seed, a->threads);
        session_expect(s, !a->run.free_order);
    }
    ok = ok && (!runs || (session_fill(s, a->run.seed, diags) && session_run(s, a->run.check.numbers, diags)));
    progress_end(&line);
    const char *report = "", *proof = "";
    FILE *to = a->output_count || a->run.report.options.format != REPORT_TEXT ? stderr : stdout;
    bool differs = !ok && session_found_mismatch(diags); /* the algebra then says which terms do */
    if (!ok && !differs) {
        tool_check_drop(&a->run.check);
        return EXIT_INPUT;
    }
    ok = differs || !a->run.check.numbers || session_check(s, !a->run.free_order, &agrees, &report, diags);
    tool_check_say(&a->run.check, report, to);
    proves = tool_check_algebra(&a->run.check, b->target, kernel_of(a, b), a->run.seed, a->threads, memory, diags, &agrees, &proof);
    tool_check_say(&a->run.check, proof, to);
    verdict_item item = {.name = kernel_of(a, b)->name,
                         .differs = differs,
                         .numbers = a->run.check.numbers ? session_findings(s) : NULL,
                         .algebra = a->run.check.algebra && proves ? tool_check_last(&a->run.check, kernel_of(a, b)) : NULL};
    tool_check_add(&a->run.check, &item, memory);
    ok = ok && proves && tool_check_certify(&a->run.check, a->file, bytes, size, memory);
    if (differs) { /* a certificate says so; outputs are not written */
        bool certified = !ok || !a->run.check.certificate || output_set_commit(a->files);
        return proves && certified ? EXIT_MISMATCH : EXIT_INPUT;
    }
    ok = ok && print_report(a, b, memory, diags);
    for (int streams = 0; streams < 2; streams++)
        for (size_t i = 0; i < a->output_count && ok && agrees; i++)
            if (output_is_stream(a->to[i]) == (streams > 0))
                ok = session_output(s, a->outputs[i], a->to[i], diags);
    ok = ok && output_set_commit(a->files);
    return !ok ? EXIT_INPUT : agrees ? EXIT_DONE : EXIT_MISMATCH;
}

static int run_program(arguments *a, step_session *s, const char *name, arena *memory, diag_list *diags)
{
    bool ok = true;
    if (a->list) {
        return print_ports(a->list_json ? step_session_describe_json(s) : step_session_describe(s));
    }
    for (size_t i = 0; i < a->input_count; i++)
        ok = step_session_input(s, a->inputs[i], diags) && ok;
    if (!ok || !step_session_run(s, diags))
        return EXIT_INPUT;
    if (a->run.check.wanted) {
        const char *verdict = "";
        bool agrees, judged = step_session_check(s, &agrees, &verdict, diags);
        tool_check_say(&a->run.check, verdict, a->output_count || a->run.report.options.format != REPORT_TEXT ? stderr : stdout);
        tool_check_add(&a->run.check, &(verdict_item){.name = name, .is_program = true, .numbers = step_session_findings(s)}, memory);
        if (!judged || !agrees)
            return EXIT_MISMATCH;
    }
    if (a->run.report.wanted || (a->output_count == 0 && !a->run.report.trace && !a->run.check.wanted))
        fputs(step_session_report(s, a->run.report.wanted ? a->run.report.options.format : REPORT_TEXT), stdout);
    const char *trace = a->run.report.trace ? step_session_report(s, REPORT_TRACE) : NULL;
    ok = !trace || output_put(a->run.report.trace_to, trace, strlen(trace));
    for (int streams = 0; streams < 2; streams++)
        for (size_t i = 0; i < a->output_count && ok; i++)
            if (output_is_stream(a->to[i]) == (streams > 0))
                ok = step_session_output(s, a->outputs[i], a->to[i], diags);
    ok = ok && (!a->sizes || step_session_sizes(s, a->sizes_to)) && output_set_commit(a->files);
    return ok ? EXIT_DONE : EXIT_INPUT;
}

/* The stream programs of a binary, or its kernels, as what to choose instead; NULL: it has none. */
static const char *others_of(const binary *b, bool programs, arena *memory)
{
    const char *names = "";
    for (size_t i = 0; i < (programs ? b->program_count : b->kernel_count); i++)
        names = arena_printf(memory, "%s%s%s", names, *names ? ", " : "", programs ? b->programs[i].name : b->kernels[i].name);
    return *names ? arena_printf(memory, "--kernel=NAME with one of the %s: %s", programs ? "stream programs" : "kernels", names) : NULL;
}

/* Of a name that is none, opening says more. */
static bool fits(const arguments *a, const binary *b, const step_program *program, arena *memory, diag_list *diags)
{
    unsigned holds = !program ? OF_KERNELS : b->kernel_count > 0 ? OF_PROGRAMS | OF_CALLS : OF_PROGRAMS;
    const char *name = program ? program->name : NULL;
    for (size_t i = b->kernel_count; i-- > 0 && !program;)
        name = a->run.kernel ? (strcmp(a->run.kernel, b->kernels[i].name) == 0 ? b->kernels[i].name : name)
                             : (b->kernel_count == 1 ? b->kernels[i].name : NULL);
    if (!name)
        return true;
    const char *why = arena_printf(memory, "`%s` is a %s", shown_text(name, memory), program ? "stream program" : "kernel");
    return option_rows_fit(option_rows, OPTION_ROWS, a->given, holds, why, others_of(b, !program, memory), diags);
}

static int run_bytes(arguments *a, const unsigned char *bytes, size_t size, arena *memory, diag_list *diags)
{
    binary b;
    bool ok = binary_read(bytes, size, memory, diags, &b);
    const step_program *program = ok ? binary_program_by_name(&b, a->run.kernel) : NULL;
    if (ok && !fits(a, &b, program, memory, diags))
        return EXIT_INPUT;
    if (program && a->run.check.wanted && (!a->run.check.numbers || a->timing_only))
        return tool_usage_error("visa-run", "a stream program is checked by --check=numbers, with values; %s holds one", a->file);
    if (program) {
        step_session_options options = {.seed = a->run.seed,
                                        .timing_only = a->timing_only,
                                        .rounds = a->converts,
                                        .unbounded = a->unbounded,
                                        .onchip_bytes = (int64_t)a->onchip_bytes,
                                        .keep_sizes = a->sizes != NULL,
                                        .keep_record =
                                            a->run.report.trace || (a->run.report.wanted && a->run.report.options.format == REPORT_HTML),
                                        .checked = a->run.check.wanted,
                                        .timing = a->run.report.options.preset,
                                        .max_cycles = a->run.max_cycles < INT64_MAX ? (int64_t)a->run.max_cycles : 0};
        step_session *s = step_session_open(&b, program, &options, memory, diags);
        int status = s ? run_program(a, s, program->name, memory, diags) : EXIT_INPUT;
        step_session_close(s);
        return tool_check_print(&a->run, a->file, status, diags);
    }
    session *s = ok ? session_open(&b, a->run.kernel, memory, diags) : NULL;
    int status = s ? run(a, &b, s, bytes, size, memory, diags) : EXIT_INPUT;
    session_close(s);
    return tool_check_print(&a->run, a->file, status, diags);
}

/* What a plan's options say; 0: none is of kernels alone. */
static int plan_options_fit(const arguments *a, diag_list *diags)
{
    const char *why = arena_printf(diags->arena, "%s holds none", tool_input_name(a->file));
    if (!option_rows_fit(option_rows, OPTION_ROWS, a->given, OF_PLANS, why, NULL, diags))
        return EXIT_INPUT;
    if (a->run.check.wanted && !a->run.check.numbers)
        return tool_usage_error("visa-run", "a plan is checked with --check or --check=numbers");
    if (a->run.report.wanted && a->run.report.options.format == REPORT_CSV)
        return tool_usage_error("visa-run", "a plan's report is text, json or html");
    return EXIT_DONE;
}

static void say_cost(arguments *a, const plan_cost *c, arena *memory)
{
    const char *line = arena_printf(memory, "%s: %lld of %lld runs agree\n", shown_text(c->kernel->name, memory),
                                    (long long)(c->compared - c->differing), (long long)c->runs);
    verdict_item item = {.name = c->kernel->name, .runs = c->runs, .compared = c->compared, .differing = c->differing};
    tool_check_say(&a->run.check, line, a->run.report.wanted ? stderr : stdout);
    tool_check_add(&a->run.check, &item, memory);
}

static int run_plan_open(arguments *a, const plan *p, plan_run *r, plan_result *result, progress *line, arena *memory, diag_list *diags)
{
    output **to = ARENA_ARRAY(memory, output *, p->output_count + 1);
    bool ok = true;
    for (size_t i = 0; i < p->output_count && ok; i++)
        ok = (to[i] = output_declare(a->files, tensor_file_path(p->outputs[i].file, memory))) != NULL;
    ok = ok && plan_run_all(r, result, diags);
    progress_end(line);
    if (!ok)
        return EXIT_INPUT;
    for (size_t i = 0; i < result->cost_count && a->run.check.wanted; i++)
        if (result->costs[i].runs)
            say_cost(a, &result->costs[i], memory);
    for (size_t i = 0; i < p->output_count && ok && result->agrees; i++)
        ok = plan_run_output(r, i, to[i], diags);
    if (ok && (a->run.report.wanted || (p->output_count == 0 && !a->run.check.wanted)))
        fputs(plan_report(result, a->file, a->run.report.options.format, memory), stdout);
    if (!result->agrees)
        return EXIT_MISMATCH;
    return ok && output_set_commit(a->files) ? EXIT_DONE : EXIT_INPUT;
}

static int run_plan(arguments *a, const char *text, size_t size, arena *memory, diag_list *diags)
{
    int status = plan_options_fit(a, diags);
    if (status != EXIT_DONE)
        return status;
    progress line = progress_begin(a->file);
    plan_options options = {.threads = a->threads,
                            .cpu = a->cpu,
                            .most_cycles = a->run.max_cycles,
                            .preset = a->run.report.options.preset,
                            .checked = a->run.check.wanted,
                            .free_order = a->run.free_order,
                            .rounds = a->converts,
                            .progress = line.shown ? progress_show : NULL,
                            .progress_context = &line};
    plan_result result;
    plan *p = plan_read(a->file, text, size, memory, diags);
    bool ok = p != NULL;
    for (size_t i = 0; ok && i < p->kernel_count; i++)
        ok = output_set_reads(a->files, p->kernels[i].file);
    for (size_t i = 0; ok && i < p->buffer_count; i++)
        ok = !p->buffers[i].file || output_set_reads(a->files, tensor_file_path(p->buffers[i].file, memory));
    plan_run *r = ok ? plan_run_open(p, &options, memory, diags, &result) : NULL;
    status = r ? run_plan_open(a, p, r, &result, &line, memory, diags) : EXIT_INPUT;
    plan_run_close(r);
    return tool_check_print(&a->run, a->file, status, diags);
}

/* Is standard output free for the document of a check? */
static int stands_alone(const arguments *a, arena *memory)
{
    const char **names = ARENA_ARRAY(memory, const char *, a->output_count + 3);
    size_t count = 0;
    for (; count < a->output_count; count++)
        names[count] = session_file(a->outputs[count], memory);
    names[count++] = a->sizes;
    names[count++] = a->run.report.trace;
    names[count++] = a->run.check.certificate;
    return tool_check_alone("visa-run", &a->run.check, count, names);
}

static int load_and_run(arguments *a, arena *memory, diag_list *diags)
{
    size_t size;
    unsigned char *bytes = file_read_all(a->file, &size, diags);
    if (!bytes)
        return EXIT_INPUT;
    int status = a->plan ? run_plan(a, (const char *)bytes, size, memory, diags) : run_bytes(a, bytes, size, memory, diags);
    free(bytes);
    return status;
}

int main(int argc, char **argv)
{
    stop_begin("visa-run");
    arena *memory = arena_new();
    if (!memory || setjmp(*arena_guard(memory)))
        return tool_out_of_memory("visa-run");
    arguments a = {.inputs = ARENA_ARRAY(memory, const char *, (size_t)argc),
                   .outputs = ARENA_ARRAY(memory, const char *, (size_t)argc),
                   .to = ARENA_ARRAY(memory, output *, (size_t)argc),
                   .run = tool_run_new("visa-run")};
    int status = parse_arguments(argc, argv, &a);
    if (status == OPTION_GO_ON && stands_alone(&a, memory) != EXIT_DONE)
        status = EXIT_USAGE;
    if (status == OPTION_GO_ON) {
        diag_list diags;
        diag_list_init(&diags, memory);
        a.files = output_set_new(memory, &diags);
        status = declare(&a, memory) ? load_and_run(&a, memory, &diags) : tool_refused(&diags);
        output_set_free(a.files);
        tool_print_diags("visa-run", a.file, &diags);
    }
    arena_free(memory);
    return tool_printed("visa-run", status);
}
