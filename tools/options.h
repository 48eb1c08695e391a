/* What the three programs say and read in the same way. */
#ifndef VISA_TOOLS_OPTIONS_H
#define VISA_TOOLS_OPTIONS_H

#include <getopt.h>
#include <stdarg.h>
#include <stdint.h>

#include "codegen/container.h"
#include "runtime/field/check.h"
#include "runtime/timing/report.h"
#include "support/diag.h"
#include "support/output.h"
#include "support/strbuf.h"

enum { EXIT_DONE = 0, EXIT_INPUT = 1, EXIT_USAGE = 2, EXIT_MISMATCH = 3 };

/* "TOOL: error: ..." and where to look; returns EXIT_USAGE. */
int tool_usage_error(const char *tool, const char *format, ...) __attribute__((format(printf, 2, 3)));
int tool_usage_error_v(const char *tool, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

/* `word` of the command line is no option of the tool; the end of `options` has no name. Names the nearest one. */
int tool_unknown_option(const char *tool, const struct option *options, const char *word);
/* `given` is no value of `option` ("--emit="): names the nearest of a NULL-ended list, or all. */
int tool_unknown_value(const char *tool, const char *option, const char *given, const char *const *known);

/* How messages name an input file: `-` is `<stdin>`. */
const char *tool_input_name(const char *file);

/* The whole text is a number (decimal, 0x, 0). */
bool tool_number(const char *text, uint64_t *out);
/* A limit: a number, 0 for none, which is *out = UINT64_MAX. */
bool tool_limit(const char *text, uint64_t *out);
/* The status of a run that could not begin or end its writing: EXIT_USAGE where the command line names a file for two things. */
int tool_refused(const diag_list *diags);

/* --check[=KIND], --check-format=FORMAT, --samples=N and --certificate=FILE. */
typedef struct verdict_book verdict_book;
typedef struct tool_check {
    bool wanted, numbers, algebra;
    bool json;               /* one document instead of lines (runtime/field/verdict.h) */
    verdict_book *book;      /* what it will say; NULL: nothing yet */
    int64_t samples;         /* 0: as many as there is time for */
    const char *certificate; /* file; NULL: none */
    output *certificate_to;  /* declared where there is one */
    field_verdict *verdicts;
    size_t verdict_count;
    struct field_beside *beside; /* a proof that goes on meanwhile (checking.h); NULL: none */
} tool_check;

/* A document of a check is alone on standard output: no file of theirs is `-`. NULL among the names: there is none. */
int tool_check_alone(const char *tool, const tool_check *c, size_t count, const char *const *names);
/* A certificate is of an algebra, and a format of a check. */
int tool_check_complete(const char *tool, const tool_check *c);
/* "TOOL: FILE: error[ID]: ...", with notes and help; file NULL: left away. */
void tool_print_diags(const char *tool, const char *file, diag_list *diags);

/* "TOOL VERSION": the status of --version. */
int tool_version(const char *tool, const char *version);

/* EXIT_INPUT, of a run that there was no memory for; what it was writing is removed. */
int tool_out_of_memory(const char *tool);

/* At the end: where all went well but what was printed did not arrive, that is an error. */
int tool_printed(const char *tool, int status);

/* --report[=FORMAT], --timing=PRESET and --trace=FILE. */
typedef struct tool_report {
    bool wanted;
    report_options options;
    const char *trace; /* file; NULL: none */
    output *trace_to;  /* declared for it */
} tool_report;

/* Appends the report to `out`, where it is wanted, and puts the trace. */
bool tool_report_make(const tool_report *r, const binary *b, const binary_kernel *k, arena *a, diag_list *diags, strbuf *out);

/* What visac and visa-run are both told about a run: the first member of their arguments, so that one function takes an option of both. */
typedef struct tool_run {
    const char *tool, *kernel;    /* kernel NULL: the only one */
    bool order_given, free_order; /* of the reference's sums */
    tool_check check;
    tool_report report;
    uint64_t seed, max_cycles; /* cycles UINT64_MAX: any number */
} tool_run;

/* What it is before the first option. */
tool_run tool_run_new(const char *tool);
/* Says that the files of --trace and --certificate will be written. False: diagnosed. */
bool tool_run_declare(tool_run *r, output_set *files);

/* OPTION_GO_ON, or the status of a usage error that was printed; `run` is a tool_run. */
int tool_option_CHECK(void *run, const char *text);
int tool_option_CHECK_FORMAT(void *run, const char *text);
int tool_option_SAMPLES(void *run, const char *text);
int tool_option_REFERENCE_ORDER(void *run, const char *text);
int tool_option_REPORT(void *run, const char *text);
int tool_option_TIMING(void *run, const char *text);

#endif
