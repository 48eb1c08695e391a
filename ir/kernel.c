#include "ir/kernel.h"

#include <string.h>

static const struct {
    const char *name, *components;
} tensor_rows[] = {
#define TENSOR(symbol, name, components) {name, components},
#include "ir/tensor.def"
#undef TENSOR
};

const char *tensor_kind_name(tensor_kind kind)
{
    return tensor_rows[kind].name;
}

const char *tensor_kind_components(tensor_kind kind)
{
    return tensor_rows[kind].components;
}

bool tensor_kind_is_stream(tensor_kind kind)
{
    return strchr(tensor_rows[kind].components, 'p') != NULL;
}

const char *component_name(component c)
{
    static const char *const names[] = {"chip", "cluster", "slice", "row", "time", "element", "packet"};
    return names[c];
}

const char *component_parameter(component c)
{
    static const char *const names[] = {"Chip", "Cluster", "Slice", "Row", "Time", "Element", "Packet"};
    return names[c];
}

component component_of_letter(char letter)
{
    static const char letters[] = "clsrtep";
    return (component)(strchr(letters, letter) - letters);
}

const char *op_kind_name(op_kind kind)
{
    static const char *const names[] = {"port_in", "to_dm",    "to_hbm",     "fetch", "collect", "to_trf",
                                        "align",   "contract", "accumulate", "cast",  "commit",  "port_out",
                                        "alloc",   "view",     "reshape"};
    return names[kind];
}

const op *op_root(const op *o)
{
    while (o->kind == IR_VIEW)
        o = o->input;
    return o;
}

const op *op_accumulation(const kernel *k, const op *contract)
{
    for (size_t i = contract->index + 1; i < k->op_count; i++) /* as a rule the next one */
        if (k->ops[i]->kind == IR_ACCUMULATE && k->ops[i]->input == contract)
            return k->ops[i];
    return NULL;
}

void kernel_forget(kernel *k)
{
    *k = (kernel){.name = k->name, .range = k->range, .is_device = k->is_device, .chips = k->chips, .bad = k->bad};
}

op *kernel_add(kernel *k, arena *a, op_kind kind, context c, src_range range)
{
    op *o = ARENA_NEW(a, op);
    o->kind = kind;
    o->context = c;
    o->range = range;
    o->name = "";
    o->index = (uint32_t)k->op_count;
    o->repeated = k->repeating;
    for (int i = 0; i < MAPPING_COMPONENTS; i++)
        o->parts[i] = SRC_NOWHERE;
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

int64_t tensor_unit_bytes(const tensor *t)
{
    return t->part[ELEMENT] ? dtype_bytes(t->dtype, t->part[ELEMENT]->size) : -1;
}

const char *tensor_text(const tensor *t, arena *a)
{
    strbuf s;
    strbuf_init(&s, a);
    strbuf_printf(&s, "%s %s [", dtype_row_of(t->dtype)->name, tensor_kind_name(t->kind));
    const char *separator = "";
    for (const char *p = tensor_kind_components(t->kind); *p; p++) {
        component c = component_of_letter(*p);
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
