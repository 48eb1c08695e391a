#include "codegen/reference/sharing.h"

#include "codegen/reference/walk.h"

static bool tensors_are_alike(const reference_plan *p, uint32_t x, uint32_t y)
{
    const einsum_tensor *a = &p->e->tensors[x], *b = &p->e->tensors[y];
    bool alike = a->dtype == b->dtype && a->rank == b->rank && p->exact[x] == p->exact[y];
    for (uint32_t i = 0; alike && i < a->rank; i++)
        alike = a->axes[i] == b->axes[i];
    return alike;
}

static bool digits_are_equal(const einsum_digit *a, const einsum_digit *b)
{
    return a->axis == b->axis && a->kept == b->kept && a->weight == b->weight && a->size == b->size && a->broadcast == b->broadcast &&
           a->lane == b->lane && a->group == b->group && a->stride == b->stride;
}

static bool pieces_are_equal(const einsum_piece *a, const einsum_piece *b)
{
    return a->group == b->group && a->lane == b->lane && a->weight == b->weight && a->size == b->size;
}

bool sharing_same_digits(const einsum_statement *a, const einsum_statement *b)
{
    bool same = a->digit_count == b->digit_count;
    for (uint32_t i = 0; same && i < a->digit_count; i++)
        same = digits_are_equal(&a->digits[i], &b->digits[i]);
    return same;
}

bool sharing_guards_differ(const einsum *e, const plan_statement *x, const plan_statement *y)
{
    static const plan_group all[PLAN_GROUP_COUNT] = {PLAN_BATCH, PLAN_ROW, PLAN_COLUMN, PLAN_DEPTH};
    for (uint32_t i = 0; i < x->of->shift_count + y->of->shift_count; i++) {
        uint32_t axis = i < x->of->shift_count ? x->of->shifts[i].axis : y->of->shifts[i - x->of->shift_count].axis;
        bool passed = walk_passes(e, x, axis, all, PLAN_GROUP_COUNT) || walk_passes(e, y, axis, all, PLAN_GROUP_COUNT);
        if (passed && einsum_largest_shift(x->of, axis) != einsum_largest_shift(y->of, axis))
            return true;
    }
    return false;
}

/* Is one tensor several operands at the same places of both? What is read of it there may be read once. */
static bool same_operands_coincide(const plan_statement *x, const plan_statement *y)
{
    bool same = true;
    for (unsigned i = 0; i <= x->source_count; i++)
        for (unsigned k = 0; k < i && same; k++)
            same = (plan_operand(x, i) == plan_operand(x, k)) == (plan_operand(y, i) == plan_operand(y, k));
    return same;
}

/* All else that the generator reads follows from what is compared here. */
static bool statements_share_code(const reference_plan *p, const plan_statement *x, const plan_statement *y)
{
    const einsum_statement *a = x->of, *b = y->of;
    bool same = !x->absorbed && !y->absorbed && !x->fused && !y->fused && !x->twin && !y->twin && a->op == b->op &&
                a->accumulator == b->accumulator && a->piece_count == b->piece_count && x->source_count == y->source_count &&
                a->step_count == b->step_count && a->fold == b->fold && a->bits == b->bits && tensors_are_alike(p, a->dst, b->dst);
    for (unsigned i = 0; same && i < x->source_count; i++)
        same = tensors_are_alike(p, x->sources[i], y->sources[i]);
    same = same && same_operands_coincide(x, y);
    for (uint32_t i = 0; same && i < a->step_count; i++)
        same = a->steps[i].op == b->steps[i].op && a->steps[i].argument == b->steps[i].argument;
    same = same && a->counted == b->counted && a->count_span == b->count_span;
    for (uint32_t i = 0; same && i < einsum_index_count(a); i++)
        same = a->indices[i].axis == b->indices[i].axis && a->indices[i].unit == b->indices[i].unit &&
               a->indices[i].step == b->indices[i].step && a->indices[i].div == b->indices[i].div &&
               a->indices[i].mod == b->indices[i].mod && a->indices[i].positions == b->indices[i].positions;
    same = same && sharing_same_digits(a, b);
    for (uint32_t i = 0; same && i < a->piece_count; i++)
        same = pieces_are_equal(&a->pieces[i], &b->pieces[i]);
    return same && !sharing_guards_differ(p->e, x, y);
}

void sharing_find(reference_plan *p, uint32_t number)
{
    plan_statement *s = &p->statements[number];
    s->code = 0;
    while (s->code < number && (p->statements[s->code].code != s->code || !statements_share_code(p, &p->statements[s->code], s)))
        s->code++;
    plan_statement *first = &p->statements[s->code];
    first->parted |= plan_is_shared(p, s);
    for (unsigned side = 0; side <= s->source_count; side++)
        first->base_varies[side] |= s->base[side] != first->base[side];
}
