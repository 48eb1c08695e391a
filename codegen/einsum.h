/* What a kernel computes, as mathematics: statements over whole named axes.
 *
 * The one idea: this is derived from the tensors' types alone (which axis digits a stage keeps and which it
 * sums), and is all that the reference kernel sees: no stage, no sequencer, no layout. A tensor here is dense
 * and logical: whole axes, row-major in the order of its axis list. */
#ifndef VISA_CODEGEN_EINSUM_H
#define VISA_CODEGEN_EINSUM_H

#include "codegen/layout.h"
#include "support/diag.h"
#include "target/target.h"

typedef struct einsum_tensor {
    const char *name; /* port name, or "%3" for an intermediate */
    dtype dtype;
    int32_t port; /* index into the kernel's ports; -1: intermediate */
    uint32_t rank;
    const uint32_t *axes; /* numbers in the kernel's axis table, outermost first */
} einsum_tensor;

/* A digit of an axis: coordinates counter * weight, counter in [0, size). The coordinate of an axis is the
 * sum over its digits; a combination whose coordinate reaches the axis size does not exist. */
typedef struct einsum_digit {
    uint32_t axis;
    bool kept; /* false: summed over */
    int64_t weight, size;
    unsigned char broadcast; /* 1 << side for each source that is read as if the counter were 0 */
    unsigned char lane;      /* summed inside a packet: lanes between neighbouring values; 0: over time, kept, or of a group */
    unsigned char group;     /* summed, in a statement with pieces: number, from 1 on, of the group whose positions it counts; else 0 */
    int64_t stride;          /* positions of the group between neighbouring values; 0 without a group */
} einsum_digit;

enum { EINSUM_STATEMENT_DIGITS = 256 }; /* at most */

/* A piece of a group: a position p, the sum of counter * stride over the group's digits, is met at value p / weight % size of it. */
typedef struct einsum_piece {
    unsigned char group;
    unsigned char lane; /* lanes of a packet between neighbouring values; 0: over time */
    int64_t weight, size;
} einsum_piece;

/* A sliding window: an axis of which a place is the sum, over its terms, of stride * (coordinate / weight % extent) of the term's
 * axis. Its size is 1 + the sum of (extent - 1) * stride. Terms are no windows. One that is bordered holds only a part of its places,
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

typedef enum einsum_side { EINSUM_DST = 0, EINSUM_A = 1, EINSUM_B = 2, EINSUM_SIDES } einsum_side;

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

typedef enum einsum_op {
    EINSUM_COPY = 1,     /* dst[kept] = cast(a[...]); nothing is summed */
    EINSUM_CONTRACT = 2, /* dst[kept] = cast(sum over the other digits of a[...] * b[...]), summed in accumulates_in */
} einsum_op;

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
 * cut at positions that are no digits, time and lanes are those of the statement's pieces, in the same way, and not the digits'. */
typedef struct einsum_statement {
    einsum_op op;
    uint32_t dst, a, b; /* tensor numbers; b is unused by a copy */
    dtype accumulator;  /* i32 or f32 for a contraction; the type before the final cast */
    uint32_t digit_count;
    const einsum_digit *digits; /* loop order: kept outermost first, then summed */
    uint32_t shift_count;
    const einsum_shift *shifts;
    uint32_t piece_count; /* 0: the summed digits themselves are in the machine's order */
    const einsum_piece *pieces;
} einsum_statement;

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
} einsum;

/* The section's bytes (a whole number of 64-bit words), in the arena. */
bool einsum_encode(const einsum *e, arena *a, uint64_t **words, size_t *count);
/* Decodes and checks everything: numbers in range, sizes positive, products below 2^62, digits inside their axes,
 * sources assigned before use, port numbers below port_count. The axis table is the kernel's. */
bool einsum_decode(const uint64_t *words, size_t word_count, const layout_axis *axes, uint32_t axis_count,
                   uint32_t port_count, const char *section, arena *a, diag_list *diags, einsum *out);

/* Elements of a logical tensor. */
int64_t einsum_tensor_elements(const einsum *e, uint32_t tensor);

#endif
