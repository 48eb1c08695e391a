#include "passes/step/metrics.h"

#include "ir/step/route.h"
#include "ir/step/total.h"
#include "ir/step/type.h"

const char *const step_equation_names[] = {"paper", "artifact"};

static const step_expr *number(step_graph *g, int64_t value)
{
    return step_expr_number(g->exprs, value);
}

static const step_expr *product(step_graph *g, const step_expr *a, const step_expr *b)
{
    return step_expr_multiply(g->exprs, a, b);
}

static const step_expr *sum(step_graph *g, const step_expr *a, const step_expr *b)
{
    return step_expr_add(g->exprs, a, b);
}

/* ---- kernels: on one machine, where each has DM of its own ---- */

/* Bytes of a slice: two calls of each map, where one begins while the other computes, and one of each fold. */
static bool kernels_fit(const step_graph *g)
{
    int64_t bytes = 0, most = 0;
    for (size_t i = 0; i < g->node_count; i++) {
        const step_kernel *k = g->nodes[i]->spec.kernel;
        bytes += k ? (g->nodes[i]->spec.op == STEP_MAP ? 2 : 1) * k->dm_bytes : 0;
        most = k ? k->dm_bytes_most : most;
    }
    return bytes <= most;
}

/* What stays in DM is moved once, everything else by each call. */
static const step_expr *kernel_traffic(step_graph *g, const step_graph_node *n)
{
    const step_kernel *k = n->spec.kernel;
    const step_expr *calls = step_cardinality(g, n->spec.inputs[0]);
    uint32_t inputs = step_kept_inputs(n);
    int64_t kept = 0;
    if (kernels_fit(g))
        for (uint32_t i = 0; i < STEP_KERNEL_INPUTS; i++)
            kept += inputs >> i & 1 ? k->kept_bytes[i] : 0;
    return sum(g, product(g, calls, number(g, k->offchip_bytes - kept)), product(g, step_expr_present(g->exprs, calls), number(g, kept)));
}

static const step_expr *kernel_bytes(step_graph *g, const step_graph_node *n)
{
    const step_kernel *k = n->spec.kernel;
    return number(g, (n->spec.op == STEP_MAP && kernels_fit(g) ? 2 : 1) * k->dm_bytes * k->slices + k->trf_bytes);
}

int64_t step_kernel_room(step_graph *g)
{
    int64_t room = 0, bytes;
    for (size_t i = 0; i < g->node_count; i++) {
        if (!g->nodes[i]->spec.kernel)
            continue;
        if (!step_expr_is_number(kernel_bytes(g, g->nodes[i]), &bytes) || __builtin_add_overflow(room, bytes, &room))
            return INT64_MAX;
    }
    return room;
}

/* ---- traffic ---- */

static bool is_load(step_op op)
{
    return op == STEP_LINEAR_LOAD || op == STEP_RANDOM_LOAD;
}

static bool is_offchip(step_op op)
{
    return is_load(op) || op == STEP_LINEAR_STORE || op == STEP_RANDOM_STORE;
}

/* As stored. */
static const step_expr *stored_tile_bytes(step_graph *g, const step_graph_tensor *t)
{
    step_data tile = {.kind = STEP_TILE, .dtype = t->dtype, .rows = number(g, t->rows), .columns = number(g, t->columns)};
    return step_data_bytes(g, &tile);
}

/* The stream of tiles that crosses the edge of the chip. */
static const step_stream *tiles_of(const step_graph_node *n)
{
    return is_load(n->spec.op) ? &n->outputs[0] : n->spec.inputs[n->spec.op == STEP_RANDOM_STORE];
}

static const step_expr *traffic(step_graph *g, const step_graph_node *n)
{
    if (n->spec.kernel)
        return kernel_traffic(g, n);
    return is_offchip(n->spec.op) ? product(g, step_cardinality(g, tiles_of(n)), stored_tile_bytes(g, n->spec.tensor)) : number(g, 0);
}

/* ---- memory on the chip ---- */

/* Of the largest value of the stream. */
static const step_expr *value_bytes(step_graph *g, const step_data *d)
{
    return step_total_largest(g, step_data_bytes(g, d));
}

/* A tile that is being made, and two buffers: one is filled while the other is read. */
static const step_expr *buffer_bytes(step_graph *g, const step_graph_node *n)
{
    return sum(g, value_bytes(g, n->spec.inputs[0]->data), product(g, number(g, 2), value_bytes(g, n->outputs[0].data)));
}

/* Rows of the input that the matrix unit holds, and the weight. The paper gives the former no element size. */
static const step_expr *operand_bytes(step_graph *g, const step_graph_node *n)
{
    const step_data *a = step_operand(&n->spec, 0), *b = step_operand(&n->spec, 1);
    const step_expr *rows = product(g, number(g, g->machine.compute_tile), step_total_largest(g, a->columns));
    return sum(g, rows, value_bytes(g, b));
}

/* What no value ever comes to takes no memory. */
static const step_expr *where_used(step_graph *g, const step_stream *s, const step_expr *bytes)
{
    return product(g, step_expr_present(g->exprs, step_cardinality(g, s)), bytes);
}

/* A tile whose size is not in its type is none where there are no tiles. */
static const step_expr *made_bytes(step_graph *g, const step_stream *s)
{
    const step_expr *bytes = value_bytes(g, s->data);
    int64_t known;
    return !bytes || step_expr_is_number(bytes, &known) ? bytes : where_used(g, s, bytes);
}

static const step_expr *by_paper(step_graph *g, const step_graph_node *n)
{
    const step_expr *operands = step_fn_acts(n->spec.fn, STEP_ACTS_PRODUCT) ? operand_bytes(g, n) : number(g, 0);
    const step_expr *kernel = n->spec.kernel ? kernel_bytes(g, n) : number(g, 0);
    switch (n->spec.op) {
    case STEP_LINEAR_LOAD:
    case STEP_LINEAR_STORE:
    case STEP_RANDOM_LOAD:
    case STEP_RANDOM_STORE: return product(g, number(g, 2), stored_tile_bytes(g, n->spec.tensor));
    case STEP_BUFFERIZE: return buffer_bytes(g, n);
    case STEP_EXPAND:
    case STEP_REPEAT: return made_bytes(g, &n->outputs[0]);
    case STEP_SCAN: return sum(g, kernel, made_bytes(g, &n->outputs[0]));
    case STEP_ACCUM: return sum(g, kernel, sum(g, operands, made_bytes(g, &n->outputs[0])));
    case STEP_MAP: return sum(g, kernel, operands);
    default: return number(g, 0);
    }
}

static const step_expr *by_artifact(step_graph *g, const step_graph_node *n)
{
    if (is_offchip(n->spec.op))
        return where_used(g, tiles_of(n), stored_tile_bytes(g, n->spec.tensor));
    const step_expr *kernel = n->spec.kernel ? where_used(g, n->spec.inputs[0], kernel_bytes(g, n)) : number(g, 0);
    switch (n->spec.op) {
    case STEP_BUFFERIZE: return where_used(g, n->spec.inputs[0], buffer_bytes(g, n));
    case STEP_ACCUM:
    case STEP_SCAN:
    case STEP_EXPAND:
    case STEP_REPEAT: return sum(g, kernel, where_used(g, &n->outputs[0], value_bytes(g, n->outputs[0].data)));
    default: return kernel;
    }
}

/* ---- FLOPs ---- */

/* A function is applied to every value that comes in. */
static const step_expr *work(step_graph *g, const step_graph_node *n)
{
    if (n->spec.fn == STEP_FN_NONE)
        return number(g, 0);
    return step_total_of(g, step_cardinality(g, n->spec.inputs[0]), step_node_flops(g, n));
}

/* ---- all of it ---- */

const step_metrics *step_measure(step_graph *g)
{
    step_metrics *m = ARENA_NEW(g->arena, step_metrics);
    step_cost_expr *nodes = ARENA_ARRAY(g->arena, step_cost_expr, g->node_count + 1), total;
    total = (step_cost_expr){number(g, 0), {number(g, 0), number(g, 0)}, number(g, 0)};
    const bool *in_place = step_in_place(g), spills = g->machine.onchip_bytes > 0;
    const step_expr **accesses = spills ? ARENA_ARRAY(g->arena, const step_expr *, g->node_count + 1) : NULL;
    for (size_t i = 0; i < g->node_count; i++) {
        const step_graph_node *n = g->nodes[i];
        nodes[i] = (step_cost_expr){traffic(g, n), {by_paper(g, n), by_artifact(g, n)}, work(g, n)};
        if (in_place[i])
            nodes[i] = (step_cost_expr){number(g, 0), {number(g, 0), number(g, 0)}, number(g, 0)};
        if (spills)
            accesses[i] = in_place[i] ? number(g, 0) : step_accesses(g, n);
        total.offchip_bytes = sum(g, total.offchip_bytes, nodes[i].offchip_bytes);
        total.flops = sum(g, total.flops, nodes[i].flops);
        for (int e = 0; e < STEP_EQUATIONS; e++)
            total.onchip_bytes[e] = sum(g, total.onchip_bytes[e], nodes[i].onchip_bytes[e]);
    }
    total.offchip_bytes = step_route_gather(g, total.offchip_bytes);
    total.flops = step_route_gather(g, total.flops);
    for (int e = 0; e < STEP_EQUATIONS; e++)
        total.onchip_bytes[e] = step_route_gather(g, total.onchip_bytes[e]);
    *m = (step_metrics){nodes, total, accesses};
    return m;
}
