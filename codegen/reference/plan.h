/* A contraction seen as a batched matrix product.
 *
 * The one idea: every digit of a statement is a row digit (kept, only the row source varies with it), a
 * column digit (kept, only the column source varies), a depth digit (summed) or a batch digit (kept, both
 * vary, or its axis is also summed). With the digits of a group taken as one index, any contraction is
 * C[batch][row][column] = sum over depth of R[batch][row][depth] * S[batch][column][depth], and that is what
 * the generator tiles. No LLVM here: validation, grouping, tile sizes and scratch storage. */
#ifndef VISA_CODEGEN_REFERENCE_PLAN_H
#define VISA_CODEGEN_REFERENCE_PLAN_H

#include "codegen/einsum.h"

/* Digits of size 1 are dropped and combinations stay below 2^62, so more cannot remain. */
enum { PLAN_MAX_DIGITS = 62 };

typedef enum plan_group { PLAN_BATCH, PLAN_ROW, PLAN_COLUMN, PLAN_DEPTH, PLAN_GROUP_COUNT } plan_group;

typedef struct plan_digits {
    einsum_digit items[PLAN_MAX_DIGITS]; /* outermost first */
    unsigned count;
    int64_t combinations; /* product of the sizes */
} plan_digits;

/* Register tile and cache blocks of the matrix product; the padded extents are whole tiles. */
typedef struct plan_tile {
    int64_t rows, columns; /* of one register tile; columns = vectors * lanes */
    int64_t lanes, vectors;
    int64_t padded_rows, padded_columns;
    int64_t depth_block, row_block_tiles;
} plan_tile;

/* Byte offsets in the scratch storage: packed sources, and the sums of values, magnitudes and input errors.
 */
typedef struct plan_scratch {
    int64_t row_pack, column_pack, value, magnitude, error, end;
} plan_scratch;

typedef struct plan_statement {
    const einsum_statement *of;
    plan_digits digits[PLAN_GROUP_COUNT]; /* a copy has batch digits only */
    uint32_t row_source, column_source;   /* tensor numbers */
    einsum_side row_side, column_side;
    int64_t base[EINSUM_SIDES]; /* elements from the beginning of each operand, from the shifts */
    bool first; /* nothing was assigned to its destination before */
    bool integer;
    bool exact_products; /* f32 holds every product of the operand types */
    bool wide_bound;     /* so many terms that the bound itself is summed in f64 */
    plan_tile tile;
    plan_scratch scratch;
} plan_statement;

/* What the tile sizes depend on: vector registers, and their width in 32-bit lanes. */
typedef struct plan_machine {
    int64_t lanes, registers;
} plan_machine;

typedef struct reference_plan {
    const einsum *e;
    plan_statement *statements;
    bool *assigned; /* by tensor: written by a statement */
    bool *used;     /* by tensor: read by a statement */
    bool *exact;    /* by tensor: another summation order gives the same bits; its bound is 0 */
    int64_t scratch_bytes;
} reference_plan;

/* NULL, or a malloc'd text that says which rule of codegen/einsum.h the einsum breaks. */
char *plan_build(const einsum *e, plan_machine machine, reference_plan *out);
void plan_free(reference_plan *p);

/* Of a tensor whose einsum was checked. */
int64_t plan_tensor_elements(const einsum *e, uint32_t tensor);
int64_t plan_tensor_bytes(const einsum *e, uint32_t tensor);
/* Elements between the elements of the tensor, as this operand, at neighbouring values of a digit's counter; modulo 2^64, 0 when
 * it does not vary with it. */
uint64_t plan_stride(const einsum *e, uint32_t tensor, einsum_side side, const einsum_digit *d);

/* How far one count of a digit moves the coordinate of an axis of a tensor. */
uint64_t plan_axis_weight(const einsum *e, uint32_t axis, const einsum_digit *d);
/* Is the axis a window that is not held as a whole, and indexed by digits of its terms as this operand? Then its coordinate is
 * the place less `first`, and outside the axis the element is zero. */
bool plan_has_border(const einsum *e, const einsum_statement *s, einsum_side side, uint32_t axis);

/* The largest shift of that axis on any side: no combination of digits that reaches beyond the axis with it exists. */
int64_t plan_shift_max(const einsum_statement *s, uint32_t axis);

/* printf into a malloc'd text; never NULL (without memory, a constant that plan_fault_free knows). */
char *plan_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
void plan_fault_free(void *text);

#endif
