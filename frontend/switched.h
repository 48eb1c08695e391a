/* A copy by DMA, written as a stream that the Switch Engine sends (`visac advise`, and what `visac --report` adds).
 *
 * The one idea: three kinds of copies only bring slices of a cluster what other slices of it hold: one inside DM, one that goes through HBM
 * on the way, and a load that gives several slices the same. What the stages have to say instead is read off the mappings of both tensors;
 * nothing is promised here, whoever asks compiles the text. */
#ifndef VISA_FRONTEND_SWITCHED_H
#define VISA_FRONTEND_SWITCHED_H

#include "frontend/upgrade.h"

typedef struct switched {
    edit_list edits;   /* of the tree's file */
    src_range copy;    /* the name of the call that is done otherwise */
    const char *words; /* "the copy to `y` by ctx.main and the Switch Engine, rings of 16" */
    bool routes;       /* packets go to other slices */
} switched;

/* The `number`-th way to write one. False: there are fewer. */
bool switched_text(const upgrade_input *in, size_t number, switched *out);

#endif
