/* What a kernel computes, as mathematics: statements over whole named axes.
 *
 * The one idea: this is derived from the tensors' types alone (which axis digits a stage keeps and which it
 * sums), and is all that the reference kernel sees: no stage, no sequencer, no layout. A tensor here is dense
 * and logical: whole axes, row-major in the order of its axis list. IR, binary and reference generator share these structures; axes
 * are numbers, which the IR's own table (ir/einsum.h) and the binary's axis table give a name and a size. */
#ifndef VISA_TARGET_EINSUM_H
#define VISA_TARGET_EINSUM_H

#include "target/scalar.h"

typedef struct layout_axis {
    const char *name;
    int64_t size; /* elements */
} layout_axis;

typedef struct einsum_tensor {
    const char *name; /* port name, or "%3" for an intermediate */
    dtype dtype;
    int32_t port; /* index into the kernel's ports; -1: intermediate */
    uint32_t rank;
    const uint32_t *axes; /* numbers in the axis table, outermost first */
} einsum_tensor;

/* What a statement accesses: the destination, then its sources in order. */
typedef enum einsum_side { EINSUM_DST = 0, EINSUM_A = 1, EINSUM_B = 2, EINSUM_SIDES = 9 } einsum_side;
enum { EINSUM_SOURCES = EINSUM_SIDES - EINSUM_A };

/* A digit of an axis: coordinates counter * weight, counter in [0, size). The coordinate of an axis is the
 * sum over its digits; a combination whose coordinate reaches the axis size does not exist. */
typedef struct einsum_digit {
    uint32_t axis;
    bool kept; /* false: summed over */
    int64_t weight, size;
    uint32_t broadcast;  /* 1 << side for each side that is accessed as if the counter were 0: sources, of a scatter the destination too */
    unsigned char lane;  /* summed inside a packet: lanes between neighbouring values; 0: over time, kept, or of a group */
    unsigned char group; /* summed, in a statement with pieces: number, from 1 on, of the group whose positions it counts; else 0 */
    int64_t stride;      /* positions of the group between neighbouring values; 0 without a group */
} einsum_digit;

enum { EINSUM_STATEMENT_DIGITS = 256 }; /* at most */

/* A piece of a group: a position p, the sum of counter * stride over the group's digits, is met at value p / weight % size of it. */
typedef struct einsum_piece {
    unsigned char group;
    unsigned char lane; /* lanes of a packet between neighbouring values; 0: over time */
    int64_t weight, size;
} einsum_piece;

/* A sliding window: an axis of which a place is the sum, over its terms, of stride * (coordinate / weight % extent) of the term's
 * axis. Its size is 1 + the sum of (extent - 1) * stride. A term's axis may be another window: its own coordinate
 * counts, whatever its terms are. One that is bordered holds only a part of its places,
 * from place `first` on, as many as its axis has elements; an element at another place is zero. */
typedef struct einsum_term {
    uint32_t axis;
    int64_t weight, extent, stride;
} einsum_term;

typedef struct einsum_window {
    uint32_t axis, term_count;
    const einsum_term *terms;
    bool bordered;
    int64_t first; /* 0 unless it is bordered */
} einsum_window;

/* Does the digit's counter leave the term's part of the place as it is? */
static inline bool einsum_digit_outside(const einsum_term *t, const einsum_digit *d)
{
    return d->axis != t->axis || d->size == 1 || d->weight % (t->weight * t->extent) == 0 ||
           (d->weight < t->weight && d->size <= t->weight / d->weight);
}

/* Does the digit's counter take part in the place of this operand? */
static inline bool einsum_digit_indexes(const einsum_digit *d, einsum_side side)
{
    return !(d->broadcast >> side & 1);
}

/* A tensor of a statement is accessed `offset` coordinates of the axis further than the digits say: a window of it. */
typedef struct einsum_shift {
    einsum_side side;
    uint32_t axis;
    int64_t offset; /* 1 .. size of the axis - 1 */
} einsum_shift;

/* An element x of an index tensor moves the place in the indexed one by x / step / div % mod * unit coordinates of the axis: `step` of an
 * element are one position of what is indexed, and positions count through axes of which this is one. Where any of the last four says
 * something, an element that is negative, no multiple of step, or of another position than the first `positions` is outside. */
typedef struct einsum_index {
    uint32_t axis;
    int64_t unit, step, div, mod, positions; /* mod, positions: 0, none */
} einsum_index;

static inline bool einsum_index_divides(const einsum_index *x)
{
    return x->step > 1 || x->div > 1 || x->mod > 0 || x->positions > 0;
}

typedef enum math_op {
#define MATH(symbol, code, name, fewest, most, sums, expression, indexed, meaning) MATH_##symbol = (code),
#include "target/math.def"
#undef MATH
} math_op;

typedef enum math_indexed { MATH_INDEXED_NONE, MATH_INDEXED_FIRST, MATH_INDEXED_DST } math_indexed;

typedef struct math_row {
    math_op op;
    const char *name;
    uint32_t fewest_sources, most_sources;
    bool sums, has_expression;
    math_indexed indexed;
    const char *meaning;
} math_row;

/* NULL: no statement has the code. */
const math_row *math_row_of(unsigned code);
/* In the order of the table; NULL past the end. */
const math_row *math_row_at(size_t index);

/* A combination of digits whose coordinate plus the largest shift of the axis reaches the axis size does not exist. A tensor may
 * be assigned by several statements, part by part; it is zero before the first.
 *
 * A source is indexed by the coordinates (kept and summed digits) of the axes that it has; the destination by
 * the kept digits' part of the coordinate. An axis that a source lacks broadcasts it; so does a digit that says so, for a source
 * that holds only other digits of the axis. A window of a source without digits of its
 * own is indexed by its terms: each digit of more than one value then lies inside a term or outside all of them.
 *
 * Of a contraction, the order in which the machine adds: over time, the summed digits without `lane`, outermost first; inside each
 * step a tree over neighbouring lanes, of which the others' counters times `lane` say where a term stands. Where a group of digits is
 * cut at positions that are no digits, time and lanes are those of the statement's pieces, in the same way, and not the digits'. So is the
 * order in which a reduction applies its operation.
 *
 * A gather reads `a`, a scatter writes its destination, at the coordinates of the digits plus index * unit; digits of a scatter that move
 * only the sources come in their order, the last one innermost, and of several elements that meet in one place the last one stays. Outside
 * the axis a gather gives zero and a scatter nothing. */
typedef struct einsum_statement {
    math_op op;
    uint32_t dst; /* tensor number */
    uint32_t sources[EINSUM_SOURCES];
    uint32_t source_count;
    dtype accumulator; /* the type before the final cast */
    uint32_t digit_count;
    const einsum_digit *digits; /* loop order: kept outermost first, then summed */
    uint32_t shift_count;
    const einsum_shift *shifts;
    uint32_t piece_count; /* 0: the summed digits themselves are in the machine's order */
    const einsum_piece *pieces;
    uint32_t step_count; /* of the expression; 0: it has none */
    const scalar_step *steps;
    scalar_op fold;              /* of a reduction; else 0 */
    const einsum_index *indices; /* of a gather or scatter: one for each source after the first */
    bool counted;                /* of a gather: the last source is no index but a count */
    int64_t count_span; /* where counted: what an element of the first index names is zero where its number % count_span is not below the
                           count */
    uint32_t bits;      /* of a fill: the element */
} einsum_statement;

/* The largest offset at which any operand meets the axis; 0: none is shifted along it. */
int64_t einsum_largest_shift(const einsum_statement *s, uint32_t axis);
/* By how many coordinates of the axis the operand on that side is accessed further than the digits say. */
int64_t einsum_shift_along(const einsum_statement *s, einsum_side side, uint32_t axis);
/* Coordinates, low included. */
typedef struct einsum_span {
    int64_t low, end;
} einsum_span;
/* Those of the axis that the digits and the shift of a side reach, of the destination the kept ones, whether their combination exists or
 * not; what windows and indices add is not in it. The end saturates. */
einsum_span einsum_reach(const einsum_statement *s, einsum_side side, uint32_t axis);
/* Does a digit of more than one value index the axis on that side (EINSUM_SIDES: on any)? */
bool einsum_walks_axis(const einsum_statement *s, einsum_side side, uint32_t axis);

typedef struct einsum {
    const layout_axis *axes;
    uint32_t axis_count;
    const einsum_tensor *tensors;
    uint32_t tensor_count;
    const einsum_statement *statements; /* in execution order */
    uint32_t statement_count;
    const char *text; /* "MK,NK->MN", statements joined by "; " */
    const einsum_window *windows;
    uint32_t window_count;
    const int64_t *const *units; /* codegen/reference/units.h: by tensor and rank; NULL: 1 */
} einsum;

/* The tensor that is accessed on a side. */
static inline uint32_t einsum_operand(const einsum_statement *s, einsum_side side)
{
    return side == EINSUM_DST ? s->dst : s->sources[side - EINSUM_A];
}

/* "destination", "a", "b", ... */
const char *einsum_side_name(einsum_side side);

/* Sides of a statement, the destination among them. */
static inline unsigned einsum_side_count(const einsum_statement *s)
{
    return 1 + s->source_count;
}

static inline uint32_t einsum_index_count(const einsum_statement *s)
{
    const math_row *row = math_row_of(s->op);
    uint32_t others = 1 + s->counted;
    return row && row->indexed != MATH_INDEXED_NONE && s->source_count > others ? s->source_count - others : 0;
}

/* The side of a gather's count; only where it has one. */
static inline einsum_side einsum_count_side(const einsum_statement *s)
{
    return (einsum_side)(EINSUM_A + s->source_count - 1);
}

/* The side whose place index tensors move; only where there are some. */
static inline einsum_side einsum_indexed_side(const einsum_statement *s)
{
    return math_row_of(s->op)->indexed == MATH_INDEXED_DST ? EINSUM_DST : EINSUM_A;
}

bool einsum_tensor_has(const einsum_tensor *t, uint32_t axis);
/* Elements of a logical tensor. */
int64_t einsum_tensor_elements(const einsum *e, uint32_t tensor);

#endif
