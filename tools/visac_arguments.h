/* The command line of visac.
 *
 * The one idea: each option is a row of visac.def and a function here; what options mean together is checked after the last of them,
 * so that nothing depends on their order. */
#ifndef VISA_TOOLS_VISAC_ARGUMENTS_H
#define VISA_TOOLS_VISAC_ARGUMENTS_H

#include "include/visa.h"
#include "support/output.h"
#include "tools/libraries.h"
#include "tools/option_row.h"
#include "tools/options.h"
#include "tools/ranks.h"

/* In the order of the values of --emit in visac.def; those of --explore follow. */
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
    EMIT_FINN,
    EMIT_MEMORY,
    EMIT_MEMORY_JSON,
    EMIT_MEMORY_SVG,
    EMIT_ORDER,
    EMIT_STEP_DOT,
    EMIT_KINDS,
    EMIT_STEP_SVG = EMIT_KINDS + VISA_EXPLORE_SVG,    /* without --explore */
    EMIT_THREE = EMIT_KINDS + VISA_EXPLORE_KERNEL + 1 /* of `visac tune`: vm, bin and report, a file each */
} emit_kind;

typedef struct arguments {
    tool_run run; /* without an order of sums: the machine's for a check, a free one for what is written */
    const char *input, *output, *draw, *sweep;
    const char *project;  /* of `visac init`: the folder; NULL: none is begun */
    const char *other;    /* the second file of `visac diff` */
    const char *question; /* of `visac tune`; NULL: a file is compiled */
    bool tunes_file;      /* it is the name of a file with questions, or with a stream program */
    bool tunes_program;   /* with that */
    unsigned char *tuned; /* the file's text, malloc'd */
    size_t tuned_bytes;
    const char **inputs; /* of tune: tokens of streams, NAME=FILE */
    size_t input_count, input_capacity;
    visa_tune_options tune; /* what is told about it */
    bool budget_given, no_cache;
    const char **define_texts; /* of -D, in their order */
    size_t define_count, define_capacity;
    emit_kind emit;
    const char *mcpu;
    int emit_choice, search, place, order, diagnostics, colour_when; /* numbers of values in visac.def; -1: not given */
    bool explore_form;                                               /* --emit names a form of --explore, in explore.form */
    bool emit_given, format_source, format_check, fixes, upgrades, explains;
    uint32_t explain_line; /* 0: all */
    bool advises, applies; /* `visac advise`, with --apply */
    bool explores;
    const library_work *work; /* NULL: nothing needs a library */
    ranks ranks;              /* of --explore and `visac tune` */
    visa_explore_options explore;
    size_t warning_count;
    const char **warnings; /* room for as many as there are arguments */
    visa_diagnostics_format format;
    visa_options options;
    visa_parameter *parameters;
    const char **passes;
    size_t parameter_capacity, pass_capacity;
    bool given[OPTION_ROWS_MAX]; /* of each row of visac.def */
    bool colour;                 /* of text messages */
    arena *memory;
    output_set *files;
    output *to;       /* the main output; NULL: there is none */
    bool emits_three; /* --emit=vm,bin,report, into: */
    output *three[3];
} arguments;

/* Reads it: OPTION_GO_ON, else the exit status. `a->warnings` has room for argc texts. */
int visac_arguments_parse(int argc, char **argv, arena *memory, arguments *a);
/* Of `visac tune FILE`, when it is known what the file holds: the same. */
int visac_arguments_of_file(const arguments *a);

/* Is there an option that not all files have a use for? */
bool visac_arguments_ask(const arguments *a);
/* Does each option say something of a file that holds such things (option_subject)? False: diagnosed. */
bool visac_arguments_fit(const arguments *a, unsigned holds, const char *file, diag_list *diags);

#endif
