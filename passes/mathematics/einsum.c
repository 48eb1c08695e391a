/* The statements of an einsum: which operation of the kernel makes which. */
#include "passes/mathematics/einsum_build.h"
#include "passes/mathematics/einsum_guard.h"
#include "passes/mathematics/einsum_map.h"
#include "passes/mathematics/einsum_reshape.h"
#include "passes/mathematics/einsum_rows.h"

/* A window whose outer places are zero, in a value that is the same at all places: it would be zero there as well. */
static void check_borders(einsum_builder *b, op *o, const op *stream)
{
    const einsum_tensor *v = &b->values[b->of[stream->index].value];
    for (int c = 0; c < MAPPING_COMPONENTS && !o->bad; c++) {
        const axis *axes[EINSUM_MAX_AXES];
        uint32_t count = stream->out.part[c] ? mapping_axes(stream->out.part[c], axes, EINSUM_MAX_AXES) : 0;
        for (uint32_t i = 0; i < count && !o->bad; i++) {
            if (!axes[i]->bordered || einsum_tensor_has(v, einsum_axis_number(b, axes[i])))
                continue;
            diag *d = pass_refuse(b->context, b->kernel, o, MAPPING_COMPONENTS, E_EINSUM,
                                  "the window `%s` is zero outside the places it holds, and what it holds are copies of one element",
                                  axes[i]->name);
            diag_help(b->context->diags, d, "let the tensor have the window from the beginning");
        }
    }
}

static void visit_contract(einsum_builder *b, op *o, const op *accumulate)
{
    const op *align = op_input(o);
    uint32_t dst = einsum_add_value(b, o->out.dtype, -1);
    einsum_step *step =
        einsum_add_step(b, MATH_CONTRACT, einsum_whole(dst), b->of[op_input(align)->index], b->of[op_weights(align)->index]);
    step->s.accumulator = o->out.dtype;
    einsum_note_computed(b, &step->s);
    einsum_contract_digits(b, step, o, accumulate);
    einsum_set_kept_axes(b, &b->values[dst], step);
    einsum_settle_sources(b, step, o, op_input(align), op_weights(align));
    check_borders(b, o, op_input(align));
    b->of[o->index] = einsum_whole(dst);
}

static void visit_conversion(einsum_builder *b, op *o)
{
    reference from = b->of[op_input(o)->index];
    einsum_step *last = einsum_just_made(b, from);
    if (last && last->s.op != MATH_COPY && last->s.op != MATH_GATHER && last->s.op != MATH_SCATTER &&
        einsum_is_only_use(b, op_input(o), from.value) && b->values[from.value].dtype == last->s.accumulator) {
        b->values[from.value].dtype = o->out.dtype; /* what is computed is cast where it is made */
        b->of[o->index] = from;
        return;
    }
    b->of[o->index] = einsum_copy_of(b, o, op_input(o), &o->out);
}

enum { MAX_SHIFTS = 3 * TILE_MAX_SHIFTS };

static bool reads_value(const einsum_statement *s, uint32_t value)
{
    for (uint32_t i = 0; i < s->source_count; i++)
        if (s->sources[i] == value)
            return true;
    return false;
}

/* A write through a view: the step that made the value writes the part of the memory at once where nothing else needs it. */
static void visit_write(einsum_builder *b, op *o)
{
    reference from = b->of[op_input(o)->index], to = {b->of[op_root(op_into(o))->index].value, op_into(o)->window};
    einsum_step *last = einsum_just_made(b, from);
    if (einsum_is_guarded(o)) {
        einsum_write_guarded(b, o, from, to, op_input(o));
        return;
    }
    if (last && last->s.op != MATH_SCATTER && last->s.shift_count < MAX_SHIFTS && !reads_value(&last->s, to.value) &&
        einsum_is_only_use(b, op_input(o), from.value) && einsum_source_holds(b, o, op_input(o), &op_into(o)->out)) {
        last->s.dst = to.value;
        b->computed[to.value] = b->computed[to.value] || b->computed[from.value];
        einsum_add_shifts(b, last, EINSUM_DST, to.window);
        return;
    }
    if (from.value == to.value)
        b->of[op_input(o)->index] = einsum_copy_of(b, o, op_input(o), &op_input(o)->out); /* a statement does not assign what it reads */
    einsum_add_copy(b, o, to, op_input(o), &op_into(o)->out);
}

static bool same_axes(const einsum_tensor *a, const einsum_tensor *b)
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
    einsum_tensor *value = &b->values[from.value];
    einsum_tensor result = {.dtype = value->dtype, .port = (int32_t)port};
    const tensor *t = &b->kernel->ports[port].tensor;
    einsum_set_axes(b, &result, t);
    if (value->port < 0 && same_axes(value, &result) && !from.window && einsum_source_holds(b, o, source, t)) {
        *value = result;
        return;
    }
    uint32_t dst = einsum_add_value(b, result.dtype, port);
    b->values[dst] = result;
    einsum_add_copy(b, o, einsum_whole(dst), source, t);
}

static void visit_memory(einsum_builder *b, op *o, int64_t port)
{
    b->of[o->index] = einsum_whole(einsum_add_like(b, &o->out, port));
}

/* A parameter that comes in and is written: its value is one of its own, which begins as what comes in. */
static void visit_port(einsum_builder *b, op *o)
{
    visit_memory(b, o, o->port);
    if (o->parameter)
        b->of[o->index] = einsum_copy_of(b, o, o, &o->out);
}

/* Memory that begins as zeros: all elements of its value. */
static void visit_alloc(einsum_builder *b, op *o)
{
    visit_memory(b, o, -1);
    if (!o->dma && !o->reads_zeros)
        return;
    uint32_t dst = b->of[o->index].value;
    einsum_step *step = einsum_add_step(b, MATH_FILL, einsum_whole(dst), einsum_whole(dst), einsum_whole(dst));
    step->s.accumulator = o->out.dtype;
    step->digits = einsum_room_for_digits(b);
    for (uint32_t i = 0; i < b->values[dst].rank && i < EINSUM_MAX_DIGITS; i++) {
        uint32_t number = b->values[dst].axes[i];
        step->digits[step->s.digit_count++] = (einsum_digit){.axis = number, .kept = true, .weight = 1, .size = b->axes[number]->size};
    }
}

/* Does the stream come from memory that changes? */
static bool chain_changes(const op *o)
{
    while (tensor_kind_is_stream(o->out.kind) && op_input(o))
        o = op_input(o);
    return op_root(o)->changes;
}

/* A copy in memory has a value of its own where what it is made of, or itself, is written once more. */
static bool keeps_apart(const op *o)
{
    return !tensor_kind_is_stream(o->out.kind) && (op_root(o)->changes || (op_input(o) && chain_changes(op_input(o))));
}

static void visit_one(einsum_builder *b, op *o)
{
    switch (o->kind) {
    case IR_PORT_IN: visit_port(b, o); break;
    case IR_GATHER: einsum_gather(b, o); break;
    case IR_SCATTER: einsum_scatter(b, o); break;
    case IR_ALLOC: visit_alloc(b, o); break;
    case IR_VIEW: b->of[o->index] = einsum_view_of(b, o); break;
    case IR_RESHAPE: einsum_reshape(b, o); break;
    case IR_VECTOR_OP: einsum_map(b, o); break;
    case IR_VECTOR_REDUCE: einsum_reduce(b, o, o->vector_reduce->row, einsum_reduce_digits); break;
    case IR_VECTOR_SLICES: einsum_reduce(b, o, o->vector_slices->row, einsum_slices_digits); break;
    case IR_GENERATE: break; /* what it gives is its commit's */
    case IR_CONTRACT: visit_contract(b, o, op_accumulation(b->kernel, o)); break;
    case IR_PORT_OUT:
        visit_output(b, o, o->port, op_input(o)->kind == IR_ALIGN ? op_input(op_input(o)) : op_input(o));
        if (op_input(o)->kind == IR_ALIGN)
            visit_output(b, o, o->port + 1, op_weights(op_input(o)));
        break;
    default:
        if (op_input(o)->kind == IR_GENERATE)
            einsum_generate(b, o);
        else if (o->adapter && o->adapter->subtracts)
            einsum_difference(b, o);
        else if (o->commit_cast && o->commit_cast->relu)
            einsum_relu(b, o);
        else if (op_second(o))
            einsum_interleave(b, o);
        else if (op_into(o))
            visit_write(b, o);
        else if (o->out.dtype != op_input(o)->out.dtype)
            visit_conversion(b, o);
        else if (keeps_apart(o))
            b->of[o->index] = einsum_copy_of(b, o, op_input(o), &o->out);
        else
            b->of[o->index] = b->of[op_input(o)->index];
    }
}

/* Between unzip and zip there are two streams. */
static bool is_pair(const einsum_builder *b, const op *o)
{
    const op *in = op_input(o);
    if (o->kind == IR_VECTOR_INIT || (o->kind == IR_VECTOR_OP && o->vector_op->zip))
        return false;
    return o->kind == IR_VECTOR_UNZIP || (in && b->pair[in->index]);
}

/* Of a pair each group by itself; of others both are the same. */
static void visit(einsum_builder *b, op *o)
{
    op *in = op_input(o);
    b->pair[o->index] = is_pair(b, o);
    if (in && in->starts && o->kind != IR_VIEW)
        einsum_starts(b, o, in);
    if (o->kind == IR_VECTOR_UNZIP) {
        einsum_unzip(b, o);
        return;
    }
    if (o->kind == IR_VECTOR_OP && o->vector_op->zip) {
        einsum_zip(b, o);
        return;
    }
    if (!in || !b->pair[in->index]) {
        visit_one(b, o);
        b->other[o->index] = b->of[o->index];
        return;
    }
    for (unsigned g = 0; g < 2; g++) {
        if (o->kind == IR_VECTOR_OP && !(o->vector_op->groups >> g & 1))
            b->of[o->index] = b->of[in->index];
        else
            visit_one(b, o);
        einsum_turn(b);
    }
}

static void count_uses(einsum_builder *b)
{
    for (size_t i = 0; i < b->kernel->op_count; i++) {
        const op *o = b->kernel->ops[i];
        for (size_t j = 0; j < o->operand_count; j++)
            if (operand_access_of(o->operands[j].role) == READS)
                b->uses[o->operands[j].of->index]++;
    }
}

/* Parts of a result that its type leaves open are those of the stage that makes it. */
static void settle_outputs(kernel *k)
{
    for (size_t i = 0; i < k->op_count; i++)
        for (int c = 0; c < MAPPING_COMPONENTS && k->ops[i]->kind == IR_PORT_OUT; c++)
            if (!k->ops[i]->out.part[c] && op_input(k->ops[i])->out.kind == k->ops[i]->out.kind) {
                k->ops[i]->out.part[c] = op_input(k->ops[i])->out.part[c];
                k->ports[k->ops[i]->port].tensor.part[c] = k->ops[i]->out.part[c];
            }
}

/* The axes of size 1 that the ports' types name: no statement counts them, but they are dimensions of the tensors. */
static void add_units(einsum_builder *b)
{
    for (size_t i = 0; i < b->value_count; i++) {
        einsum_tensor *v = &b->values[i];
        const axis *axes[EINSUM_MAX_AXES];
        uint32_t rank = v->port >= 0 ? port_axes(&b->kernel->ports[v->port], b->context->arena, axes, EINSUM_MAX_AXES) : 0, others = 0;
        for (uint32_t k = 0; k < rank; k++)
            others += axes[k]->size > 1;
        if (others != v->rank || rank == others)
            continue;
        uint32_t *numbers = ARENA_ARRAY(b->context->arena, uint32_t, rank);
        for (uint32_t k = 0; k < rank; k++)
            numbers[k] = einsum_axis_number(b, axes[k]);
        v->rank = rank;
        v->axes = numbers;
    }
}

/* Where a result has an axis and its new name, as the product of a tensor and its transpose has, that axis joins `b->own`. */
static void make_statements(einsum_builder *b, pass_context *p, kernel *k)
{
    *b = (einsum_builder){.context = p,
                          .kernel = k,
                          .own = b->own,
                          .own_count = b->own_count,
                          .own_capacity = b->own_capacity,
                          .of = ARENA_ARRAY(p->arena, reference, k->op_count + 1),
                          .other = ARENA_ARRAY(p->arena, reference, k->op_count + 1),
                          .uses = ARENA_ARRAY(p->arena, uint32_t, k->op_count + 1),
                          .pair = ARENA_ARRAY(p->arena, bool, k->op_count + 1)};
    count_uses(b);
    for (size_t i = 0; i < k->op_count; i++)
        visit(b, k->ops[i]);
    einsum_compact(b);
}

void pass_einsum(pass_context *p, kernel *k)
{
    settle_outputs(k);
    for (size_t i = 0; i < k->op_count; i++)
        if (k->ops[i]->bad || (op_input(k->ops[i]) && op_input(k->ops[i])->bad) || k->bad)
            return;
    einsum_builder b = {0};
    do
        make_statements(&b, p, k);
    while (b.again && !k->bad); /* each time for one axis more */
    add_units(&b);
    k->einsum = einsum_finish(&b);
}
