/* What becomes of a contraction's sums where a map was fused into it (fuse.h).
 *
 * The one idea: a sum is a value of the expression, wherever it comes from; the other operands are found by
 * the same row and column. */
#ifndef VISA_CODEGEN_REFERENCE_EPILOGUE_H
#define VISA_CODEGEN_REFERENCE_EPILOGUE_H

#include "codegen/reference/elements.h"

/* So many sums along the columns, of which `live` exist, become values of the destination. Row and column are
 * indices of their groups; NULL: the group's digits are open. Without nodes, they are these values. */
expression_value emit_epilogue(const element_form *f, expression_value sums, LLVMValueRef row, LLVMValueRef column, int64_t lanes,
                               int64_t live);

#endif
