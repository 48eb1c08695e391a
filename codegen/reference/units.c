#include "codegen/reference/units.h"

#include <stdlib.h>

#include "codegen/reference/walk.h"
#include "support/integer.h"

/* Places along an axis are multiples of that, too. */
static void take(const einsum *e, int64_t **units, uint32_t tensor, uint32_t axis, int64_t places)
{
    const einsum_tensor *t = &e->tensors[tensor];
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->axes[i] == axis)
            units[tensor][i] = gcd(units[tensor][i], places);
}

static void take_all(const einsum *e, int64_t **units, uint32_t tensor)
{
    for (uint32_t i = 0; i < e->tensors[tensor].rank; i++)
        units[tensor][i] = 1;
}

static void take_statement(const einsum *e, int64_t **units, const einsum_statement *s)
{
    for (unsigned side = EINSUM_DST; side < einsum_side_count(s); side++) {
        uint32_t tensor = einsum_operand(s, (einsum_side)side);
        if (einsum_index_count(s) > 0)
            take_all(e, units, tensor);
        for (uint32_t i = 0; i < s->digit_count; i++)
            if (s->digits[i].size > 1 && (side != EINSUM_DST || s->digits[i].kept) &&
                einsum_digit_indexes(&s->digits[i], (einsum_side)side))
                take(e, units, tensor, s->digits[i].axis, s->digits[i].weight);
        for (uint32_t i = 0; i < s->shift_count; i++)
            if ((unsigned)s->shifts[i].side == side)
                take(e, units, tensor, s->shifts[i].axis, s->shifts[i].offset);
    }
}

int64_t **units_find(const einsum *e)
{
    size_t ranks = 0;
    for (uint32_t t = 0; t < e->tensor_count; t++)
        ranks += e->tensors[t].rank;
    int64_t **units = calloc(1, (e->tensor_count + 1) * sizeof *units + (ranks + 1) * sizeof **units);
    if (!units)
        return NULL;
    int64_t *next = (int64_t *)(units + e->tensor_count + 1);
    for (uint32_t t = 0; t < e->tensor_count; next += e->tensors[t++].rank)
        units[t] = next;
    for (uint32_t i = 0; i < e->statement_count; i++)
        take_statement(e, units, &e->statements[i]);
    for (uint32_t t = 0; t < e->tensor_count; t++)
        for (uint32_t i = 0; i < e->tensors[t].rank; i++) {
            uint32_t axis = e->tensors[t].axes[i];
            if (e->tensors[t].port >= 0 || walk_window(e, axis))
                units[t][i] = 1;
            else if (units[t][i] == 0) /* one place alone is touched */
                units[t][i] = e->axes[axis].size;
        }
    return units;
}
