/* The statements of an einsum: what each operation makes of its values. */
#include <string.h>

#include "passes/einsum_build.h"

static uint32_t add_value(einsum_builder *b, dtype type, int64_t port)
{
    einsum_value v = {.dtype = type, .port = port};
    ARENA_PUSH(b->context->arena, b->e->values, b->e->value_count, b->e->value_capacity, v);
    return (uint32_t)b->e->value_count - 1;
}

static void add_offsets(einsum_builder *b, einsum_step *s, unsigned side, const tile_window *w)
{
    for (uint32_t i = 0; w && i < w->shift_count; i++) {
        if (w->shifts[i].offset == 0)
            continue;
        einsum_offset *grown = ARENA_ARRAY(b->context->arena, einsum_offset, s->offset_count + 1);
        for (uint32_t k = 0; k < s->offset_count; k++)
            grown[k] = s->offsets[k];
        grown[s->offset_count++] = (einsum_offset){side, w->shifts[i].axis, w->shifts[i].offset};
        s->offsets = grown;
    }
}

static einsum_step *add_step(einsum_builder *b, bool contract, reference dst, reference a, reference other)
{
    einsum_step s = {.contract = contract, .dst = dst.value, .a = a.value, .b = contract ? other.value : 0};
    add_offsets(b, &s, 0, dst.window);
    add_offsets(b, &s, 1, a.window);
    if (contract)
        add_offsets(b, &s, 2, other.window);
    ARENA_PUSH(b->context->arena, b->e->steps, b->e->step_count, b->e->step_capacity, s);
    return &b->e->steps[b->e->step_count - 1];
}

static reference whole(uint32_t value)
{
    return (reference){.value = value};
}

bool einsum_value_has(const einsum_value *v, const axis *a)
{
    for (uint32_t i = 0; i < v->rank; i++)
        if (v->axes[i] == a)
            return true;
    return false;
}

/* ---- statements ---- */

/* A window whose outer places are zero, in a value that is the same at all places: it would be zero there as well. */
static void check_borders(einsum_builder *b, op *o, const op *stream)
{
    const einsum_value *v = &b->e->values[b->of[stream->index].value];
    for (int c = 0; c < MAPPING_COMPONENTS && !o->bad; c++) {
        const axis *axes[EINSUM_MAX_AXES];
        uint32_t count = stream->out.part[c] ? mapping_axes(stream->out.part[c], axes, EINSUM_MAX_AXES) : 0;
        for (uint32_t i = 0; i < count && !o->bad; i++) {
            if (!axes[i]->bordered || einsum_value_has(v, axes[i]))
                continue;
            diag *d = pass_refuse(b->context, b->kernel, o, MAPPING_COMPONENTS, E_EINSUM, "the window `%s` is zero outside the places it holds, and what it holds are copies of one element",
                                  axes[i]->name);
            diag_help(b->context->diags, d, "let the tensor have the window from the beginning");
        }
    }
}

static void visit_contract(einsum_builder *b, op *o, const op *accumulate)
{
    const op *align = o->input;
    uint32_t dst = add_value(b, o->out.dtype, -1);
    einsum_step *step = add_step(b, true, whole(dst), b->of[align->input->index], b->of[align->weights->index]);
    step->accumulator = o->out.dtype;
    einsum_contract_digits(b, step, o, accumulate);
    for (uint32_t i = 0; i < step->count; i++)
        if (step->digits[i].kept) {
            einsum_value *v = &b->e->values[dst];
            v->rank = axis_list_add(v->axes, v->rank, EINSUM_MAX_AXES, step->digits[i].axis);
        }
    if (!o->bad)
        einsum_settle_sources(b, step, o, align->input, align->weights);
    if (!o->bad)
        check_borders(b, o, align->input);
    b->of[o->index] = whole(dst);
}

/* A value moved or converted: a statement of its own. */
static void add_copy(einsum_builder *b, op *o, reference to, const op *source, const tensor *t)
{
    einsum_step *step = add_step(b, false, to, b->of[source->index], b->of[source->index]);
    einsum_copy_digits(b, step, o, t);
    if (!o->bad)
        einsum_settle_sources(b, step, o, source, NULL);
}

static void drop_axis(einsum_step *s, const axis *a)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->digits[i].axis != a)
            s->digits[kept++] = s->digits[i];
    s->count = kept;
}

/* Two tensors by turns: a value with the axis that tells them apart, written in two parts. */
static void visit_interleaved(einsum_builder *b, op *o)
{
    const op *sources[] = {o->input, o->second};
    uint32_t dst = add_value(b, o->out.dtype, -1);
    b->e->values[dst].rank = tensor_axes(&o->out, b->e->values[dst].axes, EINSUM_MAX_AXES);
    for (int i = 0; i < 2 && !o->bad; i++) {
        tile_window *w = ARENA_NEW(b->context->arena, tile_window);
        *w = (tile_window){.shifts = {{o->interleave, i}}, .shift_count = 1};
        einsum_step *step = add_step(b, false, (reference){dst, w}, b->of[sources[i]->index], b->of[sources[i]->index]);
        einsum_copy_digits(b, step, o, &o->out);
        drop_axis(step, o->interleave);
        if (!o->bad)
            einsum_settle_sources(b, step, o, sources[i], NULL);
    }
    b->of[o->index] = whole(dst);
}

/* The step that made the value, when it was the last one and its value is seen whole. */
static einsum_step *just_made(einsum_builder *b, reference from)
{
    einsum_step *last = b->e->step_count ? &b->e->steps[b->e->step_count - 1] : NULL;
    return last && last->dst == from.value && !from.window && b->e->values[from.value].port < 0 ? last : NULL;
}

static void visit_conversion(einsum_builder *b, op *o)
{
    reference from = b->of[o->input->index];
    einsum_step *last = just_made(b, from);
    if (last && last->contract && b->uses[o->input->index] == 1 && b->e->values[from.value].dtype == last->accumulator) {
        b->e->values[from.value].dtype = o->out.dtype; /* the sum is cast where it is made */
        b->of[o->index] = from;
        return;
    }
    uint32_t dst = add_value(b, o->out.dtype, -1);
    b->e->values[dst].rank = tensor_axes(&o->out, b->e->values[dst].axes, EINSUM_MAX_AXES);
    add_copy(b, o, whole(dst), o->input, &o->out);
    b->of[o->index] = whole(dst);
}

/* Is the memory or stream used by one operation only, on all the way back to where its value was made? */
static bool is_only_use(const einsum_builder *b, const op *o, uint32_t value)
{
    for (; o && b->of[o->index].value == value && !b->of[o->index].window; o = o->input) {
        if (b->uses[o->index] != 1 || o->into || o->kind == IR_ALLOC || o->kind == IR_VIEW)
            return false;
        if (!o->input || b->of[o->input->index].value != value)
            return true;
    }
    return true;
}

/* A write through a view: the step that made the value writes the part of the memory at once where nothing else needs it. */
static void visit_write(einsum_builder *b, op *o)
{
    reference from = b->of[o->input->index], to = {b->of[op_root(o->into)->index].value, o->into->window};
    einsum_step *last = just_made(b, from);
    if (last && last->offset_count < EINSUM_MAX_OFFSETS && is_only_use(b, o->input, from.value) &&
        einsum_source_holds(b, o, o->input, &o->into->out)) {
        last->dst = to.value;
        add_offsets(b, last, 0, to.window);
        return;
    }
    add_copy(b, o, to, o->input, &o->into->out);
}

static bool same_axes(const einsum_value *a, const einsum_value *b)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < a->rank; i++)
        for (uint32_t j = 0; j < b->rank; j++)
            found += a->axes[i] == b->axes[j];
    return a->rank == b->rank && found == a->rank;
}

/* The result: the statement that makes it writes the port at once where the port has the same axes. */
static void visit_output(einsum_builder *b, op *o, uint32_t port, const op *source)
{
    reference from = b->of[source->index];
    einsum_value *value = &b->e->values[from.value];
    einsum_value result = {.dtype = value->dtype, .port = port};
    result.rank = tensor_axes(&b->kernel->ports[port].tensor, result.axes, EINSUM_MAX_AXES);
    const tensor *t = &b->kernel->ports[port].tensor;
    if (value->port < 0 && same_axes(value, &result) && !from.window && einsum_source_holds(b, o, source, t)) {
        *value = result;
        return;
    }
    uint32_t dst = add_value(b, result.dtype, port);
    b->e->values[dst] = result;
    add_copy(b, o, whole(dst), source, t);
}

static void visit_memory(einsum_builder *b, op *o, int64_t port)
{
    uint32_t v = add_value(b, o->out.dtype, port);
    b->e->values[v].rank = tensor_axes(&o->out, b->e->values[v].axes, EINSUM_MAX_AXES);
    b->of[o->index] = whole(v);
}

/* A tile of memory that is itself a tile of a value (a copy of it). */
static const tile_window *add_windows(einsum_builder *b, const tile_window *of, const tile_window *w)
{
    tile_window *sum = ARENA_NEW(b->context->arena, tile_window);
    *sum = *of;
    for (uint32_t i = 0; i < w->shift_count; i++) {
        uint32_t k = 0;
        while (k < sum->shift_count && sum->shifts[k].axis != w->shifts[i].axis)
            k++;
        if (k == sum->shift_count && k < TILE_MAX_SHIFTS)
            sum->shifts[sum->shift_count++] = (tile_shift){w->shifts[i].axis, 0};
        if (k < sum->shift_count)
            sum->shifts[k].offset += w->shifts[i].offset;
    }
    return sum;
}

/* The terms by which the axis is read under its new names. */
static einsum_relabel *relabel_of(einsum_builder *b, const axis *a)
{
    kernel_einsum *e = b->e;
    for (size_t i = 0; i < e->relabel_count; i++)
        if (e->relabels[i].axis == a)
            return &e->relabels[i];
    return NULL;
}

static bool refuse_relabel(einsum_builder *b, op *o, const axis *a, const char *why)
{
    diag *d = pass_refuse(b->context, b->kernel, o, MAPPING_COMPONENTS, E_EINSUM, "axis %s %s", a->name, why);
    diag_help(b->context->diags, d, "reshape to axes of their own names, used for nothing else");
    return false;
}

/* Adds what the axis is under its new names; said before, it must be the same. */
static bool add_relabel(einsum_builder *b, op *o, const axis *a)
{
    const reshape_config *c = o->reshape;
    einsum_relabel *old = relabel_of(b, a), r = {.axis = a, .terms = ARENA_ARRAY(b->context->arena, window_term, c->count)};
    for (uint32_t i = 0; i < c->count; i++)
        if (c->digits[i].from == a && c->digits[i].size > 1)
            r.terms[r.term_count++] = (window_term){c->digits[i].to, c->digits[i].to_weight, c->digits[i].size, c->digits[i].from_weight};
    bool same = old && old->term_count == r.term_count;
    for (uint32_t i = 0; i < r.term_count; i++) {
        const window_term *t = &r.terms[i], *u = same ? &old->terms[i] : NULL;
        if (t->of->term_count || relabel_of(b, t->of) || t->of == a)
            return refuse_relabel(b, o, t->of, "is a new name, and is itself a window or named anew");
        same = same && t->of == u->of && t->weight == u->weight && t->extent == u->extent && t->stride == u->stride;
    }
    for (size_t i = 0; i < b->e->relabel_count; i++)
        for (uint32_t k = 0; k < b->e->relabels[i].term_count; k++)
            if (b->e->relabels[i].terms[k].of == a)
                return refuse_relabel(b, o, a, "is named anew, and is itself a new name");
    if (r.term_count > WINDOW_MAX_TERMS)
        return refuse_relabel(b, o, a, "gets more names than a window has terms");
    if (a->term_count)
        return refuse_relabel(b, o, a, "is a window, which has no other names");
    if (old && !same)
        return refuse_relabel(b, o, a, "is named anew in two ways");
    if (!old)
        ARENA_PUSH(b->context->arena, b->e->relabels, b->e->relabel_count, b->e->relabel_capacity, r);
    return true;
}

/* Positions keep their elements: the new value's digits read the old one. */
static void visit_reshape(einsum_builder *b, op *o)
{
    const reshape_config *c = o->reshape;
    reference from = b->of[c->from->index];
    if (c->count == 0 || (o->gone && b->uses[o->index] == 1)) { /* equal, or named once more before anything reads it */
        b->of[o->index] = from;
        return;
    }
    bool copies = false;
    uint32_t dst = add_value(b, o->out.dtype, -1);
    b->e->values[dst].rank = tensor_axes(&o->out, b->e->values[dst].axes, EINSUM_MAX_AXES);
    einsum_step *step = add_step(b, false, whole(dst), from, from);
    step->digits = ARENA_ARRAY(b->context->arena, einsum_part, EINSUM_MAX_DIGITS);
    for (uint32_t i = 0; i < c->count && !o->bad; i++) {
        const reshape_digit *d = &c->digits[i];
        if (d->size == 1)
            continue;
        bool renamed = d->from != d->to || d->from_weight != d->to_weight;
        renamed = renamed && einsum_value_has(&b->e->values[step->a], d->from);
        if (renamed && !add_relabel(b, o, d->from))
            return;
        step->digits[step->count++] = (einsum_part){.axis = d->to, .kept = true, .weight = d->to_weight, .size = d->size, .renames = renamed};
        copies = copies || (renamed && !einsum_source_holds(b, o, c->from, &c->from->out));
    }
    if (copies && !o->bad) {
        diag *d = pass_refuse(b->context, b->kernel, o, MAPPING_COMPONENTS, E_EINSUM, "the memory holds copies of elements, under axes that get other names");
        diag_help(b->context->diags, d, "reshape in front of what makes the copies");
    }
    if (o->bad)
        return;
    einsum_settle_sources(b, step, o, c->from, NULL);
    b->of[o->index] = whole(dst);
}

static void visit(einsum_builder *b, op *o)
{
    switch (o->kind) {
    case IR_PORT_IN:
        visit_memory(b, o, o->port);
        break;
    case IR_ALLOC:
        visit_memory(b, o, -1);
        break;
    case IR_VIEW:
        b->of[o->index] = (reference){b->of[op_root(o)->index].value, o->window};
        if (b->of[op_root(o)->index].window)
            b->of[o->index].window = add_windows(b, b->of[op_root(o)->index].window, o->window);
        break;
    case IR_RESHAPE:
        visit_reshape(b, o);
        break;
    case IR_CONTRACT:
        visit_contract(b, o, op_accumulation(b->kernel, o));
        break;
    case IR_PORT_OUT:
        visit_output(b, o, o->port, o->input->kind == IR_ALIGN ? o->input->input : o->input);
        if (o->input->kind == IR_ALIGN)
            visit_output(b, o, o->port + 1, o->input->weights);
        break;
    default:
        if (o->second)
            visit_interleaved(b, o);
        else if (o->into)
            visit_write(b, o);
        else if (o->out.dtype != o->input->out.dtype)
            visit_conversion(b, o);
        else
            b->of[o->index] = b->of[o->input->index];
    }
}

/* A tile along an axis that the value does not have is one of equal copies. */
static void drop_offsets(const kernel_einsum *e, einsum_step *s)
{
    const uint32_t values[] = {s->dst, s->a, s->b};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->offset_count; i++)
        if (einsum_value_has(&e->values[values[s->offsets[i].side]], s->offsets[i].axis))
            s->offsets[kept++] = s->offsets[i];
    s->offset_count = kept;
}

static bool is_term(const einsum_relabel *r, const axis *a)
{
    for (uint32_t i = 0; i < r->term_count; i++)
        if (r->terms[i].of == a)
            return true;
    return false;
}

/* Where a step uses the old and the new names of one axis, the new ones are not the old one's. */
static void separate_names(einsum_builder *b, einsum_step *s, const einsum_relabel *r)
{
    const kernel_einsum *e = b->e;
    for (uint32_t i = 0; i < s->count; i++) {
        einsum_part *d = &s->digits[i];
        if (!is_term(r, d->axis))
            continue;
        d->a_repeats = d->a_repeats || (!d->renames && einsum_value_has(&e->values[s->a], r->axis));
        d->b_repeats = d->b_repeats || (s->contract && einsum_value_has(&e->values[s->b], r->axis));
        if (!einsum_value_has(&e->values[s->dst], r->axis) || b->kernel->bad)
            continue;
        op *o = b->kernel->ops[b->kernel->op_count - 1];
        for (size_t k = 0; k < b->kernel->op_count; k++)
            o = b->kernel->ops[k]->kind == IR_RESHAPE ? b->kernel->ops[k] : o;
        refuse_relabel(b, o, r->axis, "is named anew, and stands beside its new name in one result");
    }
}

/* Values that no step needs any more are forgotten. */
static void compact(einsum_builder *b)
{
    kernel_einsum *e = b->e;
    for (size_t i = 0; i < e->step_count; i++)
        drop_offsets(e, &e->steps[i]);
    for (size_t i = 0; i < e->step_count; i++)
        for (size_t k = 0; k < e->relabel_count; k++)
            separate_names(b, &e->steps[i], &e->relabels[k]);
    uint32_t *number = ARENA_ARRAY(b->context->arena, uint32_t, e->value_count + 1), kept = 0;
    for (size_t i = 0; i < e->step_count; i++) {
        einsum_step *s = &e->steps[i];
        number[s->dst] = number[s->a] = 1;
        if (s->contract)
            number[s->b] = 1;
    }
    for (size_t i = 0; i < e->value_count; i++)
        if (number[i] || e->values[i].port >= 0) {
            e->values[kept] = e->values[i];
            number[i] = kept++;
        }
    e->value_count = kept;
    for (size_t i = 0; i < e->step_count; i++) {
        einsum_step *s = &e->steps[i];
        s->dst = number[s->dst];
        s->a = number[s->a];
        s->b = s->contract ? number[s->b] : 0;
    }
}

static void count_uses(einsum_builder *b)
{
    for (size_t i = 0; i < b->kernel->op_count; i++) {
        const op *o = b->kernel->ops[i];
        if (o->input)
            b->uses[o->input->index]++;
        if (o->second)
            b->uses[o->second->index]++;
        if (o->weights)
            b->uses[o->weights->index]++;
    }
}

/* ---- "MK,NK->MN" ---- */

static bool single_letters(const kernel_einsum *e)
{
    for (size_t v = 0; v < e->value_count; v++)
        for (uint32_t i = 0; i < e->values[v].rank; i++)
            if (e->values[v].axes[i]->name[1])
                return false;
    return true;
}

static void print_axes(strbuf *s, const einsum_value *v, bool dense)
{
    for (uint32_t i = 0; i < v->rank; i++)
        strbuf_printf(s, "%s%s", i && !dense ? " " : "", v->axes[i]->name);
}

static const char *step_text(const einsum_builder *b, const einsum_step *step, bool dense)
{
    strbuf s;
    strbuf_init(&s, b->context->arena);
    print_axes(&s, &b->e->values[step->a], dense);
    if (step->contract) {
        strbuf_puts(&s, dense ? "," : ", ");
        print_axes(&s, &b->e->values[step->b], dense);
    }
    strbuf_puts(&s, dense ? "->" : " -> ");
    print_axes(&s, &b->e->values[step->dst], dense);
    return s.text;
}

enum { PERIOD_MAX = 16, OFTEN = 3 }; /* statements of a loop's body that is seen to repeat; twice are two */

/* How often the `period` texts at the beginning stand there, one behind the other. */
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

static const char *einsum_text(einsum_builder *b)
{
    strbuf s;
    strbuf_init(&s, b->context->arena);
    bool dense = single_letters(b->e);
    size_t count = b->e->step_count;
    const char **texts = ARENA_ARRAY(b->context->arena, const char *, count + 1); /* equal ones of neighbours are one */
    for (size_t i = 0; i < count; i++) {
        texts[i] = step_text(b, &b->e->steps[i], dense);
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
        for (size_t k = 0; k < (period ? period : 1); k++)
            strbuf_printf(&s, "%s%s", k ? "; " : "", texts[i + k]);
        strbuf_puts(&s, period > 1 ? ")" : "");
        i += times * (period ? period : 1);
    }
    return s.text;
}

/* Parts of a result that its type leaves open are those of the stage that makes it. */
static void settle_outputs(kernel *k)
{
    for (size_t i = 0; i < k->op_count; i++)
        for (int c = 0; c < MAPPING_COMPONENTS && k->ops[i]->kind == IR_PORT_OUT; c++)
            if (!k->ops[i]->out.part[c] && k->ops[i]->input->out.kind == k->ops[i]->out.kind) {
                k->ops[i]->out.part[c] = k->ops[i]->input->out.part[c];
                k->ports[k->ops[i]->port].tensor.part[c] = k->ops[i]->out.part[c];
            }
}

/* The axes of size 1 that the ports' types name: no statement counts them, but they are dimensions of the tensors. */
static void add_units(einsum_builder *b)
{
    for (size_t i = 0; i < b->e->value_count; i++) {
        einsum_value *v = &b->e->values[i];
        const axis *axes[EINSUM_MAX_AXES];
        uint32_t rank = v->port >= 0 ? port_axes(&b->kernel->ports[v->port], b->context->arena, axes, EINSUM_MAX_AXES) : 0, others = 0;
        for (uint32_t k = 0; k < rank; k++)
            others += axes[k]->size > 1;
        if (others != v->rank || rank == others)
            continue;
        v->rank = rank;
        memcpy(v->axes, axes, rank * sizeof *axes);
    }
}

void pass_einsum(pass_context *p, kernel *k)
{
    settle_outputs(k);
    for (size_t i = 0; i < k->op_count; i++)
        if (k->ops[i]->bad || (k->ops[i]->input && k->ops[i]->input->bad) || k->bad)
            return;
    einsum_builder b = {.context = p, .kernel = k, .e = ARENA_NEW(p->arena, kernel_einsum), .of = ARENA_ARRAY(p->arena, reference, k->op_count + 1),
                 .uses = ARENA_ARRAY(p->arena, uint32_t, k->op_count + 1)};
    count_uses(&b);
    for (size_t i = 0; i < k->op_count; i++)
        visit(&b, k->ops[i]);
    compact(&b);
    add_units(&b);
    b.e->text = einsum_text(&b);
    k->einsum = b.e;
}
