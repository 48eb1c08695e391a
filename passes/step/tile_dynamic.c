/* Dynamic tiling (the paper's section 5.2): `x.reshape(0, t, pad).0.accum(1, retile_rows)` becomes `x.promote().accum(1, retile_rows)`.
 *
 * Legal when nobody sees where one tile ended: rows are worked on one by one up to the operator that keeps the valid ones. So along every
 * way from the tile, functions act on each row alone, and no operator folds, routes or shows the dimension that counted tiles. Tiles of
 * several groups may become one stream with `eager_merge`, if what belongs to a tile there follows from the group that it came from, and a
 * partition by the merge's selectors gives each group its own again. */
#include <inttypes.h>

#include "ir/step/formula.h"
#include "ir/step/route.h"
#include "passes/step/named.h"
#include "passes/step/rewrite.h"

/* What a stream has for each tile. */
typedef enum holding {
    OTHER,  /* nothing: it does not change */
    BESIDE, /* something that follows from the group alone: weights, addresses, selectors */
    ROWS,   /* rows of one group */
    MERGED, /* rows of several groups, in order of arrival */
} holding;

typedef struct followed {
    holding holds;
    int64_t at; /* the dimension that counts tiles */
} followed;

typedef struct dynamic {
    bool *groups;  /* by node: the reshape that goes */
    bool *ends;    /* by node: keeps the valid rows */
    followed **of; /* by node and output */
    struct {       /* streams whose consumers are looked at one after the other, from `at` on */
        const step_stream **items;
        size_t at, count, capacity;
    } rows, beside; /* streams that run along with rows: looked at once it is known where the rows go */
} dynamic;

static const char legal_help[] = "end the rows of the tile with flat_map(0, valid_rows) before anything joins, routes or stores them";

/* ---- functions that act on each row alone ---- */

/* As a weight the rows of a product's second tile would be summed. */
static bool by_row(step_fn fn, uint32_t input)
{
    return step_fn_acts(fn, STEP_ACTS_EACH_ROW) || (step_fn_acts(fn, STEP_ACTS_PRODUCT) && input == 0);
}

/* Tiles of a stream, pairs apart. */
static uint32_t tiles_of(const step_stream *s)
{
    const step_data *leaves[STEP_LEAVES_MAX];
    uint32_t count = 0;
    step_formula_leaves(&s, 1, leaves, &count);
    return count;
}

/* The same of a function of one's own, instruction by instruction, where tiles of that input and the state have the rows: what has rows is
 * not added up over them and multiplies nothing from the right, and every result has them. */
static bool formula_by_row(step_rewrite *r, const step_graph_node *n, uint32_t input)
{
    const step_formula *f = n->spec.formula;
    bool *has_rows = ARENA_ARRAY(r->from->arena, bool, f->count + 1), good = true;
    uint32_t first = f->state_count;
    for (uint32_t i = 0; i < input; i++)
        first += tiles_of(n->spec.inputs[i]);
    uint32_t end = first + tiles_of(n->spec.inputs[input]);
    for (uint32_t i = 0; i < f->count; i++) {
        const step_instruction *one = &f->items[i];
        const step_formula_row *row = step_formula_row_of(one->op);
        uint32_t value = one->operands[0];
        has_rows[i] = one->op == FORMULA_VALUE && (value < f->state_count || (value >= first && value < end));
        for (unsigned k = 0; k < row->operands; k++) {
            bool rows = has_rows[one->operands[k]], product = row->rule == STEP_PRODUCT || row->rule == STEP_PRODUCT_T;
            good = good && !(rows && (row->rule == STEP_COLUMNS || (product && k > 0)));
            has_rows[i] = has_rows[i] || rows;
        }
    }
    for (uint32_t i = 0; i < f->result_count; i++)
        good = good && has_rows[f->results[i]];
    return good;
}

/* ---- following the tile ---- */

static followed *followed_of(const step_rewrite *r, const step_stream *s)
{
    const dynamic *d = r->user;
    return &d->of[s->node->index][s->port];
}

/* Its consumers are looked at later. */
static bool follow_stream(step_rewrite *r, const step_stream *s, holding holds, int64_t at)
{
    dynamic *d = r->user;
    followed *f = followed_of(r, s);
    if (f->holds >= holds)
        return true; /* came here before */
    *f = (followed){holds, at};
    if (s->assumed)
        return step_rewrite_refuse(r, s->node, "leave `.assume` to streams of rows", "the sizes of `%s` are given, and they would change",
                                   s->node->name);
    if (holds == BESIDE)
        ARENA_PUSH(r->from->arena, d->beside.items, d->beside.count, d->beside.capacity, s);
    else
        ARENA_PUSH(r->from->arena, d->rows.items, d->rows.count, d->rows.capacity, s);
    return true;
}

static bool follow_outputs(step_rewrite *r, const step_graph_node *n, holding holds, int64_t at)
{
    bool good = true;
    for (uint32_t o = 0; o < n->output_count && good; o++)
        good = follow_stream(r, &n->outputs[o], holds, at);
    return good;
}

static bool refuse(step_rewrite *r, const step_graph_node *n, const char *why)
{
    return step_rewrite_refuse(r, n, legal_help, "the rows of a tile reach `%s` (%s), which %s", n->name, step_op_row_of(n->spec.op)->name,
                               why);
}

static bool follow_flat_map(step_rewrite *r, const step_graph_node *n, followed f)
{
    dynamic *d = r->user;
    if (f.holds == BESIDE && n->spec.param[STEP_B] > 0)
        return follow_outputs(r, n, BESIDE, f.at + n->spec.param[STEP_B]);
    if (f.holds != ROWS || n->spec.fn != STEP_FN_VALID_ROWS || n->spec.param[STEP_B] != 0 || f.at != 0)
        return refuse(r, n,
                      f.holds == MERGED && n->spec.fn == STEP_FN_VALID_ROWS ? "ends the rows of several groups, in order of arrival"
                                                                            : "does not end the rows of one tile after those of the next");
    d->ends[n->index] = true;
    return true;
}

static bool follow_flatten(step_rewrite *r, const step_graph_node *n, followed f)
{
    int64_t min = n->spec.param[STEP_B], max = n->spec.param[STEP_N];
    if (f.at > min && f.at <= max && f.at < n->spec.inputs[0]->rank)
        return refuse(r, n, "takes several groups together");
    return follow_outputs(r, n, f.holds, f.at < min ? f.at : f.at > max ? f.at - (max - min) : min);
}

/* Whole groups in order of arrival; every one of them has to be one of those that change. */
static bool follow_merge(step_rewrite *r, const step_graph_node *n, followed f)
{
    if (f.holds != ROWS || f.at != n->spec.inputs[0]->rank)
        return refuse(r, n, "shows the padding of the last one");
    return follow_stream(r, &n->outputs[0], MERGED, f.at) && follow_stream(r, &n->outputs[1], BESIDE, 0);
}

/* By the selectors of the merge that the rows went through. */
static bool follow_partition(step_rewrite *r, const step_graph_node *n, uint32_t input, followed f)
{
    const step_stream *by = step_route_by(n->spec.inputs[1]).by, *data = n->spec.inputs[0];
    if (by->node->spec.op != STEP_EAGER_MERGE || by->port != 1 || followed_of(r, by)->holds != BESIDE)
        return refuse(r, n, "routes them by selectors that no merge of their groups gave");
    if (input == 1)
        return true; /* the rows come by the other way, or none do (check_partitions) */
    if (f.at != data->rank || n->spec.param[STEP_B] != f.at)
        return refuse(r, n, "routes parts of a tile");
    return follow_outputs(r, n, f.holds == MERGED ? ROWS : f.holds, f.at);
}

static bool follow_load(step_rewrite *r, const step_graph_node *n, followed f)
{
    if (n->spec.tensor->written)
        return refuse(r, n, "reads, once for each tile, what the program writes");
    return follow_outputs(r, n, BESIDE, f.at + n->spec.walk_count);
}

/* Which rows of other tiles does a fold see? */
static bool takes_several(const step_graph_node *n, uint32_t input, int64_t at)
{
    bool folds = n->spec.op == STEP_ACCUM || n->spec.op == STEP_SCAN || n->spec.op == STEP_BUFFERIZE;
    return (folds || (n->spec.op == STEP_EXPAND && input == 0)) && n->spec.param[STEP_B] > at;
}

/* May the consumer take tiles of another size and number? */
static bool follow_into(step_rewrite *r, const step_graph_node *n, uint32_t input, followed f)
{
    int64_t b = n->spec.param[STEP_B], at = f.at;
    bool applies = n->spec.op == STEP_ACCUM || n->spec.op == STEP_SCAN || n->spec.op == STEP_MAP;
    if (n->spec.op == STEP_MAP && n->spec.fn == STEP_FN_SIGNAL)
        return follow_outputs(r, n, BESIDE, at);
    if (f.holds != BESIDE && applies && !(n->spec.formula ? formula_by_row(r, n, input) : by_row(n->spec.fn, input)))
        return refuse(r, n, arena_printf(r->from->arena, "does not act on each row alone (`%s`)", step_fn_row_of(n->spec.fn)->name));
    if (takes_several(n, input, at))
        return refuse(r, n, "takes several tiles together");
    switch (n->spec.op) {
    case STEP_LINEAR_LOAD:
    case STEP_RANDOM_LOAD: return follow_load(r, n, f);
    case STEP_MAP:
    case STEP_SCAN:
    case STEP_ZIP:
    case STEP_BROADCAST:
    case STEP_PROMOTE: return follow_outputs(r, n, f.holds, at);
    case STEP_EXPAND: return follow_outputs(r, n, input == 1 ? BESIDE : f.holds, at);
    case STEP_ACCUM:
    case STEP_BUFFERIZE: return follow_outputs(r, n, f.holds, at - b);
    case STEP_STREAMIFY:
        return input == 1 ? follow_outputs(r, n, BESIDE, at + (n->outputs[0].rank - n->spec.inputs[1]->rank))
                          : follow_outputs(r, n, f.holds, at + b + (n->outputs[0].rank - n->spec.inputs[1]->rank));
    case STEP_REPEAT: return follow_outputs(r, n, f.holds, at + 1);
    case STEP_RESHAPE: return b < at ? follow_outputs(r, n, f.holds, at + 1) : refuse(r, n, "takes several tiles together");
    case STEP_FLATTEN: return follow_flatten(r, n, f);
    case STEP_FLAT_MAP: return follow_flat_map(r, n, f);
    case STEP_EAGER_MERGE: return follow_merge(r, n, f);
    case STEP_PARTITION: return follow_partition(r, n, input, f);
    default: return refuse(r, n, "shows the padding of the last one");
    }
}

/* Everything after the nodes that make tiles. */
static void follow(step_rewrite *r)
{
    dynamic *d = r->user;
    size_t count;
    while (!r->bad && (d->rows.at < d->rows.count || d->beside.at < d->beside.count)) {
        const step_stream *s = d->rows.at < d->rows.count ? d->rows.items[d->rows.at++] : d->beside.items[d->beside.at++];
        step_consumer *to = step_rewrite_consumers(r, s, &count);
        for (size_t i = 0; i < count && !r->bad; i++)
            follow_into(r, to[i].node, to[i].input, *followed_of(r, s));
    }
}

/* A merge takes groups that all become one tile; what is routed by its selectors are they. */
static void check_merges(step_rewrite *r)
{
    for (size_t i = 0; i < r->from->node_count && !r->bad; i++) {
        const step_graph_node *n = r->from->nodes[i];
        bool merges = n->spec.op == STEP_EAGER_MERGE, routes = n->spec.op == STEP_PARTITION && followed_of(r, n->spec.inputs[1])->holds;
        for (uint32_t k = 0; merges && followed_of(r, &n->outputs[0])->holds && k < n->spec.input_count; k++)
            if (followed_of(r, n->spec.inputs[k])->holds == OTHER)
                step_rewrite_refuse(r, n, "leave `node` out, so that all groups become dynamic",
                                    "`%s` merges them with `%s`, whose tiles stay as they are", n->name, n->spec.inputs[k]->node->name);
        if (routes && followed_of(r, n->spec.inputs[0])->holds == OTHER)
            refuse(r, n, "routes something else by their selectors");
    }
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

/* What splits the group whose tiles `maker` makes; NULL: it makes none. */
static const step_graph_node *split_of(step_rewrite *r, const step_graph_node *maker)
{
    const step_graph_node *n = maker->spec.op == STEP_ACCUM ? maker->spec.inputs[0]->node : NULL;
    return n && n->spec.op == STEP_RESHAPE && n->spec.param[STEP_B] == 0 && maker_of(r, n) == maker ? n : NULL;
}

static bool makes_tiles(step_rewrite *r, const step_graph_node *n)
{
    return split_of(r, n) != NULL;
}

static void find_groups(step_rewrite *r)
{
    dynamic *d = r->user;
    for (size_t i = 0; i < r->from->node_count && !r->bad; i++) {
        const step_graph_node *maker = r->from->nodes[i], *n = split_of(r, maker);
        if (!n || !step_is_wanted(r, maker))
            continue;
        if (n->spec.inputs[0]->rank > 0)
            step_rewrite_refuse(r, n, "flatten the stream before it is split",
                                "`%s` splits a stream of rank %" PRIu32 "; a group is a whole stream of rank 0", n->name,
                                n->spec.inputs[0]->rank);
        else if (n->outputs[1].used)
            step_rewrite_refuse(r, n, "use valid_rows", "somebody asks `%s` which values are padding", n->name);
        d->groups[n->index] = true;
        if (!r->bad)
            follow_outputs(r, maker, ROWS, 0);
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
    dynamic d = {.groups = ARENA_ARRAY(a, bool, count), .ends = ARENA_ARRAY(a, bool, count), .of = ARENA_ARRAY(a, followed *, count)};
    for (size_t i = 0; i < r->from->node_count; i++)
        d.of[i] = ARENA_ARRAY(a, followed, r->from->nodes[i]->output_count + 1);
    r->user = &d;
    if (!step_wanted_exist(r, &(step_wanted){makes_tiles, "tile that is made of a group of rows", "such tiles"}))
        return;
    find_groups(r);
    follow(r);
    check_merges(r);
    if (r->changes == 0)
        step_rewrite_refuse(r, NULL, "it looks for x.reshape(0, t, pad).0.accum(1, retile_rows)", "no group of rows is made into tiles");
    step_rewrite_all(r, visit);
}
