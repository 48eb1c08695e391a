/* --sweep, diff and advise: from files and words of the command line to the library's questions (libvisa/variants/), and from its answers
 * to what is written. */
#ifndef VISA_TOOLS_VARIANTS_H
#define VISA_TOOLS_VARIANTS_H

#include "libvisa/variants/sweep.h"
#include "support/output.h"

typedef struct variants {
    const char *tool;
    const char *before, *after; /* files; a sweep has the first one only */
    const char *sweep;          /* "NAME=8,16,32" */
    output_set *files;
    output *to; /* declared in them */
    variant_options options;
    const struct arguments *given; /* do the options say something of a source? NULL: it is not asked */
    bool (*fits)(const struct arguments *given, const variant_source *s, diag_list *diags);
} variants;

/* Each returns the exit status. */
/* The constants of --sweep and their values. False: reported on standard error. */
typedef struct swept_axes {
    swept *axes;
    size_t count;
} swept_axes;
bool variants_axes(const variants *v, swept_axes *out, arena *memory);

int variants_sweep(const variants *v, arena *memory, diag_list *diags);
int variants_diff(const variants *v, arena *memory, diag_list *diags);
/* With `applies` the better source is what is written, otherwise a line for each change. */
int variants_advise(const variants *v, bool applies, arena *memory, diag_list *diags);
/* What a report adds of a source: copies that the Tensor Unit would do faster; "": none. */
const char *variants_switches(const char *file, const unsigned char *text, size_t bytes, const visa_options *options, timing_preset preset,
                              arena *memory);

#endif
