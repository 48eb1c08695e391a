#include "libvisa/tune/flow_search.h"

#include <inttypes.h>
#include <string.h>

#include "libvisa/tune/machine.h"
#include "support/budget.h"
#include "support/integer.h"
#include "support/order.h"

enum { MOST_PLANS = 192, MOST_STAYING = 24, MOST_LOOPS = 64, FILL = 16, LANES = 8, WORD_BYTES = 8, ESTIMATE_ERROR_PERCENT = 50 };

typedef struct space {
    const target *t;
    const tune_flow *f;
    arena *a;
    int64_t unit[FLOW_GROUPS_MAX];
    size_t passes[FLOW_STEPS_MAX];     /* of each step, nothing shared over slices */
    uint32_t operands[FLOW_STEPS_MAX]; /* values that its operations meet, a bit each */
    bool gates[FLOW_STEPS_MAX];        /* what values are multiplied with waits in the VRF */
    bool stashes[FLOW_STEPS_MAX];
    flow_plan *plans, *staying; /* the best, by estimate; and of those whose results stay, which take no place of others */
    size_t count, staying_count;
} space;

static uint32_t operands_of(const tune_flow *f, const flow_step *s)
{
    uint32_t operands = 0;
    for (size_t k = 0; k < s->count; k++) {
        const flow_value *operand = tune_flow_operand(f, &s->operations[k]);
        operands |= operand ? UINT32_C(1) << (operand - f->values) : 0;
    }
    return operands;
}

static int64_t bytes_of(dtype type, int64_t elements)
{
    return ceil_div(elements * dtype_row_of(type)->bits, 8);
}

/* Elements of a value that one copy takes of a slice, or brings into it: of results that stay those of all iterations, of rows that are
 * packed those without padding. */
static int64_t stored_tile(const space *x, const flow_plan *p, const flow_value *v)
{
    int64_t elements = flow_tile_of(x->f, p, x->t, v);
    if (v != &x->f->values[0])
        return elements;
    for (size_t i = 0; i < v->count; i++)
        elements *= flow_stored_tile(p, v->groups[i]) / p->split[v->groups[i]].tile;
    const size_t inner = p->packs ? v->groups[v->count - 1] : 0;
    return p->packs ? elements / p->split[inner].tile * x->f->groups[inner].size : elements;
}

/* The longest run that follows itself both in HBM and in a slice, at most a packet of them. A copy cuts a run of the result that is no
 * whole blocks of HBM into equal packets, each of which ends inside of one. */
static int64_t run_of(const space *x, const flow_plan *p, const flow_value *v)
{
    int64_t run = 1;
    bool hands = flow_handing_of(x->f, p, x->t, v).slices > 1, is_result = v == &x->f->values[0];
    const flow_ring left = flow_left_of(x->f, p, v);
    size_t groups[FLOW_GROUPS_MAX];
    for (size_t i = tune_flow_order_in_hbm(x->f, v->tensor, groups); i-- > 0;) {
        int64_t size = x->f->groups[groups[i]].size, of = is_result ? flow_stored_tile(p, groups[i]) : p->split[groups[i]].tile,
                tile = of / (groups[i] == left.group ? left.slices : 1);
        run *= smaller(size, tile);
        if (tile != size || hands)
            break;
    }
    const int64_t bytes = bytes_of(v->type, smaller(run, stored_tile(x, p, v))), most = x->t->dma_packet_max_bytes;
    return larger(1, is_result && bytes % x->t->hbm_block_bytes != 0 ? largest_divisor(bytes, most) : smaller(most, bytes));
}

/* Do pieces of the result begin or end inside of blocks of HBM? */
static bool ends_inside_blocks(const space *x, const flow_plan *p)
{
    const flow_value *out = &x->f->values[0];
    const int64_t bits = x->t->hbm_block_bytes * 8;
    int64_t inside = dtype_row_of(out->type)->bits;
    size_t i = out->count, groups[FLOW_GROUPS_MAX];
    tune_flow_order_in_hbm(x->f, out->tensor, groups);
    while (i > 0 && flow_stored_tile(p, groups[i - 1]) >= x->f->groups[groups[i - 1]].size)
        inside *= x->f->groups[groups[--i]].size;
    const bool is_cut = i > 1 && inside * x->f->groups[groups[i - 1]].size % bits != 0;
    return is_cut || run_of(x, p, out) % x->t->hbm_block_bytes != 0;
}

/* Of pieces that begin and end inside of blocks of HBM, in as many blocks of each channel. */
static int64_t partial_cycles(const target *t, int64_t pieces)
{
    return ceil_div(2 * pieces, t->hbm_channels) * tune_partial_block_cycles(t);
}

/* Of a copy that touches more rows of HBM than there are banks. */
static int64_t switched_cycles(const target *t, int64_t bytes)
{
    enum { BANKS = 32, ROW_BYTES = 2048 }; /* of a channel */
    int64_t open = t->hbm_channels * BANKS * ROW_BYTES;
    return bytes > open ? (bytes - open) / ROW_BYTES * t->hbm_row_switch_cycles / t->hbm_channels : 0;
}

static int64_t copy_cycles(const space *x, const flow_plan *p, const flow_value *v, bool store)
{
    const target *t = x->t;
    int64_t tile = bytes_of(v->type, stored_tile(x, p, v)), run = run_of(x, p, v), pieces = ceil_div(tile, run),
            working = flow_left_of(x->f, p, v).slices, copies = working, whole = 1;
    const unsigned gathered = store ? 0 : flow_gathered_of(x->f, p, v);
    for (size_t g = 0; g < x->f->group_count; g++) {
        const flow_split *s = &p->split[g];
        bool has = v->has >> g & 1;
        const int64_t slices = gathered >> g & 1 ? 1 : s->slice;
        working *= store && !has ? 1 : slices;
        copies *= store && !has ? 1 : slices * s->cluster;
        whole *= has ? ceil_div(x->f->groups[g].size, store ? flow_stores_of(s) : s->loop) : 1;
    }
    int64_t dmns = t->slices_per_cluster / t->dm_slices_per_dmn, under = ceil_div(working, dmns);
    int64_t dmn = pieces * under * ceil_div(run, t->dmn_bytes_per_cycle);
    int64_t engine = pieces * under * t->dma_dmns_per_engine * ceil_div(run, t->dma_request_bytes);
    int64_t hbm = (store ? bytes_of(v->type, whole) : tile * copies) / larger(1, t->hbm_bytes_per_cycle) +
                  switched_cycles(t, bytes_of(v->type, whole));
    if (store && ends_inside_blocks(x, p))
        hbm = partial_cycles(t, pieces * copies);
    return t->dma_startup_cycles + larger(dmn, larger(engine, hbm));
}

/* Elements of the result for one position of its outermost axis. */
static int64_t of_position(const tune_flow *f)
{
    const flow_value *out = &f->values[0];
    size_t outer = flow_outer_of_result(f);
    int64_t elements = 1;
    for (size_t i = 0; i < out->count; i++)
        elements *= out->groups[i] == outer ? 1 : f->groups[out->groups[i]].size;
    return elements;
}

/* One by one, by the main context. */
static int64_t pack_cycles(const space *x, const flow_plan *p)
{
    return p->packs ? stored_tile(x, p, &x->f->values[0]) + FILL : 0;
}

/* A copy that brings positions of the result together takes turns between what it reads and what it writes; and their store. That is a
 * command more where the last slice has less than the others, and one where its cluster has fewer slices. */
static int64_t brought_cycles(const space *x, const flow_plan *p)
{
    const target *t = x->t;
    const flow_value *out = &x->f->values[0];
    size_t outer = flow_outer_of_result(x->f);
    int64_t dmns = t->slices_per_cluster / t->dm_slices_per_dmn, working = flow_left_of(x->f, p, out).slices;
    for (size_t g = 0; g < x->f->group_count; g++)
        working *= out->has >> g & 1 ? p->split[g].slice : 1;
    int64_t tile = bytes_of(out->type, stored_tile(x, p, out)), run = p->packs ? tile : run_of(x, p, out), pieces = ceil_div(tile, run),
            under = ceil_div(working, dmns), count = x->f->groups[outer].size / flow_brought_split(x->f, p).loop,
            bytes = bytes_of(out->type, p->brought * of_position(x->f)), all = ceil_div(count, p->brought),
            parts = ceil_div(all, p->brought_clusters), written = ceil_div(parts, dmns), whole = count / p->brought,
            slices = flow_brought_split(x->f, p).slice,
            rests = (all > 1 && count % p->brought != 0) + (whole > slices && whole < 2 * slices);
    int64_t engine = pieces * under * t->dma_dmns_per_engine * ceil_div(run, t->dma_request_bytes) * 2,
            dmn = (pieces * under + written * ceil_div(bytes, run)) * ceil_div(run, t->dmn_bytes_per_cycle);
    int64_t stored = bytes_of(out->type, count * of_position(x->f)), hbm = stored / t->hbm_bytes_per_cycle + switched_cycles(t, stored),
            store = larger(hbm, larger(written * ceil_div(bytes, t->dmn_bytes_per_cycle),
                                       written * t->dma_dmns_per_engine * ceil_div(bytes, t->dma_request_bytes)));
    bool is_cut = all > 1 && bytes % t->hbm_block_bytes != 0;
    return (2 + rests) * t->dma_startup_cycles + larger(engine, dmn) + larger(store, is_cut ? partial_cycles(t, all) : 0);
}

/* Steps of the Reducer in a pass over sums: a packet comes flit by flit, and meets each group of columns. */
static int64_t steps_of(const space *x, const flow_plan *p, const flow_value *sums)
{
    int64_t packet = flow_packet_of(x->f, p, x->t, sums->summed), packets = larger(1, p->split[sums->summed].tile / packet), rows = 1;
    const flow_value *r = &x->f->values[sums->rows];
    if (sums->lying)
        return flow_lying_of(x->f, p, sums).cycles;
    for (size_t i = 0; i + 1 < r->count; i++)
        rows *= p->split[r->groups[i]].tile;
    int64_t flits = ceil_div(bytes_of(x->f->type, packet), x->t->flit_bytes);
    return packets * larger(rows * flits, flow_tile_of(x->f, p, x->t, sums) / LANES);
}

static int64_t flits_of_weights(const space *x, const flow_plan *p, const flow_value *weights)
{
    return bytes_of(x->f->type, flow_tile_of(x->f, p, x->t, weights)) / x->t->flit_bytes;
}

/* Of a pass into the TRF. */
static int64_t fill_cycles(const space *x, const flow_plan *p, const flow_step *s)
{
    const flow_value *from = &x->f->values[s->from];
    flow_handing h = flow_handing_of(x->f, p, x->t, from);
    int64_t flits = flits_of_weights(x, p, &x->f->values[s->to]);
    if (h.slices > 1)
        return larger(flits, h.slices * h.inside * bytes_of(from->type, flow_tile_of(x->f, p, x->t, from)) / x->t->flit_bytes);
    return p->main_weights ? flits : flits * x->t->flit_bytes / x->t->fetch_access_sub_bytes;
}

/* By the sub context, with the ring where slices hand parts on. */
static int64_t copy_into_vrf_cycles(const space *x, const flow_plan *p, const flow_value *from, int64_t tile_bytes)
{
    flow_handing h = flow_handing_of(x->f, p, x->t, from);
    int64_t ring = h.slices * h.inside * ceil_div(bytes_of(x->f->meets, flow_tile_of(x->f, p, x->t, from)), x->t->flit_bytes);
    return larger(tile_bytes / x->t->fetch_access_sub_bytes, h.slices > 1 ? ring : 0);
}

/* Packets of 4 in the Vector Engine: a flit takes two cycles. */
static int64_t pass_cycles(const space *x, const flow_plan *p, size_t step)
{
    const flow_step *s = &x->f->steps[step];
    const flow_value *from = &x->f->values[s->from];
    int64_t shared = 0, tile = flow_tile_of(x->f, p, x->t, from), cycles = 2 * ceil_div(tile, LANES),
            passes = larger(1, (int64_t)x->passes[step]);
    for (size_t k = 0; k < s->count; k++)
        if (s->operations[k].what >= TUNE_FOLD_ADD && p->split[s->operations[k].group].slice > 1) {
            int64_t lanes = flow_folded_lanes(x->f, p, from->groups, from->count, s->operations[k].group);
            shared += p->split[s->operations[k].group].slice + (lanes < LANES ? tile / lanes - cycles : 0);
        }
    if (flow_flits_of(x->f, p, s).slices > 1) {
        const flow_split *folded = &p->split[s->operations[0].group];
        const int64_t flits = ceil_div(tile, LANES);
        return flits + 2 * flits / folded->slice + tile / folded->tile + shared + 2 * FILL;
    }
    int64_t first = from->place == FLOW_STREAM ? larger(cycles, steps_of(x, p, from)) : cycles;
    return first + (passes - 1) * cycles + passes * FILL + shared;
}

/* The contexts, and when each value is there: cycles from the start. */
typedef struct clocks {
    int64_t dma, main, sub, ready[FLOW_VALUES_MAX];
    int64_t half_ready[FLOW_VALUES_MAX]; /* the first of two copies */
} clocks;

static void follow(const space *x, const flow_plan *p, size_t step, clocks *c)
{
    const tune_flow *f = x->f;
    const flow_step *s = &f->steps[step];
    const flow_value *from = &f->values[s->from];
    if (s->kind == FLOW_ONES) /* long before they are needed */
        return;
    if (s->kind == FLOW_LOAD) {
        const int64_t copy = copy_cycles(x, p, &f->values[s->to], false), half = (copy - x->t->dma_startup_cycles) / 2;
        c->half_ready[s->to] = c->dma + x->t->dma_startup_cycles + half;
        c->dma += copy + (flow_comes_twice(f, p, x->t, &f->values[s->to]) ? x->t->dma_startup_cycles : 0);
        c->ready[s->to] = c->dma;
        return;
    }
    bool is_copy = s->kind == FLOW_PASS && tune_flow_is_copy(f, s), by_sub = is_copy || (s->kind == FLOW_FILL && !p->main_weights);
    if (s->kind == FLOW_FILL && flow_hands_halves(f, p, x->t, from)) {
        const bool twice = flow_comes_twice(f, p, x->t, from);
        const int64_t each = fill_cycles(x, p, s) / (twice ? 4 : 2);
        if (twice) {
            c->sub = each + larger(c->sub, c->half_ready[s->from]);
            c->main = each + larger(c->main, c->half_ready[s->from]);
        }
        c->sub = each + larger(c->sub, c->ready[s->from]);
        c->main = each + larger(c->main, c->ready[s->from]);
        c->ready[s->to] = c->main = larger(c->main, c->sub) + flits_of_weights(x, p, &f->values[s->to]);
        return;
    }
    int64_t *clock = by_sub ? &c->sub : &c->main, tile_bytes = bytes_of(from->type, flow_tile_of(f, p, x->t, from));
    int64_t begin = larger(*clock, c->ready[s->from]);
    if (from->place == FLOW_STREAM)
        begin = larger(begin, larger(c->ready[from->lying ? from->lying : from->rows], c->ready[from->weights]));
    for (uint32_t left = x->operands[step]; left != 0; left &= left - 1)
        begin = larger(begin, c->ready[__builtin_ctz(left)]);
    *clock = begin + (s->kind == FLOW_FILL   ? fill_cycles(x, p, s)
                      : s->kind == FLOW_TURN ? tile_bytes / x->t->transpose_row_bytes
                      : is_copy              ? copy_into_vrf_cycles(x, p, from, tile_bytes)
                                             : pass_cycles(x, p, step));
    c->ready[s->to] = *clock;
}

static int64_t loops_of(const flow_plan *p)
{
    const size_t g = flow_looped_group(p);
    return g == FLOW_GROUPS_MAX ? 1 : p->split[g].loop;
}

/* The axis that has iterations, as a bit; 0: there are none. */
static unsigned looped_bit(const flow_plan *p)
{
    const size_t g = flow_looped_group(p);
    return g == FLOW_GROUPS_MAX ? 0 : 1U << g;
}

/* What a plan that is kept takes less than, as long as no other one is: estimates are not so wrong that one of twice the best is the
 * fastest, where there are others that compile. One whose results stay is compiled only if it may be the fastest. */
static int64_t limit_of(const space *x, bool stays)
{
    enum { FAR = 2, ENOUGH = MOST_PLANS / 4 };
    if (!stays && x->count < ENOUGH)
        return INT64_MAX;
    if (!stays)
        return smaller(FAR * x->plans[0].cycles, x->count == MOST_PLANS ? x->plans[x->count - 1].cycles : INT64_MAX);
    const int64_t least = x->count > 0 ? x->plans[0].cycles : INT64_MAX / 100,
                  worst = x->staying_count == MOST_STAYING ? x->staying[x->staying_count - 1].cycles : INT64_MAX;
    return smaller(worst, least + least / 100 * ESTIMATE_ERROR_PERCENT);
}

/* Three iterations one after the other; each further one takes what is between the first two stores. The loads of an iteration are in front
 * of the store of the one before it. What takes `limit` or more is not followed to its end. */
static void estimate(const space *x, flow_plan *p, int64_t limit)
{
    enum { FOLLOWED = 3 };
    const tune_flow *f = x->f;
    int64_t ends[FOLLOWED] = {0}, stored = 0;
    clocks c = {0};
    const int64_t loop = loops_of(p);
    const unsigned looped = looped_bit(p);
    const int count = (int)smaller(loop, FOLLOWED);
    const bool stays = flow_results_stay(p);
    int64_t store = p->brought > 0 ? brought_cycles(x, p) : copy_cycles(x, p, &f->values[0], true);
    for (int i = 0; i < count; i++) {
        for (int handed = 1; handed >= 0; handed--) /* what has longest to go around comes first */
            for (size_t k = 0; k < f->step_count; k++) {
                const flow_value *to = &f->values[f->steps[k].to];
                bool inside = looped == 0 || ((to->has & looped) && !flow_comes_ahead(f, p, x->t, to));
                if (f->steps[k].kind == FLOW_LOAD && (inside || i == 0) && (flow_handing_of(f, p, x->t, to).slices > 1) == (handed == 1))
                    follow(x, p, k, &c);
            }
        if (larger(c.dma, c.main) >= limit) {
            p->cycles = larger(c.dma, c.main);
            return;
        }
        if (i > 0) {
            ends[i - 1] = larger(c.dma, stored) + (stays ? 0 : store);
            c.dma = stays ? c.dma : ends[i - 1];
        }
        for (size_t k = 0; k < f->step_count; k++) {
            const flow_step *s = &f->steps[k];
            bool inside = s->kind == FLOW_PASS || looped == 0 || (f->values[s->to].has & looped);
            if (s->kind != FLOW_LOAD && (inside || i == 0))
                follow(x, p, k, &c);
        }
        stored = c.main += pack_cycles(x, p);
    }
    ends[count - 1] = larger(c.dma, stored) + store;
    p->cycles = ends[count - 1] + (loop > FOLLOWED ? (loop - FOLLOWED) * (ends[1] - ends[0]) : 0);
}

/* What is shared over slices and not in the result is folded on the way to it, and then no operand of all slices follows. One that is left
 * as the result does. */
static bool can_store(const space *x, const flow_plan *p)
{
    const tune_flow *f = x->f;
    const flow_step *last = &f->steps[f->step_count - 1];
    for (size_t g = 0; g < f->group_count; g++) {
        if (p->split[g].slice == 1 || (f->values[0].has >> g & 1))
            continue;
        const size_t fold = flow_fold_of(last, g);
        if (fold == last->count)
            return false;
        for (size_t i = fold + 1; i < last->count; i++) {
            const flow_value *operand = tune_flow_operand(f, &last->operations[i]);
            if (operand && !operand->is_left && !(flow_gathered_of(f, p, operand) >> g & 1))
                return false;
        }
    }
    return true;
}

/* Does a slice hold what waits in its memories, twice where copies run ahead? */
static bool fits(const space *x, const flow_plan *p)
{
    const tune_flow *f = x->f;
    int64_t dm = 0, vrf = 0, ahead = 1;
    for (size_t i = 0; i < f->value_count; i++)
        if (f->values[i].lying && !flow_lying_nests(f, p, &f->values[i]))
            return false;
    for (size_t g = 0; g < f->group_count; g++) {
        ahead = p->split[g].loop > 1 ? 2 : ahead;
        if ((f->batches >> g & 1) && p->split[g].tile > 1) /* other weights for each */
            return false;
    }
    for (size_t i = 0; i < f->value_count; i++) {
        const flow_value *v = &f->values[i];
        int64_t elements = flow_tile_of(f, p, x->t, v);
        if (v->place == FLOW_STREAM)
            continue;
        if (v->place == FLOW_TRF && bytes_of(v->type, elements) > target_trf_capacity_bytes(x->t, TRF_FULL))
            return false;
        if (v->place == FLOW_TRF)
            continue;
        if (v->place == FLOW_VRF)
            vrf += 4 * round_up(elements, LANES);
        else if (i == 0 && flow_results_stay(p))
            dm += bytes_of(v->type, stored_tile(x, p, v));
        else
            dm += ahead * bytes_of(v->type, elements);
    }
    int64_t passing = 0; /* one step at a time */
    for (size_t i = 0; i < f->step_count; i++) {
        int64_t gate = x->gates[i] ? 4 * round_up(flow_tile_of(f, p, x->t, &f->values[f->steps[i].from]), LANES) : 0;
        passing = larger(passing, gate + (x->stashes[i] ? TUNE_STASH_BYTES : 0));
    }
    vrf += passing;
    return vrf <= x->t->vrf_bytes && dm <= x->t->dm_bytes_per_slice;
}

/* The faster first, and of equals the one that was found first. */
static int by_cycles(const void *a, const void *b)
{
    return ORDER(((const flow_plan *)a)->cycles, ((const flow_plan *)b)->cycles);
}

static void keep(space *x, const flow_plan *p)
{
    if (flow_results_stay(p))
        order_keep(x->staying, &x->staying_count, MOST_STAYING, sizeof *p, p, by_cycles);
    else
        order_keep(x->plans, &x->count, MOST_PLANS, sizeof *p, p, by_cycles);
}

/* Are all values that are folded over this group in DM, where packets may be of fewer lanes? Those of the Reducer are whole flits, and one
 * that counts in part would do so in one slice alone. */
static bool folds_from_dm(const tune_flow *f, size_t g)
{
    for (size_t i = 0; i < f->step_count; i++)
        for (size_t k = 0; f->values[f->steps[i].from].place == FLOW_STREAM && k < f->steps[i].count; k++) {
            const tune_operation *o = &f->steps[i].operations[k];
            if (o->what >= TUNE_FOLD_ADD && o->group == g && !o->is_summed)
                return false;
        }
    return true;
}

/* Is the group multiplied, and added in the Reducer? */
static bool is_summed(const tune_flow *f, size_t g)
{
    for (size_t i = 0; i < f->value_count; i++)
        if (f->values[i].place == FLOW_STREAM && f->values[i].summed == g)
            return true;
    return false;
}

/* How the last tiles of an axis end: with the padding of each cluster in itself, and no tile cut; all padding at the end; so, and each tile
 * of the result whole blocks of HBM. */
typedef enum rest_way { REST_EVEN, REST_LAST, REST_BLOCKS, REST_WAYS } rest_way;

/* Positions of an axis of the result that are whole blocks of HBM wherever they begin at one, where a slice has all of what is inside of
 * them; 1: of another axis, or rows begin inside of blocks. */
static int64_t block_of(const space *x, size_t g)
{
    const flow_value *out = &x->f->values[0];
    const int64_t bits = x->t->hbm_block_bytes * 8, element = dtype_row_of(out->type)->bits, block = bits / element;
    if (out->count == 0 || (g != out->groups[out->count - 1] && g != flow_outer_of_result(x->f)))
        return 1;
    if (g != out->groups[out->count - 1])
        return bits / gcd(bits, of_position(x->f) * element);
    return out->count == 1 || x->f->groups[g].size % block == 0 ? block : 1;
}

/* So many positions, and more, that are whole blocks, or that a copy makes blocks of. */
static int64_t tile_in_blocks(const space *x, size_t g, int64_t tile)
{
    const flow_value *out = &x->f->values[0];
    const int64_t block = block_of(x, g);
    const bool is_inner = out->count > 0 && g == out->groups[out->count - 1];
    return tile < block && !is_inner ? power_of_two_above(tile) : round_up(tile, block);
}

/* Digits of one axis. False: half of its slices would have padding alone, or the axis has no such iterations or clusters. */
static bool split_group(const space *x, size_t g, int64_t loop, int64_t cluster, int64_t slice, rest_way way, flow_split *s)
{
    const bool is_even = way == REST_EVEN;
    int64_t size = x->f->groups[g].size, parts = cluster * slice;
    if (size % loop != 0)
        return false;
    int64_t in_loop = size / loop;
    int64_t each = ceil_div(in_loop, parts);
    /* of what is summed slices may have less than a packet, in whole lanes: the rest of its flit counts for nothing */
    bool is_part = slice > 1 && is_summed(x->f, g) && x->unit[g] == flow_packet(x->f, x->t, g) && x->unit[g] % each == 0 &&
                   each % LANES == 0 && bytes_of(x->f->type, each) >= WORD_BYTES;
    *s = (flow_split){.loop = loop, .cluster = cluster, .slice = slice, .tile = is_part ? each : round_up(each, x->unit[g])};
    int64_t tile = way == REST_BLOCKS ? tile_in_blocks(x, g, s->tile) : s->tile;
    if (way == REST_BLOCKS && (tile == s->tile || parts == 1 || in_loop % block_of(x, g) * (loop - 1) != 0))
        return false;
    s->tile = tile;
    s->padded = parts * s->tile;
    s->is_even = is_even;
    if (is_even && (cluster == 1 || in_loop % (cluster * s->tile) != 0 || x->unit[g] > 1 || s->padded == in_loop))
        return false;
    if (loop > 1 && s->padded != in_loop && (in_loop % s->tile != 0 || (cluster > 1 && !s->is_even))) /* HBM has no cut tiles inside */
        return false;
    if (x->f->groups[g].is_reduced && slice > 1 && x->unit[g] >= LANES && in_loop % LANES != 0 && !folds_from_dm(x->f, g))
        return false;
    return parts == 1 || s->padded < 2 * in_loop;
}

/* Rows of the result that are no whole words one after the other: a slice has so many that they are, and each of them whole. False: it
 * cannot. */
static bool pack(const space *x, flow_plan *p)
{
    const tune_flow *f = x->f;
    const flow_value *out = &f->values[0];
    size_t rows = flow_packed_group(f), inner = out->groups[out->count - 1];
    flow_split *s = &p->split[rows];
    if (dtype_row_of(out->type)->bits < 8 || flow_results_stay(p) || f->share[rows].axis || flow_left_of(f, p, out).slices > 1 ||
        p->split[inner].slice * p->split[inner].cluster * p->split[inner].loop > 1)
        return false;
    int64_t in_loop = f->groups[rows].size / s->loop;
    s->tile = round_up(s->tile, flow_packed_rows(f));
    s->padded = s->cluster * s->slice * s->tile;
    p->packs = true;
    bool cuts = s->is_even ? in_loop % (s->cluster * s->tile) != 0
                           : s->loop > 1 && s->padded != in_loop && (s->cluster > 1 || in_loop % s->tile != 0);
    return !cuts && (s->cluster * s->slice == 1 || s->padded < 2 * in_loop) && fits(x, p);
}

/* Is one of two lengths a whole part of the other? */
static bool is_part_of_other(int64_t a, int64_t b)
{
    return a % b == 0 || b % a == 0;
}

/* Where clusters and iterations end, too, a copy that brings positions together ends; and it begins and ends with slices, or parts of
 * them, and with clusters. */
static bool cuts_evenly(const tune_flow *f, const flow_plan *p)
{
    const size_t outer = flow_outer_of_result(f);
    const flow_split *from = &p->split[outer], to = flow_brought_split(f, p);
    const int64_t in_loop = f->groups[outer].size / to.loop, tile = flow_stored_tile(p, outer);
    const int64_t ends = from->is_even || to.loop > 1 ? larger(from->is_even ? from->cluster : 1, to.cluster) : 1;
    if (to.tile >= f->groups[outer].size)
        return true;
    const int64_t of_cluster = from->cluster > 1 && ends == 1 ? tile * from->slice : tile,
                  to_cluster = to.cluster > 1 && ends == 1 ? to.tile * to.slice : to.tile;
    return ((ends == 1 && to.loop == 1) || in_loop % (ends * to.tile) == 0) && is_part_of_other(tile, to.tile) &&
           is_part_of_other(of_cluster, to.tile) && is_part_of_other(tile, to_cluster) && is_part_of_other(of_cluster, to_cluster);
}

/* Positions of the result's outermost axis that should be brought together, where slices would write parts of blocks; false: none can. So
 * many are whole blocks of HBM, or all that there are. */
static bool bring(const space *x, flow_plan *p)
{
    enum { FEW_BLOCKS = 16 };
    const tune_flow *f = x->f;
    const flow_value *out = &f->values[0];
    const target *t = x->t;
    size_t outer = flow_outer_of_result(f);
    if (outer == FLOW_GROUPS_MAX || !ends_inside_blocks(x, p))
        return false;
    const size_t looped = flow_looped_group(p);
    if (looped != FLOW_GROUPS_MAX && looped != outer && !p->split[looped].stays)
        return false;
    int64_t count = f->groups[outer].size / flow_stores_of(&p->split[outer]), each = bytes_of(out->type, of_position(f)), together = 1;
    bool is_inner = of_position(f) == 1;
    bool has_words = flow_packed_group(f) == FLOW_GROUPS_MAX;
    if (has_words ? !is_inner && each % WORD_BYTES != 0 : !pack(x, p))
        return false;
    while (together < 8 * t->hbm_block_bytes && bytes_of(out->type, together * of_position(f)) % t->hbm_block_bytes != 0)
        together *= 2;
    if (flow_stores_of(&p->split[outer]) > 1 && count % together != 0)
        return false;
    const bool ends_in_word = bytes_of(out->type, count * of_position(f)) % WORD_BYTES == 0;
    flow_plan best = {0};
    int64_t first = together; /* where that is more than there is parts of few blocks are better than nothing */
    while (together > count && first > 1 && bytes_of(out->type, first / 2 * of_position(f)) >= FEW_BLOCKS * t->hbm_block_bytes)
        first /= 2;
    for (int64_t clusters = 1; clusters <= t->clusters_per_chip; clusters *= 2)
        for (int64_t n = first;; n *= 2) {
            flow_plan of = *p;
            int64_t tile = flow_stored_tile(p, outer), whole = n; /* a copy cuts positions where slices do: those that have whole tiles */
            while (tile % whole != 0 && whole % tile != 0)
                whole += n;
            of.brought = smaller(whole, count);
            of.brought_clusters = clusters;
            bool fits = bytes_of(out->type, of.brought * of_position(f)) <= t->dm_bytes_per_slice / 2;
            if (fits && (whole < count || ends_in_word) && cuts_evenly(f, &of) &&
                flow_brought_split(f, &of).slice <= tune_slices_of(t, f->most_slices) && (clusters == 1 || of.brought < count)) {
                estimate(x, &of, limit_of(x, flow_results_stay(&of)));
                best = best.brought == 0 || of.cycles < best.cycles ? of : best;
            }
            if (n >= count || !fits)
                break;
        }
    *p = best.brought > 0 ? best : *p;
    return best.brought > 0;
}

/* Is any value handed on, by what the plan says of that? */
static bool hands_any(const space *x, const flow_plan *p)
{
    bool hands = false;
    for (size_t i = 0; i < x->f->value_count; i++)
        hands = hands || flow_handing_of(x->f, p, x->t, &x->f->values[i]).slices > 1;
    return hands;
}

/* The same with results that stay in DM until the loop has ended, only where that is faster by more than estimates differ by. Nothing of
 * the axis is padding then, and no slice has a part of what others have folded. */
static void consider_staying(space *x, const flow_plan *p)
{
    flow_plan of = *p;
    const size_t g = flow_looped_group(p);
    const flow_split *s = &p->split[g];
    if (g == FLOW_GROUPS_MAX || s->is_even || s->loop * s->padded != x->f->groups[g].size ||
        flow_left_of(x->f, p, &x->f->values[0]).slices > 1)
        return;
    of.split[g].stays = true;
    if (!fits(x, &of))
        return;
    flow_plan best = of;
    estimate(x, &best, limit_of(x, true));
    const bool is_brought = bring(x, &of);
    if (best.cycles >= limit_of(x, true) && (!is_brought || of.cycles >= limit_of(x, true)))
        return;
    flow_plan leaving = *p; /* whose estimate may have ended early */
    estimate(x, &leaving, INT64_MAX);
    const int64_t most = leaving.cycles - leaving.cycles / 32;
    if (best.cycles < most)
        keep(x, &best);
    if (is_brought && of.cycles < most)
        keep(x, &of);
}

/* Of all iterations, each tensor as few bytes as any way to share it leaves: no plan with these digits takes less. */
static int64_t least_copies(const space *x, const flow_plan *p)
{
    enum { WAYS = 8 };
    int64_t all = 0;
    const int64_t loop = loops_of(p);
    const unsigned looped = looped_bit(p);
    for (size_t k = 0; k < x->f->step_count; k++) {
        const flow_value *to = &x->f->values[x->f->steps[k].to];
        int64_t least = INT64_MAX;
        for (int way = 0; way < WAYS && x->f->steps[k].kind == FLOW_LOAD; way++) {
            flow_plan of = *p;
            of.rings = way & 1;
            of.hands = of.hands_kept = way & 2;
            of.ahead = way & 4;
            const bool inside = (to->has & looped) && !flow_comes_ahead(x->f, &of, x->t, to);
            least = smaller(least, copy_cycles(x, &of, to, false) * (inside ? loop : 1));
        }
        all += least < INT64_MAX ? least : 0;
    }
    return all;
}

/* The main context's passes in all iterations: no plan with these digits takes less. */
static int64_t least_passes(const space *x, const flow_plan *p)
{
    int64_t cycles = 0;
    for (size_t k = 0; k < x->f->step_count; k++)
        cycles += x->f->steps[k].kind == FLOW_PASS && !tune_flow_is_copy(x->f, &x->f->steps[k]) ? pass_cycles(x, p, k) : 0;
    return cycles * loops_of(p);
}

static bool any_halves(const space *x, const flow_plan *p)
{
    bool halves = false;
    for (size_t i = 0; i < x->f->value_count; i++)
        halves = halves || flow_hands_halves(x->f, p, x->t, &x->f->values[i]);
    return halves;
}

static bool any_twice(const space *x, const flow_plan *p)
{
    bool twice = false;
    for (size_t i = 0; i < x->f->value_count; i++)
        twice = twice || flow_comes_twice(x->f, p, x->t, &x->f->values[i]);
    return twice;
}

static bool any_ahead(const space *x, const flow_plan *p)
{
    bool ahead = false;
    for (size_t i = 0; i < x->f->value_count; i++)
        ahead = ahead || flow_comes_ahead(x->f, p, x->t, &x->f->values[i]);
    return ahead;
}

/* From group `g` on: slices that are left, whether clusters and iterations are given away, and whether slices share what is folded. */
static void consider(space *x, flow_plan *p, size_t g, int64_t slices, bool clusters, bool loops, bool folds)
{
    const flow_group *group = &x->f->groups[g];
    if (g == x->f->group_count) {
        budget_spend(x->a, 1);
        const int64_t limit = larger(limit_of(x, false), limit_of(x, true));
        if (!can_store(x, p) || least_passes(x, p) >= limit || least_copies(x, p) >= limit)
            return;
        bool fills = false;
        for (size_t i = 0; i < x->f->step_count; i++)
            fills = fills || x->f->steps[i].kind == FLOW_FILL;
        p->rings = true;
        bool rings = false;
        for (size_t i = 0; i < x->f->value_count; i++)
            rings = rings || flow_ring_of(x->f, p, x->t, &x->f->values[i]).slices > 1;
        p->hands = p->ahead = true;
        p->hands_kept = false;
        const bool hands = hands_any(x, p);
        p->hands = false;
        p->hands_kept = true;
        const bool kept = hands_any(x, p);
        p->rings = false;
        const bool ahead = any_ahead(x, p);
        const int by_main = fills ? 2 : 1, around = rings ? 2 : 1, handed = hands ? 3 : 1, fronts = ahead ? 2 : 1;
        for (int way = 0; way < by_main * around * handed * fronts * (kept ? 2 : 1); way++) {
            p->main_weights = fills && way % by_main;
            p->rings = way / by_main % around > 0;
            p->hands = way / by_main / around % handed > 0;
            p->halves = way / by_main / around % handed > 1;
            p->ahead = way / by_main / around / handed % fronts > 0;
            p->hands_kept = way / by_main / around / handed / fronts > 0;
            if ((p->halves && !any_halves(x, p)) || (p->rings && p->ahead && !any_ahead(x, p)))
                continue;
            if (!fits(x, p))
                continue;
            estimate(x, p, limit_of(x, false));
            keep(x, p);
            flow_plan twice = *p;
            twice.twice = p->halves && p->cycles < limit_of(x, false);
            if (twice.twice && any_twice(x, &twice)) {
                estimate(x, &twice, limit_of(x, false));
                keep(x, &twice);
            }
            consider_staying(x, p);
            flow_plan brought = *p;
            if (bring(x, &brought))
                keep(x, &brought);
        }
        return;
    }
    int64_t most_loops = loops || group->is_reduced || !(x->f->values[0].has >> g & 1) ? 1 : smaller(group->size, MOST_LOOPS);
    int64_t most_clusters = clusters || group->is_reduced ? 1 : x->t->clusters_per_chip;
    for (int64_t loop = 1; loop <= most_loops; loop++)
        for (int64_t cluster = 1; cluster <= most_clusters; cluster *= 2)
            for (int64_t slice = 1; slice <= (group->is_reduced && folds ? 1 : slices); slice *= 2)
                for (rest_way way = REST_EVEN; way < REST_WAYS; way++) /* of two equals the first is the one */
                    if (split_group(x, g, loop, cluster, slice, way, &p->split[g]))
                        consider(x, p, g + 1, slices / slice, clusters || cluster > 1, loops || loop > 1,
                                 folds || (group->is_reduced && slice > 1));
}

/* What a value is made of, itself too, a bit for each. Values come after what they are made of. */
static uint32_t made_of(const tune_flow *f, size_t value)
{
    uint32_t wanted = UINT32_C(1) << value;
    for (size_t v = f->value_count; v-- > 1;) {
        const flow_value *of = &f->values[v];
        if (!(wanted >> v & 1))
            continue;
        if (of->place == FLOW_STREAM)
            wanted |= UINT32_C(1) << of->rows | UINT32_C(1) << of->weights | (of->lying ? UINT32_C(1) << of->lying : 0);
        for (size_t i = 0; i < f->step_count; i++) {
            const flow_step *s = &f->steps[i];
            if (s->to != v || s->kind == FLOW_LOAD || s->kind == FLOW_ONES)
                continue;
            wanted |= UINT32_C(1) << s->from | operands_of(f, s);
        }
    }
    return wanted;
}

static int64_t elements_of(const tune_flow *f, const flow_value *v)
{
    int64_t elements = 1;
    for (size_t k = 0; k < v->count; k++)
        elements *= f->groups[v->groups[k]].size;
    return elements;
}

/* With every multiplier at work. */
static int64_t product_cycles(const target *t, const tune_flow *f, const flow_value *sums, int64_t slices)
{
    return elements_of(f, sums) * f->groups[sums->summed].size /
           (t->rows * t->mac_width_bytes * 8 / dtype_row_of(f->type)->bits * slices * t->clusters_per_chip);
}

/* The tensors that a value is made of, which come before it. */
static void take_operands(const tune_flow *f, size_t value, attainable_work *w)
{
    const uint32_t of = made_of(f, value);
    size_t operands = 0;
    memset(w->operand_bytes, 0, sizeof w->operand_bytes);
    for (size_t k = 1; k < f->value_count; k++)
        if ((of >> k & 1) && f->values[k].tensor && f->values[k].place == FLOW_DM && operands < ATTAINABLE_OPERANDS)
            w->operand_bytes[operands++] = bytes_of(f->values[k].type, elements_of(f, &f->values[k]));
    w->first_loads = (int64_t)operands;
}

/* The main context's passes for a softmax, none of which is part of another one: in which the sums leave the Reducer that it is of; over
 * the powers; and over the shares, or over the products with them. docs/timing.md, "A softmax". */
static int64_t softmax_cycles(const target *t, const tune_flow *f, const flow_softmax *x, int64_t slices)
{
    int64_t values = 1, before = 0, after = 0;
    for (size_t g = 0; g < f->group_count; g++)
        values *= x->has >> g & 1 ? f->groups[g].size : 1;
    const uint32_t of = made_of(f, x->of);
    bool is_of_sums = false;
    for (size_t i = 1; i < f->value_count; i++)
        if (f->values[i].place == FLOW_STREAM) {
            is_of_sums = is_of_sums || of >> i & 1;
            before += of >> i & 1 ? product_cycles(t, f, &f->values[i], slices) : 0;
            after += x->rows > 0 && f->values[i].rows == x->rows ? product_cycles(t, f, &f->values[i], slices) : 0;
        }
    const int64_t flits = values / ((int64_t)LANES * slices * t->clusters_per_chip), narrow = 2 * flits;
    return (is_of_sums ? larger(before, flits) : 0) + narrow + (x->rows > 0 ? after : narrow);
}

/* Of the last contraction a result needs its share of the products at least, and an element of what they are made of is in its share of
 * them, or in more, since the axes that both have agree. What is multiplied may go through the Vector Engine in the same pass. Of a softmax
 * the same is true of all its passes, and of what it is of. */
static attainable bound_of(const target *t, const tune_flow *f, timing_preset timing)
{
    attainable_work w = {.chips = 1, .stores = 1, .slices = tune_slices_of(t, f->most_slices)};
    int64_t most = 1, first_loads = 0;
    for (size_t i = 0; i < f->value_count; i++) {
        const flow_value *v = &f->values[i];
        int64_t elements = elements_of(f, v);
        w.loads += i > 0 && v->tensor;
        w.bytes += i == 0 || v->tensor ? bytes_of(v->type, elements) : 0;
        if (i == 0 && bytes_of(v->type, elements) % t->hbm_block_bytes != 0)
            w.ending_bytes = bytes_of(v->type, elements);
        most = larger(most, elements);
        if (v->place != FLOW_STREAM)
            continue;
        w.stored_mac_cycles = product_cycles(t, f, v, w.slices);
        w.mac_cycles += w.stored_mac_cycles;
        take_operands(f, i, &w);
        first_loads = first_loads > 0 ? smaller(first_loads, w.first_loads) : w.first_loads;
    }
    w.first_loads = first_loads;
    const int64_t stored_bytes = bytes_of(f->values[0].type, elements_of(f, &f->values[0]));
    w.stored_bytes = w.stored_mac_cycles > 0 ? stored_bytes : 0;
    const int64_t passes = most / ((int64_t)LANES * w.slices * t->clusters_per_chip);
    if (passes > w.mac_cycles) {
        w.mac_cycles = passes;
        w.first_loads = 1; /* these may have to do with one tensor alone */
    }
    attainable best = attainable_of(t, timing, &w);
    for (size_t i = 0; i < f->softmax_count; i++) {
        attainable_work of = w;
        of.stored_mac_cycles = of.mac_cycles = softmax_cycles(t, f, &f->softmaxes[i], w.slices);
        of.stored_bytes = stored_bytes;
        take_operands(f, f->softmaxes[i].of, &of);
        attainable one = attainable_of(t, timing, &of);
        best = one.cycles > best.cycles || (one.cycles == best.cycles && one.products > best.products) ? one : best;
    }
    return best;
}

static const char *describe(const tune_flow *f, const flow_plan *p, arena *a)
{
    strbuf out;
    strbuf_init(&out, a);
    for (size_t g = 0; g < f->group_count; g++)
        tune_describe_split(f->groups[g].text, &f->share[g], f->groups[g].size, p->split[g].loop, p->split[g].cluster, p->split[g].slice,
                            p->split[g].tile, p->split[g].loop * p->split[g].padded, &out);
    return out.text;
}

/* Plans of one question in several readings. */
typedef struct candidate {
    flow_plan plan;
    const tune_flow *f;
    bool is_first; /* of its reading: compiled whatever the budget, as few whose results stay are */
} candidate;

static int by_estimate(const void *a, const void *b)
{
    return ORDER(((const candidate *)a)->plan.cycles, ((const candidate *)b)->plan.cycles);
}

/* Of each reading the best by estimate, and of all these the best first. */
static candidate *find_candidates(const target *t, const tune_flow *readings, size_t count, arena *a, size_t *found)
{
    candidate *out = ARENA_ARRAY(a, candidate, count * (MOST_PLANS + MOST_STAYING));
    *found = 0;
    for (size_t r = 0; r < count; r++) {
        const tune_flow *f = &readings[r];
        space x = {.t = t,
                   .f = f,
                   .a = a,
                   .plans = ARENA_ARRAY(a, flow_plan, MOST_PLANS + 1),
                   .staying = ARENA_ARRAY(a, flow_plan, MOST_STAYING + 1)};
        flow_plan p = {0};
        for (size_t g = 0; g < f->group_count; g++) {
            x.unit[g] = flow_unit(f, t, g);
            p.split[g] = (flow_split){1, 1, 1, 2, 2, false, false};
        }
        for (size_t i = 0; i < f->step_count; i++) {
            tune_epilogue e = f->steps[i].kind == FLOW_PASS ? flow_passes(f, &p, &f->steps[i], a) : (tune_epilogue){0};
            x.passes[i] = e.count;
            x.operands[i] = operands_of(f, &f->steps[i]);
            x.gates[i] = tune_epilogue_has_gate(&e);
            x.stashes[i] = tune_epilogue_stashes(&e);
        }
        consider(&x, &p, 0, tune_slices_of(t, f->most_slices), false, false, false);
        for (size_t i = 0; i < x.count; i++)
            out[(*found)++] = (candidate){x.plans[i], f, i == 0};
        for (size_t i = 0; i < x.staying_count; i++)
            out[(*found)++] = (candidate){x.staying[i], f, false};
    }
    order_sort(out, *found, sizeof *out, by_estimate);
    return out;
}

/* Plans that were tried, and what the first one was refused for. */
typedef struct outcome {
    size_t tried;
    const char *first_refusal;
} outcome;

/* A kernel that takes fewer cycles than `cycles`; 0: any. */
static bool find_kernel(const target *t, const tune_flow *readings, size_t count, const visa_tune_options *o, int64_t cycles, arena *a,
                        outcome *all, tune_found *out)
{
    arena *scratch = arena_new_inside(a);
    size_t plan_count;
    const candidate *plans = find_candidates(t, readings, count, scratch, &plan_count);
    candidate best = {.f = NULL};
    tune_trial found = {.cycles = cycles};
    size_t tried = 0, refused = 0, skipped = 0;
    enum { SWITCHED_PART = 24 };
    uint64_t left = o->work;
    for (size_t i = 0; i < plan_count; i++) {
        if (found.cycles > 0 && plans[i].plan.cycles > found.cycles + found.cycles * ESTIMATE_ERROR_PERCENT / 100)
            break;
        const bool stays = flow_results_stay(&plans[i].plan);
        /* its estimate is short, if anything but that rows of HBM are switched */
        if (stays && found.cycles > 0 && plans[i].plan.cycles >= found.cycles + (left > 0 ? found.cycles / SWITCHED_PART : 0))
            continue;
        if (found.cycles > 0 && left == 0 && !stays && !(plans[i].is_first && cycles == 0)) {
            skipped++;
            continue;
        }
        arena_mark mark = arena_mark_here(scratch);
        tune_trial one = {.timing = tune_timing_of(o)};
        flow_write(plans[i].f, &plans[i].plan, t, "", NULL, scratch, &one.text);
        if (!tune_try_text(scratch, &one))
            break;
        tried++;
        refused += one.refusal != NULL;
        left -= stays ? 0 : (uint64_t)smaller((int64_t)left, (int64_t)one.steps);
        if (one.refusal && !all->first_refusal)
            all->first_refusal = arena_strdup(a, one.refusal);
        if (!one.refusal && (found.cycles == 0 || one.cycles < found.cycles)) {
            found.cycles = one.cycles;
            found.dma_cycles = one.dma_cycles;
            memcpy(found.text.steps, one.text.steps, sizeof one.text.steps);
            best = plans[i];
        }
        arena_rewind(scratch, mark);
        if (o->progress)
            o->progress(o->user, (int64_t)(o->work - left), (int64_t)o->work);
    }
    arena_free(scratch);
    all->tried = tried;
    if (!best.f)
        return false;
    tune_answer answer = {.timing = tune_timing_of(o),
                          .cycles = found.cycles,
                          .dma_cycles = found.dma_cycles,
                          .tried = tried,
                          .refused = refused,
                          .left = skipped};
    const tune_flow *f = best.f;
    attainable bound = bound_of(t, &readings[0], tune_timing_of(o)); /* other readings have products that a kernel can do without */
    const char *types = arena_printf(a, "in %s, worked on in %s, out %s.", dtype_row_of(f->type)->name, dtype_row_of(f->meets)->name,
                                     dtype_row_of(f->out_type)->name);
    tune_text text;
    flow_write(f, &best.plan, t, tune_head(f->e->text, types, "passes", &bound, &answer, describe(f, &best.plan, a), a), &found.text, a,
               &text);
    *out = (tune_found){text.text, answer.cycles, bound, types, "passes", tried, refused, skipped};
    return true;
}

bool flow_answer(const target *t, const tune_flow *readings, size_t count, const visa_tune_options *o, diag_list *diags, tune_found *out)
{
    outcome all = {0};
    return find_kernel(t, readings, count, o, 0, diags->arena, &all, out) ||
           tune_refuse_all(diags, tune_whole_range(readings->e->file, readings->e->text), all.tried, all.first_refusal);
}

bool flow_beats(const target *t, const tune_flow *readings, size_t count, const visa_tune_options *o, int64_t cycles, arena *a,
                tune_found *out)
{
    outcome all = {0};
    return count > 0 && find_kernel(t, readings, count, o, cycles, a, &all, out);
}
