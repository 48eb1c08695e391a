/* Several compilations adjacent: --sweep and diff.
 *
 * The one idea: each variant is compiled as always, and only the figures of its report are put into one text. */
#ifndef VISA_TOOLS_VARIANTS_H
#define VISA_TOOLS_VARIANTS_H

#include "include/visa.h"
#include "runtime/timing/timing_preset.h"
#include "support/diag.h"
#include "support/output.h"

typedef struct variants {
    const char *tool;
    const char *before, *after; /* files; a sweep has the first one only */
    const char *sweep;          /* "NAME=8,16,32" */
    output_set *files;
    output *to; /* declared in them */
    visa_options options;
    visa_diagnostics_format format;
    timing_preset preset;
} variants;

/* Both return the exit status. */
int variants_sweep(const variants *v, arena *memory, diag_list *diags);
int variants_diff(const variants *v, arena *memory, diag_list *diags);

#endif
