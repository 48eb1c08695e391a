#include "codegen/step/json.h"

#include <math.h>

/* Setters take over the value and accept NULL; `failed` remembers that one of them failed. */
typedef struct dump {
    const step_program *program;
    bool failed;
} dump;

static void set(dump *d, json_t *object, const char *key, json_t *value)
{
    d->failed = json_object_set_new(object, key, value) || d->failed;
}

static void push(dump *d, json_t *array, json_t *value)
{
    d->failed = json_array_append_new(array, value) || d->failed;
}

static json_t *machine_json(dump *d)
{
    const step_machine *m = &d->program->machine;
    json_t *out = json_object();
    set(d, out, "onchip_bytes_per_cycle", json_integer(m->onchip_bytes_per_cycle));
    set(d, out, "memory_channels", json_integer(m->memory_channels));
    set(d, out, "requests_per_cycle", json_integer(m->requests_per_cycle));
    set(d, out, "request_bytes", json_integer(m->request_bytes));
    set(d, out, "memory_latency_cycles", json_integer(m->memory_latency_cycles));
    set(d, out, "memory_interval_cycles", json_integer(m->memory_interval_cycles));
    set(d, out, "memory_startup_cycles", json_integer(m->memory_startup_cycles));
    set(d, out, "compute_tile", json_integer(m->compute_tile));
    set(d, out, "onchip_bytes", json_integer(m->onchip_bytes));
    return out;
}

static json_t *type_json(dump *d, const step_type *t)
{
    static const char *const kinds[STEP_KINDS] = {"tile", "selector", "buffer", "pair", "bool", "address"};
    json_t *out = json_object();
    set(d, out, "kind", json_string(kinds[t->kind]));
    if (t->kind == STEP_TILE) {
        set(d, out, "dtype", json_string(dtype_row_of(t->dtype)->name));
        set(d, out, "rows", t->rows < 0 ? json_null() : json_integer(t->rows));
        set(d, out, "columns", t->columns < 0 ? json_null() : json_integer(t->columns));
    }
    if (t->kind == STEP_SELECTOR) {
        set(d, out, "width", json_integer(t->width));
        set(d, out, "names", t->hot > 0 ? json_integer(t->hot) : json_null());
    }
    if (t->kind == STEP_BUFFER || t->kind == STEP_PAIR)
        set(d, out, "first", json_integer(t->first));
    if (t->kind == STEP_PAIR)
        set(d, out, "second", json_integer(t->second));
    if (t->kind == STEP_BUFFER)
        set(d, out, "rank", json_integer(t->rank));
    return out;
}

static json_t *tensor_json(dump *d, const step_tensor *t)
{
    json_t *out = json_object(), *shape = json_array();
    set(d, out, "name", json_string(t->name));
    set(d, out, "dtype", json_string(dtype_row_of(t->dtype)->name));
    set(d, out, "written", json_boolean(t->written));
    set(d, out, "rows", json_integer(t->rows));
    set(d, out, "columns", json_integer(t->columns));
    for (uint32_t i = 0; i < t->dim_count; i++)
        push(d, shape, json_integer(t->shape[i]));
    set(d, out, "shape", shape);
    return out;
}

static json_t *numbers_json(dump *d, const step_node *n)
{
    json_t *out = json_object();
    for (size_t i = 0; step_param_row_at(i); i++)
        if (step_param_row_is_of(step_param_row_at(i), n->op, n->fn))
            set(d, out, step_param_row_at(i)->name, json_integer(n->param[step_param_row_at(i)->slot]));
    return out;
}

static json_t *inputs_json(dump *d, const step_node *n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n->input_count; i++) {
        json_t *in = json_object();
        set(d, in, "node", json_integer(n->inputs[i].node));
        set(d, in, "port", json_integer(n->inputs[i].port));
        set(d, in, "depth", json_integer(n->inputs[i].depth));
        push(d, list, in);
    }
    return list;
}

static json_t *outputs_json(dump *d, const step_node *n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n->output_count; i++) {
        json_t *out = json_object();
        set(d, out, "type", json_integer(n->outputs[i].type));
        set(d, out, "rank", json_integer(n->outputs[i].rank));
        set(d, out, "shape", json_string(n->outputs[i].shape));
        push(d, list, out);
    }
    return list;
}

static json_t *walk_json(dump *d, const step_node *n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n->walk_count; i++) {
        json_t *loop = json_object();
        set(d, loop, "size", json_integer(n->walk_sizes[i]));
        set(d, loop, "stride", json_integer(n->walk_strides[i]));
        push(d, list, loop);
    }
    return list;
}

static json_t *formula_json(dump *d, const step_formula *f)
{
    json_t *out = json_object(), *states = json_array(), *items = json_array(), *results = json_array();
    for (uint32_t i = 0; i < f->state_count; i++) {
        json_t *one = json_object();
        set(d, one, "rows", json_integer(f->states[i].rows));
        set(d, one, "columns", json_integer(f->states[i].columns));
        set(d, one, "value", isfinite(f->states[i].value) ? json_real((double)f->states[i].value) : json_null());
        push(d, states, one);
    }
    for (uint32_t i = 0; i < f->count; i++) {
        const step_formula_row *row = step_formula_row_of(f->items[i].op);
        json_t *one = json_object(), *operands = json_array();
        set(d, one, "operation", json_string(row->name));
        for (unsigned k = 0; k < row->operands || (k == 0 && row->op == FORMULA_VALUE); k++)
            push(d, operands, json_integer(f->items[i].operands[k]));
        set(d, one, "operands", operands);
        if (row->op == FORMULA_NUMBER)
            set(d, one, "number", isfinite(f->items[i].number) ? json_real((double)f->items[i].number) : json_null());
        push(d, items, one);
    }
    for (uint32_t i = 0; i < f->result_count; i++)
        push(d, results, json_integer(f->results[i]));
    set(d, out, "states", states);
    set(d, out, "instructions", items);
    set(d, out, "results", results);
    return out;
}

static json_t *node_json(dump *d, const step_node *n)
{
    json_t *out = json_object();
    bool stored = n->op >= STEP_LINEAR_LOAD && n->op <= STEP_RANDOM_STORE;
    set(d, out, "name", json_string(n->name));
    set(d, out, "operator", json_string(step_op_row_of(n->op)->name));
    set(d, out, "line", json_integer(n->line));
    set(d, out, "function", json_string(step_fn_row_of(n->fn)->name));
    set(d, out, "kernel", n->kernel ? json_string(n->kernel) : json_null());
    if (n->formula)
        set(d, out, "formula", formula_json(d, n->formula));
    set(d, out, "flops_per_cycle", json_integer(n->flops_per_cycle));
    set(d, out, "written_back", json_boolean(n->writes_back));
    set(d, out, "tensor", stored ? json_integer(n->tensor) : json_null());
    set(d, out, "numbers", numbers_json(d, n));
    set(d, out, "walk", walk_json(d, n));
    set(d, out, "inputs", inputs_json(d, n));
    set(d, out, "outputs", outputs_json(d, n));
    return out;
}

json_t *step_program_json(const step_program *p)
{
    dump d = {.program = p};
    json_t *out = json_object(), *types = json_array(), *tensors = json_array(), *nodes = json_array();
    set(&d, out, "name", json_string(p->name));
    set(&d, out, "machine", machine_json(&d));
    for (uint32_t i = 0; i < p->type_count; i++)
        push(&d, types, type_json(&d, &p->types[i]));
    for (uint32_t i = 0; i < p->tensor_count; i++)
        push(&d, tensors, tensor_json(&d, &p->tensors[i]));
    for (uint32_t i = 0; i < p->node_count; i++)
        push(&d, nodes, node_json(&d, &p->nodes[i]));
    set(&d, out, "types", types);
    set(&d, out, "tensors", tensors);
    set(&d, out, "nodes", nodes);
    if (!d.failed)
        return out;
    json_decref(out);
    return NULL;
}
