/* The form of a contraction that computes values only: blocks of sums that stay in the cache, narrowed and stored at once.
 *
 * The one idea: a share of the tiles (of the longer side) is packed and computed by itself, so that any number of threads gives the
 * same bits. Rows and columns that the product can read where they lie, and sums that the destination can hold (plan_statement), stay
 * there; only the last tiles, where they are not whole, pass through the scratch storage. The batch digits are open. */
#ifndef VISA_CODEGEN_REFERENCE_BLOCK_H
#define VISA_CODEGEN_REFERENCE_BLOCK_H

#include "codegen/reference/gemm.h"
#include "codegen/reference/panel.h"

typedef struct block_form {
    emitter *e;
    const plan_statement *of;
    panel_side rows, columns;
    LLVMValueRef dst, sums; /* the destination; storage for a block */
    LLVMValueRef part, parts;
} block_form;

void emit_block_form(const block_form *f);

#endif
