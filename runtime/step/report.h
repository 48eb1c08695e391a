/* What a run of a stream program took: cycles, traffic, FLOPs, and each operator's part in them. */
#ifndef VISA_RUNTIME_STEP_REPORT_H
#define VISA_RUNTIME_STEP_REPORT_H

#include "runtime/step/engine.h"

const char *step_report_text(const step_run *r, bool json);

#endif
