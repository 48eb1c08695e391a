#include "passes/mathematics/einsum_reshape.h"

#include "passes/reshape.h"

/* The terms by which the axis is read under its new names. */
static einsum_relabel *relabel_of(einsum_builder *b, uint32_t number)
{
    for (size_t i = 0; i < b->relabel_count; i++)
        if (b->relabels[i].axis == number)
            return &b->relabels[i];
    return NULL;
}

bool einsum_refuse_relabel(einsum_builder *b, op *o, const axis *a, const char *why)
{
    diag *d = pass_refuse(b->context, b->kernel, o, MAPPING_COMPONENTS, E_EINSUM, "axis %s %s", a->name, why);
    diag_help(b->context->diags, d, "reshape to axes of their own names, used for nothing else");
    return false;
}

/* An axis of the mathematics alone, which no mapping names. */
static const axis *unnamed_axis(einsum_builder *b, const axis *of, const char *name, int64_t size)
{
    axis *a = ARENA_NEW(b->context->arena, axis);
    *a = (axis){.name = name, .size = size, .number = of->number};
    return a;
}

static void insert_term(einsum_relabel *r, einsum_term t)
{
    uint32_t at = r->named++;
    for (; at > 0 && r->terms[at - 1].stride < t.stride; at--)
        r->terms[at] = r->terms[at - 1];
    r->terms[at] = t;
}

/* Neighbouring digits of one axis that stay neighbours are one. */
static void merge_terms(const einsum_builder *b, einsum_relabel *r)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->named; i++) {
        einsum_term *t = &r->terms[i], *outer = kept ? &r->terms[kept - 1] : NULL;
        if (outer && outer->axis == t->axis && outer->weight == t->weight * t->extent && outer->stride == t->stride * t->extent &&
            outer->extent <= b->axes[t->axis]->size / outer->weight) {
            outer->weight = t->weight;
            outer->stride = t->stride;
            outer->extent *= t->extent;
        } else {
            r->terms[kept++] = *t;
        }
    }
    r->named = kept;
}

/* The digits of the axis that no name counts through are 0: one without a name stands for each. False: there are too many, or the others
 * are no digits of it together. */
static bool add_unnamed_terms(einsum_builder *b, const axis *a, einsum_relabel *r)
{
    int64_t reach = 1;
    r->term_count = r->named;
    for (uint32_t i = r->named; i-- > 0 || reach < a->size;) {
        bool last = i == UINT32_MAX;
        int64_t next = last ? ceil_div(a->size, reach) * reach : r->terms[i].stride;
        if (next < reach || next % reach || r->term_count > WINDOW_MAX_TERMS)
            return false;
        if (next > reach) {
            const char *name = arena_printf(b->context->arena, "%s / %lld %% %lld", a->name, (long long)reach, (long long)(next / reach));
            uint32_t number = einsum_axis_number(b, unnamed_axis(b, a, name, next / reach));
            r->terms[r->term_count++] = (einsum_term){number, 1, next / reach, reach};
        }
        reach = last ? next : next * r->terms[i].extent;
        if (last)
            break;
    }
    r->bordered = reach > a->size;
    return r->term_count <= WINDOW_MAX_TERMS;
}

/* The axis is named anew in one way only: false where it was in another. */
static bool add_relabel(einsum_builder *b, op *o, const axis *a, einsum_relabel r)
{
    einsum_relabel *old = relabel_of(b, r.axis);
    merge_terms(b, &r);
    bool same = old && old->named == r.named;
    for (uint32_t i = 0; i < r.named; i++) {
        const einsum_term *t = &r.terms[i], *u = same ? &old->terms[i] : NULL;
        same = same && t->axis == u->axis && t->weight == u->weight && t->extent == u->extent && t->stride == u->stride;
    }
    if (a->term_count)
        return einsum_refuse_relabel(b, o, a, "is a window, which has no other names");
    if (old && !same)
        return einsum_refuse_relabel(b, o, a, "is named anew in two ways");
    if (old)
        return true;
    if (r.named > WINDOW_MAX_TERMS || !add_unnamed_terms(b, a, &r))
        return einsum_refuse_relabel(b, o, a, "gets more names than a window has terms");
    ARENA_PUSH(b->context->arena, b->relabels, b->relabel_count, b->relabel_capacity, r);
    return true;
}

static bool is_renamed(const reshape_digit *d)
{
    return d->size > 1 && (d->from != d->to || d->from_weight != d->to_weight);
}

/* Adds what the digits of axis `a` are under their new names; the source has the axis as `name`. */
static bool add_new_names(einsum_builder *b, op *o, const axis *a, const axis *name)
{
    const reshape_config *c = o->reshape;
    einsum_relabel r = {.axis = einsum_axis_number(b, name),
                        .terms = ARENA_ARRAY(b->context->arena, einsum_term, c->count + WINDOW_MAX_TERMS + 1)};
    reshape_digit whole = {0};
    if (reshape_is_ragged(c, a, false) && reshape_outer_digits(c, a, false, &whole)) /* of another axis, which ends where this one does */
        insert_term(&r, (einsum_term){einsum_axis_number(b, whole.to), whole.to_weight, whole.size, whole.from_weight});
    for (uint32_t i = 0; i < c->count; i++) {
        const reshape_digit *d = &c->digits[i];
        if (d->from == a && d->size > 1 && d->to != whole.to)
            insert_term(&r, (einsum_term){einsum_axis_number(b, d->to), d->to_weight, d->size, d->from_weight});
    }
    return add_relabel(b, o, a, r);
}

/* The name of its own that stands for the axis; NULL: it has been named anew in another way. */
static const axis *name_apart(einsum_builder *b, op *o, const axis *a)
{
    uint32_t number = einsum_axis_number(b, a);
    const einsum_relabel *old = relabel_of(b, number);
    if (old && old->apart)
        return old->apart;
    einsum_relabel r = {.axis = number,
                        .terms = ARENA_ARRAY(b->context->arena, einsum_term, WINDOW_MAX_TERMS + 1),
                        .apart = unnamed_axis(b, a, arena_printf(b->context->arena, "%s'", a->name), a->size)};
    insert_term(&r, (einsum_term){einsum_axis_number(b, r.apart), 1, a->size, 1});
    return add_relabel(b, o, a, r) ? r.apart : NULL;
}

/* ---- copies along an axis ---- */

bool einsum_is_term(const einsum_relabel *r, uint32_t number)
{
    for (uint32_t i = 0; i < r->term_count; i++)
        if (r->terms[i].axis == number)
            return true;
    return false;
}

/* Does the source's part in what the step makes depend on the coordinate of the axis? `constant[v]`: value v does not. */
static bool follows_axis(const einsum_builder *b, const einsum_step *step, uint32_t source, uint32_t number, const bool *constant)
{
    const einsum_tensor *v = &b->values[step->s.sources[source]];
    if (einsum_tensor_has(v, number) && !constant[step->s.sources[source]])
        return true;
    bool walks = false;
    for (uint32_t i = 0; i < step->s.digit_count; i++)
        walks = walks || (step->digits[i].axis == number && einsum_digit_indexes(&step->digits[i], (einsum_side)(EINSUM_A + source)));
    for (uint32_t k = 0; k < v->rank && walks; k++) { /* as a term of a window, under a new name */
        const axis *a = b->axes[v->axes[k]];
        for (uint32_t i = 0; i < a->term_count; i++)
            if (a->terms[i].of == b->axes[number])
                return true;
        for (size_t i = 0; i < b->relabel_count; i++)
            if (b->relabels[i].axis == v->axes[k] && einsum_is_term(&b->relabels[i], number))
                return true;
    }
    return false;
}

/* Does the step write other elements at some coordinates of the axis than at others, or none there? */
static bool moves_along(const einsum_builder *b, const einsum_step *step, uint32_t number)
{
    int64_t written = 1;
    for (uint32_t i = 0; i < step->s.digit_count; i++)
        written = step->digits[i].axis == number && step->digits[i].kept ? product_bounded(written, step->digits[i].size) : written;
    if (einsum_tensor_has(&b->values[step->s.dst], number) && written < b->axes[number]->size)
        return true;
    for (uint32_t i = 0; i < step->s.shift_count; i++)
        if (step->shifts[i].axis == number && step->shifts[i].side == EINSUM_DST)
            return true;
    for (uint32_t i = 0; step->s.indices && i + 1 < step->s.source_count; i++)
        if (step->s.indices[i].axis == number)
            return true;
    return step->s.op == MATH_SCATTER;
}

const bool *einsum_constants_along(const einsum_builder *b, uint32_t number)
{
    bool *constant = ARENA_ARRAY(b->context->arena, bool, b->value_count + 1);
    bool *is_made = ARENA_ARRAY(b->context->arena, bool, b->value_count + 1);
    for (size_t i = 0; i < b->step_count; i++) {
        const einsum_step *step = &b->steps[i];
        bool same = b->values[step->s.dst].port < 0 && !moves_along(b, step, number) && (!is_made[step->s.dst] || constant[step->s.dst]);
        for (uint32_t k = 0; k < step->s.source_count; k++)
            same = same && !follows_axis(b, step, k, number, constant);
        is_made[step->s.dst] = true;
        constant[step->s.dst] = same;
    }
    return constant;
}

/* ---- the source ---- */

/* An axis that the memory has before and after, of which digits get, were or become other names: its old coordinates are not its new ones.
 */
static bool changes_meaning(const op *o, const axis *a)
{
    const axis *axes[EINSUM_MAX_AXES];
    uint32_t count = tensor_axes(&o->out, axes, EINSUM_MAX_AXES);
    bool stays = false, renamed = false;
    for (uint32_t i = 0; i < count; i++)
        stays = stays || axes[i] == a;
    for (uint32_t i = 0; i < o->reshape->count; i++) {
        const reshape_digit *d = &o->reshape->digits[i];
        renamed = renamed || ((d->from == a || d->to == a) && is_renamed(d));
    }
    return stays && renamed;
}

bool einsum_is_own(const einsum_builder *b, const axis *a)
{
    for (size_t i = 0; i < b->own_count; i++)
        if (b->own[i] == a)
            return true;
    return false;
}

/* Does the reshape give digits of an axis that must be told apart from its new names other ones? */
static bool renames_own(const einsum_builder *b, const op *o, const axis *a)
{
    bool renamed = false;
    for (uint32_t i = 0; i < o->reshape->count; i++)
        renamed = renamed || (o->reshape->digits[i].from == a && is_renamed(&o->reshape->digits[i]));
    return renamed && einsum_is_own(b, a);
}

/* Digits of axes that the value has. */
static void keep_digits(const einsum_builder *b, einsum_step *step, uint32_t value)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < step->s.digit_count; i++)
        if (einsum_tensor_has(&b->values[value], step->digits[i].axis))
            step->digits[kept++] = step->digits[i];
    step->s.digit_count = kept;
}

/* A copy of the source of a reshape into a new value of such axes; its digits are still those of the source. Copies in memory along axes
 * that the source's value has not are none of it. */
static einsum_step *begin_copy(einsum_builder *b, op *o, reference from, uint32_t *axes, uint32_t rank, uint32_t *dst)
{
    *dst = einsum_add_value(b, b->values[from.value].dtype, -1);
    b->values[*dst].rank = rank;
    b->values[*dst].axes = axes;
    einsum_step *step = einsum_add_step(b, MATH_COPY, einsum_whole(*dst), from, from);
    einsum_note_computed(b, &step->s);
    einsum_copy_digits(b, step, o, &o->reshape->from->out);
    keep_digits(b, step, from.value);
    return step;
}

/* The source of the reshape without the axes along which it holds copies and that were named anew before, in whatever way: one copy stands
 * for all. */
static reference source_once(einsum_builder *b, op *o)
{
    const reshape_config *c = o->reshape;
    reference from = b->of[c->from->index];
    const einsum_tensor *old = &b->values[from.value];
    uint32_t *axes = ARENA_ARRAY(b->context->arena, uint32_t, old->rank + 1), rank = 0;
    for (uint32_t k = 0; k < old->rank; k++) {
        bool renamed = false;
        for (uint32_t i = 0; i < c->count; i++)
            renamed = renamed || (is_renamed(&c->digits[i]) && einsum_axis_number(b, c->digits[i].from) == old->axes[k]);
        if (!renamed || from.window || !relabel_of(b, old->axes[k]) || !einsum_constants_along(b, old->axes[k])[from.value])
            axes[rank++] = old->axes[k];
    }
    if (rank == old->rank)
        return from;
    uint32_t dst;
    einsum_step *step = begin_copy(b, o, from, axes, rank, &dst);
    keep_digits(b, step, dst);
    einsum_settle_sources(b, step, o, c->from, NULL);
    return einsum_whole(dst);
}

/* The source of the reshape as a value in which such axes have names of their own; names[i]: that of digit i. */
static reference source_apart(einsum_builder *b, op *o, const axis **names)
{
    const reshape_config *c = o->reshape;
    reference from = source_once(b, o);
    const einsum_tensor *old = &b->values[from.value];
    uint32_t *axes = ARENA_ARRAY(b->context->arena, uint32_t, old->rank + 1), rank = old->rank;
    bool any = false;
    for (uint32_t k = 0; k < rank; k++)
        axes[k] = old->axes[k];
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t number = einsum_axis_number(b, c->digits[i].from);
        names[i] = c->digits[i].from;
        if (!einsum_tensor_has(&b->values[from.value], number) || !(changes_meaning(o, names[i]) || renames_own(b, o, names[i])))
            continue;
        names[i] = name_apart(b, o, names[i]);
        if (!names[i])
            return from;
        for (uint32_t k = 0; k < rank; k++)
            axes[k] = axes[k] == number ? einsum_axis_number(b, names[i]) : axes[k];
        any = true;
    }
    if (!any)
        return from;
    uint32_t dst;
    einsum_step *step = begin_copy(b, o, from, axes, rank, &dst);
    for (uint32_t i = 0; i < step->s.digit_count; i++)
        for (uint32_t k = 0; k < c->count; k++)
            if (step->digits[i].axis == einsum_axis_number(b, c->digits[k].from) && names[k] != c->digits[k].from) {
                step->digits[i].axis = einsum_axis_number(b, names[k]);
                step->renamed |= UINT64_C(1) << i;
                break;
            }
    einsum_settle_sources(b, step, o, c->from, NULL);
    return einsum_whole(dst);
}

/* An axis that became a broadcast: its positions hold the same where nothing of the value depends on it. */
static bool check_copied(einsum_builder *b, op *o, const reference *from)
{
    const reshape_config *c = o->reshape;
    for (uint32_t i = 0; i < c->copied_count; i++) {
        uint32_t number = einsum_axis_number(b, c->copied[i]);
        if (!einsum_tensor_has(&b->values[from->value], number) || einsum_constants_along(b, number)[from->value])
            continue;
        diag *d = pass_refuse(b->context, b->kernel, o, MAPPING_COMPONENTS, E_RESHAPE,
                              "a broadcast replaces axis %s, and elements differ along %s: they are no copies", c->copied[i]->name,
                              c->copied[i]->name);
        diag_help(b->context->diags, d, "keep %s, or copy the tensor into units that all hold the same", c->copied[i]->name);
        return false;
    }
    return true;
}

void einsum_reshape(einsum_builder *b, op *o)
{
    const reshape_config *c = o->reshape;
    if (c->equal || (o->gone && b->uses[o->index] == 1)) { /* equal, or named once more before anything reads it */
        b->of[o->index] = b->of[c->from->index];
        return;
    }
    bool copies = false;
    const axis *names[EINSUM_MAX_DIGITS];
    reference from = source_apart(b, o, names);
    if (o->bad || !check_copied(b, o, &from))
        return;
    uint32_t dst = einsum_add_like(b, &o->out, -1);
    einsum_step *step = einsum_add_step(b, MATH_COPY, einsum_whole(dst), from, from);
    einsum_note_computed(b, &step->s);
    step->digits = einsum_room_for_digits(b);
    for (uint32_t i = 0; i < c->count && !o->bad; i++) {
        const reshape_digit *d = &c->digits[i];
        if (d->size == 1)
            continue;
        bool renamed =
            (is_renamed(d) || names[i] != d->from) && einsum_tensor_has(&b->values[step->s.sources[0]], einsum_axis_number(b, names[i]));
        if (renamed && !add_new_names(b, o, d->from, names[i]))
            return;
        step->renamed |= (uint64_t)renamed << step->s.digit_count;
        step->digits[step->s.digit_count++] =
            (einsum_digit){.axis = einsum_axis_number(b, d->to), .kept = true, .weight = d->to_weight, .size = d->size};
        copies = copies || (renamed && !einsum_source_holds(b, o, c->from, &c->from->out));
    }
    for (uint32_t i = 0; i < c->spread_count && step->s.digit_count < EINSUM_MAX_DIGITS; i++) {
        if (c->spread[i].size == 1)
            continue;
        step->renamed |= UINT64_C(1) << step->s.digit_count; /* the source does not depend on it, under whatever name it has the rest */
        step->digits[step->s.digit_count++] = (einsum_digit){
            .axis = einsum_axis_number(b, c->spread[i].to), .kept = true, .weight = c->spread[i].to_weight, .size = c->spread[i].size};
    }
    if (copies && !o->bad) {
        diag *d = pass_refuse(b->context, b->kernel, o, MAPPING_COMPONENTS, E_EINSUM,
                              "the memory holds copies of elements, under axes that get other names");
        diag_help(b->context->diags, d, "reshape in front of what makes the copies");
    }
    if (o->bad)
        return;
    einsum_settle_sources(b, step, o, c->from, NULL);
    b->of[o->index] = einsum_whole(dst);
}
