/* Statements over the field of 2^61 - 1 elements, as LLVM IR.
 *
 * The one idea: tensors hold a 64-bit residue for each element, and a contraction is what plan.h says, a
 * batched product of rows and columns, zero where a term does not exist. A residue is three limbs of 21 bits,
 * and the products of limbs are those of matrices of doubles: every sum is an integer of less than 53 bits, so
 * nothing rounds, and vectors and fused multiplications do it as fast as any product of matrices. Order,
 * types and casts do not matter. The arithmetic is this file's own (not runtime/field/value.h). */
#ifndef VISA_CODEGEN_REFERENCE_FIELD_H
#define VISA_CODEGEN_REFERENCE_FIELD_H

#include "codegen/reference/emitter.h"

/* What a run needs to know of a statement: `batches` of `row_tiles` may be computed apart, each with storage
 * of its own. */
typedef struct field_shape {
    int64_t batches, row_tiles, scratch_bytes;
    double clocks;
} field_shape;

/* False: too large. */
bool field_shape_of(const plan_statement *s, field_shape *out);

/* Clocks of a processor with wide vectors, roughly. */
double field_clocks(const plan_statement *s);

/* void NAME(uint64_t *const *tensors, void *scratch, statement, first batch, end, first row tile, end) */
typedef void field_function(uint64_t *const *tensors, unsigned char *scratch, int64_t statement, int64_t first_batch, int64_t end_batch,
                            int64_t first_tile, int64_t end_tile);
void emit_field_entry(emitter *e, const char *name);

#endif
