/* Dynamic tiling (the paper's section 5.2): `x.reshape(0, t, pad).0.accum(1, retile_rows)` becomes `x.promote().accum(1, retile_rows)`.
 *
 * Legal when nobody sees where one tile ended: rows are worked on one by one up to the operator that keeps the valid ones. So along every
 * way from the tile, functions act on each row alone, and no operator folds, routes or shows the dimension that counted tiles. */
#include <inttypes.h>

#include "passes/step/rewrite.h"

typedef struct dynamic {
    bool *groups;                 /* by node: the reshape that goes */
    bool *ends;                   /* by node: keeps the valid rows */
    int64_t *at;                  /* by node: the dimension of its output that counts tiles; -1: it has none */
    const step_graph_node **left; /* nodes whose consumers are still to be looked at, the next one last */
    size_t left_count, left_capacity;
} dynamic;

static const char legal_help[] = "end the rows of the tile with flat_map(0, valid_rows) before anything joins, routes or stores them";

/* ---- functions that act on each row alone ---- */

static bool by_row(step_fn fn, uint32_t input)
{
    switch (fn) {
    case STEP_FN_IDENTITY:
    case STEP_FN_ADD:
    case STEP_FN_MUL:
    case STEP_FN_DIV:
    case STEP_FN_SUB:
    case STEP_FN_MAX:
    case STEP_FN_SILU:
    case STEP_FN_EXP:
    case STEP_FN_ROW_SUM:
    case STEP_FN_ROW_MAX:
    case STEP_FN_ROW_SUM_ADD:
    case STEP_FN_RETILE_COLS:
    case STEP_FN_CAST: return true;
    case STEP_FN_MATMUL:
    case STEP_FN_MATMUL_T:
    case STEP_FN_MATMUL_ADD:
    case STEP_FN_MATMUL_T_ADD: return input == 0; /* as a weight its rows would be summed */
    default: return false;
    }
}

/* ---- following the tile ---- */

/* Its consumers are looked at later. */
static bool follow_outputs(step_rewrite *r, const step_graph_node *n, int64_t at)
{
    dynamic *d = r->user;
    if (d->at[n->index] >= 0)
        return true; /* came here before */
    d->at[n->index] = at;
    if (n->outputs[0].assumed)
        return step_rewrite_refuse(r, n, "leave `.assume` to streams of rows", "the sizes of `%s` are given, and they would change",
                                   n->name);
    ARENA_PUSH(r->from->arena, d->left, d->left_count, d->left_capacity, n);
    return true;
}

static bool refuse(step_rewrite *r, const step_graph_node *n, const char *why)
{
    return step_rewrite_refuse(r, n, legal_help, "the rows of a tile reach `%s` (%s), which %s", n->name, step_op_row_of(n->spec.op)->name,
                               why);
}

static bool follow_flat_map(step_rewrite *r, const step_graph_node *n, int64_t at)
{
    dynamic *d = r->user;
    if (n->spec.fn != STEP_FN_VALID_ROWS || n->spec.param[STEP_B] != 0 || at != 0)
        return refuse(r, n, "does not end the rows of one tile after those of the next");
    d->ends[n->index] = true;
    return true;
}

static bool follow_flatten(step_rewrite *r, const step_graph_node *n, int64_t at)
{
    int64_t min = n->spec.param[STEP_B], max = n->spec.param[STEP_N];
    return follow_outputs(r, n, at < min ? at : at > max ? at - (max - min) : min);
}

/* May the consumer take tiles of another size and number? */
static bool follow_into(step_rewrite *r, const step_graph_node *n, uint32_t input, int64_t at)
{
    int64_t b = n->spec.param[STEP_B];
    bool folds = n->spec.op == STEP_ACCUM || n->spec.op == STEP_SCAN, maps = n->spec.op == STEP_MAP;
    if (maps && n->spec.fn == STEP_FN_SIGNAL)
        return true;
    if ((folds || maps) && !by_row(n->spec.fn, input))
        return refuse(r, n, arena_printf(r->from->arena, "does not act on each row alone (`%s`)", step_fn_row_of(n->spec.fn)->name));
    if ((folds || n->spec.op == STEP_BUFFERIZE || (n->spec.op == STEP_EXPAND && input == 0)) && b > at)
        return refuse(r, n, "takes several tiles together");
    switch (n->spec.op) {
    case STEP_LINEAR_LOAD: return true; /* as a reference: once for each tile */
    case STEP_MAP:
    case STEP_SCAN:
    case STEP_ZIP:
    case STEP_PROMOTE: return follow_outputs(r, n, at);
    case STEP_EXPAND: return input == 1 || follow_outputs(r, n, at);
    case STEP_ACCUM:
    case STEP_BUFFERIZE: return follow_outputs(r, n, at - b);
    case STEP_STREAMIFY: return input == 1 || follow_outputs(r, n, at + b + (n->outputs[0].rank - n->spec.inputs[1]->rank));
    case STEP_REPEAT: return follow_outputs(r, n, at + 1);
    case STEP_RESHAPE: return b < at ? follow_outputs(r, n, at + 1) : refuse(r, n, "takes several tiles together");
    case STEP_FLATTEN: return follow_flatten(r, n, at);
    case STEP_FLAT_MAP: return follow_flat_map(r, n, at);
    default: return refuse(r, n, "shows the padding of the last one");
    }
}

/* Everything after the node that makes tiles. */
static bool follow(step_rewrite *r, const step_graph_node *maker)
{
    dynamic *d = r->user;
    size_t count;
    bool ok = follow_outputs(r, maker, 0);
    while (ok && d->left_count > 0) {
        const step_graph_node *n = d->left[--d->left_count];
        step_consumer *to = step_rewrite_consumers(r, &n->outputs[0], &count);
        for (size_t i = 0; i < count && ok; i++)
            ok = follow_into(r, to[i].node, to[i].input, d->at[n->index]);
    }
    d->left_count = 0;
    return ok;
}

/* ---- finding groups ---- */

/* The only consumer, when that makes tiles of its group. */
static const step_graph_node *maker_of(step_rewrite *r, const step_graph_node *n)
{
    size_t count;
    step_consumer *to = step_rewrite_consumers(r, &n->outputs[0], &count);
    bool makes = count == 1 && to[0].node->spec.op == STEP_ACCUM && to[0].node->spec.fn == STEP_FN_RETILE_ROWS &&
                 to[0].node->spec.param[STEP_B] == 1;
    return makes ? to[0].node : NULL;
}

static void find_groups(step_rewrite *r)
{
    dynamic *d = r->user;
    const char *wanted = step_rewrite_text(r, "node", NULL);
    for (size_t i = 0; i < r->from->node_count && !r->bad; i++) {
        const step_graph_node *n = r->from->nodes[i],
                              *maker = n->spec.op == STEP_RESHAPE && n->spec.param[STEP_B] == 0 ? maker_of(r, n) : NULL;
        if (!maker || (wanted && !step_rewrite_is_named(maker, wanted)))
            continue;
        if (n->spec.inputs[0]->rank > 0)
            step_rewrite_refuse(r, n, "flatten the stream before it is split",
                                "`%s` splits a stream of rank %" PRIu32 "; a group is a whole stream of rank 0", n->name,
                                n->spec.inputs[0]->rank);
        else if (n->outputs[1].used)
            step_rewrite_refuse(r, n, "use valid_rows", "somebody asks `%s` which values are padding", n->name);
        d->groups[i] = true;
        if (!r->bad)
            follow(r, maker);
        r->changes++;
    }
}

static bool visit(step_rewrite *r, const step_graph_node *n)
{
    const dynamic *d = r->user;
    if (d->groups[n->index]) {
        const step_stream *in[] = {step_rewrite_stream(r, n->spec.inputs[0])};
        step_graph_node *whole = step_rewrite_add(r, n, "", (step_spec){.op = STEP_PROMOTE, .inputs = in, .input_count = 1});
        if (whole) {
            whole->depths[0] = n->depths[0];
            step_rewrite_become(r, &n->outputs[0], &whole->outputs[0]);
        }
        return whole != NULL;
    }
    if (!d->ends[n->index])
        return step_rewrite_copy(r, n) != NULL;
    step_graph_node all = *n; /* a tile has no padding any more: what comes out is as long as the group */
    all.spec.fn = STEP_FN_ROWS;
    return step_rewrite_copy(r, &all) != NULL;
}

void step_pass_dynamic_tiling(step_rewrite *r)
{
    arena *a = r->from->arena;
    size_t count = r->from->node_count + 1;
    dynamic d = {.groups = ARENA_ARRAY(a, bool, count), .ends = ARENA_ARRAY(a, bool, count), .at = ARENA_ARRAY(a, int64_t, count)};
    for (size_t i = 0; i < count; i++)
        d.at[i] = -1;
    r->user = &d;
    find_groups(r);
    if (r->changes == 0)
        step_rewrite_refuse(r, NULL, "it looks for x.reshape(0, t, pad).0.accum(1, retile_rows)", "no group of rows is made into tiles");
    step_rewrite_all(r, visit);
}
