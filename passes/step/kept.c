/* What of a kernel's inputs is the same for all of its calls.
 *
 * The one idea: a stream has one value again and again where a single value, or a tile that is read from one place that nobody writes, is
 * repeated, reshaped or passed through a function; so it is found by following the stream back, without its sizes. */
#include "passes/step/metrics.h"

static bool has_one_value(const step_stream *s)
{
    int64_t size;
    for (uint32_t i = 0; i <= s->rank; i++)
        if (!step_expr_is_number(s->dims[i], &size) || size != 1)
            return false;
    return true;
}

/* A load of one tile for each reference value, from a tensor that is not written. */
static bool loads_one_tile(const step_graph_node *n)
{
    for (uint32_t i = 0; i < n->spec.walk_count; i++)
        if (n->spec.walk_sizes[i] != 1)
            return false;
    return n->spec.op == STEP_LINEAR_LOAD && !n->spec.tensor->written;
}

/* Does it give the values of its first input again, each once or several times? */
static bool hands_on(const step_graph_node *n)
{
    switch (n->spec.op) {
    case STEP_EXPAND:
    case STEP_REPEAT:
    case STEP_PROMOTE:
    case STEP_FLATTEN:
    case STEP_BROADCAST: return true;
    default: return false;
    }
}

/* The stream that decides whether the node's output is one value again and again; NULL: it is not. */
static const step_stream *decides(const step_graph_node *n, uint32_t port)
{
    if (hands_on(n))
        return n->spec.inputs[0];
    switch (n->spec.op) {
    case STEP_RESHAPE: return port == 0 && n->spec.param[STEP_PAD] == 0 ? n->spec.inputs[0] : NULL;
    case STEP_RANDOM_LOAD: return n->spec.tensor->written ? NULL : n->spec.inputs[0];
    case STEP_MAP: return n->spec.input_count == 1 ? n->spec.inputs[0] : NULL;
    default: return NULL;
    }
}

static bool is_always_the_same(const step_stream *s)
{
    enum { MOST_STEPS = 64 };
    for (int i = 0; s && i < MOST_STEPS; i++) {
        const step_graph_node *n = s->node;
        if (has_one_value(s) || loads_one_tile(n) || (n->spec.op == STEP_MAP && n->spec.fn == STEP_FN_SIGNAL))
            return true;
        s = decides(n, s->port);
    }
    return false;
}

/* ---- loads that only say where a tile lies ---- */

static bool loads_as_stored(const step_graph_node *n)
{
    return (n->spec.op == STEP_LINEAR_LOAD || n->spec.op == STEP_RANDOM_LOAD) && n->outputs[0].data->dtype == n->spec.tensor->dtype;
}

/* Until nothing changes: with feedback who takes a stream may stand before who makes it. */
const bool *step_in_place(const step_graph *g)
{
    bool *taken = ARENA_ARRAY(g->arena, bool, g->node_count + 1), *moved = ARENA_ARRAY(g->arena, bool, g->node_count + 1);
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = g->node_count; i-- > 0;)
            for (uint32_t k = 0; k < g->nodes[i]->spec.input_count; k++) {
                const step_graph_node *n = g->nodes[i];
                size_t from = n->spec.inputs[k]->node->index;
                bool handed = hands_on(n) && k == 0; /* the reference of an expand is looked at */
                bool some = n->spec.kernel || (handed && taken[i]), other = handed ? moved[i] : !n->spec.kernel;
                changed = changed || (some && !taken[from]) || (other && !moved[from]);
                taken[from] = taken[from] || some;
                moved[from] = moved[from] || other;
            }
    }
    for (size_t i = 0; i < g->node_count; i++)
        taken[i] = loads_as_stored(g->nodes[i]) && taken[i] && !moved[i];
    return taken;
}

uint32_t step_kept_inputs(const step_graph_node *n)
{
    uint32_t kept = 0, at = n->spec.op != STEP_MAP; /* the accumulator is the first */
    for (uint32_t i = 0; i < n->spec.input_count; i++) {
        const step_stream *s = n->spec.inputs[i];
        bool pair = s->data->kind == STEP_PAIR && n->spec.input_count == 1, zipped = pair && s->node->spec.op == STEP_ZIP;
        for (uint32_t part = 0; part < (pair ? 2 : 1); part++, at++)
            kept |= (uint32_t)((!pair || zipped) && is_always_the_same(zipped ? s->node->spec.inputs[part] : s)) << at;
    }
    return kept;
}
