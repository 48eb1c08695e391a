#include "passes/step/regions.h"

#include <inttypes.h>
#include <string.h>

#include "passes/step/named.h"

static const char by_address[] = "store results by their addresses, with random_store";

bool step_regions_deals(const step_regions *g, const step_graph_node *n)
{
    return n->spec.op == STEP_PARALLELIZE && (int64_t)n->output_count == g->count && g->of[n->index] == 0;
}

/* How many of the chunks the region gets in turn. */
static int64_t share_of(const step_regions *g, int64_t region)
{
    return g->chunks / g->count + (g->chunks % g->count > region);
}

/* ---- what is in which region ---- */

/* Does the operator look at several chunks, that is, at the outermost dimension of what comes in? */
static bool joins_chunks(const step_graph_node *n)
{
    int64_t rank = n->spec.inputs[0]->rank;
    switch (n->spec.op) {
    case STEP_PROMOTE:
    case STEP_PARALLELIZE: return true;
    case STEP_RESHAPE: return n->spec.param[STEP_B] == rank;
    default: return false;
    }
}

static bool may_stand(step_rewrite *r, const step_graph_node *n, int64_t region)
{
    if (n->spec.op == STEP_SINK || n->spec.op == STEP_LINEAR_STORE)
        return step_rewrite_refuse(r, n, by_address, "what leaves through `%s` would depend on which region was free", n->name);
    if (region < 0 && n->spec.op != STEP_EAGER_MERGE)
        return step_rewrite_refuse(r, n, by_address, "`%s` takes the regions together in a fixed order", n->name);
    return !joins_chunks(n) ||
           step_rewrite_refuse(r, n, "let a region work on each chunk alone", "`%s` (%s) looks at several chunks of a region", n->name,
                               step_op_row_of(n->spec.op)->name);
}

/* Nodes that are still to be looked at, and the region that their input brings, the next one last. */
typedef struct reached {
    const step_graph_node *node;
    int64_t region;
} reached;
typedef struct reached_list {
    reached *items;
    size_t count, capacity;
} reached_list;

static void push_consumers(step_rewrite *r, reached_list *left, const step_stream *s, int64_t region)
{
    size_t count;
    step_consumer *to = step_rewrite_consumers(r, s, &count);
    for (size_t i = count; i-- > 0;) {
        reached one = {to[i].node, region};
        ARENA_PUSH(r->from->arena, left->items, left->count, left->capacity, one);
    }
}

static bool spread(step_rewrite *r, step_regions *g, const step_stream *s, int64_t region)
{
    reached_list left = {0};
    push_consumers(r, &left, s, region);
    while (left.count > 0) {
        const step_graph_node *n = left.items[--left.count].node;
        int64_t from = left.items[left.count].region;
        int64_t *known = &g->of[n->index], joined = *known == 0 || *known == from ? from : -1;
        if (!may_stand(r, n, joined))
            return false;
        if (*known == joined)
            continue;
        *known = joined;
        for (uint32_t o = n->output_count; o-- > 0;)
            push_consumers(r, &left, &n->outputs[o], joined);
    }
    return true;
}

/* The chunks that a node deals out, which have to be a number. */
static bool count_chunks(step_rewrite *r, step_regions *g, const step_graph_node *n)
{
    int64_t chunks = 0, share;
    for (uint32_t i = 0; i < n->output_count; i++) {
        if (!step_expr_is_number(n->outputs[i].dims[0], &share))
            return step_rewrite_refuse(r, n, "give the number of chunks as a constant", "how many chunks `%s` deals out is no fixed number",
                                       n->name);
        chunks += share;
    }
    if (g->chunks != 0 && g->chunks != chunks)
        return step_rewrite_refuse(r, n, "deal out streams of one length", "`%s` deals out %" PRId64 " chunks, another operator %" PRId64,
                                   n->name, chunks, g->chunks);
    g->chunks = chunks;
    return chunks > g->count || step_rewrite_refuse(r, n, "there is nothing to choose",
                                                    "`%s` deals out %" PRId64 " chunks to %" PRId64 " regions", n->name, chunks, g->count);
}

static bool mark(step_rewrite *r, step_regions *g, const char *done)
{
    bool *deals = ARENA_ARRAY(r->from->arena, bool, r->from->node_count + 1), any = false;
    for (size_t i = 0; i < r->from->node_count; i++)
        any = (deals[i] = step_regions_deals(g, r->from->nodes[i])) || any;
    if (!any)
        return step_rewrite_refuse(r, NULL, "done=NAME is the `let` of a stream that every region makes of its chunks",
                                   "%" PRId64 " operators are called `%s`, and no `parallelize` deals out to as many regions", g->count,
                                   done);
    for (size_t i = 0; i < r->from->node_count; i++) {
        const step_graph_node *n = r->from->nodes[i];
        if (deals[i] && !count_chunks(r, g, n))
            return false;
        for (uint32_t o = 0; deals[i] && o < n->output_count; o++)
            if (!spread(r, g, &n->outputs[o], (int64_t)o + 1))
                return false;
    }
    return true;
}

/* ---- likeness ---- */

/* The next node of a region after `at`; NULL: none. */
static const step_graph_node *next_of(const step_rewrite *r, const step_regions *g, int64_t region, size_t *at)
{
    while (*at < r->from->node_count && g->of[*at] != region)
        (*at)++;
    return *at < r->from->node_count ? r->from->nodes[(*at)++] : NULL;
}

static bool same_inputs(step_rewrite *r, const step_regions *g, const step_graph_node *a, const step_graph_node *b)
{
    for (uint32_t i = 0; i < a->spec.input_count; i++) {
        const step_stream *x = a->spec.inputs[i], *y = b->spec.inputs[i];
        if (step_regions_deals(g, y->node)) {
            if (x->node != y->node || (int64_t)y->port != g->of[b->index] - 1)
                return step_rewrite_refuse(r, b, "deal out to equal regions", "`%s` takes another dealt stream than `%s`", b->name,
                                           a->name);
            continue;
        }
        if (g->of[y->node->index] != g->of[b->index])
            return step_rewrite_refuse(r, b, "deal out all that goes into the regions",
                                       "`%s` comes into a region and is not dealt out with its chunks", y->node->name);
        if (x->port != y->port || g->like[y->node->index] != x->node)
            return step_rewrite_refuse(r, b, "deal out to equal regions", "`%s` takes another stream than `%s`", b->name, a->name);
    }
    return true;
}

static bool is_like_first(step_rewrite *r, step_regions *g, int64_t region)
{
    size_t at = 0, first = 0;
    const step_graph_node *a, *b;
    do {
        a = next_of(r, g, 1, &first);
        b = next_of(r, g, region, &at);
        if (!a && !b)
            return true;
        if (!a || !b || !step_rewrite_is_alike(a, b, true))
            return step_rewrite_refuse(r, b ? b : a, "deal out to equal regions", "`%s` has no like in another region",
                                       b ? b->name : a->name);
        g->like[b->index] = a;
    } while (same_inputs(r, g, a, b));
    return false;
}

/* ---- sizes ---- */

/* Whether the outermost size of a stream counts chunks, and how many of it there are for each. A size that is one symbol alone counts what
 * the values decide, and does so still. */
static bool counts_chunks(step_rewrite *r, const step_regions *g, const step_stream *s, const step_expr **each)
{
    int64_t region = g->of[s->node->index] - 1;
    const step_stream *first = &g->like[s->node->index]->outputs[s->port];
    step_exprs *x = r->from->exprs;
    *each = step_expr_divide(x, first->dims[0], step_expr_number(x, share_of(g, 0)));
    if (*each)
        *each = step_expr_divide(x, s->dims[0], step_expr_number(x, share_of(g, region)));
    return *each != NULL;
}

static bool sizes_follow(step_rewrite *r, const step_regions *g, const step_graph_node *n)
{
    const step_expr *each;
    for (uint32_t i = 0; i < n->output_count; i++)
        if (!counts_chunks(r, g, &n->outputs[i], &each) && !step_expr_is_symbol(n->outputs[i].dims[0]))
            return step_rewrite_refuse(r, n, "flatten chunks only with what is in them",
                                       "the size %s of `%s` would not follow from the chunks that its region gets",
                                       step_expr_text(n->outputs[i].dims[0], r->from->arena), n->name);
    return true;
}

const step_expr **step_regions_dims(step_rewrite *r, const step_regions *g, const step_stream *s, const step_expr *share)
{
    const step_expr **dims = ARENA_ARRAY(r->to->arena, const step_expr *, s->rank + 1), *each;
    memcpy(dims, s->dims, (s->rank + 1) * sizeof *dims);
    if (counts_chunks(r, g, s, &each))
        dims[0] = step_expr_multiply(r->to->exprs, each, share);
    return dims;
}

/* ---- all of it ---- */

static bool check_done(step_rewrite *r, const step_regions *g)
{
    for (int64_t i = 0; i < g->count; i++) {
        const step_graph_node *n = g->done[i];
        if (g->of[n->index] != i + 1)
            return step_rewrite_refuse(r, n, "name a stream that each region makes, in the order of the regions",
                                       "`%s` is not in region %" PRId64, n->name, i);
        if (n->output_count == 0 || n->outputs[0].dims[0] != step_expr_number(r->from->exprs, share_of(g, i)))
            return step_rewrite_refuse(r, n, "name a stream whose outermost dimension counts the chunks",
                                       "`%s` does not show when a chunk is done", n->name);
    }
    return true;
}

static bool check(step_rewrite *r, step_regions *g)
{
    for (int64_t i = 1; i <= g->count; i++)
        if (!is_like_first(r, g, i))
            return false;
    for (size_t i = 0; i < r->from->node_count; i++)
        if (g->of[i] > 0 && !sizes_follow(r, g, r->from->nodes[i]))
            return false;
    return check_done(r, g);
}

step_regions *step_regions_find(step_rewrite *r, const char *done)
{
    arena *a = r->from->arena;
    size_t capacity = 0, count = 0;
    step_regions *g = ARENA_NEW(a, step_regions);
    *g = (step_regions){.of = ARENA_ARRAY(a, int64_t, r->from->node_count + 1),
                        .like = ARENA_ARRAY(a, const step_graph_node *, r->from->node_count + 1)};
    for (size_t i = 0; i < r->from->node_count; i++)
        if (step_is_named(r->from->nodes[i], done))
            ARENA_PUSH(a, g->done, count, capacity, r->from->nodes[i]);
    g->count = (int64_t)count;
    return mark(r, g, done) && check(r, g) ? g : NULL;
}
