#include "codegen/reference/settle.h"

#include <stdlib.h>

#include "codegen/reference/walk.h"

/* What is read of each tensor. */
typedef struct reads {
    const einsum *e;
    size_t *first;      /* by tensor: its first axis in */
    einsum_span *along; /* by axis of each tensor; nothing where end is not above low */
} reads;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What digits reach, and all that there is of what lists or windows move. */
static einsum_span span_read(const einsum *e, const einsum_statement *s, einsum_side side, uint32_t axis)
{
    einsum_span read = {0, e->axes[axis].size};
    if (einsum_index_count(s) > 0 || walk_window(e, axis))
        return read;
    einsum_span reach = einsum_reach(s, side, axis);
    return (einsum_span){reach.low, smaller(reach.end, read.end)};
}

static bool reads_make(reads *r, const einsum *e)
{
    size_t axes = 0;
    *r = (reads){.e = e, .first = calloc((size_t)e->tensor_count + 1, sizeof *r->first)};
    for (uint32_t t = 0; r->first && t < e->tensor_count; t++) {
        r->first[t] = axes;
        axes += e->tensors[t].rank;
    }
    r->along = calloc(axes + 1, sizeof *r->along);
    if (!r->first || !r->along)
        return false;
    for (uint32_t i = 0; i < e->statement_count; i++) {
        const einsum_statement *s = &e->statements[i];
        for (unsigned side = EINSUM_A; side < einsum_side_count(s); side++) {
            const einsum_tensor *t = &e->tensors[einsum_operand(s, (einsum_side)side)];
            for (uint32_t k = 0; k < t->rank && t->port < 0; k++) {
                einsum_span *all = &r->along[r->first[t - e->tensors] + k], one = span_read(e, s, (einsum_side)side, t->axes[k]);
                *all = all->end > all->low ? (einsum_span){smaller(all->low, one.low), all->end > one.end ? all->end : one.end} : one;
            }
        }
    }
    return true;
}

/* Coordinates of the axis that the statement writes without a gap, whatever it writes along the others. */
static einsum_span span_written(const einsum *e, const einsum_statement *s, uint32_t axis)
{
    int64_t low = einsum_shift_along(s, EINSUM_DST, axis), dense = 1, room = e->axes[axis].size - einsum_largest_shift(s, axis);
    if (s->op == MATH_SCATTER || walk_window(e, axis))
        return (einsum_span){0, 0};
    for (bool found = true; found;) {
        found = false;
        for (uint32_t i = 0; i < s->digit_count && !found; i++)
            if (s->digits[i].axis == axis && s->digits[i].kept && s->digits[i].size > 1 && s->digits[i].weight == dense)
                found = !__builtin_mul_overflow(dense, s->digits[i].size, &dense);
    }
    return (einsum_span){low, low + smaller(dense, room)};
}

static bool is_settled(const reads *r, const plan_statement *s)
{
    const einsum_tensor *t = &r->e->tensors[s->of->dst];
    bool settled = s->first && !s->absorbed && !s->covers && t->port < 0;
    for (uint32_t k = 0; k < t->rank && settled; k++) {
        einsum_span read = r->along[r->first[s->of->dst] + k], written = span_written(r->e, s->of, t->axes[k]);
        settled = read.end <= read.low || (written.low <= read.low && read.end <= written.end);
    }
    return settled;
}

bool settle_find(reference_plan *p)
{
    reads r;
    bool made = reads_make(&r, p->e);
    for (uint32_t i = 0; i < p->e->statement_count && made; i++)
        p->statements[i].settled = is_settled(&r, &p->statements[i]);
    free(r.first);
    free(r.along);
    return made;
}
