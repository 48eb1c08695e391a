/* The report of a kernel: what runs when, for how long and why, what the machine is used for, and what to change.
 *
 * The one idea: a schedule (schedule.h) and what follows from it (analysis.h, lint.h) written out, with every formula filled
 * in, so that a reader can follow each figure by hand with docs/timing.md. It needs the commands alone: no tensor, no run. */
#ifndef VISA_RUNTIME_TIMING_REPORT_H
#define VISA_RUNTIME_TIMING_REPORT_H

#include "codegen/container.h"
#include "runtime/timing/timing_preset.h"

typedef enum report_format { REPORT_TEXT, REPORT_CSV, REPORT_JSON, REPORT_HTML, REPORT_TRACE } report_format;
/* "text", "csv", "json", "html"; a trace is asked for otherwise. */
bool report_format_by_name(const char *name, report_format *out);

typedef struct report_options {
    report_format format;
    timing_preset preset;
    /* for HTML, where known: the source text and pictures (SVG) of the sequencers, one after the other */
    const char *source_name, *source, *pictures, *tables;
} report_options;

/* In the arena; NULL with a diagnostic. */
const char *report_make(const target *t, const binary_kernel *k, const report_options *options, arena *a, diag_list *diags);

/* The figures that a table of variants shows. */
typedef struct report_figures {
    int64_t cycles, lower_bound;
    int64_t dm_bytes;    /* the highest byte of a slice's DM that a command touches, plus 1 */
    const char *binds;   /* of the longest command */
    const char *command; /* and which it is: "dma, line 12" */
} report_figures;
bool report_figures_of(const target *t, const binary_kernel *k, timing_preset preset, arena *a, diag_list *diags, report_figures *out);

#endif
