#include "codegen/step/emit.h"

#include <string.h>

#include "passes/step/metrics.h"

typedef struct emission {
    const emit_context *context;
    arena *arena;
    step_type *types;
    uint32_t type_count;
    size_t type_capacity;
} emission;

static bool same_type(const step_type *a, const step_type *b)
{
    return a->kind == b->kind && a->dtype == b->dtype && a->rows == b->rows && a->columns == b->columns && a->width == b->width &&
           a->hot == b->hot && a->first == b->first && a->second == b->second && a->rank == b->rank;
}

static int64_t size_of(const step_expr *e)
{
    int64_t n;
    return step_expr_is_number(e, &n) ? n : -1;
}

/* The number of the data type in the table; parts come before wholes. */
static uint32_t type_of(emission *m, const step_data *d)
{
    step_type t = {.kind = d->kind};
    if (d->kind == STEP_TILE) {
        t.dtype = d->dtype;
        t.rows = size_of(d->rows);
        t.columns = size_of(d->columns);
    }
    if (d->kind == STEP_SELECTOR) {
        t.width = d->width;
        t.hot = d->hot;
    }
    if (d->kind == STEP_BUFFER || d->kind == STEP_PAIR)
        t.first = type_of(m, d->first);
    if (d->kind == STEP_PAIR)
        t.second = type_of(m, d->second);
    if (d->kind == STEP_BUFFER)
        t.rank = d->dim_count;
    for (uint32_t i = 0; i < m->type_count; i++)
        if (same_type(&m->types[i], &t))
            return i;
    ARENA_PUSH(m->arena, m->types, m->type_count, m->type_capacity, t);
    return m->type_count - 1;
}

static void emit_edges(emission *m, const step_graph *g, const step_graph_node *from, step_node *to)
{
    step_input *inputs = ARENA_ARRAY(m->arena, step_input, from->spec.input_count + 1);
    for (uint32_t i = 0; i < from->spec.input_count; i++) {
        int64_t depth = from->depths[i] == STEP_DEPTH_DEFAULT ? g->default_depth : from->depths[i];
        inputs[i] = (step_input){from->spec.inputs[i]->node->index, from->spec.inputs[i]->port, (uint32_t)depth};
    }
    step_output *outputs = ARENA_ARRAY(m->arena, step_output, from->output_count + 1);
    for (uint32_t i = 0; i < from->output_count; i++)
        outputs[i] = (step_output){type_of(m, from->outputs[i].data), from->outputs[i].rank, step_shape_text(&from->outputs[i], m->arena)};
    to->input_count = from->spec.input_count;
    to->output_count = from->output_count;
    to->inputs = inputs;
    to->outputs = outputs;
}

static void emit_node(emission *m, const step_graph *g, const step_graph_node *from, step_node *to)
{
    const step_spec *s = &from->spec;
    *to = (step_node){.op = s->op,
                      .name = from->name,
                      .line = m->context->line_of(m->context->user, s->range),
                      .walk_count = s->walk_count,
                      .walk_sizes = s->walk_sizes,
                      .walk_strides = s->walk_strides,
                      .tensor = s->tensor ? s->tensor->index : 0,
                      .fn = s->fn,
                      .kernel = s->fn == STEP_FN_KERNEL ? s->kernel->name : NULL,
                      .formula = s->formula,
                      .flops_per_cycle = s->fn == STEP_FN_NONE ? 0 : from->flops_per_cycle,
                      .writes_back = from->writes_back};
    memcpy(to->param, s->param, sizeof to->param);
    if (s->fn == STEP_FN_KERNEL)
        to->param[STEP_KEPT] = step_kept_inputs(from);
    emit_edges(m, g, from, to);
}

step_program *step_emit(const emit_context *e, const step_graph *g)
{
    emission m = {.context = e, .arena = e->arena};
    step_program *p = ARENA_NEW(e->arena, step_program);
    step_node *nodes = ARENA_ARRAY(e->arena, step_node, g->node_count + 1);
    step_tensor *tensors = ARENA_ARRAY(e->arena, step_tensor, g->tensor_count + 1);
    for (size_t i = 0; i < g->node_count; i++)
        emit_node(&m, g, g->nodes[i], &nodes[i]);
    for (size_t i = 0; i < g->tensor_count; i++) {
        const step_graph_tensor *t = g->tensors[i];
        tensors[i] = (step_tensor){t->name, t->dtype, t->rows, t->columns, t->dim_count, t->shape, t->written};
    }
    *p = (step_program){.name = g->name,
                        .machine = g->machine,
                        .types = m.types,
                        .type_count = m.type_count,
                        .tensors = tensors,
                        .tensor_count = (uint32_t)g->tensor_count,
                        .nodes = nodes,
                        .node_count = (uint32_t)g->node_count};
    return p;
}
