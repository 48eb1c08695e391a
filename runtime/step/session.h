/* One stream program of a binary: its inputs, its run, its outputs and the report.
 *
 * The one idea: streams come and go as JSON tokens (runtime/step/tokens.h), tensors off the chip as tensor files of their tiles; a tensor
 * without a file gets seeded numbers. Values can be left out: then only time, traffic and counts are simulated. */
#ifndef VISA_RUNTIME_STEP_SESSION_H
#define VISA_RUNTIME_STEP_SESSION_H

#include "codegen/container.h"
#include "runtime/step/figures.h"
#include "runtime/tensor/finding.h"
#include "runtime/timing/report.h"
#include "runtime/timing/timing_preset.h"
#include "support/diag.h"
#include "support/output.h"

typedef struct step_session step_session;

typedef struct step_session_options {
    uint64_t seed;
    bool timing_only;     /* tiles without elements */
    timing_preset timing; /* of kernels */
    bool unbounded;       /* queues hold any number of values */
    int64_t onchip_bytes; /* that the chip holds, instead of what the program says; 0: that */
    bool rounds;          /* tensor files of f32 are taken for narrower floats */
    bool keep_sizes;      /* for step_session_sizes */
    bool keep_record;     /* of where the time goes: for a page or a trace */
    int64_t max_cycles;   /* 0: any number */
    bool checked;         /* for step_session_check */
} step_session_options;

/* A program of the binary, which also has the kernels that it runs. NULL with a diagnostic. */
step_session *step_session_open(const binary *b, const step_program *p, const step_session_options *options, arena *a, diag_list *diags);
void step_session_close(step_session *s); /* NULL is nothing */

/* "NAME=FILE": tokens (.json) of a stream, elements of a tensor: row-major, tile after tile (.npy of any shape with that many, or raw). */
bool step_session_input(step_session *s, const char *spec, diag_list *diags);
bool step_session_run(step_session *s, diag_list *diags);
/* After a run: is what left the program what its graph says (runtime/step/judge.h)? *agrees is false, with a diagnostic for each output,
 * where it is not; false, where it cannot be judged. *report: lines for people. */
bool step_session_check(step_session *s, bool *agrees, const char **report, diag_list *diags);
/* What the last check found, output by output. */
const finding_list *step_session_findings(const step_session *s);
/* "NAME=FILE", into an output that was declared for FILE (runtime/machine/session.h, session_file). */
bool step_session_output(step_session *s, const char *spec, output *to, diag_list *diags);

/* After a run: cycles, traffic, each operator's share and who waited for whom (runtime/step/report.h). */
const char *step_session_report(const step_session *s, report_format format);
/* After a run. */
step_figures step_session_figures(const step_session *s);
/* After a run that kept them: the sizes of every stream as JSON (runtime/step/seen.h). */
bool step_session_sizes(const step_session *s, output *to);
/* "in x: [B] of bf16 tiles 1 x 64" per line. */
const char *step_session_describe(const step_session *s);
/* The same as JSON (docs/usage.md); NULL: no memory. */
const char *step_session_describe_json(const step_session *s);

#endif
