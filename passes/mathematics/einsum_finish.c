/* When all statements of an einsum are made: names and digits that nothing reads are dropped, what is left is numbered anew, and written
 * as "MK,NK->MN". */
#include <string.h>

#include "passes/mathematics/einsum_reshape.h"
#include "support/budget.h"
#include "target/einsum_text.h"

/* ---- what is dropped ---- */

/* A tile along an axis that the value does not have is one of equal copies. */
static void drop_shifts(const einsum_builder *b, einsum_step *s)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->s.shift_count; i++)
        if (einsum_tensor_has(&b->values[einsum_operand(&s->s, s->shifts[i].side)], s->shifts[i].axis))
            s->shifts[kept++] = s->shifts[i];
    s->s.shift_count = kept;
}

static bool has_term(const einsum_relabel *r, const einsum_tensor *v)
{
    for (uint32_t k = 0; k < v->rank; k++)
        if (einsum_is_term(r, v->axes[k]))
            return true;
    return false;
}

static void lose_axis(einsum_tensor *v, uint32_t number, arena *a)
{
    uint32_t *axes = ARENA_ARRAY(a, uint32_t, v->rank + 1), rank = 0;
    for (uint32_t k = 0; k < v->rank; k++)
        if (v->axes[k] != number)
            axes[rank++] = v->axes[k];
    v->axes = axes;
    v->rank = rank;
}

/* Rewrites what makes and reads values whose axis is dropped, before it is. */
static void drop_digits(einsum_builder *b, einsum_step *step, uint32_t number, const bool *constant)
{
    uint64_t renamed = 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < step->s.digit_count; i++) {
        einsum_digit d = step->digits[i];
        for (uint32_t k = 0; k < step->s.source_count && d.axis == number; k++)
            if (constant[step->s.sources[k]] && einsum_tensor_has(&b->values[step->s.sources[k]], number))
                d.broadcast &= ~(1u << (EINSUM_A + k));
        if (d.axis == number && constant[step->s.dst] && einsum_tensor_has(&b->values[step->s.dst], number))
            continue;
        renamed |= (step->renamed >> i & 1) << kept;
        step->digits[kept++] = d;
    }
    step->renamed = renamed;
    step->s.digit_count = kept;
}

/* A value that has an axis and its new name as well, as the result of a broadcast has under a name that was given up: where it holds copies
 * along the old one, one stands for all. */
static void drop_copies(einsum_builder *b, const einsum_relabel *r)
{
    budget_spend(b->context->arena, 1 + b->step_count + b->value_count);
    const bool *constant = einsum_constants_along(b, r->axis);
    bool any = false;
    for (size_t i = 0; i < b->value_count; i++)
        any = any || (constant[i] && einsum_tensor_has(&b->values[i], r->axis) && has_term(r, &b->values[i]));
    for (size_t i = 0; i < b->step_count && any; i++)
        drop_digits(b, &b->steps[i], r->axis, constant);
    for (size_t i = 0; i < b->value_count && any; i++)
        if (constant[i])
            lose_axis(&b->values[i], r->axis, b->context->arena);
}

/* Does the digit count through the axis under one of its new names? */
static bool counts_through(const einsum_relabel *r, const einsum_digit *d)
{
    for (uint32_t i = 0; i < r->term_count; i++)
        if (!einsum_digit_outside(&r->terms[i], d))
            return true;
    return false;
}

/* Where a step uses the old and the new names of one axis, the new ones are not the old one's. */
static void separate_names(einsum_builder *b, einsum_step *s, const einsum_relabel *r)
{
    for (uint32_t i = 0; i < s->s.digit_count; i++) {
        einsum_digit *d = &s->digits[i];
        if (!counts_through(r, d))
            continue;
        for (uint32_t k = 0; k < s->s.source_count; k++)
            if (einsum_tensor_has(&b->values[s->s.sources[k]], r->axis) && !(k == 0 && s->renamed >> i & 1))
                d->broadcast |= 1u << (EINSUM_A + k);
        if (!einsum_tensor_has(&b->values[s->s.dst], r->axis) || b->kernel->bad || b->again)
            continue;
        if (!r->apart && !einsum_is_own(b, b->axes[r->axis]) && b->own_count < EINSUM_MAX_AXES) {
            ARENA_PUSH(b->context->arena, b->own, b->own_count, b->own_capacity, b->axes[r->axis]);
            b->again = true;
            continue;
        }
        op *o = b->kernel->ops[b->kernel->op_count - 1];
        for (size_t k = 0; k < b->kernel->op_count; k++)
            o = b->kernel->ops[k]->kind == IR_RESHAPE ? b->kernel->ops[k] : o;
        einsum_refuse_relabel(b, o, b->axes[r->axis], "is named anew, and stands with its new name in one result");
    }
}

static bool names_source(const einsum_statement *s, uint32_t source)
{
    for (uint32_t i = 0; i < s->step_count; i++)
        if (s->steps[i].op == SCALAR_SOURCE && s->steps[i].argument == source)
            return true;
    return false;
}

/* A source that a map's expression does not name (a mode may leave the stream out) is none of it; those after it move up. */
static void drop_sources(einsum_builder *b, einsum_step *step)
{
    einsum_statement *s = &step->s;
    scalar_step *steps = ARENA_ARRAY(b->context->arena, scalar_step, s->step_count + 1);
    uint32_t kept = 0, shifts = 0;
    if (s->step_count)
        memcpy(steps, s->steps, s->step_count * sizeof *steps);
    for (uint32_t k = 0; k < s->source_count; k++) {
        if (!names_source(s, k))
            continue;
        unsigned from = EINSUM_A + k, to = EINSUM_A + kept;
        for (uint32_t i = 0; i < s->step_count; i++)
            if (s->steps[i].op == SCALAR_SOURCE && s->steps[i].argument == k)
                steps[i].argument = kept;
        for (uint32_t i = 0; i < s->digit_count; i++)
            step->digits[i].broadcast = (step->digits[i].broadcast & ~(1u << to)) | (step->digits[i].broadcast >> from & 1) << to;
        for (uint32_t i = 0; i < s->shift_count; i++)
            if (step->shifts[i].side == (einsum_side)from) {
                einsum_shift moved = step->shifts[i];
                moved.side = (einsum_side)to;
                step->shifts[i] = step->shifts[shifts];
                step->shifts[shifts++] = moved;
            }
        s->sources[kept++] = s->sources[k];
    }
    for (uint32_t i = shifts; i < s->shift_count; i++) /* the destination's */
        if (step->shifts[i].side == EINSUM_DST)
            step->shifts[shifts++] = step->shifts[i];
    s->shift_count = shifts;
    s->source_count = kept;
    s->steps = steps;
    for (uint32_t i = 0; i < s->digit_count; i++)
        step->digits[i].broadcast &= (2u << (EINSUM_A + kept - 1)) - 1;
}

static void drop_unnamed(einsum_builder *b)
{
    for (size_t i = 0; i < b->step_count; i++)
        if (b->steps[i].s.op == MATH_MAP)
            drop_sources(b, &b->steps[i]);
}

/* Values that no step needs any more are forgotten. */
void einsum_compact(einsum_builder *b)
{
    drop_unnamed(b);
    for (size_t k = 0; k < b->relabel_count; k++)
        drop_copies(b, &b->relabels[k]);
    for (size_t i = 0; i < b->step_count; i++)
        drop_shifts(b, &b->steps[i]);
    for (size_t i = 0; i < b->step_count; i++) {
        budget_spend(b->context->arena, b->relabel_count);
        for (size_t k = 0; k < b->relabel_count; k++)
            separate_names(b, &b->steps[i], &b->relabels[k]);
    }
    uint32_t *number = ARENA_ARRAY(b->context->arena, uint32_t, b->value_count + 1), kept = 0;
    for (size_t i = 0; i < b->step_count; i++)
        for (unsigned side = 0; side < einsum_side_count(&b->steps[i].s); side++)
            number[einsum_operand(&b->steps[i].s, (einsum_side)side)] = 1;
    for (size_t i = 0; i < b->value_count; i++)
        if (number[i] || b->values[i].port >= 0) {
            b->values[kept] = b->values[i];
            number[i] = kept++;
        }
    b->value_count = kept;
    for (size_t i = 0; i < b->step_count; i++) {
        einsum_statement *s = &b->steps[i].s;
        s->dst = number[s->dst];
        for (uint32_t k = 0; k < s->source_count; k++)
            s->sources[k] = number[s->sources[k]];
    }
}

/* ---- its tables ---- */

static const char *value_name(const einsum_builder *b, size_t number)
{
    int32_t port = b->values[number].port;
    return port >= 0 ? b->kernel->ports[port].name : arena_printf(b->context->arena, "%%%zu", number);
}

static const layout_axis *axis_table(const einsum_builder *b)
{
    layout_axis *axes = ARENA_ARRAY(b->context->arena, layout_axis, b->axis_count + 1);
    for (size_t i = 0; i < b->axis_count; i++)
        axes[i] = (layout_axis){b->axes[i]->name, b->axes[i]->size};
    return axes;
}

static const einsum_statement *statements_of(einsum_builder *b)
{
    einsum_statement *out = ARENA_ARRAY(b->context->arena, einsum_statement, b->step_count + 1);
    for (size_t i = 0; i < b->step_count; i++) {
        einsum_step *step = &b->steps[i];
        out[i] = step->s;
        out[i].digits = step->digits;
        out[i].pieces = step->pieces;
        out[i].shifts = step->shifts;
        if (step->s.op == MATH_COPY)
            out[i].accumulator = b->values[step->s.sources[0]].dtype;
        for (uint32_t k = 0; k < step->s.digit_count; k++)
            if (!step->digits[k].group)
                step->digits[k].stride = 0;
    }
    return out;
}

static const einsum_window *windows_of(einsum_builder *b)
{
    einsum_window *out = ARENA_ARRAY(b->context->arena, einsum_window, b->relabel_count + 1);
    for (size_t i = 0; i < b->relabel_count; i++)
        out[i] = (einsum_window){.axis = b->relabels[i].axis,
                                 .term_count = b->relabels[i].term_count,
                                 .terms = b->relabels[i].terms,
                                 .bordered = b->relabels[i].bordered};
    return out;
}

/* ---- "MK,NK->MN" ---- */

static const char *step_text(arena *a, const einsum *e, uint32_t number, bool dense)
{
    strbuf s;
    strbuf_init(&s, a);
    einsum_print_statement(&s, e, &e->statements[number], dense);
    return s.text;
}

enum { PERIOD_MAX = 16, OFTEN = 3 }; /* statements of a loop's body that is seen to repeat; twice are two */

/* How often the `period` texts at the beginning stand there, one after the other. */
static size_t repeats(const char *const *texts, size_t count, size_t period)
{
    size_t n = period;
    while (n < count && texts[n] == texts[n - period])
        n++;
    return n / period;
}

/* The shortest beginning that stands there often. 0: none does. */
static size_t repeated_period(const char *const *texts, size_t count)
{
    for (size_t period = 1; period <= PERIOD_MAX && OFTEN * period <= count; period++)
        if (repeats(texts, count, period) >= OFTEN)
            return period;
    return 0;
}

static const char *written(arena *a, const einsum *e)
{
    strbuf s;
    strbuf_init(&s, a);
    bool dense = einsum_is_dense(e);
    size_t count = e->statement_count;
    const char **texts = ARENA_ARRAY(a, const char *, count + 1); /* equal ones of neighbours are one */
    for (size_t i = 0; i < count; i++) {
        texts[i] = step_text(a, e, (uint32_t)i, dense);
        for (size_t k = i; k-- > 0 && i - k <= PERIOD_MAX;)
            if (strcmp(texts[k], texts[i]) == 0) {
                texts[i] = texts[k];
                break;
            }
    }
    for (size_t i = 0; i < count;) {
        size_t period = repeated_period(texts + i, count - i), times = period ? repeats(texts + i, count - i, period) : 1;
        strbuf_puts(&s, i ? "; " : "");
        if (times > 1)
            strbuf_printf(&s, "%zu x %s", times, period > 1 ? "(" : "");
        for (size_t k = 0; k < (period ? period : 1); k++) {
            strbuf_puts(&s, k ? "; " : "");
            strbuf_puts(&s, texts[i + k]);
        }
        strbuf_puts(&s, period > 1 ? ")" : "");
        i += times * (period ? period : 1);
    }
    return s.text;
}

/* ---- the whole ---- */

kernel_einsum *einsum_finish(einsum_builder *b)
{
    kernel_einsum *k = ARENA_NEW(b->context->arena, kernel_einsum);
    for (size_t i = 0; i < b->value_count; i++)
        b->values[i].name = value_name(b, i);
    k->e = (einsum){.axes = axis_table(b),
                    .axis_count = (uint32_t)b->axis_count,
                    .tensors = b->values,
                    .tensor_count = (uint32_t)b->value_count,
                    .statements = statements_of(b),
                    .statement_count = (uint32_t)b->step_count,
                    .windows = windows_of(b),
                    .window_count = (uint32_t)b->relabel_count};
    k->axes = b->axes;
    k->e.text = written(b->context->arena, &k->e);
    return k;
}
