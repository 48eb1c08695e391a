#include "tools/visac_arguments.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/budget.h"
#include "tools/explore.h"

#define OPTIONS "tools/visac.def"
#include "tools/option_table.h"

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

/* Do --explore and what it takes fit the rest of the command line? */
static int check_explore(const arguments *a)
{
    if (a->explores && ((a->emit_given && !a->explore_form) || a->run.check.wanted || a->draw || a->sweep || a->run.report.wanted ||
                        a->run.report.trace || a->options.book))
        return usage_error(
            "--explore is an output of its own: --emit=text, csv, json, svg or vm with it, no --check, --draw, --sweep or --report");
    bool point = a->explores && a->explore.form == VISA_EXPLORE_POINT;
    bool tuned = a->question && (a->explore.form == VISA_EXPLORE_KERNEL || (a->tunes_file && a->explore.form == VISA_EXPLORE_TEXT));
    if (!a->explores && a->explore_form && !tuned)
        return usage_error("--emit=text and csv are forms of --explore");
    if ((!a->explores || point) &&
        (a->explore.target_cycles || a->explore.target_rate || a->search >= 0 || tool_explore_limited(&a->explore)))
        return usage_error("--limit, --target-cycles, --target-rate and --search belong to --explore");
    if (a->explore.target_cycles && a->explore.target_rate)
        return usage_error("--target-cycles or --target-rate: one of them");
    if (a->explore.folding && !a->explore.target_cycles && !a->explore.target_rate)
        return usage_error("--search=folding needs --target-cycles=N or --target-rate=N");
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
    if (o->dialect && !visa_knows_dialect(o->dialect)) {
        const char *known[16] = {NULL};
        for (size_t i = 0; i < 15 && (known[i] = visa_dialect_name(i)); i++)
            ;
        return tool_unknown_value("visac", "--dialect=", o->dialect, known);
    }
    for (size_t i = 0; i < o->step_pass_count; i++)
        if (!is_one_of(transformation_name, o->step_passes[i], strcspn(o->step_passes[i], ":")))
            return unknown_transformation(o->step_passes[i]);
    const char *after = o->print_after;
    if (after && strcmp(after, "all") != 0 && !is_one_of(pass_name, after, strlen(after)) &&
        !is_one_of(transformation_name, after, strlen(after)))
        return usage_error("unknown pass --print-after=%s; visac --help lists the passes", after);
    return EXIT_DONE;
}

/* ---- an option each: OPTION_GO_ON, or the exit status ---- */

static int option_DEFINE(void *of, const char *text)
{
    arguments *a = of;
    ARENA_PUSH(a->memory, a->define_texts, a->define_count, a->define_capacity, text);
    return OPTION_GO_ON;
}

static int option_BUDGET(void *of, const char *text)
{
    arguments *a = of;
    size_t digits = strspn(text, "0123456789");
    uint64_t seconds;
    if (digits == 0 || digits > 6 || strcmp(text + digits, "s") != 0 || !tool_number(arena_strndup(a->memory, text, digits), &seconds))
        return usage_error("--budget takes seconds of work, 2s, not `%s`", text);
    a->tune.work = seconds * VISA_TUNE_STEPS_OF_SECOND;
    a->budget_given = true;
    return OPTION_GO_ON;
}

/* So many parts of the machine, one at least; which of them there are libvisa says. */
static int take_parts(const char *option, const char *text, int64_t *out)
{
    uint64_t parts;
    if (!tool_number(text, &parts) || parts < 1 || parts > INT32_MAX)
        return usage_error("--%s takes a number from 1 on, not `%s`", option, text);
    *out = (int64_t)parts;
    return OPTION_GO_ON;
}

static int option_CHIPS(void *of, const char *text)
{
    return take_parts("chips", text, &((arguments *)of)->tune.chips);
}

static int option_CLUSTERS(void *of, const char *text)
{
    return take_parts("clusters", text, &((arguments *)of)->tune.clusters);
}

static int option_SLICES(void *of, const char *text)
{
    return take_parts("slices", text, &((arguments *)of)->tune.slices);
}

static int option_PASS(void *of, const char *text)
{
    arguments *a = of;
    ARENA_PUSH(a->memory, a->passes, a->options.step_pass_count, a->pass_capacity, text);
    a->options.step_passes = a->passes;
    return OPTION_GO_ON;
}

static int option_INPUT(void *of, const char *text)
{
    arguments *a = of;
    ARENA_PUSH(a->memory, a->inputs, a->input_count, a->input_capacity, text);
    return OPTION_GO_ON;
}

static int option_ONCHIP_BYTES(void *of, const char *text)
{
    arguments *a = of;
    uint64_t bytes;
    if (!tool_number(text, &bytes) || bytes > UINT64_C(1) << 50)
        return usage_error("--onchip-bytes takes bytes, at most 2^50; not `%s`", text);
    a->options.step_onchip_bytes = (int64_t)bytes;
    return OPTION_GO_ON;
}

static int option_COMPUTE_TILE(void *of, const char *text)
{
    arguments *a = of;
    uint64_t rows;
    if (!tool_number(text, &rows) || rows < 1 || rows > 1024)
        return usage_error("--compute-tile takes rows and columns of a tile, 1 to 1024; not `%s`", text);
    a->options.step_compute_tile = (int64_t)rows;
    return OPTION_GO_ON;
}

static int option_SWEEP(void *of, const char *text)
{
    arguments *a = of;
    if (a->sweep)
        return usage_error("--sweep is given twice, `%s` and `%s`: name all constants in one", a->sweep, text);
    a->sweep = text;
    return OPTION_GO_ON;
}

static int option_FORMAT(void *of, const char *text)
{
    arguments *a = of;
    (void)text;
    a->format_source = a->options.parse_only = true;
    return OPTION_GO_ON;
}

static int option_FORMAT_CHECK(void *of, const char *text)
{
    arguments *a = of;
    (void)text;
    a->format_check = a->options.parse_only = true;
    return OPTION_GO_ON;
}

static int option_UPGRADE(void *of, const char *text)
{
    arguments *a = of;
    (void)text;
    a->upgrades = a->options.places_all = true;
    return OPTION_GO_ON;
}

static int option_EXPLAIN_MAPPING(void *of, const char *text)
{
    arguments *a = of;
    char *end = NULL;
    unsigned long line = text ? strtoul(text, &end, 10) : 0;
    if (text && (*end || end == text || line == 0 || line > UINT32_MAX))
        return usage_error("--explain-mapping takes a line of the source, not `%s`", text);
    a->explains = true;
    a->explain_line = (uint32_t)line;
    return OPTION_GO_ON;
}

static int option_EXPLORE(void *of, const char *text)
{
    arguments *a = of;
    a->explores = true;
    a->explore.model = text;
    return OPTION_GO_ON;
}

static int option_LIMIT(void *of, const char *text)
{
    arguments *a = of;
    return option_status(tool_explore_limits("visac", &a->explore, text));
}

static int option_TARGET_CYCLES(void *of, const char *text)
{
    arguments *a = of;
    return option_status(tool_explore_target("visac", &a->explore, text));
}

static int option_TARGET_RATE(void *of, const char *text)
{
    arguments *a = of;
    return option_status(tool_explore_rate("visac", &a->explore, text));
}

static int option_PRINT_AFTER_ALL(void *of, const char *text)
{
    arguments *a = of;
    (void)text;
    a->options.print_after = "all";
    return OPTION_GO_ON;
}

static int option_WARNING(void *of, const char *text)
{
    arguments *a = of;
    if (!visa_knows_warning(text))
        return usage_error("unknown warning option -W%s", text);
    a->warnings[a->warning_count++] = text;
    return OPTION_GO_ON;
}

static int option_ERROR_LIMIT(void *of, const char *text)
{
    arguments *a = of;
    return parse_error_limit(text, &a->options.error_limit) ? OPTION_GO_ON
                                                            : usage_error("-ferror-limit=N takes a number of errors, got -f%s", text);
}

static int option_JOBS(void *of, const char *text)
{
    enum { MOST = 1024 };
    arguments *a = of;
    uint64_t jobs;
    if (!tool_number(text, &jobs) || jobs == 0 || jobs > MOST)
        return usage_error("--jobs takes a number from 1 to %d, not `%s`", MOST, text);
    a->options.jobs = (size_t)jobs;
    return OPTION_GO_ON;
}

static int option_EXPLAIN(void *of, const char *text)
{
    (void)of;
    return explain(text);
}

static int option_VERSION(void *of, const char *text)
{
    (void)of;
    if (text && strcmp(text, "json") == 0) {
        printf("{\"visac\": \"%s\", \"binary_format\": %d, \"targets\": [", visa_version(), BINARY_FORMAT_VERSION);
        for (size_t i = 0; visa_target_name(i); i++)
            printf("%s\"%s\"", i ? ", " : "", visa_target_name(i));
        fputs("], \"releases\": [", stdout);
        for (size_t i = 0; visa_dialect_name(i); i++)
            printf("%s\"%s\"", i ? ", " : "", visa_dialect_name(i));
        puts("]}");
    } else {
        printf("visac %s\n", visa_version());
    }
    return EXIT_DONE;
}

static int option_HELP(void *of, const char *text)
{
    (void)of, (void)text;
    option_rows_print("visac", option_rows, OPTION_ROWS);
    print_passes();
    return EXIT_DONE;
}

/* What the numbers of chosen values mean; their order is that of visac.def. */
static void take_choices(arguments *a)
{
    enum { COLOUR_AUTO, COLOUR_ALWAYS };
    static const visa_order orders[] = {VISA_ORDER_AUTO, VISA_ORDER_SOURCE, VISA_ORDER_FREE};
    static const visa_diagnostics_format formats[] = {VISA_DIAGNOSTICS_TEXT, VISA_DIAGNOSTICS_JSON, VISA_DIAGNOSTICS_SARIF};
    static const visa_explore_form forms[] = {VISA_EXPLORE_TEXT, VISA_EXPLORE_CSV, VISA_EXPLORE_SVG, VISA_EXPLORE_KERNEL};
    const char *no_colour = getenv("NO_COLOR"); /* https://no-color.org: set, and not empty */
    a->emit_given = a->emit_choice >= 0;
    a->explore_form = a->emit_choice >= EMIT_KINDS;
    a->emits_three = a->emit_choice == EMIT_THREE;
    if (a->emits_three)
        a->explore_form = false;
    else if (a->emit_choice == EMIT_STEP_SVG && !a->explores && !a->question) { /* the picture of a graph */
        a->explore_form = false;
        a->emit = EMIT_STEP_SVG;
    } else if (a->explore_form)
        a->explore.form = forms[a->emit_choice - EMIT_KINDS];
    else if (a->explores && a->emit_choice == EMIT_JSON) { /* one word for both */
        a->explore_form = true;
        a->explore.form = VISA_EXPLORE_JSON;
    } else if (a->emit_given && !a->emits_three)
        a->emit = (emit_kind)a->emit_choice;
    if (!a->explores && !a->question && a->explore_form && a->explore.form == VISA_EXPLORE_KERNEL) {
        a->explores = true;
        a->explore.form = VISA_EXPLORE_POINT;
    }
    a->explore.folding = a->search == 1;
    a->explore.chain = a->search == 2;
    a->options.places_all |= a->place == 1;
    a->options.order = orders[a->order];
    a->colour = a->colour_when == COLOUR_ALWAYS || (a->colour_when == COLOUR_AUTO && isatty(2) && !(no_colour && *no_colour));
    a->format = formats[a->diagnostics];
    if (a->format == VISA_DIAGNOSTICS_TEXT && a->colour)
        a->format = VISA_DIAGNOSTICS_COLOUR;
}

/* ---- all of it ---- */

/* -D of a file gives one name a value or several; of a question several names a value each, M=64,N=32. */
static int parse_defines(arguments *a)
{
    for (size_t i = 0; i < a->define_count; i++) {
        const char *text = a->define_texts[i];
        bool asks = a->question && !a->tunes_file;
        if (!asks && !parse_parameter(a, text))
            return usage_error("-D takes NAME=VALUE, or NAME=VALUE,VALUE,..; not `%s`", text);
        for (const char *at = text; asks && *at;) {
            size_t length = strcspn(at, ",");
            const char *one = arena_strndup(a->memory, at, length);
            if (!parse_parameter(a, one))
                return usage_error("-D of a question takes NAME=SIZE,NAME=SIZE,..; not `%s`", text);
            at += length + (at[length] == ',');
        }
    }
    a->tune.sizes = a->parameters;
    a->tune.size_count = a->options.parameter_count;
    if (a->question && !a->tunes_file)
        a->options.parameter_count = 0;
    return EXIT_DONE;
}

/* `visac tune QUESTION`: what it takes, and what belongs to it alone. */
static int check_tune(const arguments *a)
{
    bool told = a->tune.dtype || a->tune.out_dtype || a->tune.chips || a->tune.clusters || a->tune.slices || a->tune.free_tensors ||
                a->budget_given || a->no_cache;
    if (!a->question && a->emits_three)
        return usage_error("--emit=vm,bin,report belongs to `visac tune`");
    if (a->emits_three && (a->run.report.wanted || a->run.report.trace || a->run.check.wanted))
        return usage_error("--emit=vm,bin,report is all that is written: no --report, --trace or --check with it");
    if (!a->question && told)
        return usage_error("--dtype, --out, --chips, --clusters, --slices, --free, --budget and --no-cache belong to `visac tune`");
    if (!a->tunes_file && a->input_count > 0)
        return usage_error("--input belongs to `visac tune` of a file with a stream program; visa-run takes tensors and tokens");
    if (a->question && (a->explores || (a->sweep && !a->tunes_file) || a->draw || a->options.book || a->options.parse_only || a->fixes ||
                        a->upgrades || a->explains))
        return usage_error("`visac tune` writes a kernel: --emit, --report, --trace or --check with it, no other output");
    return EXIT_DONE;
}

static int check_tuned_program(const arguments *a)
{
    if (a->tune.dtype || a->tune.out_dtype || a->tune.chips || a->tune.clusters || a->tune.slices || a->tune.free_tensors ||
        a->run.report.wanted || a->run.report.trace || a->run.check.wanted)
        return usage_error("%s holds a stream program: no --dtype, --out, --chips, --clusters, --slices, --free, --report, --trace or "
                           "--check with `visac tune`",
                           a->question);
    if (a->emit_given && !(a->explore_form && a->explore.form == VISA_EXPLORE_TEXT) && (a->explore_form || a->emit != EMIT_JSON))
        return usage_error("%s holds a stream program, of which `visac tune` writes --emit=text or json", a->question);
    return EXIT_DONE;
}

static int check_tuned_kernels(const arguments *a)
{
    if (a->tune.dtype || a->tune.out_dtype || a->tune.free_tensors || a->define_count > 0)
        return usage_error("sizes, types and layouts of %s are those of its axes and parameters: no -D, --dtype, --out or --free",
                           a->question);
    if (a->sweep || a->input_count > 0 || (a->explore_form && a->explore.form == VISA_EXPLORE_TEXT))
        return usage_error("%s holds no stream program: no --sweep, --input or --emit=text with `visac tune`", a->question);
    return EXIT_DONE;
}

int visac_arguments_of_file(const arguments *a)
{
    return a->tunes_program ? check_tuned_program(a) : check_tuned_kernels(a);
}

bool visac_arguments_ask(const arguments *a)
{
    return option_rows_ask(option_rows, OPTION_ROWS, a->given);
}

bool visac_arguments_fit(const arguments *a, unsigned holds, const char *file, diag_list *diags)
{
    return option_rows_fit(option_rows, OPTION_ROWS, a->given, holds, arena_printf(diags->arena, "%s holds none", file), NULL, diags);
}

/* `visac init [DIR]`; an option before the word or after it was read, and put before. */
static int parse_project(int argc, char **argv, arguments *a)
{
    if (optind > 1 || argc > optind + 2)
        return usage_error("init takes a folder, and no option: visac init [DIR]");
    a->project = optind + 1 < argc ? argv[optind + 1] : ".";
    return OPTION_GO_ON;
}

/* `--version --json`, as other compilers are asked. */
static bool asks_version_json(int argc, char **argv)
{
    return argc == 3 && ((strcmp(argv[1], "--version") == 0 && strcmp(argv[2], "--json") == 0) ||
                         (strcmp(argv[1], "--json") == 0 && strcmp(argv[2], "--version") == 0));
}

int visac_arguments_parse(int argc, char **argv, arena *memory, arguments *a)
{
    if (asks_version_json(argc, argv))
        return option_VERSION(a, "json");
    *a = (arguments){.memory = memory,
                     .run = tool_run_new("visac"),
                     .warnings = a->warnings,
                     .emit_choice = -1,
                     .search = -1,
                     .tune.work = UINT64_C(2) * VISA_TUNE_STEPS_OF_SECOND,
                     .options.error_limit = SHOWN_ERRORS_MAX};
    int status = option_rows_parse("visac", option_rows, OPTION_ROWS, argc, argv, a, a->given);
    if (status != OPTION_GO_ON)
        return status;
    a->options.kernel = a->run.kernel;
    a->options.warnings = a->warnings;
    bool tunes = optind < argc && strcmp(argv[optind], "tune") == 0;
    optind += tunes;
    a->question = tunes && optind < argc ? argv[optind] : NULL;
    take_choices(a);
    size_t length = a->question ? strlen(a->question) : 0;
    a->tunes_file = a->question && (strcmp(a->question, "-") == 0 || (length > 3 && strcmp(a->question + length - 3, ".vm") == 0));
    if (tunes && !a->question)
        return usage_error("tune takes a question: visac tune 'C[m, n] = sum(k) A[m, k] * B[n, k]' -D m=64,n=64,k=64");
    if (check_tune(a) != EXIT_DONE || parse_defines(a) != EXIT_DONE || check_explore(a) != EXIT_DONE)
        return EXIT_USAGE;
    bool reports = a->run.report.wanted || a->run.report.trace;
    if (a->draw && (a->emit_given || a->run.check.wanted || reports))
        return usage_error("--draw=%s is an output of its own: no --emit, --check or --report with it", a->draw);
    if (reports && (a->emit_given || a->run.check.wanted))
        return usage_error("--report and --trace are outputs of their own: no --emit or --check with them");
    if (a->output && a->run.report.trace && !a->run.report.wanted)
        return usage_error("--trace alone has nothing for -o %s: compile apart, or give --report as well", a->output);
    if (a->options.book && (a->emit_given || a->run.check.wanted || a->draw || a->run.kernel || a->sweep || reports))
        return usage_error("--from-markdown gives verdicts only: no --emit, --check, --draw, --kernel, --sweep or --report with it");
    bool diff = !tunes && optind < argc && strcmp(argv[optind], "diff") == 0;
    optind += diff;
    a->advises = !tunes && !diff && optind < argc && strcmp(argv[optind], "advise") == 0;
    optind += a->advises;
    if (a->applies && !a->advises)
        return usage_error("--apply is for `visac advise FILE`");
    if (a->advises && (a->emit_given || a->run.check.wanted || a->draw || reports || a->sweep || a->options.book || a->explores ||
                       a->options.parse_only || a->explains || a->fixes || a->upgrades))
        return usage_error("advise is an output of its own: no --emit, --check, --draw, --report, --sweep or --explore with it");
    if (tool_check_complete("visac", &a->run.check) != EXIT_DONE ||
        tool_check_alone("visac", &a->run.check, 2, (const char *[]){a->output, a->run.check.certificate}) != EXIT_DONE)
        return EXIT_USAGE;
    if (a->run.check.json && a->emit_given && !a->output)
        return usage_error("--check-format=json fills standard output: -o FILE says where --emit goes");
    if (a->options.parse_only && (a->emit_given || a->run.check.wanted || a->draw || reports || a->sweep || diff || a->options.book ||
                                  (a->format_check && (a->format_source || a->output))))
        return usage_error("%s stands alone: it compiles nothing", a->format_check ? "--format-check" : "--format");
    bool explains_page = a->run.report.wanted && a->run.report.options.format == REPORT_HTML && !a->run.report.trace;
    if (a->explains && (a->emit_given || a->run.check.wanted || a->draw || (reports && !explains_page) || a->sweep || diff ||
                        a->options.book || a->explores || a->options.parse_only || a->fixes || a->upgrades))
        return usage_error("--explain-mapping stands alone, or with --report=html: it prints what it knows of contractions");
    if (a->fixes && (a->emit_given || a->run.check.wanted || a->draw || reports || a->sweep || diff || a->explores ||
                     a->options.parse_only || a->upgrades))
        return usage_error("--fix stands alone: it prints the whole source with what its diagnostics say to write");
    if (a->upgrades && (a->emit_given || a->run.check.wanted || a->draw || reports || a->sweep || diff || a->options.book || a->explores ||
                        a->options.parse_only || a->run.kernel || a->options.dialect))
        return usage_error("--upgrade stands alone: it prints the whole source as the newest release writes it");
    if (!tunes && !diff && !a->advises && optind < argc && strcmp(argv[optind], "init") == 0)
        return parse_project(argc, argv, a);
    if (optind == argc)
        return usage_error("no input file");
    if (diff && optind + 2 != argc)
        return usage_error("diff takes two files, the first is %s", argv[optind]);
    a->other = diff ? argv[optind + 1] : NULL;
    if (diff && strcmp(argv[optind], "-") == 0 && strcmp(a->other, "-") == 0)
        return usage_error("diff takes two files, and only one of them can be standard input");
    a->options.modules = !tunes && strcmp(argv[optind], "-") != 0;
    if (tunes && optind + 1 < argc)
        return usage_error("more than one question: %s; put the question in quotes, because a shell takes its words apart and names of "
                           "files for its *: visac tune 'C[m, n] = sum(k) A[m, k] * B[n, k]' -D m=64,n=64,k=64",
                           argv[optind + 1]);
    if (!diff && optind + 1 < argc)
        return usage_error("more than one input file: %s", argv[optind + 1]);
    if (((a->sweep && !tunes) || diff) && (a->emit_given || a->run.check.wanted || a->draw || reports))
        return usage_error("%s is an output of its own: no --emit, --check, --draw or --report with it", diff ? "diff" : "--sweep");
    a->input = tunes ? "tuned.vm" : argv[optind]; /* the file that was never written: its name is that of outputs */
    return check_options(&a->options) == EXIT_DONE ? -1 : EXIT_USAGE;
}
