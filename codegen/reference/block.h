/* The form of a contraction that computes values only: blocks of sums that stay in the cache, narrowed and stored at once.
 *
 * The one idea: packing and computing are over ranges of tiles (plan_part), and a tile is summed in the same way in every range, so that
 * any division among any number of threads gives the same bits. Rows and columns that the product can read where they lie, and sums that
 * the destination can hold (plan_statement), stay there; only the last tiles, where they are not whole, pass through the scratch storage.
 * The batch digits are open. */
#ifndef VISA_CODEGEN_REFERENCE_BLOCK_H
#define VISA_CODEGEN_REFERENCE_BLOCK_H

#include "codegen/reference/elements.h"
#include "codegen/reference/gemm.h"
#include "codegen/reference/panel.h"

typedef struct block_form {
    emitter *e;
    const plan_statement *of;
    panel_side rows, columns;
    const element_form *operands;
    LLVMValueRef dst, sums;          /* the destination; storage for a block */
    const LLVMValueRef *first, *end; /* by plan_range: which panels are packed and then which tiles computed */
} block_form;

void emit_block_form(const block_form *f);

#endif
