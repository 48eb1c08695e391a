#include "codegen/reference/expression.h"

#include "codegen/reference/scalar.h"
#include "codegen/reference/scalar_bound.h"

/* One node, from those before it. */
static expression_value evaluate(emitter *e, const plan_node *n, const expression_value *values, const expression_value *sources,
                                 const expression_value *sum, int64_t lanes, bool bounded)
{
    if (n->op == PLAN_SUM)
        return *sum;
    if (n->op == SCALAR_SOURCE)
        return sources[n->argument];
    if (n->op == SCALAR_CONSTANT_I32 || n->op == SCALAR_CONSTANT_F32)
        return (expression_value){.value =
                                      emit_scalar_constant(e, n->op == SCALAR_CONSTANT_I32 ? SCALAR_I32 : SCALAR_F32, n->argument, lanes)};
    const scalar_row *row = scalar_row_of(n->op);
    LLVMValueRef x[SCALAR_OPERANDS] = {0}, errors[SCALAR_OPERANDS] = {0};
    for (unsigned i = 0; i < scalar_arity(row); i++) {
        x[i] = values[n->operands[i]].value;
        errors[i] = values[n->operands[i]].error;
    }
    expression_value v = {.value = emit_scalar(e, n->op, x)};
    if (bounded)
        v.error = emit_scalar_bound(e, row, x, errors, v.value);
    return v;
}

expression_value emit_expression(emitter *e, const plan_statement *p, const expression_value *sources, const expression_value *sum,
                                 int64_t lanes, bool bounded)
{
    expression_value values[PLAN_MAX_NODES];
    for (unsigned i = 0; i < p->node_count; i++)
        values[i] = evaluate(e, &p->nodes[i], values, sources, sum, lanes, bounded);
    return values[p->node_count - 1];
}
