#include "ir/kernel.h"

static const struct {
    const char *name, *word;
    component components[MAPPING_COMPONENTS + 1];
} tensor_rows[] = {
#define TENSOR(symbol, name, ...) {name, "@" name, {__VA_ARGS__, MAPPING_COMPONENTS}},
#include "ir/tensor.def"
};

static const struct {
    const char *name, *parameter, *word;
} component_rows[] = {
#define COMPONENT(symbol, name, parameter) {name, parameter, "@" parameter},
#include "ir/tensor.def"
};

const char *tensor_kind_name(tensor_kind kind)
{
    return tensor_rows[kind].name;
}

const char *tensor_kind_word(tensor_kind kind)
{
    return tensor_rows[kind].word;
}

const component *tensor_kind_components(tensor_kind kind)
{
    return tensor_rows[kind].components;
}

bool tensor_kind_has(tensor_kind kind, component c)
{
    for (const component *at = tensor_rows[kind].components; *at < MAPPING_COMPONENTS; at++)
        if (*at == c)
            return true;
    return false;
}

bool tensor_kind_is_stream(tensor_kind kind)
{
    return tensor_kind_has(kind, PACKET);
}

const char *component_name(component c)
{
    return component_rows[c].name;
}

const char *component_parameter(component c)
{
    return component_rows[c].parameter;
}

const char *component_word(component c)
{
    return component_rows[c].word;
}

enum {
#define COMMAND(symbol, code, name, contexts, summary) CONTEXTS_OF_##symbol = (contexts),
#include "target/engines.def"
};

static const op_row op_rows[] = {
#define OPERATION(symbol, name, command, properties) {name, "@" name, properties, CONTEXTS_OF_##command},
#define PSEUDO(symbol, name) {name, "@" name, 0, 0},
#include "target/engines.def"
};

const op_row *op_row_of(op_kind kind)
{
    return &op_rows[kind];
}

const char *op_kind_name(op_kind kind)
{
    return op_rows[kind].name;
}

const char *op_kind_word(op_kind kind)
{
    return op_rows[kind].word;
}

bool op_kind_is(op_kind kind, unsigned property)
{
    return (op_rows[kind].properties & property) != 0;
}

bool op_kind_is_stage(op_kind kind)
{
    return op_rows[kind].contexts && !op_kind_is(kind, IS_PORT);
}

static const walk_row walk_rows[] = {
#define WALK(symbol, memory, access, unit) {memory, access, unit},
#include "target/engines.def"
};

const walk_row *walk_row_of(walk_kind kind)
{
    return &walk_rows[kind];
}

const op *op_root(const op *o)
{
    while (o->kind == IR_VIEW)
        o = op_input(o);
    return o;
}

void op_add_operand(op *o, arena *a, operand_role role, op *of)
{
    op_operand x = {role, of};
    ARENA_PUSH(a, o->operands, o->operand_count, o->operand_capacity, x);
}

operand_access operand_access_of(operand_role role)
{
    static const operand_access rows[] = {
#define OPERAND(name, symbol, access, summary) access,
#include "target/engines.def"
    };
    return rows[role];
}

bool op_uses_bad(const op *o)
{
    for (size_t i = 0; i < o->operand_count; i++)
        if (o->operands[i].of->bad)
            return true;
    return false;
}

op *op_take_over(op *o)
{
    op *note = op_input(o);
    for (size_t i = 0; i < o->operand_count; i++)
        if (o->operands[i].role == OPERAND_INPUT)
            o->operands[i].of = op_input(note);
    return note;
}

void op_leave_unplaced(op *o)
{
    o->unplaced = true;
    o->out.address = ADDRESS_NONE;
    o->out.trf_address = TRF_FULL;
}

const op *op_memory(const op *o)
{
    while (o->kind == IR_VIEW || o->kind == IR_RESHAPE)
        o = op_input(o);
    return o;
}

const op *op_accumulation(const kernel *k, const op *contract)
{
    for (size_t i = contract->index + 1; i < k->op_count; i++) /* as a rule the next one */
        if (k->ops[i]->kind == IR_ACCUMULATE && op_input(k->ops[i]) == contract)
            return k->ops[i];
    return NULL;
}

void kernel_forget(kernel *k)
{
    *k = (kernel){.name = k->name, .range = k->range, .dialect = k->dialect, .is_device = k->is_device, .chips = k->chips, .bad = k->bad};
}

op *kernel_note(const kernel *k, arena *a, op_kind kind, context c, src_range range)
{
    op *o = ARENA_NEW(a, op);
    o->kind = kind;
    o->context = c;
    o->range = range;
    o->name = "";
    o->index = (uint32_t)k->op_count;
    o->repeated = k->repeating;
    o->runs_if = k->runs_if;
    for (int i = 0; i < MAPPING_COMPONENTS; i++)
        o->parts[i] = SRC_NOWHERE;
    o->converted = SRC_NOWHERE;
    return o;
}

op *kernel_add(kernel *k, arena *a, op_kind kind, context c, src_range range)
{
    op *o = kernel_note(k, a, kind, c, range);
    ARENA_PUSH(a, k->ops, k->op_count, k->op_capacity, o);
    return o;
}

mapping_status tensor_whole(mapping_context *c, const tensor *t, const mapping **out)
{
    const mapping *all = mapping_identity(c);
    for (int i = 0; i < MAPPING_COMPONENTS; i++) {
        if (!t->part[i])
            continue;
        mapping_status status = mapping_pair(c, all, t->part[i], &all);
        if (status != MAPPING_OK)
            return status;
    }
    *out = all;
    return MAPPING_OK;
}

int tensor_reg_type(const tensor *t)
{
    return t->widened ? 1 : dtype_row_of(t->dtype)->trf_reg_type;
}

int64_t tensor_unit_bytes(const tensor *t)
{
    if (t->widened)
        return t->part[ELEMENT] ? dtype_bytes(DTYPE_I8, t->part[ELEMENT]->size) : -1;
    return t->part[ELEMENT] ? dtype_bytes(t->dtype, t->part[ELEMENT]->size) : -1;
}

const char *tensor_text(const tensor *t, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    strbuf_printf(&s, "%s %s [", dtype_row_of(t->dtype)->name, tensor_kind_name(t->kind));
    const char *separator = "";
    for (const component *p = tensor_kind_components(t->kind); *p < MAPPING_COMPONENTS; p++) {
        component c = *p;
        strbuf_printf(&s, "%s%s ", separator, component_name(c));
        if (t->part[c])
            mapping_print(t->part[c], &s);
        else
            strbuf_puts(&s, "_");
        separator = " | ";
    }
    strbuf_puts(&s, "]");
    return s.text;
}

uint32_t axis_list_add(const axis **out, uint32_t count, uint32_t capacity, const axis *a)
{
    for (uint32_t i = 0; i < count; i++)
        if (out[i] == a)
            return count;
    if (count < capacity)
        out[count++] = a;
    return count;
}

uint32_t port_axes(const kernel_port *p, arena *a, const axis **out, uint32_t capacity)
{
    uint32_t count = 0;
    for (int c = 0; c < MAPPING_COMPONENTS; c++) {
        const mapping_step *steps;
        size_t steps_count = p->tensor.part[c] ? mapping_postfix(p->tensor.part[c], p->named[c], a, &steps) : 0;
        for (size_t i = 0; i < steps_count; i++)
            if (steps[i].op == 'A')
                count = axis_list_add(out, count, capacity, steps[i].axis);
    }
    return count;
}

uint32_t tensor_axes(const tensor *t, const axis **out, uint32_t capacity)
{
    uint32_t count = 0;
    for (int c = 0; c < MAPPING_COMPONENTS; c++) {
        const axis *axes[64];
        uint32_t named = t->part[c] ? mapping_axes(t->part[c], axes, 64) : 0;
        for (uint32_t i = 0; i < named && i < 64; i++)
            count = axis_list_add(out, count, capacity, axes[i]);
    }
    return count;
}

bool op_lifts(const op *o, component level)
{
    for (uint32_t i = 0; o->lift && i < o->lift->call_count; i++)
        if (o->lift->calls[i].level == level)
            return true;
    return false;
}

const char *lift_text(const lift_config *c, arena *a)
{
    const char *text = "";
    for (uint32_t i = 0; i < c->count; i++)
        text = arena_printf(a, "%s + %s / %lld %% 2 * %lld bytes (%s)", text, component_word(c->digits[i].level),
                            (long long)c->digits[i].div, (long long)c->digits[i].stride_bytes, mapping_text(c->digits[i].term, a));
    return text;
}

const char *start_text(const start_config *c, arena *a)
{
    const char *text = "";
    for (uint32_t i = 0; i < c->count; i++) {
        const run_start *of = c->numbers[i].of;
        text = arena_printf(a, "%s + %s * %lld bytes (`%s`, of %lld)", text, of->port->name, (long long)c->numbers[i].stride_bytes,
                            mapping_text(of->index, a), (long long)of->positions);
    }
    return text;
}

const char *adapter_text(const adapter_config *c, arena *a)
{
    const char *table = c->table ? arena_printf(a, "table to %s", dtype_row_of(c->looked_up)->name) : "";
    return c->subtracts ? arena_printf(a, "%s%szero point %lld", table, c->table ? ", " : "", (long long)c->zero_point) : table;
}

const char *route_text(const route_config *c, arena *a)
{
    if (c->topology == TOPOLOGY_FORWARDING)
        return "";
    if (c->topology != TOPOLOGY_CUSTOM)
        return arena_printf(a, ", slice1 = %lld, slice0 = %lld, time0 = %lld", (long long)c->slice1, (long long)c->slice0,
                            (long long)c->time0);
    const char *text = ", slice d from";
    for (uint32_t i = 0; i < c->count; i++) {
        const route_digit *r = &c->digits[i];
        const char *plus = i ? " +" : "";
        text = r->moved ? arena_printf(a, "%s%s (0..%lld) * %lld", text, plus, (long long)r->size - 1, (long long)r->weight)
                        : arena_printf(a, "%s%s d / %lld %% %lld * %lld", text, plus, (long long)r->div, (long long)r->size,
                                       (long long)r->weight);
    }
    return text;
}
