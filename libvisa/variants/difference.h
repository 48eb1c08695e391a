/* `visac diff`: what changed between two files, sources or binaries, and what that does to the cycles.
 *
 * The one idea: a source is compiled first, and then both are binaries; the costs of stream programs, which only the compiler knows, are
 * compared where both are sources. */
#ifndef VISA_LIBVISA_VARIANTS_DIFFERENCE_H
#define VISA_LIBVISA_VARIANTS_DIFFERENCE_H

#include "libvisa/variants/variant.h"

typedef struct difference_side {
    const char *file; /* as the user named it; in messages of a binary */
    variant_source source;
    binary binary;
    const char *costs;    /* of the stream programs of a source, or NULL */
    const char *messages; /* the diagnostics of a source, or "" */
    const char *fault;    /* what else went wrong, a phrase; NULL: nothing */
} difference_side;

/* Fills the rest of a side of which `file` and `source` are known. False: diagnosed, or `messages` and `fault` give the reason. */
bool difference_load(difference_side *side, const variant_options *o, arena *memory, diag_list *diags);
/* NULL: diagnosed. */
const char *difference_text(const difference_side *before, const difference_side *after, timing_preset preset, arena *memory,
                            diag_list *diags);

#endif
