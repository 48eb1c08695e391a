/* What a run saw of its streams: how large values were, and, when asked for, the sizes of every dimension.
 *
 * The one idea: sizes that the compiler only knows by a symbol, and memory on the chip, which is that of the largest value, are counted
 * where a stream is sent, from its tokens alone: a value is one more in D_0, a stop S_k ends a group in D_0 .. D_k-1 and is one more in
 * D_k. */
#ifndef VISA_RUNTIME_STEP_SEEN_H
#define VISA_RUNTIME_STEP_SEEN_H

#include "runtime/step/value.h"

typedef struct step_seen_sizes step_seen_sizes;

/* Of one output. */
typedef struct step_seen {
    int64_t values;
    int64_t bytes;           /* of the largest value */
    int64_t columns, second; /* of tiles, or of a pair's: the most columns of the first, the most bytes of the second */
    step_seen_sizes *sizes;  /* NULL: not asked for */
} step_seen;

void step_seen_keep_sizes(step_seen *s, arena *a);
void step_seen_token(step_seen *s, const step_program *p, const step_output *o, step_token t);

/* Bytes on the chip by the paper's equations, and by those of its artifact (reference/step.md section 5), with the largest values that
 * came; `seen` by node and output. What no value came to has by the paper what its type says, where that does. */
typedef struct step_onchip {
    int64_t paper, artifact;
} step_onchip;
step_onchip step_seen_onchip(const step_program *p, uint32_t node, step_seen *const *seen);

/* {"program": .., "operators": [{"name": .., "outputs": [{"sizes": [[D_a], .., [D_0, D_0, ..]], "rows": [..], "columns": [..], "picks":
 * [..]}]}]}: every dimension's sizes in the order of the stream, outermost dimension first; of tiles that differ also theirs; of selectors
 * how many outputs each names. */
const char *step_seen_sizes_text(const step_program *p, step_seen *const *seen, arena *a);

#endif
