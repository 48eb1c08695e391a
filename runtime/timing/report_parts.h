/* The inside of a report, for those who write it out. */
#ifndef VISA_RUNTIME_TIMING_REPORT_PARTS_H
#define VISA_RUNTIME_TIMING_REPORT_PARTS_H

#include "runtime/timing/lint.h"
#include "runtime/timing/report.h"

typedef struct report {
    schedule schedule;
    analysis analysis;
    lint *lints;
    size_t lint_count;
} report;

/* False with a diagnostic when the commands form no legal kernel. */
bool report_of(const target *t, const binary_kernel *k, timing_preset preset, arena *a, diag_list *diags, report *out);

/* "fetch .. trf_store", "dma"; "8 + max(32 x 2, 32 x 1) = 72". For all forms of the report. */
const command *report_item_first(const schedule_item *item); /* the one that it is named by */
const char *report_item_name(const schedule_item *item, arena *a);
const char *report_item_formula(const schedule_item *item, arena *a);

const char *report_text(const report *r, arena *a);
const char *report_text_figures(const report *r, arena *a); /* the lines after the commands */
const char *report_csv(const report *r, arena *a);
const char *report_json(const report *r, arena *a);  /* NULL: no memory */
const char *report_trace(const report *r, arena *a); /* Chrome's trace events; NULL: no memory */
const char *report_html(const report *r, const report_options *o, arena *a);

#endif
