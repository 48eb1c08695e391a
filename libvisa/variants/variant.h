/* What several compilations of one source have in common: how each is compiled, and what it may cost.
 *
 * The one idea: a variant is compiled as always, and read back from its binary; only the figures of its report are compared. */
#ifndef VISA_LIBVISA_VARIANTS_VARIANT_H
#define VISA_LIBVISA_VARIANTS_VARIANT_H

#include "codegen/container.h"
#include "include/visa.h"
#include "runtime/timing/timing_preset.h"

typedef struct variant_options {
    visa_options compile; /* max_steps: of all variants */
    visa_diagnostics_format format;
    timing_preset preset;
} variant_options;

typedef struct variant_source {
    const char *name; /* in messages */
    const char *text;
    size_t size;
} variant_source;

/* The limit of steps for all variants. */
uint64_t variant_steps(const variant_options *o);
/* Takes the steps of `c` from what is left; one stays, which no compilation can do with. */
void variant_spend(uint64_t *left, const visa_compilation *c);

#endif
