#include "codegen/reference/walk.h"

#include "codegen/reference/units.h"

/* ---- tensors ---- */

int64_t walk_elements(const einsum *e, uint32_t tensor)
{
    int64_t elements = 1;
    for (uint32_t i = 0; i < e->tensors[tensor].rank; i++)
        elements *= units_size(e, tensor, i);
    return elements;
}

int64_t walk_bytes(const einsum *e, uint32_t tensor)
{
    return (walk_elements(e, tensor) * dtype_row_of(e->tensors[tensor].dtype)->bits + 7) / 8;
}

/* ---- windows ---- */

int64_t walk_term_weight(const einsum_term *t, const einsum_digit *d)
{
    int64_t end = t->weight * t->extent;
    if (d->axis != t->axis || d->size == 1 || d->weight % end == 0)
        return 0;
    if (d->weight < t->weight && d->size <= t->weight / d->weight)
        return 0;
    if (d->weight % t->weight != 0 || d->weight >= end || d->size - 1 > (end - 1) / d->weight)
        return -1;
    return d->weight / t->weight * t->stride;
}

const einsum_window *walk_window(const einsum *e, uint32_t axis)
{
    for (uint32_t i = 0; i < e->window_count; i++)
        if (e->windows[i].axis == axis)
            return &e->windows[i];
    return NULL;
}

/* The digit's own weight, or what it adds to the place of a window by its terms: the statement was checked to have one kind of them
 * only. */
uint64_t walk_axis_weight(const einsum *e, uint32_t axis, const einsum_digit *d)
{
    const einsum_window *x = walk_window(e, axis);
    uint64_t weight = axis == d->axis ? (uint64_t)d->weight : 0;
    for (uint32_t i = 0; x && i < x->term_count; i++) {
        int64_t more = walk_term_weight(&x->terms[i], d);
        weight += more > 0 ? (uint64_t)more : 0;
    }
    return weight;
}

bool walk_has_border(const einsum *e, const einsum_statement *s, einsum_side side, uint32_t axis)
{
    const einsum_window *x = walk_window(e, axis);
    bool used = false;
    for (uint32_t i = 0; x && x->bordered && i < s->digit_count; i++)
        for (uint32_t k = 0; k < x->term_count && einsum_digit_indexes(&s->digits[i], side); k++)
            used |= walk_term_weight(&x->terms[k], &s->digits[i]) > 0;
    return used;
}

/* ---- strides ---- */

uint64_t walk_stride(const einsum *e, uint32_t tensor, einsum_side side, const einsum_digit *d)
{
    if (!einsum_digit_indexes(d, side))
        return 0;
    const einsum_tensor *t = &e->tensors[tensor];
    uint64_t stride = 1, sum = 0;
    for (uint32_t i = t->rank; i-- > 0;) {
        sum += stride * (walk_axis_weight(e, t->axes[i], d) / (uint64_t)units_of(e, tensor, i));
        stride *= (uint64_t)units_size(e, tensor, i);
    }
    return sum;
}

bool walk_varies(const einsum *e, uint32_t tensor, einsum_side side, const einsum_digit *d)
{
    for (uint32_t i = 0; i < e->tensors[tensor].rank && einsum_digit_indexes(d, side); i++)
        if (walk_axis_weight(e, e->tensors[tensor].axes[i], d) != 0)
            return true;
    return false;
}

int64_t walk_axis_stride(const einsum *e, uint32_t tensor, uint32_t axis)
{
    const einsum_tensor *t = &e->tensors[tensor];
    int64_t stride = 1;
    for (uint32_t i = t->rank; i-- > 0 && t->axes[i] != axis;)
        stride *= units_size(e, tensor, i);
    return stride;
}

int64_t walk_shift(const einsum *e, uint32_t tensor, uint32_t axis, int64_t offset)
{
    const einsum_tensor *t = &e->tensors[tensor];
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->axes[i] == axis)
            return offset / units_of(e, tensor, i) * walk_axis_stride(e, tensor, axis);
    return 0;
}

int64_t walk_run(const einsum *e, uint32_t tensor, einsum_side side, const plan_digits *digits)
{
    if (digits->count == 0)
        return INT64_MAX;
    const einsum_digit *inner = &digits->items[digits->count - 1];
    if (walk_stride(e, tensor, side, inner) != 1)
        return 0;
    return digits->count == 1 ? INT64_MAX : inner->size;
}

/* ---- what does not exist ---- */

bool walk_passes(const einsum *e, const plan_statement *s, uint32_t axis, const plan_group *groups, unsigned count)
{
    int64_t last = 0;
    for (unsigned g = 0; g < count; g++)
        for (unsigned i = 0; i < s->digits[groups[g]].count; i++) {
            const einsum_digit *d = &s->digits[groups[g]].items[i];
            last += d->axis == axis ? (d->size - 1) * d->weight : 0;
        }
    return last > 0 && last >= e->axes[axis].size - einsum_largest_shift(s->of, axis);
}

bool walk_is_guarded(const einsum *e, const plan_statement *s, uint32_t tensor, einsum_side side, const plan_group *groups, unsigned count)
{
    for (uint32_t axis = 0; axis < e->axis_count; axis++)
        if (walk_passes(e, s, axis, groups, count))
            return true;
    for (uint32_t i = 0; i < e->tensors[tensor].rank; i++)
        if (walk_has_border(e, s->of, side, e->tensors[tensor].axes[i]))
            return true;
    return false;
}
