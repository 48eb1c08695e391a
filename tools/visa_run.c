/* visa-run: runs a kernel of a binary on the simulated machine. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/machine/session.h"
#include "runtime/step/session.h"
#include "support/budget.h"
#include "support/file.h"
#include "support/output.h"
#include "support/stop.h"
#include "tools/options.h"
#include "tools/progress.h"

enum { MOST_THREADS = 1024 };

typedef struct arguments {
    const char *file, *kernel, *sizes;
    const char **inputs, **outputs;
    size_t input_count, output_count;
    uint64_t max_cycles; /* UINT64_MAX: any number */
    output **to;         /* of each output */
    output *sizes_to;
    output_set *files;
    bool free_order, list, timing_only, unbounded, dump_field;
    tool_check check;
    tool_report report;
    uint64_t seed;
    unsigned threads;
    cpu_level cpu;
} arguments;

static const char usage[] =
    "Usage: visa-run [options] FILE.bin\n"
    "\n"
    "Runs a kernel of a binary on the simulated machine, byte by byte. FILE may be - for standard input.\n"
    "\n"
    "Options:\n"
    "  --input NAME=FILE         a tensor: .npy, .safetensors (FILE:TENSOR), or raw bytes; inputs without a file get\n"
    "                            seeded numbers. The file holds whole axes, without padding, in the order in which the\n"
    "                            port's mapping first names them; --input NAME[K,M]=FILE when it is stored otherwise.\n"
    "                            bf16 and the 8-bit floats come in .safetensors, or in .npy as bit patterns (u2, u1);\n"
    "                            i4 as one element per byte (i1).\n"
    "  --input NAME:buffer=FILE  the port's physical bytes as they are\n"
    "  --output NAME=FILE        writes an output the same way; with a single output NAME= may be left away\n"
    "  --check[=KIND]            compare with the reference kernel that LLVM builds from the binary's einsum section. numbers:\n"
    "                            values of seeded inputs; a run that may depend on unwritten bytes or on the contexts' order\n"
    "                            is tried with others, too. algebra: machine and reference run over a field of 2^61 - 1\n"
    "                            elements, which proves the outputs for all inputs. Without a kind: both\n"
    "  --samples=N               algebra: so many elements of each output, each traced back to the inputs (default: all of a\n"
    "                            kernel up to about 512 x 512 x 2048, else as many as take a second or so)\n"
    "  --certificate=FILE        algebra: what was proven, as JSON\n"
    "  --dump-field              print what the outputs are over the field, NAME ELEMENT VALUE, and stop\n"
    "  --reference-order=ORDER   how the reference of --check adds floats: hardware (default: the machine's order, equal\n"
    "                            values) or free (an order of its own, compared within bounds and judged together)\n"
    "  --report[=FORMAT]         when each command runs, its cycles by formula, what binds and what would be faster:\n"
    "                            text (default), csv, json or html\n"
    "  --timing=PRESET           documented (default): documented rates; schedule: what published schedules charge\n"
    "  --trace=FILE              the same as Chrome's trace events, for Perfetto\n"
    "  --seed=N                  numbers of the seeded inputs (default 1)\n"
    "  --threads=N               processors to use (default: all)\n"
    "  --cpu=LEVEL               instructions to use: best (the default), steps, plain, avx2, avx512, dot, tiles; the\n"
    "                            bits are the same, and a processor that lacks a level uses the one below\n"
    "  --max-cycles=N            refuse a run of more cycles of the machine (default 100000000; 0 is no limit)\n"
    "  --kernel=NAME             the kernel or stream program, when the binary has several\n"
    "  --timing-only             stream programs: tiles without values; time, traffic and counts as ever\n"
    "  --unbounded               stream programs: queues hold any number of values\n"
    "  --sizes=FILE              stream programs: the sizes of all streams as they were, for visac --sizes\n"
    "  --list                    show the kernel's ports and stop\n"
    "  --version, --help\n"
    "\n"
    "Exit status: 0 done, 1 the input is at fault, 2 the command line is, 3 the check found a mismatch,\n"
    "or nothing to compare.\n";

/* Returns -1 to go on, else the exit status. */
static int parse_arguments(int argc, char **argv, arguments *a)
{
    enum {
        INPUT = 256,
        OUTPUT,
        CHECK,
        SAMPLES,
        CERTIFICATE,
        DUMP_FIELD,
        REPORT,
        TIMING,
        TRACE,
        REFERENCE_ORDER,
        SEED,
        THREADS,
        CPU,
        MAX_CYCLES,
        KERNEL,
        TIMING_ONLY,
        UNBOUNDED,
        SIZES,
        LIST,
        VERSION,
        HELP
    };
    static const struct option options[] = {
        {"input", required_argument, NULL, INPUT},
        {"output", required_argument, NULL, OUTPUT},
        {"check", optional_argument, NULL, CHECK},
        {"samples", required_argument, NULL, SAMPLES},
        {"certificate", required_argument, NULL, CERTIFICATE},
        {"dump-field", no_argument, NULL, DUMP_FIELD},
        {"report", optional_argument, NULL, REPORT},
        {"timing", required_argument, NULL, TIMING},
        {"trace", required_argument, NULL, TRACE},
        {"reference-order", required_argument, NULL, REFERENCE_ORDER},
        {"seed", required_argument, NULL, SEED},
        {"threads", required_argument, NULL, THREADS},
        {"cpu", required_argument, NULL, CPU},
        {"max-cycles", required_argument, NULL, MAX_CYCLES},
        {"kernel", required_argument, NULL, KERNEL},
        {"timing-only", no_argument, NULL, TIMING_ONLY},
        {"unbounded", no_argument, NULL, UNBOUNDED},
        {"sizes", required_argument, NULL, SIZES},
        {"list", no_argument, NULL, LIST},
        {"version", no_argument, NULL, VERSION},
        {"help", no_argument, NULL, HELP},
        {0},
    };
    opterr = 0;
    for (int o; (o = getopt_long(argc, argv, ":h", options, NULL)) != -1;)
        switch (o) {
        case INPUT: a->inputs[a->input_count++] = optarg; break;
        case OUTPUT: a->outputs[a->output_count++] = optarg; break;
        case CHECK:
            if (tool_check_kind("visa-run", &a->check, optarg) != EXIT_DONE)
                return EXIT_USAGE;
            break;
        case SAMPLES:
            if (tool_check_samples("visa-run", &a->check, optarg) != EXIT_DONE)
                return EXIT_USAGE;
            break;
        case CERTIFICATE: a->check.certificate = optarg; break;
        case DUMP_FIELD: a->dump_field = true; break;
        case REPORT:
            if (tool_report_format("visa-run", &a->report, optarg) != EXIT_DONE)
                return EXIT_USAGE;
            break;
        case TIMING:
            if (tool_report_timing("visa-run", &a->report, optarg) != EXIT_DONE)
                return EXIT_USAGE;
            break;
        case TRACE: a->report.trace = optarg; break;
        case REFERENCE_ORDER:
            if (!tool_reference_order(optarg, &a->free_order))
                return tool_usage_error("visa-run", "--reference-order is hardware or free, not `%s`", optarg);
            break;
        case SEED:
            if (!tool_number(optarg, &a->seed))
                return tool_usage_error("visa-run", "--seed takes a number, not `%s`", optarg);
            break;
        case THREADS: {
            uint64_t threads;
            if (!tool_number(optarg, &threads) || threads == 0 || threads > MOST_THREADS)
                return tool_usage_error("visa-run", "--threads takes a number from 1 to 1024, not `%s`", optarg);
            a->threads = (unsigned)threads;
            break;
        }
        case CPU:
            if (!cpu_level_named(optarg, &a->cpu))
                return tool_usage_error("visa-run", "--cpu is best, steps, plain, avx2, avx512, dot or tiles, not `%s`", optarg);
            break;
        case MAX_CYCLES:
            if (!tool_limit(optarg, &a->max_cycles))
                return tool_usage_error("visa-run", "--max-cycles takes a number of cycles, 0 for no limit; not `%s`", optarg);
            break;
        case KERNEL: a->kernel = optarg; break;
        case TIMING_ONLY: a->timing_only = true; break;
        case UNBOUNDED: a->unbounded = true; break;
        case SIZES: a->sizes = optarg; break;
        case LIST: a->list = true; break;
        case VERSION: puts("visa-run " VISA_VERSION); return EXIT_DONE;
        case 'h':
        case HELP: fputs(usage, stdout); return EXIT_DONE;
        case ':': return tool_usage_error("visa-run", "option %s needs a value", argv[optind - 1]);
        default: return tool_unknown_option("visa-run", options, argv[optind - 1]);
        }
    if (optind == argc)
        return tool_usage_error("visa-run", "no input file");
    if (optind + 1 < argc)
        return tool_usage_error("visa-run", "more than one input file: %s", argv[optind + 1]);
    a->file = argv[optind];
    if (!a->dump_field && tool_check_complete("visa-run", &a->check) != EXIT_DONE)
        return EXIT_USAGE;
    return -1;
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
    if (a->report.trace && good)
        good = (a->report.trace_to = output_declare(a->files, a->report.trace)) != NULL;
    if (a->check.certificate && good)
        good = (a->check.certificate_to = output_declare(a->files, a->check.certificate)) != NULL;
    return good;
}

static const binary_kernel *kernel_of(const arguments *a, const binary *b)
{
    return a->kernel ? binary_kernel_by_name(b, a->kernel) : &b->kernels[0];
}

static int dump_field(const arguments *a, const binary *b, arena *memory, diag_list *diags)
{
    field_options options = {a->seed, a->threads, a->check.samples};
    const char *text = "";
    if (!field_dump(b->target, kernel_of(a, b), &options, memory, diags, &text))
        return EXIT_INPUT;
    fputs(text, stdout);
    return EXIT_DONE;
}

static bool print_report(const arguments *a, const binary *b, arena *memory, diag_list *diags)
{
    const binary_kernel *k = kernel_of(a, b);
    const char *text = "";
    bool ok = tool_report_make(&a->report, b, k, memory, diags, &text);
    fputs(ok ? text : "", stdout);
    return ok;
}

static int run(arguments *a, const binary *b, session *s, const unsigned char *bytes, size_t size, arena *memory, diag_list *diags)
{
    if (a->list) {
        fputs(session_describe(s), stdout);
        return EXIT_DONE;
    }
    if (a->dump_field)
        return dump_field(a, b, memory, diags);
    if (!tool_run_length("visa-run", s, kernel_of(a, b)->name, a->max_cycles, diags))
        return EXIT_INPUT;
    progress line = progress_begin(a->file);
    session_set_options(s, &(session_options){a->threads, a->cpu, line.shown ? progress_show : NULL, &line});
    bool ok = true;
    for (size_t i = 0; i < a->input_count; i++)
        ok = session_input(s, a->inputs[i], diags) && ok;
    for (size_t i = 0; i < a->output_count; i++)
        ok = session_has_output(s, a->outputs[i], diags) && ok;
    bool runs = a->check.numbers || !a->check.wanted || a->output_count > 0, agrees = true, proves;
    ok = ok && (!runs || (session_fill(s, a->seed, diags) && session_run(s, a->check.numbers, diags)));
    progress_end(&line);
    const char *report = "", *proof = "";
    FILE *to = a->output_count || a->report.options.format != REPORT_TEXT ? stderr : stdout;
    bool differs = !ok && session_found_mismatch(diags); /* the algebra then says which terms do */
    if (!ok && !differs)
        return EXIT_INPUT;
    ok = differs || !a->check.numbers || session_check(s, !a->free_order, &agrees, &report, diags);
    fputs(report, to);
    proves = tool_check_algebra(&a->check, b->target, kernel_of(a, b), a->seed, a->threads, memory, diags, &agrees, &proof);
    fputs(proof, to);
    ok = ok && proves && tool_check_certify(&a->check, a->file, bytes, size, memory);
    if (differs) { /* a certificate says so; outputs are not written */
        bool certified = !ok || !a->check.certificate || a->output_count > 0 || output_set_commit(a->files);
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

static int run_program(const arguments *a, step_session *s, diag_list *diags)
{
    bool ok = true;
    if (a->list) {
        fputs(step_session_describe(s), stdout);
        return EXIT_DONE;
    }
    for (size_t i = 0; i < a->input_count; i++)
        ok = step_session_input(s, a->inputs[i], diags) && ok;
    if (!ok || !step_session_run(s, diags))
        return EXIT_INPUT;
    if (a->report.wanted || a->output_count == 0)
        fputs(step_session_report(s, a->report.options.format == REPORT_JSON), stdout);
    for (int streams = 0; streams < 2; streams++)
        for (size_t i = 0; i < a->output_count && ok; i++)
            if (output_is_stream(a->to[i]) == (streams > 0))
                ok = step_session_output(s, a->outputs[i], a->to[i], diags);
    ok = ok && (!a->sizes || step_session_sizes(s, a->sizes_to)) && output_set_commit(a->files);
    return ok ? EXIT_DONE : EXIT_INPUT;
}

static int run_bytes(arguments *a, const unsigned char *bytes, size_t size, arena *memory, diag_list *diags)
{
    binary b;
    bool ok = binary_read(bytes, size, memory, diags, &b);
    const step_program *program = ok ? binary_program_by_name(&b, a->kernel) : NULL;
    if (program && (a->check.wanted || a->report.trace)) {
        binary_choose_kernel(&b, program->name, diags);
        return EXIT_INPUT;
    }
    if (program) {
        step_session_options options = {.seed = a->seed,
                                        .timing_only = a->timing_only,
                                        .unbounded = a->unbounded,
                                        .keep_sizes = a->sizes != NULL,
                                        .timing = a->report.options.preset,
                                        .max_cycles = a->max_cycles < INT64_MAX ? (int64_t)a->max_cycles : 0};
        step_session *s = step_session_open(&b, program, &options, memory, diags);
        int status = s ? run_program(a, s, diags) : EXIT_INPUT;
        step_session_close(s);
        return status;
    }
    if (ok && (a->timing_only || a->unbounded || a->sizes))
        return tool_usage_error("visa-run", "--timing-only, --unbounded and --sizes are for stream programs, %s holds kernels", a->file);
    session *s = ok ? session_open(&b, a->kernel, memory, diags) : NULL;
    int status = s ? run(a, &b, s, bytes, size, memory, diags) : EXIT_INPUT;
    session_close(s);
    return status;
}

static int load_and_run(arguments *a, arena *memory, diag_list *diags)
{
    size_t size;
    unsigned char *bytes = file_read_all(a->file, &size, diags);
    if (!bytes)
        return EXIT_INPUT;
    int status = run_bytes(a, bytes, size, memory, diags);
    free(bytes);
    return status;
}

int main(int argc, char **argv)
{
    stop_begin("visa-run");
    arena *memory = arena_new();
    if (!memory || setjmp(*arena_guard(memory))) {
        unfinished_remove_all();
        fputs("visa-run: error: out of memory\n", stderr);
        return EXIT_INPUT;
    }
    arguments a = {.inputs = ARENA_ARRAY(memory, const char *, (size_t)argc),
                   .outputs = ARENA_ARRAY(memory, const char *, (size_t)argc),
                   .to = ARENA_ARRAY(memory, output *, (size_t)argc),
                   .seed = 1,
                   .max_cycles = RUN_CYCLES_MAX};
    int status = parse_arguments(argc, argv, &a);
    if (status < 0) {
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
