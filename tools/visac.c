/* visac: the compiler's command line. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/reference_load.h"
#include "include/visa.h"
#include "runtime/machine/session.h"
#include "support/budget.h"
#include "support/output.h"
#include "support/shown.h"
#include "support/stop.h"
#include "tools/dataflow.h"
#include "tools/explore.h"
#include "tools/options.h"
#include "tools/progress.h"
#include "tools/ranks.h"
#include "tools/variants.h"

typedef enum emit_kind {
    EMIT_BINARY,
    EMIT_TABLES,
    EMIT_JSON,
    EMIT_IR,
    EMIT_AST,
    EMIT_LLVM,
    EMIT_BITCODE,
    EMIT_ASM,
    EMIT_OBJ,
    EMIT_HEADER,
    EMIT_STEP_REPORT,
    EMIT_STEP_JSON,
    EMIT_DATAFLOW,
    EMIT_DATAFLOW_JSON,
    EMIT_KINDS
} emit_kind;

static const char *const emit_names[] = {"bin", "tables", "json",        "ir",        "ast",      "llvm",          "bc", "asm",
                                         "obj", "header", "step-report", "step-json", "dataflow", "dataflow-json", NULL};

typedef struct arguments {
    const char *input, *output, *kernel, *draw, *sweep;
    const char *other; /* the second file of `visac diff` */
    tool_report report;
    emit_kind emit;
    const char *mcpu;
    bool order_given, free_order; /* of the reference's sums: without it the machine's for a check, a free one for what is written */
    tool_check check;
    bool emit_given, search_given, format_source, format_check;
    bool explores;
    ranks ranks;              /* of --explore */
    const char *explore_form; /* of --emit, behind --explore */
    visa_explore_options explore;
    size_t warning_count;
    const char **warnings;     /* room for as many as there are arguments */
    visa_parameter *defines;   /* likewise */
    uint64_t seed, max_cycles; /* cycles UINT64_MAX: any number */
    visa_diagnostics_format format;
    visa_options options;
    visa_parameter *parameters;
    const char **passes;
    size_t parameter_capacity, pass_capacity;
    arena *memory;
    output_set *files;
    output *to; /* the main output; NULL: there is none */
} arguments;

static const char usage[] =
    "Usage: visac [options] FILE.vm\n"
    "       visac diff [options] A B      what changed between two kernels (.vm or .bin), and what that does to the cycles\n"
    "\n"
    "Compiles tensor mappings into a command stream for a tensor contraction processor.\n"
    "FILE may be - for standard input.\n"
    "\n"
    "Options:\n"
    "  -o FILE                 write to FILE (- is standard output); default: the source's name with .bin,\n"
    "                          standard output for everything but bin, bc and obj\n"
    "  --emit=KIND             bin (default), tables, json, ir, ast, llvm, bc, asm, obj, header, step-report,\n"
    "                          step-json, dataflow, dataflow-json\n"
    "  --mcpu=NAME             CPU of llvm, bc, asm and obj (default x86-64, any; native is this one)\n"
    "  --reference-order=ORDER how the reference of --check, llvm, bc, asm and obj adds floats: hardware (the machine's\n"
    "                          order; default of --check: equal values) or free (an order of its own; default of the\n"
    "                          others; --check compares within bounds, and judges all values together)\n"
    "  -D NAME=VALUE           give a constant or an axis of the file another value, or a size of a stream program its\n"
    "                          number; NAME=2,0,5 the sizes of a ragged dimension\n"
    "  --pass=NAME[:P=V,..]    transform every stream program; several are run in order\n"
    "  --sizes=FILE            numbers for the sizes of stream programs from a run (visa-run --sizes)\n"
    "  --draw=[KERNEL:]OP      picture (SVG) of the order and count of accesses of an operation's sequencer over its\n"
    "                          tensor; OP is fetch, commit, align, to_dm, to_hbm, or its index in --emit=json\n"
    "  --report[=FORMAT]       instead of a binary: when each command runs, its cycles by formula, what binds and what\n"
    "                          would be faster, from the commands alone: text (default), csv, json or html\n"
    "  --timing=PRESET         documented (default): documented rates; schedule: what published schedules charge\n"
    "  --trace=FILE            the same as Chrome's trace events, for Perfetto\n"
    "  --sweep=NAME=8,16,32    compile with each value of a constant or axis: legal or not, cycles, memory\n"
    "  --format                print the source in its canonical layout, compile nothing\n"
    "  --format-check          print nothing; exit status 1 when --format would change the source\n"
    "  --explore[=MODEL]       the design space of a dataflow item: every iPar and wPar, the front of cycles against\n"
    "                          multipliers; --emit=text (default), csv, svg, or vm: the fastest point as a kernel\n"
    "  --limit=WHAT,..         of --explore: multipliers=N, weight-bits=N, input-bits=N, block-bits=N, rows=N, or target\n"
    "  --target-cycles=N       of --explore: L at most\n"
    "  --search=KIND           of --explore: all (default), or folding: FINN's search for L below the target\n"
    "  --check[=KIND]          compile, run the binary, compare with the reference: numbers on seeded inputs, algebra over\n"
    "                          a field of 2^61 - 1 elements, which proves the outputs for all inputs; without a kind both\n"
    "  --samples=N             algebra: so many elements of each output, each traced back to the inputs (default: all of a\n"
    "                          kernel up to about 512 x 512 x 2048, else as many as take a second or so)\n"
    "  --certificate=FILE      algebra: what was proven, as JSON\n"
    "  --seed=N                numbers of the seeded inputs (default 1)\n"
    "  --max-cycles=N          of --check: refuse a run of more cycles of the machine (default 100000000; 0 is no limit)\n"
    "  --kernel=NAME           compile this kernel only, when the file has several\n"
    "  --target=NAME           the machine (default rngd)\n"
    "  --print-after=PASS      show the kernels behind a pass, on standard error; --print-after-all for each\n"
    "  --time-report           microseconds of each stage, steps of work and bytes of memory, on standard error\n"
    "  --max-steps=N           stop at N steps of work (default 200000000; 0 is no limit)\n"
    "  --max-bytes=N           stop at N bytes of memory (default 1073741824; 0 is no limit)\n"
    "  --from-markdown         FILE is a chapter of a book: a verdict for each ```rust block, and a summary\n"
    "  -WNAME, -Wno-NAME       give a warning, or do not; NAME is its id without W-, `performance` or `all`\n"
    "  -Werror[=NAME]          warnings are errors; -Wno-error=NAME: that one is not\n"
    "  -ferror-limit=N         show at most N errors (default 100; 0 shows all)\n"
    "  --diagnostics-format=F  text (default), json or sarif\n"
    "  --color=WHEN            colours in messages: auto (default: on terminals), always, never\n"
    "  --explain ID            what a diagnostic means\n"
    "  --version, --help\n"
    "\n"
    "Exit status: 0 done, 1 the input is at fault, 2 the command line is, 3 the check found a mismatch,\n"
    "or nothing to compare.\n";

__attribute__((format(printf, 1, 2))) static int usage_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int status = tool_usage_error_v("visac", format, args);
    va_end(args);
    return status;
}

static void print_passes(void)
{
    const char *summary;
    fputs("\nPasses:\n", stdout);
    for (size_t i = 0; visa_pass_name(i, &summary); i++)
        printf("  %-16s %s\n", visa_pass_name(i, NULL), summary);
    const char *parameters;
    fputs("\nTransformations of stream programs:\n", stdout);
    for (size_t i = 0; visa_step_pass_name(i, &summary, &parameters); i++)
        printf("  %-20s %s\n  %-20s parameters: %s\n", visa_step_pass_name(i, &summary, &parameters), summary, "", parameters);
}

static int explain(const char *id)
{
    const char *title, *text = visa_explain(id, &title);
    if (!text)
        return usage_error("there is no diagnostic `%s`", id);
    printf("%s: %s\n\n%s\n", id, title, text);
    return EXIT_DONE;
}

/* `error-limit=N` */
static bool parse_error_limit(const char *text, size_t *limit)
{
    static const char name[] = "error-limit=";
    if (strncmp(text, name, sizeof name - 1) != 0 || strspn(text + sizeof name - 1, "0123456789") != strlen(text + sizeof name - 1))
        return false;
    char *end;
    *limit = (size_t)strtoull(text + sizeof name - 1, &end, 10);
    return end > text + sizeof name - 1;
}

/* EXIT_DONE with the number of `given` in a NULL-ended list, or the status of a usage error that was printed. */
static int choose(const char *option, const char *given, const char *const *known, int *number)
{
    for (*number = 0; known[*number]; ++*number)
        if (strcmp(known[*number], given) == 0)
            return EXIT_DONE;
    return tool_unknown_value("visac", option, given, known);
}

/* Do --explore and what it takes fit the rest of the command line? */
static int check_explore(const arguments *a)
{
    if (a->explores && ((a->emit_given && !a->explore_form) || a->check.wanted || a->draw || a->sweep || a->report.wanted ||
                        a->report.trace || a->options.book))
        return usage_error(
            "--explore is an output of its own: --emit=text, csv, svg or vm beside it, no --check, --draw, --sweep or --report");
    if (!a->explores && a->explore_form)
        return usage_error("--emit=%s is a form of --explore", a->explore_form);
    if (!a->explores && (a->explore.target_cycles || a->search_given || tool_explore_limited(&a->explore)))
        return usage_error("--limit, --target-cycles and --search belong to --explore");
    if (a->explore.folding && !a->explore.target_cycles)
        return usage_error("--search=folding needs --target-cycles=N");
    return EXIT_DONE;
}

/* NAME=VALUE, NAME=VALUE,VALUE,.. */
static bool parse_parameter(arguments *a, const char *text)
{
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text)
        return false;
    int64_t *values = ARENA_ARRAY(a->memory, int64_t, strlen(equals));
    visa_parameter p = {.name = arena_strndup(a->memory, text, (size_t)(equals - text)), .values = values};
    for (const char *at = equals; *at; at += strcspn(at + 1, ",") + 1) {
        uint64_t value;
        if (!tool_number(arena_strndup(a->memory, at + 1, strcspn(at + 1, ",")), &value) || value > INT64_MAX)
            return false;
        values[p.count++] = (int64_t)value;
    }
    ARENA_PUSH(a->memory, a->parameters, a->options.parameter_count, a->parameter_capacity, p);
    a->options.parameters = a->parameters;
    return true;
}

static const char *pass_name(size_t i)
{
    return visa_pass_name(i, NULL);
}

static const char *transformation_name(size_t i)
{
    const char *summary, *parameters;
    return visa_step_pass_name(i, &summary, &parameters);
}

static bool is_one_of(const char *(*name)(size_t), const char *given, size_t bytes)
{
    size_t i = 0;
    while (name(i) && (strncmp(name(i), given, bytes) != 0 || name(i)[bytes] != '\0'))
        i++;
    return name(i) != NULL;
}

static int unknown_transformation(const char *given)
{
    const char *known[64] = {NULL};
    for (size_t i = 0; i < 63 && (known[i] = transformation_name(i)); i++)
        ;
    return tool_unknown_value("visac", "--pass=", given, known);
}

/* Is there what the options name? */
static int check_options(const visa_options *o)
{
    if (o->target && !is_one_of(visa_target_name, o->target, strlen(o->target)))
        return usage_error("unknown machine --target=%s; there is %s", o->target, visa_target_name(0));
    for (size_t i = 0; i < o->step_pass_count; i++)
        if (!is_one_of(transformation_name, o->step_passes[i], strcspn(o->step_passes[i], ":")))
            return unknown_transformation(o->step_passes[i]);
    const char *after = o->print_after;
    if (after && strcmp(after, "all") != 0 && !is_one_of(pass_name, after, strlen(after)) &&
        !is_one_of(transformation_name, after, strlen(after)))
        return usage_error("unknown pass --print-after=%s; visac --help lists the passes", after);
    return EXIT_DONE;
}

/* Returns -1 to go on, else the exit status. */
static int parse_arguments(int argc, char **argv, arena *memory, arguments *a)
{
    enum {
        EMIT = 256,
        MCPU,
        REFERENCE_ORDER,
        PASS,
        SIZES,
        DRAW,
        REPORT,
        TIMING,
        TRACE,
        SWEEP,
        EXPLORE,
        LIMIT,
        TARGET_CYCLES,
        SEARCH,
        FORMAT_SOURCE,
        FORMAT_CHECK,
        CHECK,
        SAMPLES,
        CERTIFICATE,
        SEED,
        KERNEL,
        TARGET,
        PRINT_AFTER,
        PRINT_AFTER_ALL,
        TIME_REPORT,
        MAX_STEPS,
        MAX_BYTES,
        MAX_CYCLES,
        FORMAT,
        COLOR,
        FROM_MARKDOWN,
        EXPLAIN,
        VERSION,
        HELP
    };
    static const struct option options[] = {
        {"emit", required_argument, NULL, EMIT},
        {"mcpu", required_argument, NULL, MCPU},
        {"reference-order", required_argument, NULL, REFERENCE_ORDER},
        {"pass", required_argument, NULL, PASS},
        {"sizes", required_argument, NULL, SIZES},
        {"draw", required_argument, NULL, DRAW},
        {"report", optional_argument, NULL, REPORT},
        {"timing", required_argument, NULL, TIMING},
        {"trace", required_argument, NULL, TRACE},
        {"sweep", required_argument, NULL, SWEEP},
        {"format", no_argument, NULL, FORMAT_SOURCE},
        {"format-check", no_argument, NULL, FORMAT_CHECK},
        {"explore", optional_argument, NULL, EXPLORE},
        {"limit", required_argument, NULL, LIMIT},
        {"target-cycles", required_argument, NULL, TARGET_CYCLES},
        {"search", required_argument, NULL, SEARCH},
        {"check", optional_argument, NULL, CHECK},
        {"samples", required_argument, NULL, SAMPLES},
        {"certificate", required_argument, NULL, CERTIFICATE},
        {"seed", required_argument, NULL, SEED},
        {"kernel", required_argument, NULL, KERNEL},
        {"target", required_argument, NULL, TARGET},
        {"print-after", required_argument, NULL, PRINT_AFTER},
        {"print-after-all", no_argument, NULL, PRINT_AFTER_ALL},
        {"time-report", no_argument, NULL, TIME_REPORT},
        {"max-steps", required_argument, NULL, MAX_STEPS},
        {"max-bytes", required_argument, NULL, MAX_BYTES},
        {"max-cycles", required_argument, NULL, MAX_CYCLES},
        {"diagnostics-format", required_argument, NULL, FORMAT},
        {"color", required_argument, NULL, COLOR},
        {"from-markdown", no_argument, NULL, FROM_MARKDOWN},
        {"explain", required_argument, NULL, EXPLAIN},
        {"version", no_argument, NULL, VERSION},
        {"help", no_argument, NULL, HELP},
        {0},
    };
    *a = (arguments){
        .memory = memory, .seed = 1, .max_cycles = RUN_CYCLES_MAX, .warnings = a->warnings, .options.error_limit = SHOWN_ERRORS_MAX};
    static const char *const formats[] = {"text", "json", "sarif", NULL}, *const colours[] = {"auto", "always", "never", NULL};
    static const visa_diagnostics_format format_values[] = {VISA_DIAGNOSTICS_TEXT, VISA_DIAGNOSTICS_JSON, VISA_DIAGNOSTICS_SARIF};
    enum { COLOUR_AUTO, COLOUR_ALWAYS };
    bool colour = isatty(2);
    int number;
    opterr = 0;
    for (int o; (o = getopt_long(argc, argv, ":o:D:W:f:h", options, NULL)) != -1;)
        switch (o) {
        case 'o': a->output = optarg; break;
        case 'D':
            if (!parse_parameter(a, optarg))
                return usage_error("-D takes NAME=VALUE, or NAME=VALUE,VALUE,..; not `%s`", optarg);
            break;
        case 'W':
            if (!visa_knows_warning(optarg))
                return usage_error("unknown warning option -W%s", optarg);
            a->warnings[a->warning_count++] = optarg;
            break;
        case 'f':
            if (!parse_error_limit(optarg, &a->options.error_limit))
                return usage_error("-ferror-limit=N takes a number of errors, got -f%s", optarg);
            break;
        case EMIT:
            for (a->emit = 0; a->emit < EMIT_KINDS && strcmp(emit_names[a->emit], optarg) != 0;)
                a->emit++;
            a->explore_form = tool_explore_form(&a->explore, optarg) ? optarg : NULL;
            if (a->emit == EMIT_KINDS && !a->explore_form)
                return tool_unknown_value("visac", "--emit=", optarg, emit_names);
            a->emit_given = true;
            break;
        case MCPU: a->mcpu = optarg; break;
        case REFERENCE_ORDER:
            if (!tool_reference_order(optarg, &a->free_order))
                return usage_error("--reference-order is hardware or free, not `%s`", optarg);
            a->order_given = true;
            break;
        case PASS:
            ARENA_PUSH(a->memory, a->passes, a->options.step_pass_count, a->pass_capacity, (const char *)optarg);
            a->options.step_passes = a->passes;
            break;
        case SIZES: a->options.step_sizes = optarg; break;
        case EXPLORE:
            a->explores = true;
            a->explore.model = optarg;
            break;
        case LIMIT:
            if (tool_explore_limits("visac", &a->explore, optarg) != EXIT_DONE)
                return EXIT_USAGE;
            break;
        case TARGET_CYCLES:
            if (tool_explore_target("visac", &a->explore, optarg) != EXIT_DONE)
                return EXIT_USAGE;
            break;
        case SEARCH:
            if (tool_explore_search("visac", &a->explore, optarg) != EXIT_DONE)
                return EXIT_USAGE;
            a->search_given = true;
            break;
        case DRAW: a->draw = optarg; break;
        case FORMAT_SOURCE: a->format_source = a->options.parse_only = true; break;
        case FORMAT_CHECK: a->format_check = a->options.parse_only = true; break;
        case CHECK:
            if (tool_check_kind("visac", &a->check, optarg) != EXIT_DONE)
                return EXIT_USAGE;
            break;
        case SAMPLES:
            if (tool_check_samples("visac", &a->check, optarg) != EXIT_DONE)
                return EXIT_USAGE;
            break;
        case CERTIFICATE: a->check.certificate = optarg; break;
        case REPORT:
            if (tool_report_format("visac", &a->report, optarg) != EXIT_DONE)
                return EXIT_USAGE;
            break;
        case TIMING:
            if (tool_report_timing("visac", &a->report, optarg) != EXIT_DONE)
                return EXIT_USAGE;
            break;
        case TRACE: a->report.trace = optarg; break;
        case SWEEP:
            if (a->sweep)
                return usage_error("--sweep is given twice, `%s` and `%s`: one constant at a time", a->sweep, optarg);
            a->sweep = optarg;
            break;
        case SEED:
            if (!tool_number(optarg, &a->seed))
                return usage_error("--seed takes a number, not `%s`", optarg);
            break;
        case KERNEL: a->kernel = a->options.kernel = optarg; break;
        case TARGET: a->options.target = optarg; break;
        case PRINT_AFTER: a->options.print_after = optarg; break;
        case PRINT_AFTER_ALL: a->options.print_after = "all"; break;
        case TIME_REPORT: a->options.time_report = true; break;
        case MAX_STEPS:
        case MAX_BYTES:
            if (!tool_limit(optarg, o == MAX_STEPS ? &a->options.max_steps : &a->options.max_bytes))
                return usage_error("--max-%s takes a number, 0 for no limit; not `%s`", o == MAX_STEPS ? "steps" : "bytes", optarg);
            break;
        case MAX_CYCLES:
            if (!tool_limit(optarg, &a->max_cycles))
                return usage_error("--max-cycles takes a number of cycles, 0 for no limit; not `%s`", optarg);
            break;
        case FORMAT:
            if (choose("--diagnostics-format=", optarg, formats, &number) != EXIT_DONE)
                return EXIT_USAGE;
            a->format = format_values[number];
            break;
        case COLOR:
            if (choose("--color=", optarg, colours, &number) != EXIT_DONE)
                return EXIT_USAGE;
            colour = number == COLOUR_ALWAYS || (number == COLOUR_AUTO && isatty(2));
            break;
        case FROM_MARKDOWN: a->options.book = true; break;
        case EXPLAIN: return explain(optarg);
        case VERSION: printf("visac %s\n", visa_version()); return EXIT_DONE;
        case 'h':
        case HELP:
            fputs(usage, stdout);
            print_passes();
            return EXIT_DONE;
        case ':': return usage_error("option %s needs a value", argv[optind - 1]);
        default: return tool_unknown_option("visac", options, argv[optind - 1]);
        }
    if (a->format == VISA_DIAGNOSTICS_TEXT && colour)
        a->format = VISA_DIAGNOSTICS_COLOUR;
    a->options.warnings = a->warnings;
    if (check_explore(a) != EXIT_DONE)
        return EXIT_USAGE;
    bool reports = a->report.wanted || a->report.trace;
    if (a->draw && (a->emit_given || a->check.wanted || reports))
        return usage_error("--draw=%s is an output of its own: no --emit, --check or --report beside it", a->draw);
    if (reports && (a->emit_given || a->check.wanted))
        return usage_error("--report and --trace are outputs of their own: no --emit or --check beside them");
    if (a->options.book && (a->emit_given || a->check.wanted || a->draw || a->kernel || a->sweep || reports))
        return usage_error("--from-markdown gives verdicts only: no --emit, --check, --draw, --kernel, --sweep or --report beside it");
    bool diff = optind < argc && strcmp(argv[optind], "diff") == 0;
    optind += diff;
    if (tool_check_complete("visac", &a->check) != EXIT_DONE)
        return EXIT_USAGE;
    if (a->options.parse_only && (a->emit_given || a->check.wanted || a->draw || reports || a->sweep || diff || a->options.book ||
                                  (a->format_check && (a->format_source || a->output))))
        return usage_error("%s stands alone: it compiles nothing", a->format_check ? "--format-check" : "--format");
    if (optind == argc)
        return usage_error("no input file");
    if (diff && optind + 2 != argc)
        return usage_error("diff takes two files, the first is %s", argv[optind]);
    a->other = diff ? argv[optind + 1] : NULL;
    if (diff && strcmp(argv[optind], "-") == 0 && strcmp(a->other, "-") == 0)
        return usage_error("diff takes two files, and only one of them can be standard input");
    a->options.modules = strcmp(argv[optind], "-") != 0;
    if (!diff && optind + 1 < argc)
        return usage_error("more than one input file: %s", argv[optind + 1]);
    if ((a->sweep || diff) && (a->emit_given || a->check.wanted || a->draw || reports))
        return usage_error("%s is an output of its own: no --emit, --check, --draw or --report beside it", diff ? "diff" : "--sweep");
    a->input = argv[optind];
    return check_options(&a->options) == EXIT_DONE ? -1 : EXIT_USAGE;
}

static const char *default_output(const arguments *a, arena *memory)
{
    if (a->output)
        return a->output;
    if ((a->emit != EMIT_BINARY && a->emit != EMIT_OBJ && a->emit != EMIT_BITCODE) || a->draw || a->explores || a->report.wanted ||
        a->format_source || strcmp(a->input, "-") == 0)
        return "-";
    const char *slash = strrchr(a->input, '/'), *name = slash ? slash + 1 : a->input, *dot = strrchr(name, '.');
    size_t stem = dot && dot != name ? (size_t)(dot - name) : strlen(name);
    return arena_printf(memory, "%.*s.%s", (int)stem, name, a->emit == EMIT_OBJ ? "o" : a->emit == EMIT_BITCODE ? "bc" : "bin");
}

/* The file of the main output, NULL: there is none. */
static const char *main_output(const arguments *a, arena *memory)
{
    bool stands_alone = a->sweep || a->other || a->options.book;
    if (stands_alone)
        return a->output ? a->output : "-";
    bool nothing =
        a->format_check || (a->check.wanted && !a->emit_given && !a->output) || (a->report.trace && !a->report.wanted) || a->ranks.rank > 0;
    return nothing ? NULL : default_output(a, memory);
}

/* What is read is not written over; only --format does that, when it is told to. */
static bool declare(arguments *a, arena *memory)
{
    const char *read[] = {a->format_source ? NULL : a->input, a->other, a->options.step_sizes}, *main = main_output(a, memory);
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        if (read[i] && !output_set_reads(a->files, read[i]))
            return false;
    return (!main || (a->to = output_declare(a->files, main))) &&
           (!a->report.trace || (a->report.trace_to = output_declare(a->files, a->report.trace)));
}

/* Ends the writing with the main output. */
static int finish(const arguments *a, const void *data, size_t size)
{
    return output_put(a->to, data, size) && output_set_commit(a->files) ? EXIT_DONE : EXIT_INPUT;
}

/* llvm, asm, obj, header: from the einsum section of the binary, never from anything else. */
static bool emit_reference(const arguments *a, const binary *b, arena *memory, diag_list *diags, const unsigned char **data, size_t *size)
{
    static const reference_output kinds[] = {[EMIT_LLVM] = REFERENCE_LLVM,
                                             [EMIT_BITCODE] = REFERENCE_BITCODE,
                                             [EMIT_ASM] = REFERENCE_ASSEMBLY,
                                             [EMIT_OBJ] = REFERENCE_OBJECT,
                                             [EMIT_HEADER] = REFERENCE_HEADER};
    const binary_kernel *k = binary_choose_kernel(b, a->kernel, diags);
    if (!k)
        return false;
    const reference_api *api = reference_load(diags);
    unsigned char *bytes;
    if (!api || !reference_emit(api, &k->einsum, k->name, a->order_given && !a->free_order ? REFERENCE_MACHINE_ORDER : 0, a->mcpu,
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
    if (a->check.numbers) {
        session *s = session_open(b, k->name, memory, diags);
        ok = s && tool_run_length("visac", s, k->name, a->max_cycles, diags) && session_fill(s, a->seed, diags) &&
             session_run(s, true, diags) && session_check(s, !a->free_order, &agrees, &report, diags);
        session_close(s);
    }
    bool differs = !ok && session_found_mismatch(diags);
    fputs(report, stdout);
    if (!ok && !differs)
        return EXIT_INPUT;
    ok = tool_check_algebra(&a->check, b->target, k, a->seed, 0, memory, diags, &agrees, &proof);
    fputs(proof, stdout);
    return !ok ? EXIT_INPUT : differs || !agrees ? EXIT_MISMATCH : EXIT_DONE;
}

/* Checks one kernel, or all of the binary. A stream program has no reference, and that is said. */
static int check(arguments *a, const binary *b, const unsigned char *bytes, size_t size, arena *memory, diag_list *diags)
{
    int status = EXIT_DONE;
    size_t checked = 0;
    for (size_t i = 0; i < b->program_count; i++)
        printf("%s: not checked: a stream program has no reference kernel\n", b->programs[i].name);
    for (size_t i = 0; i < b->kernel_count; i++) {
        if (a->kernel && strcmp(a->kernel, b->kernels[i].name) != 0)
            continue;
        int of_kernel = check_kernel(a, b, &b->kernels[i], memory, diags);
        if (of_kernel == EXIT_INPUT)
            return EXIT_INPUT;
        status = of_kernel == EXIT_DONE ? status : of_kernel;
        checked++;
    }
    if (checked == 0) {
        diag_help(diags, diag_add(diags, E_CHECK_NOTHING, SRC_NOWHERE, "there is no kernel to check"),
                  "stream programs are run with visa-run; a kernel is a function of a Context or of streams");
        return EXIT_MISMATCH;
    }
    return tool_check_certify(&a->check, a->input, bytes, size, memory) ? status : EXIT_INPUT;
}

/* Of one kernel, or in text and CSV of each: from the commands alone. */
static int write_report(const arguments *a, visa_compilation *c, const unsigned char *text, size_t bytes, arena *memory, diag_list *diags)
{
    const unsigned char *data, *tables, *pictures;
    size_t size;
    binary b;
    if (!visa_emit(c, VISA_EMIT_BINARY, &data, &size) || !binary_read(data, size, memory, diags, &b))
        return EXIT_INPUT;
    tool_report r = a->report;
    if ((b.kernel_count == 0 || r.trace || r.options.format > REPORT_CSV) && !binary_choose_kernel(&b, a->kernel, diags))
        return EXIT_INPUT;
    const char *report = "";
    for (size_t i = 0; i < b.kernel_count; i++) {
        if (r.options.format == REPORT_HTML && visa_emit(c, VISA_EMIT_TABLES, &tables, &size) &&
            visa_pictures(c, b.kernels[i].name, &pictures, &size)) {
            r.options.source = arena_strndup(memory, (const char *)text, bytes);
            r.options.tables = (const char *)tables;
            r.options.pictures = (const char *)pictures;
        }
        if (!tool_report_make(&r, &b, &b.kernels[i], memory, diags, &report))
            return EXIT_INPUT;
    }
    if (r.wanted)
        return finish(a, report, strlen(report));
    return output_set_commit(a->files) ? EXIT_DONE : EXIT_INPUT;
}

static int explore(const arguments *a, visa_compilation *c)
{
    const unsigned char *data;
    size_t size;
    progress line = progress_begin(a->input);
    visa_explore_options o = a->explore;
    o.progress = line.shown ? tool_explore_progress : NULL;
    o.user = &line;
    ranks_join(&a->ranks, &o);
    bool ok = visa_explore(c, &o, &data, &size);
    progress_end(&line);
    if (!ok && visa_gave_up(c) && a->ranks.api) { /* the others wait for what this one found */
        fputs(visa_diagnostics(c, a->format), stderr);
        ranks_fail(&a->ranks, EXIT_INPUT);
    }
    if (!ok && visa_error_count(c) == 0)
        ranks_fail(&a->ranks, EXIT_INPUT);
    return !ok ? EXIT_INPUT : a->ranks.rank > 0 ? EXIT_DONE : finish(a, data, size);
}

/* Is the binary all that is asked of the compilation? */
static bool takes_binary_only(const arguments *a)
{
    bool from_binary = a->emit == EMIT_BINARY || (a->emit >= EMIT_LLVM && a->emit <= EMIT_HEADER);
    return from_binary && !a->options.book && !a->options.parse_only && !a->explores && !a->draw && !a->report.wanted && !a->report.trace;
}

static int produce(arguments *a, visa_compilation *c, const unsigned char *text, size_t bytes, arena *memory, diag_list *diags)
{
    static const visa_emit_kind kinds[] = {VISA_EMIT_BINARY,
                                           VISA_EMIT_TABLES,
                                           VISA_EMIT_JSON,
                                           VISA_EMIT_IR,
                                           VISA_EMIT_AST,
                                           [EMIT_STEP_REPORT] = VISA_EMIT_STEP_REPORT,
                                           [EMIT_STEP_JSON] = VISA_EMIT_STEP_JSON};
    const unsigned char *data;
    size_t size;
    bool from_reference = a->emit >= EMIT_LLVM && a->emit <= EMIT_HEADER, from_binary = from_reference || a->check.wanted;
    bool dataflow = a->emit == EMIT_DATAFLOW || a->emit == EMIT_DATAFLOW_JSON;
    if (a->options.book) {
        const char *verdicts = visa_verdicts(c);
        return finish(a, verdicts, strlen(verdicts));
    }
    if (a->explores)
        return explore(a, c);
    if (a->draw)
        return visa_draw(c, a->draw, &data, &size) ? finish(a, data, size) : EXIT_INPUT;
    if (a->report.wanted || a->report.trace)
        return write_report(a, c, text, bytes, memory, diags);
    if (dataflow && !a->check.wanted)
        return tool_dataflow(c, a->emit == EMIT_DATAFLOW_JSON, memory, diags, &data, &size) ? finish(a, data, size) : EXIT_INPUT;
    if (!visa_emit(c, from_binary ? VISA_EMIT_BINARY : kinds[a->emit], &data, &size))
        return EXIT_INPUT;
    binary b;
    if (from_binary && !binary_read(data, size, memory, diags, &b))
        return EXIT_INPUT;
    int status = a->check.wanted ? check(a, &b, data, size, memory, diags) : EXIT_DONE;
    if (status != EXIT_DONE || (a->check.wanted && !a->output && !a->emit_given)) /* a certificate says what differs, too */
        return status != EXIT_INPUT && a->check.certificate && !a->to && !output_set_commit(a->files) ? EXIT_INPUT : status;
    if (dataflow         ? !tool_dataflow(c, a->emit == EMIT_DATAFLOW_JSON, memory, diags, &data, &size)
        : from_reference ? !emit_reference(a, &b, memory, diags, &data, &size)
                         : from_binary && !visa_emit(c, kinds[a->emit], &data, &size))
        return EXIT_INPUT;
    return finish(a, data, size);
}

/* --format and --format-check. */
static int format(const arguments *a, visa_compilation *c, const unsigned char *text, size_t bytes)
{
    const char *data;
    size_t size;
    if (!visa_format(c, &data, &size))
        return EXIT_INPUT;
    if (!a->format_check)
        return finish(a, data, size);
    bool same = size == bytes && memcmp(data, text, bytes) == 0;
    if (!same)
        fprintf(stderr, "visac: %s: not in its canonical layout; visac --format prints that\n", shown_text(a->input, a->memory));
    return same ? EXIT_DONE : EXIT_INPUT;
}

/* What the compilation says and what was met beside it: one document of JSON or SARIF, where that is asked for. */
static void say(const arguments *a, visa_compilation *c, diag_list *diags)
{
    bool document = a->format == VISA_DIAGNOSTICS_JSON || a->format == VISA_DIAGNOSTICS_SARIF;
    diag_list_sort(diags);
    for (size_t i = 0; i < diags->count && document; i++) {
        const diag *d = diags->items[i];
        const char **notes = ARENA_ARRAY(diags->arena, const char *, d->note_count + 1);
        for (size_t n = 0; n < d->note_count; n++)
            notes[n] = d->notes[n].text;
        visa_add_error(c, diag_row_of(d->id)->name, d->message, notes, d->note_count, d->help);
    }
    if (visa_error_count(c) + visa_warning_count(c) > 0 || document)
        fputs(visa_diagnostics(c, a->format), stderr);
    if (!document)
        tool_print_diags("visac", NULL, diags);
}

/* Without a compilation there is one of nothing. */
static void say_only(const arguments *a, diag_list *diags)
{
    static const visa_options nothing = {.parse_only = true};
    visa_compilation *c = diags->count > 0 ? visa_compile("", "", 0, &nothing) : NULL;
    if (c)
        say(a, c, diags);
    visa_free(c);
}

static bool is_writing_no_module(const arguments *a, const visa_compilation *c)
{
    for (size_t i = 0; visa_module_file(c, i); i++)
        if (!output_set_reads(a->files, visa_module_file(c, i)))
            return false;
    return true;
}

static int compile(arguments *a, arena *memory, diag_list *diags)
{
    size_t size;
    unsigned char *text = ranks_read(&a->ranks, a->input, &size, diags);
    if (!text) {
        say_only(a, diags);
        return EXIT_INPUT;
    }
    visa_options options = a->options;
    options.binary_only = takes_binary_only(a);
    visa_compilation *c = visa_compile(tool_input_name(a->input), (const char *)text, size, &options);
    if (!c) {
        free(text);
        fputs("visac: error: out of memory\n", stderr);
        return EXIT_INPUT;
    }
    int status = !is_writing_no_module(a, c) ? tool_refused(diags)
                 : a->options.parse_only     ? format(a, c, text, size)
                                             : produce(a, c, text, size, memory, diags);
    free(text);
    if (visa_error_count(c) > 0 && status == EXIT_DONE)
        status = EXIT_INPUT;
    say(a, c, diags);
    fputs(visa_pass_dumps(c), stderr);
    fputs(visa_time_report(c), stderr);
    visa_free(c);
    return status;
}

static int run(arguments *a, arena *memory, diag_list *diags)
{
    if (a->explores && !ranks_begin(&a->ranks, diags)) {
        say_only(a, diags);
        return EXIT_INPUT;
    }
    if (!declare(a, memory)) {
        say_only(a, diags);
        if (a->explores)
            ranks_fail(&a->ranks, tool_refused(diags));
        return tool_refused(diags);
    }
    if (!a->other && !a->sweep)
        return compile(a, memory, diags);
    variants v = {"visac", a->input, a->other, a->sweep, a->files, a->to, a->options, a->format, a->report.options.preset};
    int status = a->other ? variants_diff(&v, memory, diags) : variants_sweep(&v, memory, diags);
    say_only(a, diags);
    return status;
}

int main(int argc, char **argv)
{
    stop_begin("visac");
    arena *memory = arena_new();
    if (!memory || setjmp(*arena_guard(memory))) {
        unfinished_remove_all();
        fputs("visac: error: out of memory\n", stderr);
        return EXIT_INPUT;
    }
    arguments a = {.warnings = ARENA_ARRAY(memory, const char *, (size_t)argc + 1)};
    int status = parse_arguments(argc, argv, memory, &a);
    if (status < 0) {
        diag_list diags;
        diag_list_init(&diags, memory);
        a.files = output_set_new(memory, &diags);
        a.ranks.count = 1;
        status = run(&a, memory, &diags);
        output_set_free(a.files);
        ranks_end(&a.ranks);
    }
    arena_free(memory);
    return tool_printed("visac", status);
}
