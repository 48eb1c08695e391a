/* What a check found, as one JSON document (docs/check.schema.json).
 *
 * The one idea: the lines for people and the document are made of the same findings. They are kept while a program checks one kernel after
 * the other, and printed at its end, so that standard output is one document or empty. */
#ifndef VISA_TOOLS_VERDICT_H
#define VISA_TOOLS_VERDICT_H

#include <stdio.h>

#include "runtime/field/check.h"
#include "runtime/tensor/finding.h"
#include "tools/options.h"

/* What was checked: a kernel, a stream program, or all runs of a plan's kernel. */
typedef struct verdict_item {
    const char *name;
    bool is_program;
    const char *left_out;        /* why it was not checked; NULL: it was */
    bool differs;                /* also where no output has a finding: it depends on what nobody wrote */
    const finding_list *numbers; /* NULL: not asked for, or not come to */
    const field_verdict *algebra;
    int64_t runs, compared, differing; /* of a plan; runs 0: it is of none */
} verdict_item;

/* A line for people, where no document is wanted. */
void verdict_say(const tool_check *c, const char *text, FILE *to);
/* The texts outlive the document. */
void verdict_add(tool_check *c, const verdict_item *item, arena *a);
/* Prints the document, where one is wanted and the status is that of a check that came to its end. Returns the status. */
int verdict_print(const tool_run *r, const char *file, int status, diag_list *diags);

#endif
