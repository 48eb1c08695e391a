/* What a stream program costs, for people and for programs: every operator's shapes and costs as expressions over the program's sizes, and
 * as numbers where the sizes have numbers (docs/step.md, "What it costs"). */
#ifndef VISA_CODEGEN_STEP_REPORT_H
#define VISA_CODEGEN_STEP_REPORT_H

#include "codegen/emit.h"
#include "ir/step/bind.h"

typedef struct step_cost_report {
    step_graph *const *graphs;
    size_t count;
    const step_binding *bindings;
    size_t binding_count;
} step_cost_report;

const char *step_cost_text(const emit_context *e, const step_cost_report *r);
/* A row for each operator, and one for the total: name, shape and costs, as a number where all sizes have one, else as an expression. */
const char *step_cost_csv(const emit_context *e, const step_cost_report *r);
/* The same as a page (HTML), with the graphs. */
const char *step_cost_page(const emit_context *e, const step_cost_report *r);
/* An array with an object for each program. */
const char *step_cost_json(const emit_context *e, const step_cost_report *r);

#endif
