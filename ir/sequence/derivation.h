/* What the parts of the derivation share (ir/sequence/sequence.h); nobody else but their test includes this.
 *
 * The one idea: the stream's digits are taken one after the other (sequence_digit.c, sequence_group.c), each becomes loops, and notes on
 * which buffer digits it landed; what depends on several of them is checked at the end (sequence.c). */
#ifndef VISA_IR_SEQUENCE_DERIVATION_H
#define VISA_IR_SEQUENCE_DERIVATION_H

#include "ir/mapping/digits.h"
#include "ir/sequence/sequence.h"

/* One loop on one buffer digit, for the checks that need all of the stream together. */
typedef struct landing {
    const piece *piece;
    const factor *of;             /* the stream digit that the loop is a part of */
    unsigned digit;               /* number of that */
    int64_t digits;               /* of the piece, per iteration */
    int64_t weight, live, extent; /* of the loop */
    bool whole;                   /* the term takes the piece, a group, for itself: counts for what is around the group only */
    /* Digits of a group that are one run; else NULL. A loop along it notes positions per iteration, which land on none of the pieces alone
     * (`digits` is 0); each piece is noted once more as a whole, with 0 here. */
    const group_digit *run;
    int64_t run_step;
} landing;

typedef struct derivation {
    mapping_context *context;
    arena *arena;   /* of what the loops mention */
    arena *scratch; /* of the notes, and of the loops until they are all there */
    sequence_access access;
    bool nameless;
    buffer_digits buffer;
    landing *landings;
    size_t landing_count, landing_capacity;
    const mapping *beside; /* mentions axes that other units hold; NULL: none */
    unsigned segment, digit;
    const factor *padded; /* the stream digit that a copy walks with its padding; NULL: none */
    int64_t position;     /* of the stream digit at hand in its segment */
    sequence *seq;
} derivation;

/* Notes the first failure; false. */
bool derivation_fail(derivation *d, sequence_failure failure, const mapping *term, const axis *a);

/* The stream's factor as readers see it; NULL where nobody reads. */
const mapping *derivation_term(derivation *d, const factor *f);
/* The values weight * i, i < live, of what the factor counts through. */
const mapping *derivation_part_term(derivation *d, const factor *f, int64_t weight, int64_t live, int64_t extent);

const mapping *derivation_landing_term(derivation *d, const landing *l);
const mapping *derivation_piece_term(derivation *d, const piece *p, int64_t extent);

/* A loop of the stream digit at hand; `step`: positions of the digit between two iterations. */
void derivation_emit(derivation *d, const mapping *term, int64_t size, int64_t live, int64_t stride, int64_t step);
void derivation_land(derivation *d, landing l);
/* The term takes the group for itself: nothing else may land there. */
void derivation_take(derivation *d, piece *atom, landing l);
/* Goes back to so many of both. */
void derivation_retreat(derivation *d, size_t landings, size_t loops);

bool derivation_mentions(const derivation *d, const axis *a);
/* May the digit, of which the buffer has nothing, be repeated at one place? Axis NULL: it stands for no coordinate at all. */
bool derivation_may_repeat(derivation *d, const factor *f, const axis *a, int64_t weight, int64_t live);

/* ---- windows (sequence_window.c) ---- */

/* Does the buffer store digits that the window's terms count through? */
bool derivation_has_terms_of(const derivation *d, const axis *window);
/* Is a digit that the buffer does not mention in none of its windows? */
bool derivation_window_allows(derivation *d, const factor *f, const axis *a, int64_t weight, int64_t live);
/* A window of which the buffer has another one. */
bool derivation_carve_window(derivation *d, const factor *f);
bool derivation_check_windows(derivation *d);

/* ---- the walk ---- */

/* Loops for all factors of a part of the stream, whose positions are `scale` apart. */
bool derivation_walk(derivation *d, const mapping *stream, int64_t scale);

/* ---- the loops of one digit ---- */

enum { MAX_LOOPS = 64 }; /* each has two iterations or more, and a size is below 2^63 */

typedef struct loop {
    int64_t size, stride, live, weight;
    size_t landings; /* where its own begin */
} loop;

typedef struct loop_list {
    loop items[MAX_LOOPS]; /* innermost first */
    size_t count;
    int64_t weight, live; /* of what is left */
} loop_list;

/* The loop that begins at what is left, `repeats` long where no more than that is a line. `live`: values of it that are real. */
void loop_list_add(derivation *d, loop_list *l, const factor *f, const index_step *s, int64_t repeats, int64_t live);
/* Gives the outermost loop what the digit has beyond the other loops. */
bool loop_list_spread(derivation *d, const factor *f, int64_t extent, loop_list *l);
void loop_list_emit(derivation *d, const factor *f, int64_t live, const loop_list *l);

/* A digit of an axis that the buffer has; a group that does not cut into digits. */
bool derivation_carve_axis(derivation *d, const factor *f);
bool derivation_carve_group(derivation *d, const factor *f);
/* A copy that counts through the digits of a group one by one, of which the buffer has parts: how many of the factors from f on are that
 * group. 0: they are none. */
size_t derivation_carve_neighbours(derivation *d, const factor *f, size_t count);

/* ---- how far the stream reaches (sequence_reach.c) ---- */

/* A loop of a counter, whose numbers are sums of step * iteration. */
typedef struct counted_loop {
    int64_t step, most; /* the last iteration that may be live */
    int64_t gain;       /* of an iteration, 0 or more */
    bool opens;         /* is the outermost of its stream digit, which counts up to `last` */
    int64_t last;
    unsigned digit;
} counted_loop;

/* The largest sum of gains over the live numbers 0 .. last of a counter; loops outermost first. */
int64_t loops_reach(const counted_loop *loops, size_t count, int64_t last);

/* The largest value of the digit that live positions of the stream reach together. */
int64_t derivation_reach(const derivation *d, const piece *p);
/* The last position of the group, in those of the buffer. */
int64_t derivation_group_reach(const derivation *d, const piece *atom);

#endif
