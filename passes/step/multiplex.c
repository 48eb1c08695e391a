/* Configuration time-multiplexing (the paper's section 5.3): like subgraphs, each between a stream x_i and a stream y_i, share one.
 *
 * EagerMerge of the x_i feeds it in order of arrival; what each loaded for an x_i is loaded by an address that the merge's selector gives;
 * a partition by the same selector gives every y_i what was its own, in order. Legal when the subgraphs are equal but for where their
 * weights are stored, those places lie one after the other, and nothing else goes in or out. */
#include <inttypes.h>
#include <string.h>

#include "ir/step/type.h"
#include "passes/step/named.h"
#include "passes/step/rewrite.h"

typedef struct region {
    const step_graph_node **from, **to; /* of each member */
    size_t count;
    bool made;
} region;

/* Addresses that several loads share. */
typedef struct addresses {
    struct addresses *next;
    int64_t tiles, first;
    const step_stream *stream;
} addresses;

typedef struct multiplex {
    region *regions;
    size_t region_count;
    int64_t *member;              /* by node: 1 + the number of the member inside of which it is; 0: outside */
    const step_graph_node **like; /* by node: its like in the member that is compared now */
    size_t now;
} multiplex;

/* ---- members ---- */

static size_t collect(step_rewrite *r, const char *stem, const step_graph_node ***list)
{
    size_t count = 0, capacity = 0;
    *list = NULL;
    for (size_t i = 0; i < r->from->node_count; i++)
        if (step_is_named(r->from->nodes[i], stem))
            ARENA_PUSH(r->from->arena, *list, count, capacity, r->from->nodes[i]);
    return count;
}

/* Pairs of nodes that are still to be looked at, the next one last: a graph is as long as its author likes. */
typedef struct node_pairs {
    const step_graph_node *(*items)[2];
    size_t count, capacity;
} node_pairs;

static void push_pair(step_rewrite *r, node_pairs *p, const step_graph_node *a, const step_graph_node *b)
{
    if (p->count == p->capacity) {
        p->items = arena_grow(r->from->arena, p->items, p->count, 2 * p->capacity + 8, sizeof *p->items);
        p->capacity = 2 * p->capacity + 8;
    }
    p->items[p->count][0] = a;
    p->items[p->count++][1] = b;
}

static bool mark_node(step_rewrite *r, const step_graph_node *n, const step_graph_node *from, int64_t member)
{
    multiplex *m = r->user;
    if (m->member[n->index] != 0)
        return step_rewrite_refuse(r, n, "let each subgraph have its own", "`%s` belongs to two of the subgraphs", n->name);
    if (n->spec.input_count == 0)
        return step_rewrite_refuse(r, n, "start loads with the stream that comes in", "`%s` comes into a subgraph together with `%s`",
                                   n->name, from->name);
    for (uint32_t i = 0; i < n->output_count; i++)
        if (n->outputs[i].assumed)
            return step_rewrite_refuse(r, n, "leave `.assume` to streams outside", "the sizes of `%s` are given, and they would change",
                                       n->name);
    m->member[n->index] = member;
    return true;
}

/* What is between `from` and `last`, the last first. */
static bool mark(step_rewrite *r, const step_graph_node *last, const step_graph_node *from, int64_t member)
{
    const multiplex *m = r->user;
    node_pairs left = {0};
    push_pair(r, &left, last, NULL);
    while (left.count > 0) {
        const step_graph_node *n = left.items[--left.count][0];
        if (n == from || m->member[n->index] == member)
            continue;
        if (!mark_node(r, n, from, member))
            return false;
        for (uint32_t i = n->spec.input_count; i-- > 0;)
            push_pair(r, &left, n->spec.inputs[i]->node, NULL);
    }
    return true;
}

/* Nothing but y leaves. */
static bool is_closed(step_rewrite *r, const step_graph_node *to, int64_t member)
{
    const multiplex *m = r->user;
    for (size_t i = 0; i < r->from->node_count; i++) {
        const step_graph_node *n = r->from->nodes[i];
        for (uint32_t k = 0; k < n->spec.input_count && m->member[i] != member; k++) {
            const step_graph_node *source = n->spec.inputs[k]->node;
            if (source != to && m->member[source->index] == member)
                return step_rewrite_refuse(r, n, "name the last operator with `to`", "`%s` takes `%s` out of the middle of a subgraph",
                                           n->name, source->name);
        }
    }
    return true;
}

/* ---- likeness ---- */

static bool same_node(const step_graph_node *a, const step_graph_node *b)
{
    return step_rewrite_is_alike(a, b, false) && a->flops_per_cycle == b->flops_per_cycle && a->writes_back == b->writes_back;
}

static int64_t walk_tiles(const step_spec *s)
{
    int64_t tiles = 1;
    for (uint32_t i = 0; i < s->walk_count; i++)
        tiles *= s->walk_sizes[i];
    return tiles;
}

/* Does the walk go over its tiles one after the other? */
static bool is_consecutive(const step_spec *s)
{
    int64_t stride = 1;
    for (uint32_t i = s->walk_count; i-- > 0; stride *= s->walk_sizes[i])
        if (s->walk_sizes[i] > 1 && s->walk_strides[i] != stride)
            return false;
    return true;
}

static bool load_fits(step_rewrite *r, const step_graph_node *a, const step_graph_node *b, const step_graph_node *from)
{
    const multiplex *m = r->user;
    int64_t apart = walk_tiles(&a->spec);
    if (a->spec.inputs[0]->node != from || from->outputs[a->spec.inputs[0]->port].rank != 0)
        return step_rewrite_refuse(r, a, "start the load with the stream of rank 0 that comes in", "`%s` is not started by `%s` itself",
                                   a->name, from->name);
    if (!is_consecutive(&a->spec))
        return step_rewrite_refuse(r, a, "store the tiles in the order in which they are read",
                                   "`%s` does not read tiles one after the other", a->name);
    if (b->spec.param[STEP_BASE] == a->spec.param[STEP_BASE] + (int64_t)m->now * apart)
        return true;
    return step_rewrite_refuse(r, b, "store the weights of the subgraphs one after the other",
                               "`%s` begins at tile %" PRId64 ", not at %" PRId64, b->name, b->spec.param[STEP_BASE],
                               a->spec.param[STEP_BASE] + (int64_t)m->now * apart);
}

/* Are the two alike, what they take apart? */
static bool nodes_are_like(step_rewrite *r, const step_graph_node *a, const step_graph_node *b, const step_graph_node *from_a)
{
    if (!same_node(a, b))
        return step_rewrite_refuse(r, b, "share only equal subgraphs",
                                   "`%s` (%s) differs from `%s` (%s) in more than where its weights are stored", b->name,
                                   step_op_row_of(b->spec.op)->name, a->name, step_op_row_of(a->spec.op)->name);
    if (a->spec.op == STEP_LINEAR_LOAD && !load_fits(r, a, b, from_a))
        return false;
    for (uint32_t i = 0; i < a->spec.input_count; i++)
        if (a->spec.inputs[i]->port != b->spec.inputs[i]->port)
            return step_rewrite_refuse(r, b, "share only equal subgraphs", "`%s` takes another output than `%s`", b->name, a->name);
    return true;
}

static bool is_like(step_rewrite *r, const step_graph_node *last_a, const step_graph_node *last_b, const step_graph_node *from_a,
                    const step_graph_node *from_b)
{
    multiplex *m = r->user;
    node_pairs left = {0};
    push_pair(r, &left, last_a, last_b);
    while (left.count > 0) {
        const step_graph_node *a = left.items[--left.count][0], *b = left.items[left.count][1];
        if (a == from_a && b == from_b)
            continue;
        if (a == from_a || b == from_b)
            return step_rewrite_refuse(r, b, "share only equal subgraphs", "`%s` and `%s` stand at different depths", a->name, b->name);
        if (m->like[a->index] && m->like[a->index] != b)
            return step_rewrite_refuse(r, b, "share only equal subgraphs", "`%s` has no like in the first subgraph", b->name);
        if (m->like[a->index])
            continue;
        m->like[a->index] = b;
        if (!nodes_are_like(r, a, b, from_a))
            return false;
        for (uint32_t i = a->spec.input_count; i-- > 0;)
            push_pair(r, &left, a->spec.inputs[i]->node, b->spec.inputs[i]->node);
    }
    return true;
}

static bool check_region(step_rewrite *r, const region *g)
{
    multiplex *m = r->user;
    for (m->now = 0; m->now < g->count; m->now++) {
        memset(m->like, 0, r->from->node_count * sizeof *m->like);
        if (!is_like(r, g->to[0], g->to[m->now], g->from[0], g->from[m->now]))
            return false;
    }
    return true;
}

/* ---- making one ---- */

static const step_stream *output_of(const step_graph_node *n)
{
    return n ? &n->outputs[0] : NULL;
}

/* For each selector the addresses of that member's tiles. */
static const step_stream *addresses_of(step_rewrite *r, const step_graph_node *load, const step_stream *selector, addresses **known)
{
    int64_t tiles = walk_tiles(&load->spec), first = load->spec.param[STEP_BASE];
    for (addresses *a = *known; a; a = a->next)
        if (a->tiles == tiles && a->first == first)
            return a->stream;
    const step_stream *in[] = {selector};
    addresses *a = ARENA_NEW(r->to->arena, addresses);
    *a = (addresses){
        *known, tiles, first,
        output_of(step_rewrite_add(
            r, load, "_addresses",
            (step_spec){.op = STEP_FLAT_MAP, .fn = STEP_FN_ADDRESSES, .param = {1, tiles, first}, .inputs = in, .input_count = 1}))};
    *known = a;
    return a->stream;
}

/* [C, n] has to be [C, walk..]. */
static const step_stream *shaped(step_rewrite *r, const step_graph_node *load, const step_stream *s)
{
    for (uint32_t i = load->spec.walk_count, b = 0; s && i-- > 1; b++) {
        const step_stream *in[] = {s};
        s = output_of(step_rewrite_add(
            r, load, "_shape", (step_spec){.op = STEP_RESHAPE, .param = {b, load->spec.walk_sizes[i]}, .inputs = in, .input_count = 1}));
    }
    return s;
}

static bool make_load(step_rewrite *r, const step_graph_node *load, const step_stream *selector, addresses **known)
{
    const step_stream *in[] = {addresses_of(r, load, selector, known)};
    if (!in[0])
        return false;
    step_graph_node *n = step_rewrite_add(r, load, "",
                                          (step_spec){.op = STEP_RANDOM_LOAD,
                                                      .tensor = load->spec.tensor,
                                                      .has_dtype = load->spec.has_dtype,
                                                      .dtype = load->spec.dtype,
                                                      .inputs = in,
                                                      .input_count = 1});
    const step_stream *tiles = shaped(r, load, output_of(n));
    if (tiles)
        step_rewrite_become(r, &load->outputs[0], tiles);
    return tiles != NULL;
}

static step_graph_node *merge(step_rewrite *r, const region *g)
{
    const step_stream **in = ARENA_ARRAY(r->to->arena, const step_stream *, g->count);
    for (size_t i = 0; i < g->count; i++)
        in[i] = step_rewrite_stream(r, &g->from[i]->outputs[0]);
    return step_rewrite_add(r, g->from[0], "_merge", (step_spec){.op = STEP_EAGER_MERGE, .inputs = in, .input_count = (uint32_t)g->count});
}

static bool has_sizes_of(const step_stream *a, const step_stream *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, (a->rank + 1) * sizeof *a->dims) == 0 && step_data_equal(a->data, b->data);
}

/* Each member's results are what they were, so they have the sizes that they had. */
static bool give_back(step_rewrite *r, const region *g, const step_stream *selector)
{
    const step_stream *in[] = {step_rewrite_stream(r, &g->to[0]->outputs[0]), selector};
    step_graph_node *n = step_rewrite_add(
        r, g->to[0], "_split",
        (step_spec){.op = STEP_PARTITION, .param = {in[0]->rank}, .inputs = in, .input_count = 2, .output_count = (uint32_t)g->count});
    if (!n)
        return false;
    n->depths[1] = 0; /* it waits here for the result while later ones are on their way */
    for (size_t i = 0; i < g->count; i++) {
        if (!has_sizes_of(&n->outputs[i], &g->to[i]->outputs[0])) {
            n->outputs[i].dims = g->to[i]->outputs[0].dims;
            n->outputs[i].data = g->to[i]->outputs[0].data;
            n->outputs[i].assumed = true;
        }
        step_rewrite_become(r, &g->to[i]->outputs[0], &n->outputs[i]);
    }
    return true;
}

static bool make(step_rewrite *r, region *g)
{
    const multiplex *m = r->user;
    step_graph_node *merged = merge(r, g);
    addresses *known = NULL;
    int64_t member = m->member[g->to[0]->index];
    if (!merged)
        return false;
    const step_stream *first = step_rewrite_stream(r, &g->from[0]->outputs[0]);
    step_rewrite_become(r, &g->from[0]->outputs[0], &merged->outputs[0]);
    for (size_t i = 0; i < r->from->node_count; i++) {
        const step_graph_node *n = r->from->nodes[i];
        bool is_made = m->member[i] != member ||
                       (n->spec.op == STEP_LINEAR_LOAD ? make_load(r, n, &merged->outputs[1], &known) : step_rewrite_copy(r, n) != NULL);
        if (!is_made)
            return false;
    }
    step_rewrite_become(r, &g->from[0]->outputs[0], first);
    return give_back(r, g, &merged->outputs[1]);
}

static bool is_fed(const step_rewrite *r, const region *g)
{
    for (size_t i = 0; i < g->count; i++)
        if (!step_rewrite_stream(r, &g->from[i]->outputs[0]))
            return false;
    return true;
}

static bool visit(step_rewrite *r, const step_graph_node *n)
{
    multiplex *m = r->user;
    if (m->member[n->index] == 0)
        return step_rewrite_copy(r, n) != NULL;
    region *g = &m->regions[(size_t)(m->member[n->index] - 1) / m->regions[0].count];
    if (!g->made && !is_fed(r, g))
        return false;
    if (!g->made)
        g->made = make(r, g);
    return g->made;
}

static bool divide(step_rewrite *r, multiplex *m)
{
    const step_graph_node **from, **to;
    static const char help[] = "from=NAME and to=NAME are the `let`s of a loop that makes the subgraphs";
    const char *from_name = step_rewrite_text(r, "from", NULL), *to_name = step_rewrite_text(r, "to", NULL);
    if (!from_name || !to_name)
        return step_rewrite_refuse(r, NULL, help, "`%s` is not given", from_name ? "to" : "from");
    const step_wanted any = {.one = "operator", .all = "operators"};
    if (!step_wanted_exists(r, from_name, &any) || !step_wanted_exists(r, to_name, &any))
        return false;
    size_t count = collect(r, from_name, &from), ends = collect(r, to_name, &to), regions = (size_t)step_rewrite_number(r, "regions", 1);
    if (count < 2 || count != ends)
        return step_rewrite_refuse(r, NULL, help, "%zu operators are called `%s` and %zu `%s`; as many of both, at least 2", count,
                                   from_name, ends, to_name);
    if (count % regions != 0)
        return step_rewrite_refuse(r, NULL, arena_printf(r->from->arena, "choose a divisor of %zu", count),
                                   "%zu subgraphs in %zu regions: each region has the same number of them", count, regions);
    m->regions = ARENA_ARRAY(r->from->arena, region, regions);
    m->region_count = regions;
    for (size_t i = 0; i < regions; i++)
        m->regions[i] = (region){.from = from + i * (count / regions), .to = to + i * (count / regions), .count = count / regions};
    for (size_t i = 0; i < count; i++)
        if (!mark(r, to[i], from[i], (int64_t)i + 1) || !is_closed(r, to[i], (int64_t)i + 1))
            return false;
    return true;
}

void step_pass_time_multiplex(step_rewrite *r)
{
    multiplex m = {.member = ARENA_ARRAY(r->from->arena, int64_t, r->from->node_count + 1),
                   .like = ARENA_ARRAY(r->from->arena, const step_graph_node *, r->from->node_count + 1)};
    r->user = &m;
    bool good = divide(r, &m);
    for (size_t i = 0; good && i < m.region_count; i++)
        good = check_region(r, &m.regions[i]);
    step_rewrite_all(r, visit);
}
