/* A run of a stream program, in the forms of every report: text, CSV, JSON, a page, or events of a trace. */
#ifndef VISA_RUNTIME_STEP_REPORT_H
#define VISA_RUNTIME_STEP_REPORT_H

#include "runtime/step/engine.h"
#include "runtime/step/figures.h"
#include "runtime/timing/report.h"

/* After a run; for a page and a trace one that kept its record. In its arena. */
step_figures step_report_figures(const step_run *r);
const char *step_report_make(const step_run *r, report_format format);

#endif
