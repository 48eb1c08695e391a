/* Items that run one after the other, as the layers of a network through which one inference follows the other: each at a point, so that
 * the slowest is fast enough. FINN's folding, or the one with the fewest multipliers (ir/dataflow/explore_chain.h). */
#include <inttypes.h>
#include <string.h>

#include "libvisa/explore.h"

static void fold_all(network *n, int64_t cycles)
{
    n->latency = n->multipliers = 0;
    for (size_t i = 0; i < n->count; i++) {
        n->items[i].count = 0;
        explore_fold(&n->items[i], cycles);
        n->points[i] = &n->items[i].front[0];
    }
}

/* The slowest of the points, and their multipliers together. */
static void sum_up(network *n)
{
    n->latency = n->multipliers = 0;
    for (size_t i = 0; i < n->count; i++) {
        const explore_point *p = n->points[i];
        if (__builtin_add_overflow(n->multipliers, p->multipliers, &n->multipliers))
            n->multipliers = INT64_MAX;
        if (p->latency > n->latency) {
            n->latency = p->latency;
            n->bottleneck = n->items[i].model->name;
        }
    }
}

/* FINN's folding of a network: each layer to the target; where one cannot reach it, all again to what the slowest has reached, so that no
 * layer is faster than is of use. */
static void fold_network(network *n, int64_t cycles)
{
    n->target = cycles;
    fold_all(n, cycles);
    sum_up(n);
    if (n->latency <= cycles)
        return;
    n->second = n->latency;
    fold_all(n, n->second);
    sum_up(n);
}

/* ---- the exact one ---- */

/* Would an item have other points if --limit said more? */
static bool limits_items(const explore_chain *chain)
{
    const explore_limits *l = &chain->items[0].limits; /* the same for all of them */
    return l->weight_bits || l->input_bits || l->block_bits || l->rows;
}

static bool refuse_chain(visa_compilation *c, const explore_chain *chain, int64_t cycles, int64_t multipliers)
{
    const dataflow_model *first = chain->items[0].model;
    for (size_t i = 0; i < chain->count; i++)
        if (chain->items[i].count == 0) {
            diag_help(&c->diags,
                      diag_add(&c->diags, E_DATAFLOW_EXPLORE, chain->items[i].model->range, "`%s` has no point within the limits",
                               chain->items[i].model->name),
                      "raise --limit");
            return false;
        }
    const explore_chain_point *fast = &chain->front[0], *within = explore_chain_choose(chain, 0, multipliers);
    if (cycles != 0 && fast->latency > cycles) {
        diag *d =
            diag_add(&c->diags, E_DATAFLOW_EXPLORE, first->range,
                     "the items are not done in %" PRId64 " cycles: the slowest takes %" PRId64 " at the least", cycles, fast->latency);
        const char *more = limits_items(chain) ? ", or raise --limit" : "";
        if (within)
            diag_help(&c->diags, d, "--target-cycles=%" PRId64 "%s%s", within->latency, within == fast ? "" : " with so few multipliers",
                      more);
        else
            diag_help(&c->diags, d, "--target-cycles=%" PRId64 " with --limit=multipliers=%" PRId64 "%s", fast->latency, fast->multipliers,
                      more);
        return false;
    }
    const explore_chain_point *cheap = explore_chain_choose(chain, cycles ? cycles : INT64_MAX, 0);
    diag *d = diag_add(&c->diags, E_DATAFLOW_EXPLORE, first->range,
                       "the items take %" PRId64 " multipliers at the least, and %" PRId64 " are allowed", cheap->multipliers, multipliers);
    if (within)
        diag_help(&c->diags, d, "--limit=multipliers=%" PRId64 ", or --target-cycles=%" PRId64, cheap->multipliers, within->latency);
    else
        diag_help(&c->diags, d, "--limit=multipliers=%" PRId64, cheap->multipliers);
    return false;
}

static bool choose_chain(visa_compilation *c, network *n, int64_t multipliers)
{
    explore_chain *chain = ARENA_NEW(c->arena, explore_chain);
    *chain = (explore_chain){.items = n->items, .count = n->count};
    for (size_t i = 0; i < n->count; i++)
        explore_run(&n->items[i]);
    explore_chain_run(chain, c->arena);
    const explore_chain_point *p = explore_chain_choose(chain, n->target, multipliers);
    if (!p)
        return refuse_chain(c, chain, n->target, multipliers);
    for (size_t i = 0; i < n->count; i++)
        n->points[i] = explore_chain_item(&n->items[i], p->latency);
    n->chain = chain;
    sum_up(n);
    return true;
}

/* ---- from one item to the next ---- */

/* The item at its point. NULL: diagnosed. */
static const dataflow_model *model_at(visa_compilation *c, const explore *x, const explore_point *p)
{
    dataflow_model *m = ARENA_NEW(c->arena, dataflow_model);
    int64_t *choice;
    *m = *x->model;
    m->interfaces = ARENA_ARRAY(c->arena, dataflow_interface, m->count);
    memcpy(m->interfaces, x->model->interfaces, m->count * sizeof *m->interfaces);
    explore_ways(x, p, &choice);
    for (size_t k = 0; k < m->count; k++)
        for (uint32_t d = 0; d < m->interfaces[k].rank && m->interfaces[k].kind <= DATAFLOW_WEIGHT; d++)
            m->interfaces[k].parallel[d] = 1;
    for (size_t k = 0; k < x->parameter_count; k++)
        m->interfaces[x->parameters[k].interface].parallel[x->parameters[k].dimension] = x->parameters[k].divisors[choice[k]];
    return dataflow_evaluate(m, &c->diags) ? m : NULL;
}

static const dataflow_interface *first_of(const dataflow_model *m, dataflow_kind kind)
{
    size_t k = 0;
    while (m->interfaces[k].kind != kind) /* every item has an input and an output */
        k++;
    return &m->interfaces[k];
}

static int64_t elements_of(const int64_t *sizes, uint32_t rank, int64_t batch)
{
    int64_t elements = batch;
    for (uint32_t d = 0; d < rank; d++)
        if (__builtin_mul_overflow(elements, sizes[d], &elements))
            return INT64_MAX;
    return elements;
}

static bool link_items(visa_compilation *c, network *n)
{
    const dataflow_model *before = NULL;
    n->links = ARENA_ARRAY(c->arena, network_link, n->count);
    for (size_t i = 0; i < n->count; i++) {
        const dataflow_model *m = model_at(c, &n->items[i], n->points[i]);
        if (!m)
            return false;
        if (before) {
            network_link *l = &n->links[i - 1];
            *l = (network_link){.out = *first_of(before, DATAFLOW_OUTPUT), .in = *first_of(m, DATAFLOW_INPUT)};
            l->elements_out = elements_of(l->out.calculated, l->out.rank, before->batch);
            l->elements_in = elements_of(l->in.tensor, l->in.rank, m->batch);
            int64_t bits = l->out.bits ? l->out.bits : l->in.bits;
            l->converts = l->out.shape.elements * bits != l->in.shape.elements * l->in.bits;
        }
        before = m;
    }
    return true;
}

static void network_text(const network *n, strbuf *out)
{
    for (size_t i = 0; n->chain && n->target == 0 && i < n->chain->front_count; i++)
        strbuf_printf(out, "%sin %12" PRId64 " cycles %12" PRId64 " multipliers\n", i ? "" : "the front of all together:\n",
                      n->chain->front[i].latency, n->chain->front[i].multipliers);
    for (size_t i = 0; i < n->count; i++) {
        int64_t *choices;
        explore_ways(&n->items[i], n->points[i], &choices);
        strbuf_printf(out, "%-16s L %12" PRId64 " %12" PRId64 " multipliers  %s\n", n->items[i].model->name, n->points[i]->latency,
                      n->points[i]->multipliers, explore_choice_text(&n->items[i], choices));
    }
    for (size_t i = 0; i + 1 < n->count; i++) {
        const network_link *l = &n->links[i];
        strbuf_printf(out, "%s.%s to %s.%s: words of %" PRId64 " and %" PRId64 " elements%s", n->items[i].model->name, l->out.name,
                      n->items[i + 1].model->name, l->in.name, l->out.shape.elements, l->in.shape.elements,
                      l->converts ? ", a width converter" : "");
        if (l->elements_out != l->elements_in)
            strbuf_printf(out, "; %" PRId64 " elements leave and %" PRId64 " enter", l->elements_out, l->elements_in);
        strbuf_puts(out, "\n");
    }
    strbuf_printf(out, "all together: L %" PRId64 ", that of %s; %" PRId64 " multipliers", n->latency, n->bottleneck, n->multipliers);
    if (n->clock_hz)
        strbuf_printf(out, "; %.1f inferences/s at %" PRId64 " Hz", (double)n->clock_hz * (double)n->batch / (double)n->latency,
                      n->clock_hz);
    strbuf_puts(out, "\n");
    if (n->second > 0)
        strbuf_printf(out, "not below %" PRId64 " cycles: folded again to the %" PRId64 " of the slowest\n", n->target, n->second);
}

/* A rate is that of all items: they have one clock, and as many inferences at once. */
static bool same_clock(visa_compilation *c, network *n, const visa_explore_options *o)
{
    const dataflow_model *first = n->items[0].model;
    n->clock_hz = first->clock_hz;
    n->batch = first->batch;
    for (size_t i = 1; i < n->count; i++) {
        const dataflow_model *m = n->items[i].model;
        if (m->clock_hz == first->clock_hz && m->batch == first->batch)
            continue;
        n->clock_hz = 0;
        if (o->target_rate == 0)
            continue;
        diag_help(&c->diags,
                  diag_add(&c->diags, E_DATAFLOW_EXPLORE, m->range,
                           "`%s` has a clock of %" PRId64 " Hz and a batch of %" PRId64 ", `%s` of %" PRId64 " Hz and %" PRId64
                           ": a rate is of items with one clock and one batch",
                           m->name, m->clock_hz, m->batch, first->name, first->clock_hz, first->batch),
                  "write the same `clock_hz` and `batch`, or ask for --target-cycles");
        return false;
    }
    return true;
}

bool network_explore(visa_compilation *c, const dataflow_model **models, size_t count, const visa_explore_options *o, strbuf *out)
{
    network n = {
        .items = ARENA_ARRAY(c->arena, explore, count), .points = ARENA_ARRAY(c->arena, const explore_point *, count), .count = count};
    if (o->form != VISA_EXPLORE_TEXT && o->form != VISA_EXPLORE_JSON) {
        diag_help(&c->diags,
                  diag_add(&c->diags, E_DATAFLOW_EXPLORE, SRC_NOWHERE, "%zu items together are no table, picture or kernel", count),
                  "--emit=text or json; of one item --explore=%s%s", models[0]->name, o->folding ? "" : " without --search=chain");
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!explore_open(&n.items[i], models[i], c->arena, &c->diags))
            return false;
        n.items[i].limits =
            (explore_limits){o->chain ? 0 : o->multipliers /* of all together */, o->weight_bits, o->input_bits, o->block_bits, o->rows, 0};
        if (o->target_limits)
            explore_limit_to_target(&n.items[i].limits, c->target, models[i]->batch);
        n.items[i].parts = 1;
    }
    int64_t cycles = 0;
    for (size_t i = count; i-- > 0;)
        if (!explore_target(c, models[i], o, &cycles))
            return false;
    if (!same_clock(c, &n, o))
        return false;
    if (o->chain) {
        n.target = cycles;
        n.limit = o->multipliers;
        if (!choose_chain(c, &n, o->multipliers))
            return false;
    } else {
        fold_network(&n, explore_fold_target(o, cycles));
    }
    if (!link_items(c, &n))
        return false;
    if (o->form == VISA_EXPLORE_JSON)
        network_json(&n, out);
    else
        network_text(&n, out);
    return true;
}
