/* The digits of a buffer, and how a step through an index is a step through them.
 *
 * The one idea: a buffer position is a sum of digits times strides, and the index that it holds is the sum of the same digits times
 * weights. So a step of the index that is written with buffer weights, v = sum of q_k * weight_k, is a step of sum of q_k * stride_k
 * positions, and stays one for as many iterations as no digit overflows. Nothing is asked about how the buffer cuts an axis next to the
 * stream: `B / 3` over `B / 2` and `B % 2` is a step of one in each. */
#ifndef VISA_IR_MAPPING_DIGITS_H
#define VISA_IR_MAPPING_DIGITS_H

#include "ir/mapping/mapping.h"

enum { VECTOR_AXES = 8 };

/* Coordinates that grow together. */
typedef struct index_vector {
    unsigned count;
    struct {
        const axis *axis;
        int64_t weight;
    } at[VECTOR_AXES];
} index_vector;

bool index_vector_equal(const index_vector *x, const index_vector *y);

/* A digit of the buffer: coordinates weight*d of `axis`, d < live, at positions stride*d; positions d < extent exist. */
typedef struct piece {
    const axis *axis;             /* NULL: `diagonal`, `atom` or a hole */
    const index_vector *diagonal; /* the digit steps several axes at once; its weights stand there */
    const mapping *atom;          /* a composite that is matched whole */
    const factor *origin;
    int64_t weight, live, extent, stride;
    const axis *window; /* the digit is a term of this window; else NULL */
    unsigned group;     /* number of that window in the buffer */
    unsigned parts;     /* of an atom: that many digits before it in the list are the same positions, one by one */
    bool front;         /* an atom whose parts reach beyond it: only positions of it are live */
    bool hole, taken;   /* taken: by a stream term that wants it whole */
    bool guarded;       /* its dead positions must not be written */
} piece;

typedef struct buffer_digits {
    mapping_context *context;
    arena *arena;
    piece *items; /* innermost first */
    size_t count, capacity;
    unsigned groups;
    bool fronts;  /* digits may hold less than the composite that they are of: for reading */
    bool borders; /* outside the buffer there are zeros, so that every window offers its terms */
} buffer_digits;

/* Lists the digits of `m`, whose positions are `stride` elements apart, after those that are there. */
void buffer_digits_add(buffer_digits *b, const mapping *m, int64_t stride);

/* Is no coordinate of the axis beyond this digit's live values? What is there is dead. */
bool piece_ends_axis(const piece *p);

/* The digit of the axis with the largest weight up to `weight`; NULL: none. */
const piece *piece_below(const buffer_digits *b, const axis *a, int64_t weight);

/* Is every coordinate of the axis stored? */
bool buffer_stores_axis(const buffer_digits *b, const axis *a);

/* One buffer digit's share of a step. */
typedef struct digit_step {
    const piece *piece;
    int64_t digits; /* per iteration */
} digit_step;

typedef struct index_step {
    int64_t stride;  /* positions */
    int64_t repeats; /* iterations until a digit overflows; INT64_MAX: none does */
    size_t count;
    digit_step items[64];
} index_step;

/* Writes a step of one axis, or of several, in buffer digits. False: the buffer does not hold that index. */
bool index_step_of_axis(const buffer_digits *b, const axis *a, int64_t weight, index_step *out);
bool index_step_of_vector(const buffer_digits *b, index_vector v, index_step *out);

/* A digit of a composite's inner mapping. Neighbouring ones that the buffer stores as one run may be one digit here: then a carry from one
 * to the next goes on in a straight line. */
typedef struct group_digit {
    const factor *factor; /* NULL: several */
    bool linear;          /* a step is `stride` positions, whatever it carries into */
    int64_t extent, live, stride;
    const piece *low, *high; /* linear: where it lies in the buffer; NULL: nowhere */
} group_digit;

enum { GROUP_MAX_DIGITS = 16 };

typedef struct group_digits {
    size_t count;
    group_digit items[GROUP_MAX_DIGITS]; /* outermost first */
    int64_t reached[GROUP_MAX_DIGITS];   /* largest sum of steps so far */
} group_digits;

/* One for each factor. False: too many, or one is no digit of an axis. */
bool group_digits_of(const mapping *inner, group_digits *out);

/* What the positions 0, weight, 2 * weight, .. of the group step through. */
typedef struct group_step {
    index_vector vector; /* of the digits that are not linear */
    int64_t stride;      /* of those that are */
    int64_t digits[GROUP_MAX_DIGITS];
    int64_t repeats; /* iterations until a digit overflows into the next */
    int64_t live;    /* of these the first are live, where one digit alone counts; else repeats */
} group_step;
bool group_step_of(const group_digits *g, int64_t weight, group_step *out);

/* A loop through the group was made; at the end no digit may have overflowed by the sum of all. */
void group_add_loop(group_digits *g, const group_step *s, int64_t iterations);
bool group_separates(const group_digits *g);

#endif
