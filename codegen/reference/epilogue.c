#include "codegen/reference/epilogue.h"

#include "codegen/reference/walk.h"

static LLVMValueRef place_of(const element_form *f, unsigned side, LLVMValueRef row, LLVMValueRef column)
{
    emitter *e = f->e;
    uint32_t tensor = plan_operand(f->p, side);
    LLVMValueRef at = emit_tensor_offset(e, tensor, (einsum_side)side);
    if (row)
        at = LLVMBuildAdd(e->b, at, emit_group_offset(e, tensor, (einsum_side)side, &f->p->digits[PLAN_ROW], row), "");
    if (column)
        at = LLVMBuildAdd(e->b, at, emit_group_offset(e, tensor, (einsum_side)side, &f->p->digits[PLAN_COLUMN], column), "");
    return at;
}

/* Vectors of columns lie along the innermost digit (plan). */
static int64_t stride_of(const element_form *f, unsigned side)
{
    const plan_digits *columns = &f->p->digits[PLAN_COLUMN];
    return columns->count
               ? (int64_t)walk_stride(f->e->plan->e, plan_operand(f->p, side), (einsum_side)side, &columns->items[columns->count - 1])
               : 0;
}

expression_value emit_epilogue(const element_form *f, expression_value sums, LLVMValueRef row, LLVMValueRef column, int64_t lanes,
                               int64_t live)
{
    enum { FACTORS = 2 };
    expression_value sources[PLAN_SOURCES] = {{0}};
    if (!f->p->node_count)
        return sums;
    for (unsigned i = FACTORS; i < f->p->source_count; i++)
        sources[i] = emit_element_load(f, EINSUM_A + i, place_of(f, EINSUM_A + i, row, column), stride_of(f, EINSUM_A + i), lanes, live);
    return emit_expression(f->e, f->p, sources, &sums, lanes, f->bounded);
}
