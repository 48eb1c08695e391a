/* Dynamic parallelization (the paper's section 5.4): chunks that were dealt out to n regions in turn go to whichever region is free.
 *
 * The first n chunks go to the regions in turn; each further one goes to the region that has reported a chunk done: an eager merge of the
 * reports names it. The last n reports have no chunk after them and are dropped. So the graph gets a cycle: selectors, partition, region,
 * report. Legal when it does not matter which region works on a chunk (passes/step/regions.c). */
#include <inttypes.h>

#include "ir/step/total.h"
#include "passes/step/named.h"
#include "passes/step/regions.h"

/* A size of the graph before, and what it is derived as now. */
typedef struct step_renamed {
    const step_expr *old, *now;
} step_renamed;

typedef struct parallel {
    step_regions *regions;
    bool row; /* everything that is dealt out is one row of chunks, flattened for that alone: selectors come as one row too */
    const step_stream *order;    /* selectors, one for each chunk; NULL: not made yet */
    step_stream reports;         /* stands for the merged reports until they are there */
    step_graph_node *kept;       /* takes them */
    const step_stream **signals; /* by region: one value for each chunk done */
    const step_expr **shares;    /* by region: how many chunks it gets now */
    step_renamed *renamed;       /* sizes of the regions that are derived anew */
    size_t renamed_count, renamed_capacity;
} parallel;

/* ---- selectors ---- */

/* What steers waits in queues of any length: it is a number for each chunk, and the chunks themselves wait in front of it. */
static const step_stream *steering(step_graph_node *n)
{
    for (uint32_t i = 0; n && i < n->spec.input_count; i++)
        n->depths[i] = 0;
    return n ? &n->outputs[0] : NULL;
}

static const step_data *selector_data(step_rewrite *r, int64_t width)
{
    step_data *d = ARENA_NEW(r->to->arena, step_data);
    *d = (step_data){.kind = STEP_SELECTOR, .width = width, .hot = 1};
    return d;
}

static const step_stream *flat(step_rewrite *r, const step_graph_node *like, const char *suffix, const step_stream *s)
{
    const step_stream *in[] = {s};
    return s ? steering(step_rewrite_add(r, like, suffix, (step_spec){.op = STEP_FLATTEN, .param = {0, 1}, .inputs = in, .input_count = 1}))
             : NULL;
}

/* `count` selectors of `width`, as one row or in line: the first `each` name output 0, the next output 1, and so on. */
static const step_stream *counted(step_rewrite *r, const step_graph_node *like, int64_t count, int64_t each, int64_t width, bool row)
{
    const step_stream *in[] = {steering(step_rewrite_add(r, like, "_once", (step_spec){.op = STEP_ONCE}))};
    if (!in[0])
        return NULL;
    in[0] = steering(
        step_rewrite_add(r, like, "_numbers",
                         (step_spec){.op = STEP_FLAT_MAP, .fn = STEP_FN_ADDRESSES, .param = {row, count}, .inputs = in, .input_count = 1}));
    if (!in[0])
        return NULL;
    return steering(step_rewrite_add(
        r, like, "_select",
        (step_spec){
            .op = STEP_MAP, .fn = STEP_FN_SELECT, .param = {0, each}, .inputs = in, .input_count = 1, .data = selector_data(r, width)}));
}

static const step_expr **one_size(step_rewrite *r, int64_t size)
{
    const step_expr **dims = ARENA_ARRAY(r->to->arena, const step_expr *, 1);
    dims[0] = step_expr_number(r->to->exprs, size);
    return dims;
}

/* The reports, which nobody sends yet. */
static const step_stream *placeholder(step_rewrite *r, const step_graph_node *like)
{
    parallel *p = r->user;
    step_graph_node *nobody = ARENA_NEW(r->to->arena, step_graph_node);
    nobody->index = UINT32_MAX;
    nobody->spec.range = like->spec.range;
    nobody->outputs = &p->reports;
    p->reports = (step_stream){.node = nobody, .data = selector_data(r, p->regions->count), .dims = one_size(r, p->regions->chunks)};
    return &p->reports;
}

static bool make_order(step_rewrite *r, const step_graph_node *like)
{
    parallel *p = r->user;
    int64_t regions = p->regions->count, chunks = p->regions->chunks, more = chunks - regions;
    const step_stream *reports[] = {placeholder(r, like), counted(r, like, chunks, more, 2, false)};
    const step_stream *parts[] = {counted(r, like, regions, 1, regions, false), NULL, counted(r, like, chunks, regions, 2, p->row)};
    p->kept = reports[1] ? step_rewrite_add(r, like, "_kept",
                                            (step_spec){.op = STEP_PARTITION, .inputs = reports, .input_count = 2, .output_count = 2})
                         : NULL;
    parts[1] = steering(p->kept);
    if (!parts[0] || !parts[1] || !parts[2])
        return false;
    p->kept->outputs[0].dims = one_size(r, more);
    p->kept->outputs[0].assumed = true;
    const step_stream *order =
        flat(r, like, "_flat",
             steering(step_rewrite_add(r, like, "_order", (step_spec){.op = STEP_REASSEMBLE, .inputs = parts, .input_count = 3})));
    const step_stream *in[] = {order};
    p->order =
        order ? steering(step_rewrite_add(r, like, "_routing", (step_spec){.op = STEP_BROADCAST, .inputs = in, .input_count = 1})) : NULL;
    return p->order != NULL;
}

/* ---- the graph ---- */

/* Does the node flatten one row of chunks, for those alone who deal them out? */
static bool flattens_row(step_rewrite *r, const step_graph_node *n)
{
    const parallel *p = r->user;
    const step_stream *in = n->spec.op == STEP_FLATTEN ? n->spec.inputs[0] : NULL;
    int64_t rows, b = n->spec.param[STEP_B];
    if (!in || in->rank != b + 1 || !step_expr_is_number(in->dims[0], &rows) || rows != 1)
        return false;
    size_t count;
    step_consumer *to = step_rewrite_consumers(r, &n->outputs[0], &count);
    for (size_t i = 0; i < count; i++)
        if (!step_regions_deals(p->regions, to[i].node) || to[i].node->spec.param[STEP_B] != b)
            return false;
    return count > 0;
}

static bool all_rows(step_rewrite *r)
{
    const parallel *p = r->user;
    for (size_t i = 0; i < r->from->node_count; i++)
        if (step_regions_deals(p->regions, r->from->nodes[i]) && !flattens_row(r, r->from->nodes[i]->spec.inputs[0]->node))
            return false;
    return true;
}

/* The chunks as the selectors come: what parallelize deals out in turn. */
static const step_stream *in_line(step_rewrite *r, const step_graph_node *n)
{
    const parallel *p = r->user;
    const step_stream *in[] = {step_rewrite_stream(r, n->spec.inputs[0])};
    int64_t b = n->spec.param[STEP_B];
    if (in[0]->rank == b || p->row)
        return in[0];
    step_graph_node *one =
        step_rewrite_add(r, n, "_chunks", (step_spec){.op = STEP_FLATTEN, .param = {b, in[0]->rank}, .inputs = in, .input_count = 1});
    if (!one)
        return NULL;
    one->depths[0] = n->depths[0];
    return &one->outputs[0];
}

static bool deal(step_rewrite *r, const step_graph_node *n)
{
    parallel *p = r->user;
    if (!p->order && !make_order(r, n))
        return false;
    const step_stream *in[] = {in_line(r, n), p->order};
    step_graph_node *made = in[0] ? step_rewrite_add(r, n, "",
                                                     (step_spec){.op = STEP_PARTITION,
                                                                 .param = {n->spec.param[STEP_B]},
                                                                 .inputs = in,
                                                                 .input_count = 2,
                                                                 .output_count = n->output_count})
                                  : NULL;
    if (!made)
        return false;
    made->depths[0] = n->depths[0];
    for (uint32_t i = 0; i < n->output_count; i++) {
        p->shares[i] = made->outputs[i].dims[0]; /* partitions of one selector share their sizes */
        step_rewrite_become(r, &n->outputs[i], &made->outputs[i]);
    }
    return true;
}

/* A report is one value for each chunk, and what it reports goes on through a queue of its own. */
static bool report(step_rewrite *r, const step_graph_node *done, int64_t region)
{
    parallel *p = r->user;
    const step_stream *in[] = {step_rewrite_stream(r, &done->outputs[0])};
    step_graph_node *copies = step_rewrite_add(r, done, "_all", (step_spec){.op = STEP_BROADCAST, .inputs = in, .input_count = 1});
    if (!copies)
        return false;
    in[0] = &copies->outputs[0];
    step_rewrite_become(r, &done->outputs[0], in[0]);
    step_spec s = {
        .op = in[0]->rank > 0 ? STEP_ACCUM : STEP_MAP, .fn = STEP_FN_SIGNAL, .param = {in[0]->rank}, .inputs = in, .input_count = 1};
    step_graph_node *signal = step_rewrite_add(r, done, "_report", s);
    p->signals[region] = signal ? &signal->outputs[0] : NULL;
    return signal != NULL;
}

/* What a size of the regions is now. */
static const step_expr *rename_symbol(void *user, const step_expr *symbol)
{
    const parallel *p = user;
    for (size_t i = 0; i < p->renamed_count; i++)
        if (p->renamed[i].old == symbol)
            return p->renamed[i].now;
    return symbol;
}

/* Sizes follow from those of the chunks that the region gets; where the writer assumed some, they are the same ones by their new names. */
static void size_output(step_rewrite *r, const step_stream *old, step_stream *now, const step_expr *share)
{
    parallel *p = r->user;
    if (old->assumed) {
        const step_expr **dims = step_regions_dims(r, p->regions, old, share);
        for (uint32_t i = 0; i <= old->rank; i++)
            dims[i] = dims[i] == old->dims[i] ? step_expr_replace(r->to->exprs, dims[i], rename_symbol, p) : dims[i];
        step_total_assume(r->to, now, dims);
        return;
    }
    for (uint32_t i = 0; i <= old->rank && i <= now->rank; i++)
        if (step_expr_is_symbol(old->dims[i]) && old->dims[i] != now->dims[i] && rename_symbol(p, old->dims[i]) == old->dims[i]) {
            step_renamed one = {old->dims[i], now->dims[i]};
            ARENA_PUSH(r->to->arena, p->renamed, p->renamed_count, p->renamed_capacity, one);
        }
}

static bool visit(step_rewrite *r, const step_graph_node *n)
{
    const parallel *p = r->user;
    if (step_regions_deals(p->regions, n))
        return deal(r, n);
    if (p->row && flattens_row(r, n)) {
        step_rewrite_become(r, &n->outputs[0], step_rewrite_stream(r, n->spec.inputs[0]));
        return true;
    }
    int64_t region = p->regions->of[n->index];
    step_graph_node *copy = region > 0 ? step_rewrite_copy_anew(r, n) : step_rewrite_copy(r, n);
    if (!copy || region <= 0)
        return copy != NULL;
    for (uint32_t i = 0; i < copy->output_count; i++)
        size_output(r, &n->outputs[i], &copy->outputs[i], p->shares[region - 1]);
    return p->regions->done[region - 1] != n || report(r, n, region - 1);
}

/* The reports come back as the selectors that were waited for. */
static void close_cycle(step_rewrite *r)
{
    parallel *p = r->user;
    step_graph_node *merged =
        r->bad ? NULL
               : step_rewrite_add(r, p->regions->done[0], "_free",
                                  (step_spec){.op = STEP_EAGER_MERGE, .inputs = p->signals, .input_count = (uint32_t)p->regions->count});
    if (!merged)
        return;
    steering(merged);
    step_total_assume(r->to, &merged->outputs[1], one_size(r, p->regions->chunks)); /* each chunk is reported once */
    merged->outputs[1].used = true;
    p->kept->spec.inputs[0] = &merged->outputs[1];
}

void step_pass_dynamic_parallel(step_rewrite *r)
{
    const char *done = step_rewrite_text(r, "done", NULL);
    if (!done) {
        step_rewrite_refuse(r, NULL, "done=NAME is the `let` of a stream that every region makes of its chunks",
                            "nothing says when a region is free");
        return;
    }
    if (!step_wanted_exists(r, done, &(step_wanted){.one = "operator", .all = "operators"}))
        return;
    step_regions *regions = step_regions_find(r, done);
    if (!regions)
        return;
    parallel *p = ARENA_NEW(r->to->arena, parallel); /* the graph keeps the placeholder until the cycle is closed */
    p->regions = regions;
    p->signals = ARENA_ARRAY(r->to->arena, const step_stream *, (size_t)regions->count);
    p->shares = ARENA_ARRAY(r->to->arena, const step_expr *, (size_t)regions->count);
    r->user = p;
    p->row = all_rows(r);
    step_rewrite_all(r, visit);
    close_cycle(r);
}
