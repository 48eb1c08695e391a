/* `visac advise`: what would make the kernels of a file faster, each suggestion compiled and timed before it is made.
 *
 * The one idea: a change of the text that leaves the ports as they are, an edit of a constant of mappings or of where an axis lies, is
 * tried as any source is; the one that saves most is kept, and the search goes on from there. */
#ifndef VISA_LIBVISA_VARIANTS_ADVISE_H
#define VISA_LIBVISA_VARIANTS_ADVISE_H

#include "libvisa/variants/variant.h"

typedef struct advice {
    const char *changes; /* a line for each, or that there is none */
    const char *source;  /* with all of them */
    const char *refused; /* the diagnostics of a source that does not compile, or "" */
    const char *fault;   /* what else went wrong, a phrase; NULL: nothing */
    bool no_kernel;      /* the source has none: changes are of kernels */
} advice;

/* False: there is nothing to improve, `refused` or `fault` says why. */
bool advise_source(const variant_source *s, const variant_options *o, arena *memory, advice *out);

/* A line for each copy that the Tensor Unit would do faster, with what the whole kernel takes then, "" where there is none: what a report
 * adds. */
const char *advise_switches(const variant_source *s, const variant_options *o, arena *memory);

#endif
