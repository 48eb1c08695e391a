/* Rule ("Reducer", dead lanes): a product whose position in the computation mapping is dead adds nothing to the result,
 * whatever bytes the padding holds. A position is dead when one of its digits is, or when the digits of an axis add up
 * to the axis's size. Only sums need the rule: a dead position of a kept digit is a dead result. So there is one mask
 * per summed factor with padding, one per axis that has a summed digit and can overshoot, and for a group that is summed
 * one for its end and one for each padding inside it. */
#include "passes/pass.h"

/* The counters of docs/isa.md, mask. */
enum { COUNTER_STEP, COUNTER_LANE, COUNTER_SLICE, COUNTER_CLUSTER, COUNTER_CHIP, COUNTER_NONE };

/* A digit of the computation mapping. */
typedef struct digit {
    const factor *factor;
    int counter;
    int64_t position; /* of the counter at which the digit starts */
    bool summed;
} digit;

typedef struct masking {
    pass_context *context;
    const op *align, *contract, *accumulate; /* accumulate: NULL when the kernel ends after contract */
    digit digits[64];
    size_t count;
} masking;

/* Does the factor at these positions of time overlap a summed loop? */
static bool time_is_summed(const op *accumulate, int64_t position, int64_t extent)
{
    if (!accumulate)
        return false;
    const accumulate_config *a = accumulate->accumulate;
    int64_t low = 1;
    for (uint32_t i = a->count; i-- > 0;) {
        int64_t high = low * a->loops[i].size;
        if (a->loops[i].reduced && position < high && low < position * extent)
            return true;
        low = high;
    }
    return false;
}

static void add_digits(masking *m, const mapping *part, int counter)
{
    int64_t position = 1, reach = (int64_t)1 << m->contract->contract->tree_depth;
    for (size_t i = part->count; i-- > 0 && m->count < 64;) {
        const factor *f = &part->factors[i];
        bool summed = counter == COUNTER_LANE   ? position < reach
                      : counter == COUNTER_STEP ? time_is_summed(m->accumulate, position, f->extent)
                                                : false;
        m->digits[m->count++] = (digit){f, counter, position, summed};
        position *= f->extent;
    }
}

static lane_mask *new_mask(masking *m, int64_t limit)
{
    lane_mask *mask = ARENA_NEW(m->context->arena, lane_mask);
    mask->limit = limit;
    mask->next = m->contract->contract->masks;
    m->contract->contract->masks = mask;
    return mask;
}

static void add_term(lane_mask *mask, const digit *d, int64_t weight)
{
    if (mask->count < MASK_MAX_TERMS)
        mask->terms[mask->count++] = (mask_term){d->counter, d->position, d->factor->extent, weight};
}

/* Masks of one axis, at its first digit; false when a Row digit would have to take part. */
static bool mask_axis(masking *m, size_t first)
{
    const axis *a = m->digits[first].factor->axis;
    int64_t reach = 0;
    bool summed = false, row = false;
    for (size_t i = 0; i < m->count; i++) {
        const digit *d = &m->digits[i];
        if (d->factor->axis != a)
            continue;
        if (i < first)
            return true;
        summed = summed || d->summed;
        row = row || (d->counter == COUNTER_NONE && d->factor->live > 1);
        if (reach < a->size)
            reach += (d->factor->live - 1) * d->factor->weight;
    }
    if (!summed || reach < a->size)
        return true;
    if (row)
        return false;
    lane_mask *mask = new_mask(m, a->size);
    for (size_t i = 0; i < m->count; i++)
        if (m->digits[i].factor->axis == a)
            add_term(mask, &m->digits[i], m->digits[i].factor->weight);
    return true;
}

/* Does each axis of the group stand in one factor that ends with it? Then a position is dead only where a factor's digit is. */
static bool factors_decide(const mapping *inner)
{
    for (size_t i = 0; i < inner->count; i++) {
        const factor *f = &inner->factors[i];
        if (f->kind == FACTOR_COMPOSITE || (f->axis && (f->live - 1) * f->weight >= f->axis->size))
            return false;
        for (size_t k = 0; k < i && f->axis; k++)
            if (inner->factors[k].axis == f->axis && !mapping_is_full(inner))
                return false;
    }
    return true;
}

/* A whole group in one piece: its factors' paddings. A term divides the whole counter, so where something stands outside the group the
 * factor's period must be one of the piece's; false when it is not. */
static bool mask_inside(masking *m, const digit *d)
{
    const mapping *inner = d->factor->inner, *part = m->align->out.part[d->counter == COUNTER_LANE ? PACKET : TIME];
    bool is_outermost = d->position * d->factor->extent == part->size;
    int64_t period = 1;
    for (size_t i = inner->count; i-- > 0;) {
        const factor *f = &inner->factors[i];
        if (f->live < f->extent) {
            if (!is_outermost && d->factor->extent % (period * f->extent))
                return false;
            lane_mask *mask = new_mask(m, f->live);
            mask->terms[mask->count++] = (mask_term){d->counter, d->position * period, f->extent, 1};
        }
        period *= f->extent;
    }
    return true;
}

/* The masks of a group besides its own padding, at its first piece; false when the Reducer has none for it. */
static bool mask_group(masking *m, size_t first)
{
    const mapping *inner = m->digits[first].factor->inner;
    const factor *pieces[MASK_MAX_TERMS];
    size_t count = 0;
    bool row = false;
    for (size_t i = 0; i < m->count; i++) {
        const digit *d = &m->digits[i];
        if (d->factor->kind != FACTOR_COMPOSITE || d->factor->inner != inner)
            continue;
        if (i < first)
            return true;
        if (count == MASK_MAX_TERMS)
            return false;
        pieces[count++] = d->factor;
        row = row || d->counter == COUNTER_NONE;
    }
    bool is_full = mapping_is_full(inner), is_group = pass_is_group(m->context, pieces, count);
    if (count == 1 && is_group && !is_full && factors_decide(inner))
        return mask_inside(m, &m->digits[first]);
    if (!is_full || row)
        return false;
    if (count == 1 || !is_group)
        return true; /* no sum of such a part can be expressed in an einsum */
    lane_mask *mask = new_mask(m, inner->size);
    for (size_t i = 0; i < m->count; i++)
        if (m->digits[i].factor->inner == inner)
            add_term(mask, &m->digits[i], m->digits[i].factor->weight);
    return true;
}

static void mask_one(pass_context *p, kernel *k, op *o)
{
    masking m = {.context = p, .align = op_input(o), .contract = o, .accumulate = op_accumulation(k, o)};
    if (op_input(o)->kind != IR_ALIGN || (m.accumulate && m.accumulate->bad))
        return;
    const tensor *t = &op_input(o)->out;
    add_digits(&m, t->part[TIME], COUNTER_STEP);
    add_digits(&m, t->part[PACKET], COUNTER_LANE);
    add_digits(&m, t->part[ROW], COUNTER_NONE);
    add_digits(&m, t->part[SLICE], COUNTER_SLICE);
    add_digits(&m, t->part[CLUSTER], COUNTER_CLUSTER);
    add_digits(&m, t->part[CHIP], COUNTER_CHIP);
    for (size_t i = 0; i < m.count; i++) {
        const digit *d = &m.digits[i];
        if (d->summed && d->factor->live < d->factor->extent)
            add_term(new_mask(&m, d->factor->live), d, 1);
        if (d->summed && d->factor->kind == FACTOR_COMPOSITE && !mask_group(&m, i)) {
            diag *e = pass_refuse(p, k, o, PACKET, E_MASK, "padding inside `%s` cannot be left out of the sum",
                                  mapping_text(mapping_of_factor(p->mappings, d->factor), p->arena));
            diag_help(p->diags, e, "pad the outermost axis of the group instead of an inner one");
        }
        if (d->factor->axis && !mask_axis(&m, i)) {
            diag *e = pass_refuse(p, k, o, PACKET, E_MASK,
                                  "axis %s is summed, ends inside a @Row, and the Reducer cannot leave lanes out @Row by @Row",
                                  d->factor->axis->name);
            diag_help(p->diags, e, "let whole @Rows hold %s: choose @Row so that the axis ends with one", d->factor->axis->name);
        }
    }
}

void pass_mask(pass_context *p, kernel *k)
{
    pass_each(p, k, IR_CONTRACT, mask_one);
}
