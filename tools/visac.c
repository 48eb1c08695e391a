/* visac: from the command line to what it asks for. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/visa_editor.h"
#include "libvisa/project/project.h"
#include "libvisa/variants/program_space.h"
#include "runtime/machine/parallel.h"
#include "support/budget.h"
#include "support/file.h"
#include "support/shown.h"
#include "support/stop.h"
#include "tools/dataflow.h"
#include "tools/explore.h"
#include "tools/libraries.h"
#include "tools/option_row.h"
#include "tools/progress.h"
#include "tools/variants.h"
#include "tools/visac_arguments.h"

/* Is the source itself what is asked for? */
static bool takes_source(const arguments *a)
{
    return a->question && (a->explore_form || (!a->emit_given && !a->run.report.wanted && !a->run.report.trace && !a->run.check.wanted));
}

static const char *default_output(const arguments *a, arena *memory)
{
    if (a->output)
        return a->output;
    if (takes_source(a) || (a->emit != EMIT_BINARY && a->emit != EMIT_OBJ && a->emit != EMIT_BITCODE) || a->draw || a->explores ||
        a->run.report.wanted || a->format_source || a->fixes || a->upgrades || a->explains || strcmp(a->input, "-") == 0)
        return "-";
    const char *slash = strrchr(a->input, '/'), *name = slash ? slash + 1 : a->input, *dot = strrchr(name, '.');
    size_t stem = dot && dot != name ? (size_t)(dot - name) : strlen(name);
    return arena_printf(memory, "%.*s.%s", (int)stem, name, a->emit == EMIT_OBJ ? "o" : a->emit == EMIT_BITCODE ? "bc" : "bin");
}

/* The file of the main output, NULL: there is none. */
static const char *main_output(const arguments *a, arena *memory)
{
    bool stands_alone = a->sweep || a->tunes_program || a->other || a->options.book || a->advises;
    if (stands_alone)
        return a->output ? a->output : "-";
    bool nothing = a->format_check || (a->run.check.wanted && !a->emit_given && !a->output) ||
                   (a->run.report.trace && !a->run.report.wanted) || a->ranks.rank > 0 || a->emits_three;
    return nothing ? NULL : default_output(a, memory);
}

/* What is read is not written over; only --format, --fix and --upgrade do that, when they are told to. */
static bool declare(arguments *a, arena *memory)
{
    const char *read[] = {a->format_source || a->fixes || a->upgrades || (a->question && !a->tunes_file) ? NULL
                          : a->tunes_file                                                                ? a->question
                                                                                                         : a->input,
                          a->other, a->options.step_sizes},
               *main = main_output(a, memory);
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        if (read[i] && !output_set_reads(a->files, read[i]))
            return false;
    for (size_t i = 0; i < a->input_count; i++) {
        const char *equals = strchr(a->inputs[i], '=');
        if (equals && !output_set_reads(a->files, equals + 1))
            return false;
    }
    static const char *const endings[] = {".vm", ".bin", ".txt"};
    const char *stem = a->output ? a->output : "tuned";
    size_t length = strlen(stem);
    length -= length > 3 && strcmp(stem + length - 3, ".vm") == 0 ? 3 : 0;
    for (size_t i = 0; a->emits_three && i < 3; i++)
        if (!(a->three[i] = output_declare(a->files, arena_printf(memory, "%.*s%s", (int)length, stem, endings[i]))))
            return false;
    return (!main || (a->to = output_declare(a->files, main))) && tool_run_declare(&a->run, a->files);
}

/* Ends the writing with the main output. */
static int finish(const arguments *a, const void *data, size_t size)
{
    return output_put(a->to, data, size) && output_set_commit(a->files) ? EXIT_DONE : EXIT_INPUT;
}

/* Of stream programs: costs over their sizes. When an operator runs only its tokens say. */
static int write_cost_report(const arguments *a, visa_compilation *c, const char *name, diag_list *diags)
{
    static const visa_emit_kind kinds[] = {[REPORT_TEXT] = VISA_EMIT_STEP_REPORT,
                                           [REPORT_CSV] = VISA_EMIT_STEP_CSV,
                                           [REPORT_JSON] = VISA_EMIT_STEP_JSON,
                                           [REPORT_HTML] = VISA_EMIT_STEP_PAGE};
    const unsigned char *data;
    size_t size;
    if (a->run.report.trace) {
        diag *d = diag_add(diags, E_STEP_OPTION, SRC_NOWHERE,
                           "--trace: `%s` is a stream program; when its operators run depends on the tokens that come in", name);
        diag_help(diags, d, "run it: visa-run FILE.bin --input STREAM=FILE --trace=FILE");
        return EXIT_INPUT;
    }
    return visa_emit(c, kinds[a->run.report.options.format], &data, &size) ? finish(a, data, size) : EXIT_INPUT;
}

/* Of one kernel, or in text and CSV of each: from the commands alone. */
static int write_report(const arguments *a, visa_compilation *c, const unsigned char *text, size_t bytes, arena *memory, diag_list *diags)
{
    const unsigned char *data, *tables, *pictures;
    size_t size;
    binary b;
    if (!visa_emit(c, VISA_EMIT_BINARY, &data, &size) || !binary_read(data, size, memory, diags, &b))
        return EXIT_INPUT;
    const step_program *program = binary_program_by_name(&b, a->run.kernel);
    if (b.kernel_count == 0 && b.program_count > 0)
        program = &b.programs[0];
    if (program)
        return write_cost_report(a, c, program->name, diags);
    tool_report r = a->run.report;
    if ((b.kernel_count == 0 || r.trace || r.options.format > REPORT_CSV) && !binary_choose_kernel(&b, a->run.kernel, diags))
        return EXIT_INPUT;
    strbuf report;
    strbuf_init(&report, memory);
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
    if (r.wanted && r.options.format == REPORT_TEXT && visa_emit(c, VISA_EMIT_MOVED, &tables, &size)) /* the binary does not know it */
        strbuf_puts(&report, (const char *)tables);
    if (r.wanted && r.options.format == REPORT_TEXT)
        strbuf_puts(&report, variants_switches(a->input, text, bytes, &a->options, r.options.preset, memory));
    if (r.wanted && r.options.format == REPORT_TEXT && b.program_count > 0 && visa_emit(c, VISA_EMIT_STEP_REPORT, &tables, &size))
        strbuf_printf(&report, "\n%s", (const char *)tables);
    if (r.wanted)
        return finish(a, report.text, report.bytes);
    return output_set_commit(a->files) ? EXIT_DONE : EXIT_INPUT;
}

static int explore(const arguments *a, visa_compilation *c)
{
    const unsigned char *data;
    size_t size;
    progress line = progress_begin(a->input);
    visa_explore_options o = a->explore;
    o.progress = line.shown ? progress_show : NULL;
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
    return from_binary && !a->options.book && !a->options.parse_only && !a->fixes && !a->upgrades && !a->explains && !a->explores &&
           !a->draw && !a->run.report.wanted && !a->run.report.trace;
}

static int produce(arguments *a, visa_compilation *c, const unsigned char *text, size_t bytes, arena *memory, diag_list *diags)
{
    static const visa_emit_kind kinds[] = {VISA_EMIT_BINARY,
                                           VISA_EMIT_TABLES,
                                           VISA_EMIT_JSON,
                                           VISA_EMIT_IR,
                                           VISA_EMIT_AST,
                                           [EMIT_STEP_REPORT] = VISA_EMIT_STEP_REPORT,
                                           [EMIT_STEP_JSON] = VISA_EMIT_STEP_JSON,
                                           [EMIT_MEMORY] = VISA_EMIT_MEMORY,
                                           [EMIT_MEMORY_JSON] = VISA_EMIT_MEMORY_JSON,
                                           [EMIT_MEMORY_SVG] = VISA_EMIT_MEMORY_SVG,
                                           [EMIT_ORDER] = VISA_EMIT_ORDER,
                                           [EMIT_STEP_DOT] = VISA_EMIT_STEP_DOT,
                                           [EMIT_STEP_SVG] = VISA_EMIT_STEP_SVG,
                                           [EMIT_FINN] = VISA_EMIT_FINN};
    const unsigned char *data;
    size_t size;
    bool from_reference = a->emit >= EMIT_LLVM && a->emit <= EMIT_HEADER, from_binary = from_reference || a->run.check.wanted;
    bool dataflow = a->emit == EMIT_DATAFLOW || a->emit == EMIT_DATAFLOW_JSON;
    if (a->options.book) {
        const char *verdicts = visa_verdicts(c);
        return finish(a, verdicts, strlen(verdicts));
    }
    if (a->explores)
        return explore(a, c);
    if (a->draw)
        return visa_draw(c, a->draw, &data, &size) ? finish(a, data, size) : EXIT_INPUT;
    if (a->run.report.wanted || a->run.report.trace)
        return write_report(a, c, text, bytes, memory, diags);
    if (dataflow && !a->run.check.wanted)
        return tool_dataflow(c, a->emit == EMIT_DATAFLOW_JSON, memory, diags, &data, &size) ? finish(a, data, size) : EXIT_INPUT;
    if (!visa_emit(c, from_binary ? VISA_EMIT_BINARY : kinds[a->emit], &data, &size))
        return EXIT_INPUT;
    binary b;
    if (from_binary && !binary_read(data, size, memory, diags, &b))
        return EXIT_INPUT;
    int status = a->run.check.wanted ? a->work->check(a, &b, data, size, memory, diags) : EXIT_DONE;
    if (status != EXIT_DONE || (a->run.check.wanted && !a->output && !a->emit_given)) /* a certificate says what differs, too */
        return status != EXIT_INPUT && a->run.check.certificate && !a->to && !output_set_commit(a->files) ? EXIT_INPUT : status;
    if (dataflow         ? !tool_dataflow(c, a->emit == EMIT_DATAFLOW_JSON, memory, diags, &data, &size)
        : from_reference ? !a->work->emit(a, &b, memory, diags, &data, &size)
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

/* Does what is printed go over what was read? */
static bool is_in_place(const arguments *a)
{
    struct stat in, out;
    return a->output && stat(a->input, &in) == 0 && stat(a->output, &out) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino;
}

/* A file and those of its modules are of one release: all of them are written, or none is. */
static int upgrade(const arguments *a, visa_compilation *c, diag_list *diags)
{
    const char *data, *path, *text;
    size_t size, bytes;
    if (!visa_upgrade(c, &a->options, &data, &size))
        return EXIT_INPUT;
    for (size_t i = 0; visa_upgraded_module(c, i, &path, &text, &bytes); i++) {
        if (!is_in_place(a)) {
            diag *d =
                diag_add(diags, E_UPGRADE, SRC_NOWHERE, "%s, a module of it, is of an older release, too", shown_text(path, a->memory));
            diag_help(diags, d, "let all files be written over: visac --upgrade %s -o %s", shown_text(a->input, a->memory),
                      shown_text(a->input, a->memory));
            return EXIT_INPUT;
        }
        output *to = output_declare(a->files, path);
        if (!to || !output_put(to, text, bytes))
            return EXIT_INPUT;
    }
    return finish(a, data, size);
}

/* Modules of other files that could be fixed: they are, when they are asked for. */
static void fixes_elsewhere(const arguments *a, visa_compilation *c)
{
    visa_diagnostic d;
    int told = 0;
    for (size_t i = 0; !a->options.book && visa_diagnostic_at(c, i, &d); i++) {
        if (d.edit_count == 0 || d.edits[0].place.file <= 0 || d.edits[0].place.file == told)
            continue;
        told = d.edits[0].place.file;
        const char *path = shown_text(visa_file_name(c, told), a->memory);
        fprintf(stderr, "visac: a module of it has fixes, too: visac --fix %s -o %s\n", path, path);
    }
}

static int fix(const arguments *a, visa_compilation *c, size_t changes)
{
    size_t size;
    const char *text = visa_fixed_text(c, &size);
    if (!text)
        return EXIT_INPUT;
    fprintf(stderr, "visac: %s: %zu fix%s made\n", shown_text(a->input, a->memory), changes, changes == 1 ? "" : "es");
    fixes_elsewhere(a, c);
    return finish(a, text, size);
}

static int explain(const arguments *a, visa_compilation *c)
{
    const char *data;
    size_t size;
    bool (*text)(visa_compilation *, uint32_t, const char **, size_t *) =
        a->run.report.wanted ? visa_explain_mapping_page : visa_explain_mapping;
    return text(c, a->explain_line, &data, &size) ? finish(a, data, size) : EXIT_INPUT;
}

/* What the compilation says and what was met on the way: one document of JSON or SARIF, where that is asked for. */
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
    else if (diags->count > 0) /* the file could not be read for the same reason */
        tool_out_of_memory("visac");
    visa_free(c);
}

static bool is_writing_no_module(const arguments *a, const visa_compilation *c)
{
    for (size_t i = 0; visa_module_file(c, i); i++)
        if (!output_set_reads(a->files, visa_module_file(c, i)))
            return false;
    return true;
}

/* Do processes that a launcher started do this together? */
static bool is_shared(const arguments *a)
{
    return a->explores || a->question;
}

/* Where answers are kept: the folder that programs have for such things. NULL: there is none. */
static const char *cache_folder(arena *memory)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (base && *base == '/')
        return arena_printf(memory, "%s/visac", base);
    return home && *home == '/' ? arena_printf(memory, "%s/.cache/visac", home) : NULL;
}

/* This build, which the version alone does not tell while a tree is worked on: size and time of the file `visac`, that of visac-plugins
 * next to it too. NULL: unknown. */
static const char *build_text(arena *memory)
{
    char path[PATH_MAX];
    ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 1);
    struct stat of;
    if (bytes <= 0)
        return NULL;
    path[bytes] = '\0';
    char *slash = strrchr(path, '/');
    const char *program = slash ? arena_printf(memory, "%.*s/visac", (int)(slash - path), path) : path;
    if (stat(program, &of) != 0)
        return NULL;
    return arena_printf(memory, "%lld bytes of %lld.%09ld", (long long)of.st_size, (long long)of.st_mtim.tv_sec, of.st_mtim.tv_nsec);
}

/* The source of a question, malloc'd as that of a file is; NULL: diagnosed. */
static unsigned char *tune(const arguments *a, size_t *size)
{
    visa_tune_options o = a->tune;
    o.question = a->question;
    o.timing = timing_preset_name(a->run.report.options.preset);
    o.cache_build = a->no_cache ? NULL : build_text(a->memory);
    o.cache = o.cache_build ? cache_folder(a->memory) : NULL;
    ranks_join_tune(&a->ranks, &o);
    progress bar = progress_begin("tune");
    o.progress = bar.shown ? progress_show : NULL;
    o.user = &bar;
    const char *source;
    visa_compilation *c = a->tunes_file
                              ? visa_tune_file(tool_input_name(a->question), (const char *)a->tuned, a->tuned_bytes, &o, &source, size)
                              : visa_tune(&o, &source, size);
    progress_end(&bar);
    unsigned char *text = source ? malloc(*size + 1) : NULL;
    if (text)
        memcpy(text, source, *size + 1);
    if (!c || (source && !text))
        fputs("visac: error: out of memory\n", stderr);
    else if (visa_error_count(c) + visa_warning_count(c) > 0)
        fputs(visa_diagnostics(c, a->format), stderr);
    if (!text && (!c || visa_gave_up(c) || visa_error_count(c) == 0)) /* the others wait for what this one found */
        ranks_fail(&a->ranks, EXIT_INPUT);
    visa_free(c);
    return text;
}

/* The source of an answer, its binary and its report, all or none. */
static int write_three(const arguments *a, visa_compilation *c, const unsigned char *text, size_t bytes, arena *memory, diag_list *diags)
{
    const unsigned char *data;
    size_t size;
    binary b;
    tool_report r = a->run.report;
    strbuf report;
    strbuf_init(&report, memory);
    if (!visa_emit(c, VISA_EMIT_BINARY, &data, &size) || !binary_read(data, size, memory, diags, &b))
        return EXIT_INPUT;
    r.wanted = true;
    for (size_t i = 0; i < b.kernel_count; i++)
        if (!tool_report_make(&r, &b, &b.kernels[i], memory, diags, &report))
            return EXIT_INPUT;
    return output_put(a->three[0], text, bytes) && output_put(a->three[1], data, size) &&
                   output_put(a->three[2], report.text, report.bytes) && output_set_commit(a->files)
               ? EXIT_DONE
               : EXIT_INPUT;
}

/* Do the options say something of what was compiled? What is wrong with that comes first. */
static bool fits(const arguments *a, const visa_compilation *c, const char *file, diag_list *diags)
{
    size_t programs = visa_program_count(c), kernels = visa_kernel_count(c) - programs;
    return visa_error_count(c) > 0 || visac_arguments_fit(a, (kernels ? OF_KERNELS : 0) | (programs ? OF_PROGRAMS : 0), file, diags);
}

/* The same of a source that is compiled in several variants. */
static bool source_fits(const arguments *a, const variant_source *s, diag_list *diags)
{
    bool is_binary = s->size >= 4 && memcmp(s->text, "\177ELF", 4) == 0; /* one side of `visac diff`: the other one is compiled */
    if (is_binary || !visac_arguments_ask(a))
        return true;
    visa_compilation *c = visa_compile(s->name, s->text, s->size, &a->options);
    bool good = !c || fits(a, c, s->name, diags);
    visa_free(c);
    return good;
}

static int compile(arguments *a, arena *memory, diag_list *diags)
{
    size_t size;
    unsigned char *text = a->question ? tune(a, &size) : ranks_read(&a->ranks, a->input, &size, diags);
    if (a->question && a->ranks.rank > 0) { /* the first process has the same text, and goes on */
        int status = text ? EXIT_DONE : EXIT_INPUT;
        free(text);
        return status;
    }
    if (text && takes_source(a)) {
        int status = finish(a, text, size);
        free(text);
        say_only(a, diags);
        return status;
    }
    if (!text) {
        say_only(a, diags);
        return EXIT_INPUT;
    }
    visa_options options = a->options;
    options.binary_only = takes_binary_only(a);
    options.jobs = options.binary_only ? parallel_workers((unsigned)a->options.jobs) : 1;
    size_t changes = 0;
    visa_compilation *c = a->fixes ? visa_fix(tool_input_name(a->input), (const char *)text, size, &options, &changes)
                                   : visa_compile(tool_input_name(a->input), (const char *)text, size, &options);
    if (!c) {
        free(text);
        fputs("visac: error: out of memory\n", stderr);
        return EXIT_INPUT;
    }
    bool whole = !a->options.parse_only && !a->fixes && !a->upgrades && !a->options.book;
    bool writes_modules = a->upgrades && is_in_place(a);
    int status = !writes_modules && !is_writing_no_module(a, c)                      ? tool_refused(diags)
                 : whole && !fits(a, c, a->question ? a->question : a->input, diags) ? EXIT_INPUT
                 : a->options.parse_only                                             ? format(a, c, text, size)
                 : a->fixes                                                          ? fix(a, c, changes)
                 : a->upgrades                                                       ? upgrade(a, c, diags)
                 : a->explains                                                       ? explain(a, c)
                 : a->emits_three                                                    ? write_three(a, c, text, size, memory, diags)
                                                                                     : produce(a, c, text, size, memory, diags);
    free(text);
    bool upgraded = a->upgrades && status == EXIT_DONE; /* what is wrong with the kernels has nothing to do with it */
    if (visa_error_count(c) > 0 && status == EXIT_DONE && !upgraded)
        status = EXIT_INPUT;
    if (!upgraded)
        say(a, c, diags);
    fputs(visa_pass_dumps(c), stderr);
    fputs(visa_time_report(c), stderr);
    visa_free(c);
    return status;
}

static bool needs_library(const arguments *a)
{
    return a->run.check.wanted || (a->emit >= EMIT_LLVM && a->emit <= EMIT_HEADER) || (is_shared(a) && ranks_launched());
}

/* What `visac tune FILE` is about: reads the file, and goes to where programs run if it holds one. OPTION_GO_ON, else the exit status. */
static int read_tuned(arguments *a, char **argv, diag_list *diags)
{
    bool once = strcmp(a->question, "-") == 0 || ranks_launched(); /* it cannot be read again by another program */
    if (once && !(a->work = library_work_begin(argv, diags)))
        return EXIT_INPUT;
    if (ranks_launched() && !a->work->ranks_begin(&a->ranks, diags))
        return EXIT_INPUT;
    a->tuned = ranks_read(&a->ranks, a->question, &a->tuned_bytes, diags);
    if (!a->tuned)
        return EXIT_INPUT;
    a->tunes_program = program_is_in((const char *)a->tuned, a->tuned_bytes);
    int status = visac_arguments_of_file(a);
    if (status != EXIT_DONE)
        return status;
    if (a->tunes_program && !a->work && !(a->work = library_work_begin(argv, diags)))
        return EXIT_INPUT;
    return OPTION_GO_ON;
}

static int run(arguments *a, char **argv, arena *memory, diag_list *diags)
{
    int of_file = a->tunes_file ? read_tuned(a, argv, diags) : OPTION_GO_ON;
    if (of_file != OPTION_GO_ON) {
        say_only(a, diags);
        return of_file;
    }
    if (a->project) {
        const char *said = project_begin(a->project, a->files, diags);
        if (said)
            fputs(said, stdout);
        say_only(a, diags);
        return said ? EXIT_DONE : EXIT_INPUT;
    }
    if (needs_library(a) && !a->work)
        a->work = library_work_begin(argv, diags);
    if ((needs_library(a) && !a->work) || (is_shared(a) && a->work && !a->ranks.api && !a->work->ranks_begin(&a->ranks, diags))) {
        say_only(a, diags);
        return EXIT_INPUT;
    }
    if (!declare(a, memory)) {
        say_only(a, diags);
        if (is_shared(a))
            ranks_fail(&a->ranks, tool_refused(diags));
        return tool_refused(diags);
    }
    if (a->question && !(a->tunes_program ? source_fits(a, &(variant_source){a->question, (const char *)a->tuned, a->tuned_bytes}, diags)
                                          : visac_arguments_fit(a, OF_KERNELS, a->question, diags))) {
        say_only(a, diags);
        ranks_fail(&a->ranks, EXIT_INPUT);
        return EXIT_INPUT;
    }
    if (a->tunes_program) {
        int tuned = a->work->tune(a, memory, diags);
        if (a->ranks.rank == 0)
            say_only(a, diags);
        return tuned;
    }
    if (!a->other && !a->sweep && !a->advises)
        return compile(a, memory, diags);
    variants v = {"visac", a->input,   a->other, a->sweep, a->files, a->to, {a->options, a->format, a->run.report.options.preset},
                  a,       source_fits};
    int status = a->other     ? variants_diff(&v, memory, diags)
                 : a->advises ? variants_advise(&v, a->applies, memory, diags)
                              : variants_sweep(&v, memory, diags);
    say_only(a, diags);
    return status;
}

int main(int argc, char **argv)
{
    stop_begin("visac");
    arena *memory = arena_new();
    if (!memory || setjmp(*arena_guard(memory)))
        return tool_out_of_memory("visac");
    arguments a = {.warnings = ARENA_ARRAY(memory, const char *, (size_t)argc + 1)};
    int status = visac_arguments_parse(argc, argv, memory, &a);
    if (status == OPTION_GO_ON) {
        diag_list diags;
        diag_list_init(&diags, memory);
        a.files = output_set_new(memory, &diags);
        a.ranks.count = 1;
        status = run(&a, argv, memory, &diags);
        output_set_free(a.files);
        free(a.tuned);
        ranks_end(&a.ranks);
    }
    arena_free(memory);
    return tool_printed("visac", status);
}
