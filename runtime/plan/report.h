/* What a plan costs: its kernels on a timeline, and what they are made of.
 *
 * The one idea: steps run one after the other, so the plan's cycles are the sum of its kernels' own, each from its commands alone. */
#ifndef VISA_RUNTIME_PLAN_REPORT_H
#define VISA_RUNTIME_PLAN_REPORT_H

#include "runtime/plan/run.h"
#include "runtime/timing/report.h"

/* Text, JSON or a page, in the arena; NULL for a format that a plan does not have. `file` is where the plan was read from. */
const char *plan_report(const plan_result *r, const char *file, report_format format, arena *a);

#endif
