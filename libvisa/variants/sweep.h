/* `visac --sweep`: a source with each combination of values of some constants, a row of figures for each kernel, stream
 * program and dataflow item of each.
 *
 * The one idea: each variant is compiled as always, and only the figures of its report are put into one table. */
#ifndef VISA_LIBVISA_VARIANTS_SWEEP_H
#define VISA_LIBVISA_VARIANTS_SWEEP_H

#include "libvisa/variants/variant.h"

/* A constant and the values that it takes in turn. */
typedef struct swept {
    const char *name;
    const int64_t *values;
    size_t count;
} swept;

typedef struct sweep_table {
    const char *text;
    const char *messages; /* the diagnostics of a variant that could not be judged, of the first one where all are refused, or "" */
    const char *fault;    /* what else went wrong, a phrase; NULL: nothing */
    bool any;             /* variant was legal */
} sweep_table;

/* False: not all of the rows could be made; diagnosed, or `messages` and `fault` give the reason. */
bool sweep_source(const variant_source *s, const swept *axes, size_t count, const variant_options *o, arena *memory, diag_list *diags,
                  sweep_table *out);

#endif
