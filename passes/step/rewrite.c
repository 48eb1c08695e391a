#include "passes/step/rewrite.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ir/step/type.h"
#include "support/budget.h"

/* ---- arguments and refusals ---- */

const char *step_rewrite_text(const step_rewrite *r, const char *name, const char *otherwise)
{
    for (size_t i = 0; i < r->call->argument_count; i++)
        if (strcmp(r->call->arguments[i].name, name) == 0)
            return r->call->arguments[i].value;
    return otherwise;
}

int64_t step_rewrite_number(step_rewrite *r, const char *name, int64_t otherwise)
{
    const char *text = step_rewrite_text(r, name, NULL);
    if (!text)
        return otherwise;
    int64_t value = strspn(text, "0123456789") == strlen(text) && strlen(text) < 10 ? strtoll(text, NULL, 10) : 0;
    if (value < 1)
        step_rewrite_refuse(r, NULL, "give a whole number", "%s=%s is no number from 1 on", name, text);
    return value;
}

static bool same_walk(const step_spec *a, const step_spec *b)
{
    return a->walk_count == b->walk_count &&
           (a->walk_count == 0 || (memcmp(a->walk_sizes, b->walk_sizes, a->walk_count * sizeof *a->walk_sizes) == 0 &&
                                   memcmp(a->walk_strides, b->walk_strides, a->walk_count * sizeof *a->walk_strides) == 0));
}

static bool same_numbers(const step_spec *a, const step_spec *b, bool bases)
{
    for (int i = 0; i < STEP_PARAMS; i++)
        if (a->param[i] != b->param[i] && (bases || a->op != STEP_LINEAR_LOAD || i != STEP_BASE))
            return false;
    return true;
}

bool step_rewrite_is_alike(const step_graph_node *a, const step_graph_node *b, bool bases)
{
    const step_spec *x = &a->spec, *y = &b->spec;
    bool same_data = x->data == y->data || (x->data && y->data && step_data_equal(x->data, y->data));
    return x->op == y->op && x->fn == y->fn && x->input_count == y->input_count && x->output_count == y->output_count &&
           same_numbers(x, y, bases) && same_walk(x, y) && x->tensor == y->tensor && x->has_dtype == y->has_dtype && x->dtype == y->dtype &&
           x->kernel == y->kernel && step_formula_equal(x->formula, y->formula) && same_data;
}

void *step_rewrite_refuse(step_rewrite *r, const step_graph_node *n, const char *help, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(r->from->arena, format, args);
    va_end(args);
    if (!r->bad) {
        diag *d =
            diag_add(r->diags, E_STEP_PASS, n ? n->spec.range : r->from->range, "%s of `%s`: %s", r->call->pass->name, r->from->name, text);
        diag_help(r->diags, d, "%s", help);
    }
    r->bad = true;
    return NULL;
}

/* ---- streams ---- */

step_consumer *step_rewrite_consumers(step_rewrite *r, const step_stream *s, size_t *count)
{
    step_consumer *list = NULL;
    size_t capacity = 0;
    *count = 0;
    budget_spend(r->from->arena, r->from->node_count);
    for (size_t i = 0; i < r->from->node_count; i++)
        for (uint32_t k = 0; k < r->from->nodes[i]->spec.input_count; k++)
            if (r->from->nodes[i]->spec.inputs[k] == s) {
                step_consumer c = {r->from->nodes[i], k};
                ARENA_PUSH(r->from->arena, list, *count, capacity, c);
            }
    return list;
}

const step_stream *step_rewrite_stream(const step_rewrite *r, const step_stream *s)
{
    return r->streams[s->node->index][s->port];
}

void step_rewrite_become(step_rewrite *r, const step_stream *old, const step_stream *now)
{
    r->streams[old->node->index][old->port] = now;
}

/* ---- nodes ---- */

/* What did not fit in the new graph is why the pass is not legal. */
static void explain(step_rewrite *r, const step_graph_node *n)
{
    const diag *why = r->to->diags->count > 0 ? r->to->diags->items[r->to->diags->count - 1] : NULL;
    step_rewrite_refuse(r, n, why && why->help ? why->help : "leave the pass out", "`%s` would not fit any more: %s", n->name,
                        why ? why->message : "a rule does not hold");
}

static bool same_sizes(const step_stream *a, const step_stream *b)
{
    return a->rank == b->rank && a->data == b->data && memcmp(a->dims, b->dims, (a->rank + 1) * sizeof *a->dims) == 0;
}

/* On the same inputs the outputs keep their symbols. */
static void keep_sizes(const step_graph_node *n, step_graph_node *copy)
{
    bool same = n->output_count == copy->output_count;
    for (uint32_t i = 0; i < n->spec.input_count; i++)
        same = same && same_sizes(n->spec.inputs[i], copy->spec.inputs[i]);
    for (uint32_t i = 0; i < copy->output_count; i++) {
        step_stream *s = &copy->outputs[i];
        s->assumed = n->outputs[i].assumed;
        if (same || s->assumed)
            s->dims = n->outputs[i].dims;
        if (same)
            s->data = n->outputs[i].data;
    }
}

step_graph_node *step_rewrite_copy_anew(step_rewrite *r, const step_graph_node *n)
{
    step_spec spec = n->spec;
    spec.name = n->name;
    spec.inputs = ARENA_ARRAY(r->to->arena, const step_stream *, spec.input_count + 1);
    for (uint32_t i = 0; i < spec.input_count; i++) { /* feedback stands for itself until its source is there */
        const step_stream *now = step_rewrite_stream(r, n->spec.inputs[i]);
        spec.inputs[i] = now ? now : n->spec.inputs[i];
    }
    step_graph_node *copy = step_graph_add(r->to, &spec);
    if (!copy) {
        explain(r, n);
        return NULL;
    }
    memcpy(copy->depths, n->depths, spec.input_count * sizeof *n->depths);
    copy->flops_per_cycle = n->flops_per_cycle;
    copy->writes_back = n->writes_back;
    for (uint32_t i = 0; i < copy->output_count; i++)
        step_rewrite_become(r, &n->outputs[i], &copy->outputs[i]);
    return copy;
}

step_graph_node *step_rewrite_copy(step_rewrite *r, const step_graph_node *n)
{
    step_graph_node *copy = step_rewrite_copy_anew(r, n);
    if (copy)
        keep_sizes(n, copy);
    return copy;
}

step_graph_node *step_rewrite_add(step_rewrite *r, const step_graph_node *like, const char *suffix, step_spec spec)
{
    if (r->bad)
        return NULL;
    spec.name = arena_printf(r->to->arena, "%s%s", like->name, suffix);
    spec.range = like->spec.range;
    step_graph_node *n = step_graph_add(r->to, &spec);
    if (!n)
        explain(r, like);
    r->changes++;
    return n;
}

static bool is_ready(const step_rewrite *r, const step_graph_node *n)
{
    for (uint32_t i = 0; i < n->spec.input_count; i++)
        if (!step_rewrite_stream(r, n->spec.inputs[i]))
            return false;
    return true;
}

/* One round; with `force` the first node that waits for a feedback is done without it. */
static bool round_of(step_rewrite *r, bool (*visit)(step_rewrite *, const step_graph_node *), bool force)
{
    bool progress = false;
    for (size_t i = 0; i < r->from->node_count && !r->bad; i++) {
        const step_graph_node *n = r->from->nodes[i];
        if (r->done[i] || (!is_ready(r, n) && (!force || progress)))
            continue;
        r->done[i] = visit(r, n);
        progress = progress || r->done[i];
    }
    return progress;
}

static void connect_feedback(step_rewrite *r)
{
    for (size_t i = 0; i < r->to->node_count; i++)
        for (uint32_t k = 0; k < r->to->nodes[i]->spec.input_count; k++) {
            const step_stream **in = &r->to->nodes[i]->spec.inputs[k];
            size_t at = (*in)->node->index;
            if (at < r->from->node_count && r->from->nodes[at] == (*in)->node) {
                *in = step_rewrite_stream(r, *in);
                (*in)->node->outputs[(*in)->port].used = true;
            }
        }
}

void step_rewrite_all(step_rewrite *r, bool (*visit)(step_rewrite *r, const step_graph_node *n))
{
    while (!r->bad && (round_of(r, visit, false) || round_of(r, visit, true)))
        ;
    if (!r->bad)
        connect_feedback(r);
}

/* ---- running ---- */

static bool arguments_fit(step_rewrite *r)
{
    for (size_t i = 0; i < r->call->argument_count; i++) {
        const char *name = r->call->arguments[i].name, *found = strstr(r->call->pass->parameters, name);
        size_t bytes = strlen(name);
        bool whole =
            found && bytes > 0 && (found == r->call->pass->parameters || found[-1] == ' ') && (found[bytes] == ',' || !found[bytes]);
        if (!whole)
            step_rewrite_refuse(r, NULL, arena_printf(r->from->arena, "it takes %s", r->call->pass->parameters),
                                "there is no parameter `%s`", name);
    }
    return !r->bad;
}

step_graph *step_pass_run(const step_pass_call *call, step_graph *g)
{
    arena *a = g->arena;
    diag_list *own = ARENA_NEW(a, diag_list);
    step_graph *to = ARENA_NEW(a, step_graph);
    diag_list_init(own, a);
    *to = *g;
    to->diags = own;
    to->nodes = NULL;
    to->node_count = to->node_capacity = 0;
    to->stems = NULL;
    step_rewrite r = {.call = call,
                      .from = g,
                      .to = to,
                      .diags = g->diags,
                      .streams = ARENA_ARRAY(a, const step_stream **, g->node_count + 1),
                      .done = ARENA_ARRAY(a, bool, g->node_count + 1)};
    for (size_t i = 0; i < g->node_count; i++)
        r.streams[i] = ARENA_ARRAY(a, const step_stream *, g->nodes[i]->output_count + 1);
    if (arguments_fit(&r))
        call->pass->run(&r);
    to->diags = g->diags;
    return r.bad ? NULL : to;
}
