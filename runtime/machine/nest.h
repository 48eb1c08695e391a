/* The one loop nest that a contraction's sequencers share.
 *
 * The one idea: Stream Adapter, TRF Sequencer, masks and accumulator each count the same steps with loops of
 * their own. Where all their loop boundaries divide one another, the steps are one nest, and in each of its
 * loops every sequencer moves by a constant. What the machine may reorder, and what data and weights its loops
 * share, can then be read off the strides. */
#ifndef VISA_RUNTIME_MACHINE_NEST_H
#define VISA_RUNTIME_MACHINE_NEST_H

#include "runtime/engine/accumulate.h"
#include "runtime/engine/contraction.h"

enum { NEST_MOST_LOOPS = 24, NEST_MOST_MASKS = 4 };

typedef struct nest_loop {
    int64_t size;
    int64_t steps;                  /* of one iteration */
    int64_t packets;                /* from one iteration to the next; 0: all use the same */
    int64_t weights;                /* bytes of a Row's partition from one iteration to the next */
    int64_t masks[NEST_MOST_MASKS]; /* what one iteration adds to each mask's step sum */
    bool reduced;                   /* the accumulator sums over it */
} nest_loop;

typedef struct nest {
    unsigned count;
    nest_loop loops[NEST_MOST_LOOPS]; /* outermost first */
    unsigned outermost_reduced;       /* count: none */
    int64_t slots;                    /* kept iterations inside it */
} nest;

/* False: the steps are no such nest, or kept iterations share a slot. */
bool nest_make(nest *n, const contraction *k, const accumulate *sums);

#endif
