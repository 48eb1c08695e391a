#include "runtime/field/function.h"

field_value field_constant(uint64_t seed, dtype type, uint32_t bits)
{
    field_function f = field_function_begin(seed, type == DTYPE_F32 ? SCALAR_CONSTANT_F32 : SCALAR_CONSTANT_I32);
    field_function_take(&f, bits);
    return field_function_end(&f);
}

static field_value negative(field_value a)
{
    return a ? FIELD_PRIME - a : 0;
}

static field_value apply(uint64_t seed, const scalar_row *row, const field_value *of)
{
    switch (row->op) {
    case SCALAR_ADD_I32:
    case SCALAR_ADD_F32: return field_add(of[0], of[1]);
    case SCALAR_SUB_I32:
    case SCALAR_SUB_F32: return field_add(of[0], negative(of[1]));
    case SCALAR_MUL_I32:
    case SCALAR_MUL_F32: return field_multiply(of[0], of[1]);
    case SCALAR_FMA_F32: return field_add(field_multiply(of[0], of[1]), of[2]);
    case SCALAR_NEG_I32:
    case SCALAR_NEG_F32: return negative(of[0]);
    default: break;
    }
    field_function f = field_function_begin(seed, row->op);
    for (unsigned i = 0; i < scalar_arity(row); i++)
        field_function_take(&f, of[i]);
    return field_function_end(&f);
}

field_value field_expression(uint64_t seed, const scalar_step *steps, uint32_t count, const field_value *operands)
{
    field_value stack[SCALAR_MAX_DEPTH];
    unsigned depth = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (steps[i].op == SCALAR_SOURCE) {
            stack[depth++] = operands[steps[i].argument];
        } else if (steps[i].op == SCALAR_CONSTANT_I32 || steps[i].op == SCALAR_CONSTANT_F32) {
            stack[depth++] = field_constant(seed, steps[i].op == SCALAR_CONSTANT_F32 ? DTYPE_F32 : DTYPE_I32, steps[i].argument);
        } else {
            const scalar_row *row = scalar_row_of(steps[i].op);
            depth -= scalar_arity(row);
            stack[depth] = apply(seed, row, stack + depth);
            depth++;
        }
    }
    return stack[0];
}
