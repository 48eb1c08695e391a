#include "libvisa/tune/plan_cycles.h"

#include "libvisa/tune/brought.h"
#include "libvisa/tune/machine.h"
#include "libvisa/tune/measured.h"
#include "libvisa/tune/scaled_write.h"
#include "libvisa/tune/widened.h"
#include "runtime/timing/hbm_address.h"
#include "support/integer.h"

/* Slices of a cluster that have positions of that axis, not padding alone, where one has most of them. */
static int64_t live_slices(const tune_question *q, const tune_plan *p, tune_role role)
{
    const tune_split *s = &p->split[role];
    int64_t of_cluster = tune_pads_inside(s, q->size[role]) ? ceil_div(q->size[role], s->loop * s->cluster) : q->size[role] / s->loop;
    return smaller(s->slice, ceil_div(of_cluster, s->tile));
}

/* Slices of a cluster that a copy is for, by digits. */
typedef struct copy_slices {
    int64_t count[TUNE_SUM];
} copy_slices;

/* Every one that works: of what slices share, those with padding get some, too. */
static copy_slices all_slices(const tune_plan *p)
{
    return (copy_slices){{p->split[TUNE_BATCH].slice, p->split[TUNE_ROW].slice, p->split[TUNE_COLUMN].slice}};
}

/* Those in the `window` neighbours that have most of them: under one DMN, or those of one DMA engine. */
static int64_t slices_within(const target *t, const tune_plan *p, const copy_slices *of, int64_t window)
{
    tune_role inner = tune_inner_role(p), outer = inner == TUNE_ROW ? TUNE_COLUMN : TUNE_ROW;
    int64_t group = t->slices_per_cluster / (p->split[TUNE_BATCH].slice * p->split[outer].slice); /* with the same rows, or columns */
    return group < window ? smaller(window / group, of->count[TUNE_BATCH] * of->count[outer]) * of->count[inner]
                          : smaller(of->count[inner], ceil_div(window, p->idle_inside));
}

/* What of a tensor in HBM a copy touches, and how often it goes over it. */
typedef struct region {
    int64_t rows, bytes, row_bytes;    /* of each row so many bytes, next to each other */
    int64_t group, group_step;         /* bytes: where rows lie in groups; 0: they follow each other */
    int64_t clusters, sweeps, outside; /* that have a part each, one after the other; each goes so often over its part; all of it again */
} region;

/* A copy between HBM and DM: what a slice has of it, and what of HBM it touches. */
typedef struct copy {
    int64_t pieces, bytes; /* contiguous runs of a slice, of so many bytes */
    copy_slices of;        /* that have them */
    int64_t stored;        /* bytes, all together */
    bool store, aligned;   /* aligned: pieces begin where blocks do */
    bool follow;           /* in HBM pieces of a slice follow each other */
    region hbm;
} copy;

static int64_t span_of(const region *r)
{
    return r->group_step > 0 ? r->rows * r->row_bytes / larger(1, r->group) * r->group_step : r->rows * r->row_bytes;
}

/* Whether addresses of the region differ in that bit. */
static bool varies(const region *r, int bit)
{
    int64_t value = INT64_C(1) << bit, group = r->group_step > 0 ? r->group : span_of(r);
    return value < r->bytes || (value < group && r->row_bytes % (2 * value) != 0) ||
           (r->group_step > 0 && value < span_of(r) && r->group_step % (2 * value) != 0);
}

/* Another direction that channels differ in: a basis, by highest bit. */
static bool add_direction(unsigned basis[], unsigned channel)
{
    for (int bit = 4; bit >= 0 && channel != 0; bit--)
        if (channel >> bit & 1) {
            if (basis[bit] == 0) {
                basis[bit] = channel;
                return true;
            }
            channel ^= basis[bit];
        }
    return false;
}

/* Bytes of which a bank has one row in each channel, of a region of `span` bytes; `basis`: what the bits below make of channels. */
static int64_t row_span(const unsigned basis[], int64_t span)
{
    unsigned more[5];
    int64_t bytes = INT64_C(1) << HBM_ROW_BIT;
    for (int i = 0; i < 5; i++)
        more[i] = basis[i];
    for (int bit = HBM_ROW_BIT; bit < HBM_ROW_BIT + HBM_CHANNEL_BITS && INT64_C(1) << bit < span; bit++)
        bytes *= add_direction(more, hbm_channel_of(INT64_C(1) << bit)) ? 2 : 1;
    return bytes;
}

static int64_t rows_of_channel(const unsigned basis[], int64_t span)
{
    return ceil_div(span, row_span(basis, span));
}

/* The times that a bank of a channel changes its row, at least while others are between: `*channels` of them are touched. */
static int64_t row_switches(const region *r, int64_t *channels)
{
    unsigned inside[5] = {0}, all[5] = {0};
    int64_t span = span_of(r), banks = 1;
    *channels = 1;
    for (int bit = HBM_BLOCK_BITS; bit < HBM_ROW_BIT; bit++) {
        int64_t value = INT64_C(1) << bit;
        if (!varies(r, bit))
            continue;
        bool of_bank = hbm_bank_of(value) != 0;
        banks *= of_bank ? 2 : 1;
        if (!of_bank)
            add_direction(inside, hbm_channel_of(value));
        *channels *= add_direction(all, hbm_channel_of(value)) ? 2 : 1;
    }
    for (int bit = HBM_ROW_BIT; bit < HBM_ROW_BIT + HBM_CHANNEL_BITS && INT64_C(1) << bit < span; bit++)
        *channels *= add_direction(all, hbm_channel_of(INT64_C(1) << bit)) ? 2 : 1;
    int64_t rows = rows_of_channel(inside, span), part = rows_of_channel(inside, span / r->clusters);
    if (rows == 1)
        return 0;
    int64_t visits = (part > 1 ? part * r->sweeps : 1) * r->clusters;
    int64_t one = row_span(inside, span);
    if (visits <= rows && r->outside == 1) /* of the last rows some banks have none */
        return banks * (span - one) / one;
    return banks * (larger(rows, visits) * r->outside - 1);
}

/* Blocks that are touched once or more. */
static int64_t blocks_of(const target *t, const region *r)
{
    if (r->group_step > r->group && r->group_step >= t->hbm_block_bytes)
        return r->rows * r->row_bytes / r->group * ceil_div(r->group, t->hbm_block_bytes);
    return r->row_bytes <= t->hbm_block_bytes || r->bytes == r->row_bytes ? ceil_div(r->rows * r->row_bytes, t->hbm_block_bytes)
                                                                          : r->rows * ceil_div(r->bytes, t->hbm_block_bytes);
}

/* The busiest channel: runs of a load are cut into bursts, those of a store write blocks in whole or in part. */
static int64_t channel_millicycles(const target *t, const copy *c, int64_t pieces)
{
    int64_t block = t->hbm_block_bytes, whole = block / t->hbm_burst_bytes * t->hbm_burst_millicycles, channels;
    int64_t switches = row_switches(&c->hbm, &channels), blocks = larger(1, blocks_of(t, &c->hbm));
    if (!c->store || (c->aligned && c->bytes % block == 0)) {
        int64_t of_channel = ceil_div(blocks, channels),
                cycles = of_channel * ceil_div(pieces * ceil_div(c->bytes, t->hbm_burst_bytes), blocks) * t->hbm_burst_millicycles;
        int64_t touches = of_channel * ceil_div(pieces * ceil_div(c->bytes, block), blocks),
                more = t->hbm_row_switch_cycles * 1000 - cycles / touches;
        return cycles + smaller(switches, touches) * more;
    }
    int64_t in_two = c->bytes >= block ? pieces : block % c->bytes != 0 ? ceil_div(pieces * c->bytes, block) : 0;
    blocks = smaller(blocks, pieces + in_two);
    return ceil_div(blocks, t->hbm_channels) * ceil_div(pieces + in_two, blocks) * whole * t->hbm_partial_write_factor;
}

/* By the timing of what was measured. */
static int64_t copy_cycles_measured(const target *t, const tune_plan *p, const copy *c, int64_t one_of)
{
    int64_t of_engine = t->dm_slices_per_dmn * t->dma_dmns_per_engine, engines = t->slices_per_cluster / of_engine,
            slices = ceil_div(c->of.count[TUNE_BATCH] * c->of.count[TUNE_ROW] * c->of.count[TUNE_COLUMN], one_of),
            within = larger(1, ceil_div(slices_within(t, p, &c->of, of_engine), one_of));
    measured_copy x = {.pieces = c->pieces,
                       .bytes = c->bytes,
                       .run = c->follow ? c->pieces * c->bytes : c->bytes,
                       .slices = slices * tune_clusters_of(p),
                       .engines = smaller(engines, ceil_div(slices, within)) * tune_clusters_of(p),
                       .clusters = tune_clusters_of(p),
                       .distinct = c->store ? c->stored : c->hbm.rows * c->hbm.bytes / c->hbm.clusters * tune_clusters_of(p),
                       .is_store = c->store,
                       .is_aligned = c->aligned && c->bytes % t->hbm_block_bytes == 0};
    return measured_copy_cycles(t, &x);
}

/* Every DMN delivers to its slices, or one of so many, every DMA engine makes the requests of its two DMNs, every channel has its blocks;
 * the slowest. */
static int64_t copy_cycles_for(const target *t, const tune_question *q, const tune_plan *p, const copy *c, int64_t one_of)
{
    if (tune_is_measured(q))
        return copy_cycles_measured(t, p, c, one_of);
    int64_t engine = c->pieces * ceil_div(slices_within(t, p, &c->of, t->dm_slices_per_dmn * t->dma_dmns_per_engine), one_of) *
                     ceil_div(c->bytes, t->dma_request_bytes);
    int64_t dmn =
        c->pieces * ceil_div(slices_within(t, p, &c->of, t->dm_slices_per_dmn), one_of) * ceil_div(c->bytes, t->dmn_bytes_per_cycle);
    int64_t slices = c->of.count[TUNE_BATCH] * c->of.count[TUNE_ROW] * c->of.count[TUNE_COLUMN];
    int64_t pieces = c->pieces * (slices / one_of) * tune_clusters_of(p); /* with padding, of which a store writes nothing */
    int64_t channel = ceil_div(channel_millicycles(t, c, c->store ? smaller(pieces, ceil_div(c->stored, c->bytes)) : pieces), 1000);
    return t->dma_startup_cycles + larger(engine, larger(dmn, channel));
}

static int64_t copy_cycles(const target *t, const tune_question *q, const tune_plan *p, const copy *c)
{
    return copy_cycles_for(t, q, p, c, 1);
}

/* Positions of a kept axis in one iteration. */
static int64_t loaded_at_once(const tune_question *q, const tune_plan *p, tune_role role)
{
    return q->size[role] / p->split[role].loop;
}

/* An operand goes to slices that have positions of its own axis; those that share it have it spread, with or without padding of theirs. */
static copy_slices slices_of_load(const tune_question *q, const tune_plan *p, tune_role role)
{
    copy_slices of = all_slices(p);
    of.count[role] = live_slices(q, p, role);
    of.count[TUNE_BATCH] = live_slices(q, p, TUNE_BATCH);
    return of;
}

/* Without an exchange a slice writes what it has computed. */
static copy_slices slices_of_store(const tune_question *q, const tune_plan *p)
{
    copy_slices of = all_slices(p);
    for (int role = TUNE_BATCH; role < TUNE_SUM && p->regroup == 1 && (p->joined == 1 || !p->results_stay); role++)
        of.count[role] = live_slices(q, p, (tune_role)role);
    if (!p->results_stay) /* one of those that join their columns */
        of.count[TUNE_COLUMN] = ceil_div(of.count[TUNE_COLUMN], p->joined);
    return of;
}

/* Of an operand, in a load. Slices of columns are inside those of rows, or the other way, and those inside clusters. */
static region region_of_load(const target *t, const tune_question *q, const tune_plan *p, tune_role role)
{
    int64_t batches = loaded_at_once(q, p, TUNE_BATCH), kept = loaded_at_once(q, p, role) * (role == TUNE_ROW ? tune_rows_at_once(p) : 1),
            sums = smaller(q->size[TUNE_SUM], role == TUNE_ROW ? tune_sum_of_rows(p) : tune_sum_part(p));
    const tune_split *s = &p->split[role], *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    bool again = role == tune_inner_role(p); /* each slice of the outer role goes over all of the inner one */
    region r = {.clusters = s->cluster, .sweeps = again ? p->split[role == TUNE_ROW ? TUNE_COLUMN : TUNE_ROW].slice : 1};
    r.outside = role == TUNE_COLUMN ? row->cluster : column->cluster;
    if (role == TUNE_ROW && tune_rows_at_once(p) > 1) /* each slice goes over all of it */
        r.sweeps = row->slice * p->ring_rows;
    if (p->aside[role] > 0) {
        int64_t block = tune_aside_of(t, q, p, role).block;
        r.rows = kept / smaller(block, kept) * (sums / p->flit);
        r.bytes = tune_bytes_of(q->type, smaller(block, kept) * p->flit);
        r.row_bytes = tune_bytes_of(q->type, block * p->flit);
        if (block <= kept) /* what is loaded at once is in one piece */
            return r;
        r.sweeps *= s->slice;
        r.clusters = 1;
        r.outside *= s->cluster;
        return r;
    }
    if (tune_lies_turned(q, p, role)) {
        r.rows = batches * sums;
        r.bytes = tune_bytes_of(tune_stored_of(q, role), kept);
        r.row_bytes = tune_bytes_of(tune_stored_of(q, role), q->size[role]);
        r.sweeps *= s->slice;
        r.clusters = 1;
        r.outside *= s->cluster;
        return r;
    }
    r.rows = batches * kept;
    const dtype stored = tune_stored_of(q, role);
    r.bytes = tune_bytes_of(stored, sums);
    r.row_bytes = tune_is_free(q, role) ? r.bytes : tune_bytes_of(stored, q->size[TUNE_SUM]);
    if (tune_columns_stay(p, role) && !tune_is_free(q, role)) {
        r.group = s->tile * r.row_bytes;
        r.group_step = tune_slice_stride(p, role) * r.row_bytes;
    }
    return r;
}

typedef struct piece_times {
    int64_t aside_in, turn_aside, aside_out, aside; /* of operands that are turned once: copies, and all up to the last one of a part */
    int64_t rows, turn_rows, weights, turn_weights, store_weights, multiply, sums, passes, regroup, close, store, row_extras, column_extras,
        handed,  /* by the sub context */
        bitmaps; /* before the first of them: copies stand still meanwhile, too */
} piece_times;

/* The longest run of a copy: rows that follow each other both in HBM and in a slice, at most a packet of them. */
static int64_t run_of(const target *t, int64_t row_bytes, int64_t rows, bool whole_rows, int64_t *pieces)
{
    int64_t joined = whole_rows ? larger(1, smaller(rows, t->dma_packet_max_bytes / larger(1, row_bytes))) : 1;
    while (rows % joined != 0)
        joined--;
    *pieces = rows / joined;
    return row_bytes * joined;
}

/* The same of a tensor that lies turned: `tile` positions of its kept axis follow each other, `sums` times. Slices that share rows have
 * every so manyth of them. */
static int64_t run_of_turned(const target *t, dtype stored, const tune_split *s, int64_t tile, int64_t sums, bool shared, int64_t *pieces)
{
    return run_of(t, tune_bytes_of(stored, tile), sums, s->padded == tile && !shared, pieces);
}

/* Of the padding after a whole sum that lies turned nothing is copied, and whole blocks are not turned. */
static int64_t turned_sums(const tune_question *q, const tune_plan *p, int64_t sums, int64_t block)
{
    return sums == p->sum_padded ? round_up(q->size[TUNE_SUM], block) : sums;
}

/* Through the Transpose Engine, and around rings of `gather` slices where there are some. */
static int64_t turn_cycles(const target *t, const tune_question *q, int64_t tile, int64_t sums, int64_t gather)
{
    int64_t fill = 4, in = tile * sums / tune_turn_columns(q, tile), out = tile * sums / tune_turn_rows(t, q);
    return fill + larger(gather > 1 ? in * gather : in, out);
}

/* Positions of a kept axis in one store. */
static int64_t stored_at_once(const tune_question *q, const tune_plan *p, tune_role role)
{
    return role == TUNE_COLUMN && p->results_stay ? q->size[role] : loaded_at_once(q, p, role);
}

/* Of the result, in a store. */
static region region_of_store(const tune_question *q, const tune_plan *p)
{
    int64_t columns = stored_at_once(q, p, TUNE_COLUMN);
    return (region){.rows = stored_at_once(q, p, TUNE_BATCH) * stored_at_once(q, p, TUNE_ROW),
                    .bytes = tune_bytes_of(q->out_type, columns),
                    .row_bytes = tune_bytes_of(q->out_type, q->tensors[TUNE_OUT].is_free ? columns : q->size[TUNE_COLUMN]),
                    .clusters = 1,
                    .sweeps = 1, /* loops of a copy are in the order of its destination */
                    .outside = 1};
}

static int64_t stored_bytes(const tune_question *q, const tune_plan *p)
{
    return tune_bytes_of(q->out_type,
                         stored_at_once(q, p, TUNE_BATCH) * stored_at_once(q, p, TUNE_ROW) * stored_at_once(q, p, TUNE_COLUMN));
}

/* Of an axis whose last slice or cluster has less than the others: that is a command of its own. Slices at the end that have nothing are
 * left out of a command, but where it would have more of them in one cluster than in another one. */
static int64_t commands_of(const tune_question *q, const tune_plan *p, tune_role role)
{
    const tune_split *s = &p->split[role];
    int64_t parts = s->cluster * s->slice;
    if (p->regroup > 1)
        parts = role == TUNE_COLUMN ? parts / p->regroup : role == TUNE_ROW ? parts * p->regroup : parts;
    if (role == TUNE_COLUMN && !p->results_stay)
        parts /= p->joined;
    if (s->loop > 1 || s->apart || parts == 1 || s->padded == q->size[role])
        return 1;
    int64_t of_part = s->padded / parts, live = ceil_div(q->size[role], of_part), of_cluster = parts / s->cluster;
    return q->size[role] % of_part != 0 || (live > of_cluster && live % of_cluster != 0) ? 2 : 1;
}

static int64_t store_cycles(const target *t, const tune_question *q, const tune_plan *p, const copy *c)
{
    int64_t commands = commands_of(q, p, TUNE_BATCH) * commands_of(q, p, TUNE_ROW) * commands_of(q, p, TUNE_COLUMN);
    return copy_cycles(t, q, p, c) + (commands - 1) * tune_start_cycles(t, q);
}

/* A copy of an operand of what is done to the sums: for each slice, for one of those that hand it on, or a part for some of them. */
static int64_t extra_cycles(const target *t, const tune_question *q, const tune_plan *p, const tune_extra *e)
{
    bool is_handed = tune_is_handed_on(p, e);
    int64_t parts = is_handed ? larger(1, p->hand_parts) : 1, one_of = is_handed ? p->handed / parts : 1;
    int64_t pieces = e->groups_first                           ? e->groups
                     : e->has[TUNE_ROW] && e->has[TUNE_COLUMN] ? p->split[TUNE_ROW].tile
                                                               : 1,
            elements = e->groups, iterations = tune_comes_once(p, e) ? p->split[TUNE_COLUMN].loop : 1;
    for (int role = TUNE_BATCH; role < TUNE_SUM; role++)
        elements *= e->has[role] ? loaded_at_once(q, p, (tune_role)role) * (role == TUNE_COLUMN ? iterations : 1) : 1;
    copy of = {.pieces = pieces * iterations,
               .bytes = tune_bytes_of(e->type, tune_elements_of_extra(e, p) / pieces / parts),
               .of = all_slices(p),
               .hbm = {.rows = 1,
                       .bytes = tune_bytes_of(e->type, elements),
                       .row_bytes = tune_bytes_of(e->type, elements),
                       .clusters = 1,
                       .sweeps = 1,
                       .outside = 1}};
    return copy_cycles_for(t, q, p, &of, one_of);
}

/* Around the rings in which slices hand one on: every packet passes all of them, and what is padding is received, too, by the sub
 * context's 8 bytes a cycle. */
static int64_t handing_cycles(const target *t, const tune_plan *p)
{
    enum { SUB_ACCESSES = 4 }; /* of a flit */
    int64_t groups = ceil_div(p->split[TUNE_COLUMN].tile, t->rows);
    return larger(tune_handing_ring(t, p) * groups / larger(1, p->hand_parts), groups * tune_hand_padding(p) * SUB_ACCESSES);
}

/* Copies of all operands that are handed on; *rings: what they take around. */
static int64_t cycles_of_handing(const target *t, const tune_question *q, const tune_plan *p, int64_t *rings)
{
    int64_t cycles = *rings = p->hand_parts == 0 ? t->snoop_load_cycles : 0;
    for (size_t i = 0; i < q->extra_count; i++)
        if (tune_is_handed_on(p, &q->extras[i])) {
            cycles += extra_cycles(t, q, p, &q->extras[i]);
            *rings += handing_cycles(t, p);
        }
    return cycles;
}

/* Slices that are handed on to are one digit, as named topologies have it: of rows, or all batches and rows where these are side by side.
 */
static bool can_name_handing(const tune_plan *p)
{
    int64_t rows = p->split[TUNE_ROW].slice;
    return p->handed <= rows || (tune_inner_role(p) != TUNE_ROW && p->handed == rows * p->split[TUNE_BATCH].slice);
}

size_t tune_handings(const target *t, const tune_question *q, const tune_plan *p, tune_plan *out)
{
    const tune_split *row = &p->split[TUNE_ROW];
    int64_t alike = row->slice * p->split[TUNE_BATCH].slice, groups = ceil_div(p->split[TUNE_COLUMN].tile, t->rows);
    tune_plan of = *p, quiet = *p, best = *p, all = *p;
    int64_t least_copies = INT64_MAX, least = INT64_MAX, rings;
    bool pads = tune_pads_inside(&p->split[TUNE_COLUMN], q->size[TUNE_COLUMN]);
    for (of.handed = 2; of.handed <= alike; of.handed *= 2)
        for (of.hand_parts = smaller(of.handed, pads ? 1 : groups & -groups); of.hand_parts >= 1; of.hand_parts /= 2) {
            if (!can_name_handing(&of) || tune_vrf_of_operands(q, &of) > t->vrf_bytes)
                continue;
            int64_t copies = cycles_of_handing(t, q, &of, &rings);
            best = copies + rings < least ? of : best;
            least = smaller(least, copies + rings);
            quiet = 4 * copies + rings < least_copies ? of : quiet;
            least_copies = smaller(least_copies, 4 * copies + rings);
        }
    size_t count = 0;
    if (best.handed > 1)
        out[count++] = best;
    if (quiet.handed != best.handed || quiet.hand_parts != best.hand_parts)
        out[count++] = quiet;
    all.handed = alike;
    all.hand_parts = 0;
    bool ends_in_padding = p->spreads && alike * p->split[TUNE_COLUMN].slice < t->slices_per_cluster;
    if (!ends_in_padding && cycles_of_handing(t, q, &all, &rings) + rings < least)
        out[count++] = all;
    return count;
}

/* A pass over values in DM, after the one that the sums go through; and copies of its operands, those of columns once with the weights. */
static void add_epilogue(const target *t, const tune_question *q, const tune_plan *p, int64_t out, piece_times *x)
{
    enum { FILL = 16 };
    const tune_epilogue *e = tune_epilogue_of(q, p->sum_loop, p->sums_wait);
    x->passes = x->row_extras = x->column_extras = x->handed = x->bitmaps = 0;
    for (size_t i = 0; i < e->count; i++) {
        int64_t flits = e->passes[i].narrow.count > 0 ? 2 * out : out;
        if (i > 0)
            x->passes += FILL + flits;
        else
            x->multiply = larger(x->multiply, flits * (q->folds_groups ? tune_groups_of(q) : 1));
    }
    for (size_t i = 0; i < q->extra_count; i++) {
        const tune_extra *one = &q->extras[i];
        bool is_handed = tune_is_handed_on(p, one);
        x->handed += is_handed ? handing_cycles(t, p) : 0;
        x->bitmaps = is_handed && p->hand_parts == 0 ? t->snoop_load_cycles : x->bitmaps;
        *(one->has[TUNE_ROW] ? &x->row_extras : &x->column_extras) += extra_cycles(t, q, p, one);
    }
}

void tune_aside_cycles(const target *t, const tune_question *q, const aside *x, int64_t *in, int64_t *turn, int64_t *out)
{
    enum { FILL = 8 };
    aside_turners of = aside_turners_of(t, q, x);
    int64_t kept = x->kept, slices = of.of_sum * of.of_kept, flit = aside_flit_of(t, q), block = smaller(kept, x->block);
    tune_plan alike = {.split = {{.slice = 1}, {.slice = of.of_sum, .cluster = of.clusters}, {.slice = of.of_kept, .cluster = 1}},
                       .idle_inside = t->slices_per_cluster / slices};
    alike.split[TUNE_BATCH].cluster = 1;
    region all = {.rows = 1, .clusters = 1, .sweeps = 1, .outside = 1};
    all.bytes = all.row_bytes = tune_bytes_of(q->type, x->sums * q->size[x->role]);
    copy load = {.pieces = of.sums, .bytes = tune_bytes_of(q->type, kept), .of = all_slices(&alike), .hbm = all}, store = load;
    store.pieces = of.sums / flit * (kept / block);
    store.bytes = tune_bytes_of(q->type, block * flit);
    store.store = store.aligned = true;
    store.stored = all.bytes;
    *in = copy_cycles(t, q, &alike, &load);
    *turn = FILL + larger(of.sums * kept / tune_turn_columns(q, kept), of.sums * kept / tune_turn_rows(t, q));
    *out = copy_cycles(t, q, &alike, &store);
}

/* A part of the sum of an operand. */
static void add_aside(const target *t, const tune_question *q, const tune_plan *p, tune_role role, piece_times *x)
{
    int64_t in, turn, out;
    if (p->aside[role] == 0)
        return;
    aside one = tune_aside_of(t, q, p, role);
    tune_aside_cycles(t, q, &one, &in, &turn, &out);
    x->aside_in += in;
    x->turn_aside += turn;
    x->aside_out += out;
    x->aside += in + out + (x->aside > 0 ? 0 : turn);
}

/* Weights around the rings of slices that share them, by the main context, which writes less than a flit by words. What is padding goes
 * around, too. */
static int64_t sharing_cycles(const target *t, const tune_question *q, const tune_plan *p)
{
    enum { WORD_BYTES = 8 };
    int64_t bytes = tune_column_bytes(q, p), packets = p->split[TUNE_COLUMN].tile * ceil_div(bytes, t->flit_bytes),
            words = bytes < t->flit_bytes ? bytes / WORD_BYTES : 1;
    return packets * p->column_sharers * larger(words, tune_hand_inside(t, p));
}

/* Rows around the rings of those that share them: each slice sends its part, and padding where others have parts. */
static int64_t row_sharing_cycles(const tune_plan *p)
{
    enum { FILL = 9, SUB_ACCESSES = 4 /* of a flit */ };
    int64_t sent = p->split[TUNE_ROW].tile * (p->sum_padded / p->flit) / p->row_parts, all = sent * p->row_sharers * p->idle_inside,
            got = sent * p->row_sharers * (p->rows_by_sub ? SUB_ACCESSES : 1);
    return p->row_sharers == 1 ? 0 : FILL + larger(all, got);
}

/* Passes of the contexts: what needs no copy to be known. Copies have their starts, the least that they take. */
static piece_times passes_of(const target *t, const tune_question *q, const tune_plan *p)
{
    const tune_split *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    int64_t packets = tune_sum_part(p) / p->packet, tiles = column->tile / p->lanes, flits = p->packet / p->flit;
    int64_t part_of_ring = tune_sum_part(p) / p->ring_sums, blocks = tune_turn_rows(t, q);
    piece_times x = {.rows = tune_start_cycles(t, q), .weights = tune_start_cycles(t, q), .store = tune_start_cycles(t, q)};
    tune_spread of;
    tune_spread_of(t, q, p, &of);
    int64_t part_of_spread = tune_sum_part(p) / of.sums;
    x.store_weights = tune_bytes_of(q->type, column->tile * tune_sum_part(p)) / (p->main_weights ? t->flit_bytes : t->flit_bytes / 4);
    x.turn_rows =
        !tune_lies_turned(q, p, TUNE_ROW) ? 0 : turn_cycles(t, q, row->tile / p->ring_rows, turned_sums(q, p, part_of_ring, blocks), 1);
    if (p->row_sharers > 1)
        x.turn_rows = row_sharing_cycles(p);
    x.turn_weights =
        !tune_lies_turned(q, p, TUNE_COLUMN)
            ? 0
            : turn_cycles(t, q, tune_turned_tile(q, column->tile), turned_sums(q, p, part_of_spread, larger(blocks, p->gather)), p->gather);
    if (p->column_sharers > 1)
        x.turn_weights = sharing_cycles(t, q, p);
    x.turn_weights += widened_cycles(q, TUNE_COLUMN, column->tile * tune_sum_part(p) / tune_spread_slices(p));
    x.turn_rows += widened_cycles(q, TUNE_ROW, row->tile * tune_sum_part(p) / (p->ring_rows * p->ring_sums));
    for (size_t i = 0; i < q->extra_count; i++)
        x.turn_weights += scaled_turn_cycles(t, &q->extras[i], q->extras[i].has[TUNE_ROW] ? row->tile : 1, column->tile);
    int64_t in = row->tile * packets * larger(flits, tiles), out = row->tile * tiles,
            ring = p->rings ? row->tile * packets * flits * (p->idle_inside > 1 ? p->idle_inside : 1) : 0;
    x.multiply = 9 + larger(in, larger(out, ring)) + (row->tile == 1 && row->loop == 1 ? out : 0);
    x.sums = p->sum_loop > 1 ? 4 * row->tile * column->tile / (t->flit_bytes / 4) : 0; /* into the VRF, by the sub context */
    int64_t most = t->flit_bytes * 8 / dtype_row_of(q->out_type)->bits;
    int64_t packet = p->results_stay ? p->lanes : largest_divisor(column->tile, most),
            around = larger(p->regroup, p->joined * p->idle_inside),
            accesses = p->by_sub ? ceil_div(tune_bytes_of(q->out_type, packet), t->flit_bytes / 4) : 1;
    x.regroup = p->regroup * p->joined > 1 ? row->tile * column->tile / packet * larger(around, accesses) : 0;
    int64_t closing = tune_closing_packet(t, q, p), closed = row->tile / p->regroup;
    x.close = closing == 0 ? 0
                           : closed * q->size[TUNE_COLUMN] / closing *
                                 (p->by_sub ? ceil_div(tune_bytes_of(q->out_type, closing), t->flit_bytes / 4) : 1);
    return x;
}

/* Pieces of a copy in runs of so many elements, which follow nothing; 0: as they are. */
static void deal(const tune_question *q, copy *c, int64_t elements)
{
    int64_t run = tune_bytes_of(q->type, elements);
    if (run == 0)
        return;
    c->pieces = c->pieces * c->bytes / run;
    c->bytes = run;
    c->follow = false;
}

/* Passes by the asked timing. */
static piece_times priced(const tune_question *q, const tune_plan *p, const piece_times *x)
{
    piece_times y = *x;
    if (!tune_is_measured(q))
        return y;
    int64_t steps = p->split[TUNE_ROW].tile * (tune_sum_part(p) / p->packet) * (p->split[TUNE_COLUMN].tile / p->lanes);
    int64_t extra_passes = larger(0, (int64_t)tune_epilogue_of(q, p->sum_loop, p->sums_wait)->count - 1);
    y.turn_aside = tune_pass_cycles(q, MEASURED_PASS, x->turn_aside);
    y.turn_rows = tune_pass_cycles(q, MEASURED_PASS, x->turn_rows);
    y.turn_weights = tune_pass_cycles(q, MEASURED_PASS, x->turn_weights);
    y.store_weights = tune_pass_cycles(q, MEASURED_PASS, x->store_weights);
    y.multiply =
        tune_pass_cycles(q, p->rings ? MEASURED_SWITCH : MEASURED_CONTRACTION, larger(x->multiply, steps * measured_step_cycles()));
    y.sums = tune_pass_cycles(q, MEASURED_PASS, x->sums);
    y.passes = tune_pass_cycles(q, MEASURED_PASS, x->passes) + larger(0, extra_passes - 1) * tune_pass_cycles(q, MEASURED_PASS, 1);
    y.regroup = tune_pass_cycles(q, MEASURED_PASS, x->regroup);
    y.close = tune_pass_cycles(q, MEASURED_PASS, x->close);
    y.handed = tune_pass_cycles(q, MEASURED_PASS, x->handed);
    y.aside = x->aside_in + x->aside_out + y.turn_aside;
    return y;
}

/* Results that a copy brings together, and their store: that copy takes turns between what it reads and what it writes. */
static int64_t brought_cycles(const target *t, const tune_question *q, const tune_plan *p)
{
    const tune_split *column = &p->split[TUNE_COLUMN], of = tune_brought_split(q, p);
    tune_role role = tune_brought_role(q, p);
    int64_t count = q->size[role] / of.loop,
            run = tune_bytes_of(q->out_type, smaller(q->size[TUNE_COLUMN], column->tile * tune_iterations_that_stay(p))),
            of_slice = p->split[TUNE_ROW].tile, requests = ceil_div(run, t->dma_request_bytes), parts = ceil_div(count, of.tile);
    copy_slices from = slices_of_store(q, p);
    int64_t steps = of_slice * slices_within(t, p, &from, t->dm_slices_per_dmn * t->dma_dmns_per_engine) * requests;
    int64_t all = stored_bytes(q, p) / larger(1, run), out = of_slice * slices_within(t, p, &from, t->dm_slices_per_dmn);
    int64_t dmn = larger(out, ceil_div(all, smaller(parts, tune_dmns_of(t) * of.cluster))) * ceil_div(run, t->dmn_bytes_per_cycle);
    int64_t commands = commands_of(q, p, TUNE_BATCH) * commands_of(q, p, TUNE_ROW) * commands_of(q, p, TUNE_COLUMN);
    int64_t rests = parts > 1 && count % of.tile != 0 ? 2 : 1;
    return commands * rests * tune_start_cycles(t, q) + larger(2 * steps, dmn) + tune_whole_store_cycles(t, q, p);
}

/* The copy of weights: for each slice, a part for those that share them, or all for one of these. */
static int64_t weights_cycles(const target *t, const tune_question *q, const tune_plan *p)
{
    const tune_split *column = &p->split[TUNE_COLUMN];
    int64_t k = p->sum_loop > 1 ? tune_sum_part(p) : tune_sum_in_hbm(q, p), pieces, run;
    bool whole = p->sum_padded == k;
    tune_spread of;
    tune_spread_of(t, q, p, &of);
    int64_t side = p->spreads ? p->lanes / of.lanes : column->tile, part_of_spread = tune_sum_part(p) / of.sums; /* columns side by side */
    run = run_of(t, tune_bytes_of(tune_stored_of(q, TUNE_COLUMN), of.sums > 1 ? part_of_spread : k), side,
                 tune_is_dense(q, p, TUNE_COLUMN) || (whole && of.sums == 1) || tune_is_one_run(q, p, TUNE_COLUMN), &pieces);
    pieces *= column->tile / (of.lanes * of.groups * side);
    if (tune_lies_turned(q, p, TUNE_COLUMN))
        run = run_of_turned(t, tune_stored_of(q, TUNE_COLUMN), column, tune_turned_tile(q, column->tile) * p->gather,
                            turned_sums(q, p, part_of_spread, p->gather) / p->gather, p->gather > 1, &pieces);
    if (p->aside[TUNE_COLUMN] > 0) {
        run = run_of(t, tune_bytes_of(q->type, side * p->flit), part_of_spread / p->flit, tune_aside_of(t, q, p, TUNE_COLUMN).block == side,
                     &pieces);
        pieces *= column->tile / (of.lanes * of.groups * side);
    }
    copy c = {.pieces = pieces, .bytes = run, .of = slices_of_load(q, p, TUNE_COLUMN), .hbm = region_of_load(t, q, p, TUNE_COLUMN)};
    c.follow = whole && of.sums == 1 && side == column->tile;
    deal(q, &c, tune_free_block(t, q, p, TUNE_COLUMN, part_of_spread));
    deal(q, &c, tune_free_columns(t, q, p) > 0 ? t->hbm_block_bytes * 8 / dtype_row_of(q->type)->bits : 0);
    deal(q, &c, tune_dealt_block(t, q, p, TUNE_COLUMN));
    deal(q, &c, tune_dealt_columns(t, q, p) * p->sum_padded);
    return copy_cycles_for(t, q, p, &c, larger(1, p->column_sharers));
}

/* The copy of rows that share nothing or are taken around, in runs of so many elements of the sum. */
static int64_t shared_rows_cycles(const target *t, const tune_question *q, const tune_plan *p)
{
    int64_t rows = p->split[TUNE_ROW].tile, part = p->sum_padded / p->row_parts;
    copy c = {.pieces = rows,
              .bytes = tune_bytes_of(q->type, part),
              .of = slices_of_load(q, p, TUNE_ROW),
              .hbm = region_of_load(t, q, p, TUNE_ROW)};
    return copy_cycles_for(t, q, p, &c, p->row_sharers / p->row_parts);
}

bool tune_share_rows(const target *t, const tune_question *q, tune_plan *p)
{
    tune_plan x = *p;
    x.row_sharers = x.row_parts = 1;
    x.brought = 0;
    if (p->split[TUNE_COLUMN].slice == 1 || !tune_plan_complete(t, q, &x) || !tune_can_share_rows(q, &x))
        return false;
    piece_times passes = passes_of(t, q, &x), of = priced(q, &x, &passes);
    int64_t least = INT64_MAX, weights = weights_cycles(t, q, &x), alone = shared_rows_cycles(t, q, &x);
    for (x.row_sharers = 1; x.row_sharers <= x.split[TUNE_COLUMN].slice; x.row_sharers *= 2)
        for (x.row_parts = 1; x.row_parts <= x.row_sharers; x.row_parts *= 2) {
            if (!tune_can_share_rows(q, &x))
                continue;
            /* they go around while weights are copied, or come after these, while main fills the TRF */
            int64_t copied = x.row_sharers == 1 ? alone : shared_rows_cycles(t, q, &x),
                    around = tune_pass_cycles(q, MEASURED_PASS, row_sharing_cycles(&x));
            int64_t cycles = !p->columns_outside || p->rows_ahead ? copied + larger(0, around - weights)
                             : !p->main_weights                   ? copied + around
                             : p->rows_by_sub                     ? larger(copied + around, of.store_weights)
                                                                  : larger(copied, of.store_weights) + around;
            if (cycles < least) {
                p->row_sharers = x.row_sharers;
                p->row_parts = x.row_parts;
                least = cycles;
            }
        }
    return p->row_sharers > 1;
}

int64_t tune_column_sharers(const target *t, const tune_question *q, const tune_plan *p)
{
    tune_plan x = *p;
    x.column_sharers = 1;
    x.brought = 0;
    if (p->split[TUNE_ROW].slice == 1 || !tune_can_share_columns(t, q, &x) || !tune_plan_complete(t, q, &x))
        return 1;
    /* what comes after them, and meanwhile the TRF is filled */
    int64_t others = (int64_t)(1 + q->extra_count) * tune_start_cycles(t, q), best = 1, least = INT64_MAX,
            store = tune_bytes_of(q->type, p->split[TUNE_COLUMN].tile * tune_sum_part(&x)) /
                    (p->main_weights ? t->flit_bytes : t->flit_bytes / 4);
    for (; x.column_sharers <= p->split[TUNE_ROW].slice && x.column_sharers <= t->switch_blocking_flits; x.column_sharers *= 2) {
        int64_t around = x.column_sharers > 1 ? sharing_cycles(t, q, &x) : 0,
                cycles = weights_cycles(t, q, &x) + larger(others, around + store);
        best = cycles < least ? x.column_sharers : best;
        least = smaller(least, cycles);
    }
    return best;
}

/* What all copies take, in place of their starts. */
static void add_copies(const target *t, const tune_question *q, const tune_plan *p, piece_times *x)
{
    const tune_split *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    int64_t k = p->sum_loop > 1 ? tune_sum_of_rows(p) : tune_sum_in_hbm(q, p), tiles = column->tile / p->lanes, pieces;
    bool whole = p->sum_padded == k;
    int64_t part = tune_bytes_of(tune_stored_of(q, TUNE_ROW), p->ring_sums > 1 ? tune_sum_part(p) / p->ring_sums : k);
    int64_t part_of_ring = tune_sum_part(p) / p->ring_sums;
    int64_t run = run_of(t, part, row->tile / p->ring_rows,
                         tune_is_dense(q, p, TUNE_ROW) || (whole && p->ring_sums == 1) || tune_is_one_run(q, p, TUNE_ROW), &pieces);
    if (tune_lies_turned(q, p, TUNE_ROW))
        run = run_of_turned(t, tune_stored_of(q, TUNE_ROW), row, row->tile / p->ring_rows, turned_sums(q, p, part_of_ring, 1), false,
                            &pieces);
    if (p->aside[TUNE_ROW] > 0) {
        int64_t side = row->tile / p->ring_rows;
        run = run_of(t, tune_bytes_of(q->type, side * p->flit), part_of_ring / p->flit, tune_aside_of(t, q, p, TUNE_ROW).block == side,
                     &pieces);
    }
    pieces *= tune_rows_at_once(p);
    copy of_rows = {.pieces = pieces, .bytes = run, .of = slices_of_load(q, p, TUNE_ROW), .hbm = region_of_load(t, q, p, TUNE_ROW)};
    of_rows.follow = whole && p->ring_sums == 1;
    deal(q, &of_rows, tune_free_block(t, q, p, TUNE_ROW, part_of_ring));
    deal(q, &of_rows, tune_dealt_block(t, q, p, TUNE_ROW));
    x->rows = p->row_sharers > 1 ? shared_rows_cycles(t, q, p) : copy_cycles(t, q, p, &of_rows);
    x->weights = weights_cycles(t, q, p);
    x->aside_in = x->turn_aside = x->aside_out = x->aside = 0;
    for (int role = TUNE_ROW; role < TUNE_SUM; role++)
        add_aside(t, q, p, (tune_role)role, x);
    add_epilogue(t, q, p, row->tile * tiles, x);
    bool joins_all = p->joined > 1 && column->cluster == 1 && column->slice == p->joined && !tune_pads_rows(q, p);
    if (p->brought > 0) {
        x->store = brought_cycles(t, q, p);
        return;
    }
    if (q->tensors[TUNE_OUT].is_free) { /* what a slice has is one run, but for columns that pad a packet */
        int64_t columns = column->tile * (tune_columns_stay(p, TUNE_COLUMN) ? column->loop : 1);
        bool has_rest = tune_pads_rows(q, p) && q->size[TUNE_COLUMN] % p->lanes != 0;
        run = run_of(t, tune_bytes_of(q->out_type, columns), row->tile, p->lanes == p->lanes_kept && !has_rest, &pieces);
        bool is_whole = tune_bytes_of(q->out_type, columns * row->tile) % t->hbm_block_bytes == 0;
        x->store = store_cycles(t, q, p,
                                &(copy){.pieces = is_whole && !has_rest ? larger(1, pieces * run / t->hbm_block_bytes) : pieces,
                                        .bytes = is_whole && !has_rest ? t->hbm_block_bytes : run,
                                        .of = slices_of_store(q, p),
                                        .hbm = region_of_store(q, p),
                                        .stored = stored_bytes(q, p),
                                        .store = true,
                                        .aligned = is_whole && !has_rest});
        return;
    }
    int64_t side_by_side = column->tile * (tune_columns_stay(p, TUNE_COLUMN) || joins_all ? column->loop : 1) * p->joined * p->regroup;
    if (tune_pads_inside(column, q->size[TUNE_COLUMN])) /* without what is padding */
        side_by_side = smaller(side_by_side, q->size[TUNE_COLUMN] / (column->loop * column->cluster));
    int64_t piece = tune_bytes_of(q->out_type, side_by_side), columns = q->size[TUNE_COLUMN];
    bool all = tune_columns_of_results(column) == side_by_side && side_by_side == columns;
    int64_t rows = row->tile / p->regroup;
    run = run_of(t, piece, p->joined > 1 && !joins_all ? rows * column->loop : rows, all, &pieces);
    bool aligned = tune_bytes_of(q->out_type, columns) % t->hbm_block_bytes == 0 || (all && run % t->hbm_block_bytes == 0);
    if (p->closes) {
        int64_t bytes = rows * tune_bytes_of(q->out_type, columns);
        run = t->hbm_block_bytes;
        pieces = bytes / run;
        aligned = true;
    }
    x->store = store_cycles(t, q, p,
                            &(copy){.pieces = pieces,
                                    .bytes = run,
                                    .of = slices_of_store(q, p),
                                    .hbm = region_of_store(q, p),
                                    .stored = stored_bytes(q, p),
                                    .store = true,
                                    .aligned = aligned});
}

enum { MOST_BUFFERS = 8 };

typedef struct clocks {
    int64_t dma, main, sub;
} clocks;

static int64_t run_on(int64_t *clock, int64_t ready, int64_t cycles)
{
    *clock = larger(*clock, ready) + cycles;
    return *clock;
}

/* Iterations that copies may be ahead: as many buffers as DM has room for, two at least. */
static int64_t buffers_of(const target *t, const tune_question *q, const tune_plan *p)
{
    const tune_split *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    if (p->row_copies > 0) /* the next ones for all rows */
        return row->loop + 1;
    int64_t rows = tune_bytes_of(q->type, row->tile / p->ring_rows * tune_sum_part(p) / p->ring_sums),
            weights = tune_bytes_of(q->type, column->tile * tune_sum_part(p)) / tune_spread_slices(p), out = 4 * row->tile * column->tile;
    weights += tune_is_widened(q, TUNE_COLUMN)
                   ? tune_bytes_of(tune_stored_of(q, TUNE_COLUMN), column->tile * tune_sum_part(p)) / tune_spread_slices(p)
                   : 0;
    int64_t room = t->dm_bytes_per_slice - 2 * weights - 2 * out - (p->sum_loop > 1 ? 2 * out * row->loop : 0);
    int64_t each = p->columns_outside && !p->rows_ahead ? rows : weights;
    return larger(2, smaller(MOST_BUFFERS, room / larger(1, each)));
}

/* What is known of the loops' iterations, in their order. */
typedef struct iterations {
    int64_t rows[TUNE_MOST_LOOPS], weights[TUNE_MOST_LOOPS], extras[TUNE_MOST_LOOPS], multiplied[TUNE_MOST_LOOPS]; /* when they are there */
} iterations;

/* Copies of what iteration `i` begins to need; what it shares is there since an earlier one. */
static void load(const tune_plan *p, const piece_times *x, int64_t i, int64_t free_at, int64_t row_extras, int64_t *dma, iterations *all)
{
    int64_t rows = p->split[TUNE_ROW].loop, columns = p->split[TUNE_COLUMN].loop, inner = p->columns_outside ? rows : columns;
    int64_t of_part = i % (p->split[TUNE_BATCH].loop * rows * columns);
    if (i == 0 || (of_part == 0 && tune_turns_ahead(p) == 0)) /* the first part is waited for, the others are turned meanwhile */
        run_on(dma, free_at, i == 0 ? x->aside : x->aside_in + x->aside_out);
    bool is_first = i % inner == 0, are_here = p->row_copies > 0 && p->sum_loop == 1 && i % (rows * columns) >= rows;
    if (i == 0)
        run_on(dma, free_at, x->bitmaps);
    if (of_part == 0 && p->extras_once)
        run_on(dma, free_at, x->column_extras);
    bool rows_first = p->rows_ahead || (p->row_sharers > 1 && !p->columns_outside); /* so that they go around while weights are copied */
    if (rows_first)
        all->rows[i] = i == 0 ? run_on(dma, free_at, x->rows) : all->rows[i - 1];
    bool has_weights = is_first || !p->columns_outside;
    all->weights[i] = has_weights ? run_on(dma, free_at, x->weights) : all->weights[i - 1];
    int64_t of_columns = p->extras_once || p->sums_wait ? 0 : x->column_extras;
    all->extras[i] = has_weights ? run_on(dma, free_at, of_columns) : all->extras[i - 1];
    if (are_here)
        all->rows[i] = all->rows[i - rows];
    else if (p->row_copies > 0)
        all->rows[i] = i % tune_rows_at_once(p) == 0 ? run_on(dma, free_at, x->rows) : all->rows[i - 1];
    else if (!rows_first)
        all->rows[i] = is_first || p->columns_outside ? run_on(dma, free_at, x->rows) : all->rows[i - 1];
    run_on(dma, free_at, row_extras);
    if (p->sums_wait)
        all->extras[i] = run_on(dma, free_at, x->column_extras);
}

/* Weights that are read from the banks of the TRF in every cycle hold a store of the sub context up: it is as if it were main's. */
static bool starves(const tune_question *q, const tune_plan *p)
{
    enum { CACHED_BYTES = 256 }; /* of a Row */
    int64_t tiles = p->split[TUNE_COLUMN].tile / p->lanes;
    return tiles >= p->packet / p->flit && tune_bytes_of(q->type, tiles * tune_sum_part(p)) > CACHED_BYTES;
}

/* Are the weights of iteration `i` the sub context's, which the compiler puts before the exchange of the results up to here? That is long,
 * and main would wait for it. */
static bool stores_first(const tune_question *q, const tune_plan *p, const piece_times *x, int64_t i)
{
    bool has_weights = !p->columns_outside || i % p->split[TUNE_ROW].loop == 0;
    return p->by_sub && x->regroup + x->close > 0 && has_weights && !p->main_weights && !starves(q, p) && x->turn_weights == 0;
}

/* What copies take one after the other, and chains of the main context. */
static int64_t least_of(const tune_plan *p, const piece_times *x)
{
    int64_t batches = p->split[TUNE_BATCH].loop, rows = p->split[TUNE_ROW].loop, columns = p->split[TUNE_COLUMN].loop,
            of_sum = batches * rows * columns, count = of_sum * p->sum_loop;
    int64_t weights = p->columns_outside ? count / rows : count, row_copies = p->columns_outside ? count : count / columns;
    if (p->row_copies > 0)
        row_copies = batches * p->sum_loop * p->row_copies;
    if (p->rows_ahead)
        row_copies = 1;
    int64_t stores = p->results_stay ? 1 : of_sum;
    int64_t dma = x->bitmaps + p->sum_loop * (x->aside_in + x->aside_out) + weights * x->weights +
                  (p->extras_once ? batches : weights) * x->column_extras + row_copies * x->rows + of_sum * x->row_extras +
                  stores * x->store;
    int64_t main = weights * (x->turn_weights + (p->main_weights ? x->store_weights : 0)) + count * x->multiply + of_sum * x->passes +
                   p->sum_loop * x->turn_aside;
    return larger(dma, main);
}

/* The schedule of the loops: copies run ahead while there are buffers, and a result leaves when the copies at hand are done. */
void tune_plan_estimate(const target *t, const tune_question *q, int64_t most, tune_plan *p)
{
    piece_times documented = passes_of(t, q, p), x = priced(q, p, &documented);
    p->cycles = least_of(p, &x);
    if (p->cycles >= most)
        return;
    add_copies(t, q, p, &documented);
    x = priced(q, p, &documented);
    p->cycles = least_of(p, &x);
    if (p->cycles >= most)
        return;
    const tune_split *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    int64_t inner = p->columns_outside ? row->loop : column->loop, of_sum = row->loop * column->loop * p->split[TUNE_BATCH].loop,
            count = of_sum * p->sum_loop, result = 0, store_at = 0, loaded = 0, buffers = buffers_of(t, q, p), stored_at = 0, sums_at = 0,
            handed_at = 0;
    iterations all;
    bool fills_trf = 2 * tune_bytes_of(q->type, column->tile * tune_sum_part(p)) > target_trf_capacity_bytes(t, TRF_FULL);
    bool is_stored = false; /* the next weights are in the TRF already */
    bool fills_vrf = 2 * 4 * row->tile * column->tile > t->vrf_bytes;
    /* where two fit and not three, sums come one place ahead of their turn, which is after the exchange */
    bool waits = p->by_sub && p->sum_loop > 2 && 3 * 4 * row->tile * column->tile > t->vrf_bytes;
    clocks c = {0, 0, 0};
    int64_t turn_at = tune_turns_ahead(p), lying_at = 0;
    for (int64_t i = 0; i < count; i++) {
        bool turns = turn_at > 0 && i + of_sum < count, turns_now = turns && i % of_sum == turn_at;
        if (turns_now) {
            run_on(&c.main, lying_at, x.turn_aside);
            run_on(&c.dma, c.main, x.aside_out);
        }
        /* of the next part what is turned is waited for */
        int64_t ahead = turns && i % of_sum < turn_at ? smaller(i + buffers, (i / of_sum + 1) * of_sum) : i + buffers;
        for (; loaded < count && loaded < ahead; loaded++) {
            if (turn_at > 0 && loaded % of_sum == turn_at && loaded + of_sum < count)
                lying_at = run_on(&c.dma, 0, x.aside_in);
            load(p, &x, loaded, loaded < buffers ? 0 : all.multiplied[loaded - buffers], loaded >= count - of_sum ? x.row_extras : 0,
                 &c.dma, &all);
        }
        if (store_at > 0)
            run_on(&c.dma, store_at, x.store);
        if (i == 0 && p->rows_ahead && x.turn_rows) /* while the first weights are copied */
            all.rows[0] = run_on(p->rows_by_sub ? &c.sub : &c.main, all.rows[0], x.turn_rows);
        if (i % inner == 0 || !p->columns_outside) {
            int64_t free_at = i > 0 && fills_trf ? all.multiplied[i - 1] : 0, weights_at = all.weights[i];
            if (x.turn_weights)
                weights_at = run_on(&c.main, weights_at, x.turn_weights);
            if (!is_stored)
                stored_at = run_on(p->main_weights || starves(q, p) ? &c.main : &c.sub, larger(weights_at, free_at), x.store_weights);
            handed_at = x.handed > 0 ? run_on(&c.sub, all.extras[i], x.handed + (i == 0 ? x.bitmaps : 0)) : all.extras[i];
        }
        int64_t rows_at = p->sums_wait ? all.rows[i] : larger(all.rows[i], handed_at);
        if (x.turn_rows && !p->rows_ahead && (p->columns_outside || i % inner == 0))
            rows_at = run_on(p->row_sharers > 1 && p->rows_by_sub ? &c.sub : &c.main, rows_at, x.turn_rows);
        all.multiplied[i] = result = run_on(&c.main, larger(larger(rows_at, stored_at), sums_at), x.multiply);
        bool has_sums = i + 1 >= of_sum && i + 1 < count;
        if (has_sums && !waits)
            sums_at = run_on(&c.sub, fills_vrf ? result : 0, x.sums);
        bool is_last = i >= count - of_sum;
        if (is_last)
            result = run_on(&c.main, p->sums_wait ? handed_at : 0, x.passes);
        is_stored = is_last && i + 1 < count && all.weights[i + 1] <= result && stores_first(q, p, &x, i + 1);
        if (is_stored)
            stored_at = run_on(&c.sub, larger(all.weights[i + 1], fills_trf ? all.multiplied[i] : 0), x.store_weights);
        if (is_last && x.regroup)
            result = run_on(p->by_sub ? &c.sub : &c.main, result, x.regroup);
        if (is_last && x.close)
            result = run_on(p->by_sub ? &c.sub : &c.main, result, x.close);
        if (has_sums && waits)
            sums_at = run_on(&c.sub, all.multiplied[i], x.sums);
        store_at = is_last && !(p->results_stay && i < count - 1) ? result : 0;
    }
    p->cycles = run_on(&c.dma, store_at, x.store) + (tune_is_measured(q) ? measured_ends_cycles() : 0);
}
