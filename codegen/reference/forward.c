#include "codegen/reference/forward.h"

#include <stdlib.h>

#include "codegen/reference/fuse.h"
#include "codegen/reference/walk.h"

/* A read of the reader's source number `slot`, of what `copy` put there. */
typedef struct read {
    const einsum *e;
    const plan_statement *reader, *copy;
    unsigned slot;
} read;

static einsum_side side_of(const read *x)
{
    return (einsum_side)(EINSUM_A + x->slot);
}

/* Is one place of the axis written, and one read? Then no digit has it. */
static bool is_place(const read *x, uint32_t axis)
{
    return !einsum_walks_axis(x->copy->of, EINSUM_SIDES, axis) && !einsum_walks_axis(x->reader->of, EINSUM_SIDES, axis);
}

static bool same_place(const read *x, uint32_t axis)
{
    return einsum_shift_along(x->copy->of, EINSUM_DST, axis) == einsum_shift_along(x->reader->of, side_of(x), axis);
}

/* Does the statement write at another place than that which is read? */
static bool is_elsewhere(const read *x)
{
    const einsum_tensor *t = &x->e->tensors[x->copy->of->dst];
    bool moved = math_row_of(x->copy->of->op)->indexed == MATH_INDEXED_DST;
    for (uint32_t i = 0; i < t->rank && !moved; i++)
        if (is_place(x, t->axes[i]) && !same_place(x, t->axes[i]))
            return true;
    return false;
}

/* What is read is what the copy wrote: of each axis all of it, or the one place. */
static bool is_written(const read *x)
{
    const einsum_statement *s = x->copy->of;
    const einsum_tensor *t = &x->e->tensors[s->dst];
    for (uint32_t i = 0; i < t->rank; i++) {
        uint32_t axis = t->axes[i];
        if (plan_covers_axis(x->e, s, axis)
                ? einsum_shift_along(x->reader->of, side_of(x), axis) && !einsum_tensor_has(&x->e->tensors[s->sources[0]], axis)
                : !(is_place(x, axis) && same_place(x, axis)))
            return false;
    }
    return true;
}

/* Each axis of what is copied is walked with the same axis of the copy, or one place of it is copied. */
static bool is_straight(const read *x)
{
    const einsum_statement *s = x->copy->of;
    const einsum_tensor *t = &x->e->tensors[s->sources[0]];
    bool moves;
    for (uint32_t i = 0; i < t->rank; i++) {
        uint32_t axis = t->axes[i];
        if (!fuse_moves_alike(x->copy, EINSUM_A, axis, &moves) ||
            (moves ? einsum_shift_along(s, EINSUM_A, axis) != 0 || !einsum_tensor_has(&x->e->tensors[s->dst], axis)
                   : x->e->axes[axis].size > 1 && !is_place(x, axis)))
            return false;
    }
    return true;
}

/* A value of the one type is read as it would be of the other. */
static bool reads_alike(dtype copied, dtype copy)
{
    bool is_float = dtype_row_of(copied)->kind == DTYPE_KIND_FLOAT;
    return copied == copy || copy == (is_float ? DTYPE_F32 : DTYPE_I32);
}

/* Is what lies closest together in the copy, as it is read, as close in what was copied? */
static bool lies_as_close(const read *x)
{
    uint32_t copied = x->copy->of->sources[0], copy = x->copy->of->dst;
    uint64_t closest = UINT64_MAX, there = 0;
    for (uint32_t i = 0; i < x->reader->of->digit_count; i++) {
        const einsum_digit *d = &x->reader->of->digits[i];
        uint64_t stride = d->size > 1 ? walk_stride(x->e, copy, side_of(x), d) : 0;
        bool moves;
        if (stride == 0 || stride >= closest)
            continue;
        (void)fuse_moves_alike(x->copy, EINSUM_A, d->axis, &moves);
        closest = stride;
        there = moves ? walk_stride(x->e, copied, side_of(x), d) : 0;
    }
    return there <= closest;
}

/* Nobody assigns what was copied up to the reader itself. */
static bool stays(const read *x)
{
    for (const plan_statement *s = x->copy + 1; s <= x->reader; s++)
        if (s->of->dst == x->copy->of->sources[0])
            return false;
    return true;
}

/* The copy that put there what is read; NULL: none, or it has to be read where it is. */
static const plan_statement *copy_of(reference_plan *p, const plan_statement *reader, unsigned slot)
{
    const einsum *e = p->e;
    uint32_t tensor = reader->sources[slot];
    if (e->tensors[tensor].port >= 0 || fuse_has_window(e, tensor))
        return NULL;
    for (size_t i = (size_t)(reader - p->statements); i-- > 0;) {
        const plan_statement *s = &p->statements[i];
        read x = {e, reader, s, slot};
        if (s->of->dst != tensor || is_elsewhere(&x))
            continue;
        bool forwards = s->of->op == MATH_COPY && !fuse_has_window(e, s->of->sources[0]) && is_written(&x) && is_straight(&x) &&
                        reads_alike(e->tensors[s->of->sources[0]].dtype, e->tensors[tensor].dtype) && stays(&x) && lies_as_close(&x);
        return forwards ? s : NULL;
    }
    return NULL;
}

/* The reader's source is the copied tensor: places of the copy are forgotten, those of what was copied are taken. */
static bool read_copied(const read *x, plan_statement *r)
{
    const einsum_statement *s = x->copy->of;
    einsum_side side = side_of(x);
    plan_statement made = *r;
    made.made = NULL;
    if (!fuse_copy_digits(&made, r->of, s->shift_count)) {
        fuse_free_digits(&made);
        return false;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < made.made->shift_count; i++) {
        einsum_shift h = made.made_shifts[i];
        if (h.side != side || (plan_covers_axis(x->e, s, h.axis) && einsum_tensor_has(&x->e->tensors[s->sources[0]], h.axis)))
            made.made_shifts[kept++] = h;
    }
    for (uint32_t i = 0; i < s->shift_count; i++)
        if (s->shifts[i].side == EINSUM_A)
            made.made_shifts[kept++] = (einsum_shift){side, s->shifts[i].axis, s->shifts[i].offset};
    made.made->shift_count = kept;
    for (uint32_t i = 0; i < made.made->digit_count; i++) {
        einsum_digit *d = &made.made_digits[i];
        bool moves;
        (void)fuse_moves_alike(x->copy, EINSUM_A, d->axis, &moves);
        moves = moves && einsum_digit_indexes(d, side) && einsum_tensor_has(&x->e->tensors[s->dst], d->axis);
        d->broadcast = (d->broadcast & ~(1u << side)) | (unsigned)!moves << side;
    }
    made.sources[x->slot] = s->sources[0];
    made.of = made.made;
    made.fused = true;
    fuse_free_digits(r);
    *r = made;
    return true;
}

/* Is it needed, or made by anything but copies? */
static bool is_used(const reference_plan *p, uint32_t tensor)
{
    for (uint32_t i = 0; i < p->e->statement_count; i++)
        if (p->statements[i].of->dst == tensor && p->statements[i].of->op != MATH_COPY)
            return true;
    for (uint32_t i = 0; i < p->e->statement_count; i++)
        for (unsigned k = 0; k < p->statements[i].source_count && !p->statements[i].absorbed; k++)
            if (p->statements[i].sources[k] == tensor)
                return true;
    return false;
}

/* Copies that nobody reads, the last ones first: a copy may be of a copy. */
static void drop_copies(reference_plan *p, const bool *forwarded)
{
    for (uint32_t i = p->e->statement_count; i-- > 0;) {
        plan_statement *s = &p->statements[i];
        uint32_t tensor = s->of->dst;
        if (s->of->op != MATH_COPY || !forwarded[tensor] || is_used(p, tensor))
            continue;
        *s = (plan_statement){.of = s->of, .absorbed = true};
        p->assigned[tensor] = p->used[tensor] = false;
    }
}

static bool forward_all(reference_plan *p, bool *forwarded)
{
    bool any = false;
    for (uint32_t i = 0; i < p->e->statement_count; i++) {
        plan_statement *r = &p->statements[i];
        if (r->of->op != MATH_MAP && r->of->op != MATH_REDUCE)
            continue;
        for (unsigned slot = 0; slot < r->source_count;) {
            const plan_statement *copy = copy_of(p, r, slot);
            if (!copy) {
                slot++;
                continue;
            }
            forwarded[copy->of->dst] = any = true;
            if (!read_copied(&(read){p->e, r, copy, slot}, r))
                return false;
        }
    }
    if (any)
        drop_copies(p, forwarded);
    return true;
}

bool forward_copies(reference_plan *p)
{
    bool *forwarded = calloc((size_t)p->e->tensor_count + 1, sizeof *forwarded);
    bool have = forwarded && forward_all(p, forwarded);
    free(forwarded);
    return have;
}
