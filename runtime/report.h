/* The report of a kernel: what runs when, for how long, and what the TRF saw.
 *
 * The one idea: a schedule (schedule.h) written out, with every formula filled in, so that a reader can follow
 * each figure by hand with docs/timing.md. It needs the commands alone: no tensor, no run. */
#ifndef VISA_RUNTIME_REPORT_H
#define VISA_RUNTIME_REPORT_H

#include "codegen/container.h"

typedef enum report_format { REPORT_TEXT, REPORT_JSON } report_format;

/* In the arena; NULL with a diagnostic when the commands form no legal kernel. */
const char *report_make(const target *t, const binary_kernel *k, report_format format, arena *a, diag_list *diags);

#endif
