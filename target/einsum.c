#include "target/einsum.h"

#define NONE MATH_INDEXED_NONE
#define FIRST MATH_INDEXED_FIRST
#define DST MATH_INDEXED_DST
static const math_row rows[] = {
#define MATH(symbol, code, name, fewest, most, sums, expression, indexed, meaning) \
    {MATH_##symbol, name, fewest, most, sums, expression, indexed, meaning},
#include "target/math.def"
#undef MATH
};
#undef NONE
#undef FIRST
#undef DST

enum { ROWS = sizeof rows / sizeof *rows };

const math_row *math_row_of(unsigned code)
{
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].op == code)
            return &rows[i];
    return NULL;
}

const math_row *math_row_at(size_t index)
{
    return index < ROWS ? &rows[index] : NULL;
}

const char *einsum_side_name(einsum_side side)
{
    static const char *const names[EINSUM_SIDES] = {"destination", "a", "b", "c", "d", "e", "f", "g", "h"};
    return names[side];
}

bool einsum_tensor_has(const einsum_tensor *t, uint32_t axis)
{
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->axes[i] == axis)
            return true;
    return false;
}

int64_t einsum_tensor_elements(const einsum *e, uint32_t tensor)
{
    int64_t elements = 1;
    for (uint32_t i = 0; i < e->tensors[tensor].rank; i++)
        elements *= e->axes[e->tensors[tensor].axes[i]].size;
    return elements;
}

int64_t einsum_largest_shift(const einsum_statement *s, uint32_t axis)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < s->shift_count; i++)
        if (s->shifts[i].axis == axis && s->shifts[i].offset > most)
            most = s->shifts[i].offset;
    return most;
}

int64_t einsum_shift_along(const einsum_statement *s, einsum_side side, uint32_t axis)
{
    int64_t offset = 0;
    for (uint32_t i = 0; i < s->shift_count; i++)
        if (s->shifts[i].side == side && s->shifts[i].axis == axis)
            offset += s->shifts[i].offset;
    return offset;
}

einsum_span einsum_reach(const einsum_statement *s, einsum_side side, uint32_t axis)
{
    int64_t low = einsum_shift_along(s, side, axis), end = low + 1, far;
    for (uint32_t i = 0; i < s->digit_count; i++) {
        const einsum_digit *d = &s->digits[i];
        if (d->axis != axis || !einsum_digit_indexes(d, side) || (side == EINSUM_DST && !d->kept))
            continue;
        if (__builtin_mul_overflow(d->size - 1, d->weight, &far) || __builtin_add_overflow(end, far, &end))
            return (einsum_span){low, INT64_MAX};
    }
    return (einsum_span){low, end};
}

bool einsum_walks_axis(const einsum_statement *s, einsum_side side, uint32_t axis)
{
    for (uint32_t i = 0; i < s->digit_count; i++)
        if (s->digits[i].axis == axis && s->digits[i].size > 1 && einsum_digit_indexes(&s->digits[i], side))
            return true;
    return false;
}
