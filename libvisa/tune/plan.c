#include "libvisa/tune/plan.h"

#include "libvisa/tune/brought.h"
#include "libvisa/tune/machine.h"
#include "libvisa/tune/widened.h"
#include "support/integer.h"

bool tune_is_measured(const tune_question *q)
{
    return q->timing == TIMING_MEASURED;
}

int64_t tune_start_cycles(const target *t, const tune_question *q)
{
    return tune_is_measured(q) ? measured_start_cycles() : t->dma_startup_cycles;
}

int64_t tune_pass_cycles(const tune_question *q, measured_pass kind, int64_t documented)
{
    return tune_is_measured(q) ? measured_pass_cycles(kind, documented) : documented;
}

tune_split tune_split_of(int64_t size, int64_t loop, int64_t cluster, int64_t slice, int64_t tile_multiple)
{
    int64_t parts = loop * cluster * slice;
    tune_split s = {.loop = loop, .cluster = cluster, .slice = slice, .tile = round_up(ceil_div(size, parts), tile_multiple)};
    s.padded = parts * s.tile;
    return s;
}

bool tune_pads_inside(const tune_split *s, int64_t size)
{
    return (s->loop > 1 || s->apart) && s->padded != size;
}

bool tune_columns_stay(const tune_plan *p, tune_role role)
{
    return p->results_stay && p->joined == 1 && role == TUNE_COLUMN;
}

int64_t tune_iterations_that_stay(const tune_plan *p)
{
    return (p->results_stay ? p->split[TUNE_COLUMN].loop : 1) * p->joined;
}

int64_t tune_loop_stride(const tune_plan *p, tune_role role)
{
    const tune_split *s = &p->split[role];
    return tune_columns_stay(p, role) ? s->tile : s->padded / s->loop;
}

int64_t tune_slice_stride(const tune_plan *p, tune_role role)
{
    const tune_split *s = &p->split[role];
    return tune_columns_stay(p, role) ? s->tile * s->loop : s->tile;
}

int64_t tune_cluster_stride(const tune_plan *p, tune_role role)
{
    return tune_slice_stride(p, role) * p->split[role].slice;
}

tune_role tune_inner_role(const tune_plan *p)
{
    return p->spreads ? TUNE_ROW : TUNE_COLUMN;
}

bool tune_comes_once(const tune_plan *p, const tune_extra *e)
{
    return p->extras_once && e->has[TUNE_COLUMN] && !e->has[TUNE_ROW];
}

bool tune_is_handed_on(const tune_plan *p, const tune_extra *e)
{
    return p->handed > 1 && e->groups == 1 && e->zero_of == TUNE_OUT && e->has[TUNE_COLUMN] && !e->has[TUNE_ROW] && !e->has[TUNE_BATCH];
}

int64_t tune_hand_padding(const tune_plan *p)
{
    return p->hand_parts > 0 ? p->handed / p->hand_parts : 1;
}

int64_t tune_hand_inside(const target *t, const tune_plan *p)
{
    return tune_inner_role(p) == TUNE_ROW ? 1 : t->slices_per_cluster / (p->split[TUNE_BATCH].slice * p->split[TUNE_ROW].slice);
}

int64_t tune_handing_ring(const target *t, const tune_plan *p)
{
    if (p->hand_parts > 0)
        return p->handed * tune_hand_inside(t, p);
    const tune_split *batch = &p->split[TUNE_BATCH], *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    int64_t each = t->slices_per_cluster / (batch->slice * row->slice); /* slices from one that has these columns to the next one */
    if (p->handed > row->slice)
        return t->slices_per_cluster;
    if (tune_inner_role(p) != TUNE_ROW)
        return p->handed == row->slice && batch->slice == 1 ? t->slices_per_cluster : p->handed * each;
    return p->handed == row->slice && batch->slice == 1 ? t->slices_per_cluster / column->slice : p->handed;
}

int64_t tune_rows_at_once(const tune_plan *p)
{
    return p->row_copies > 0 ? p->split[TUNE_ROW].loop / p->row_copies : 1;
}

int64_t tune_packet_of(const target *t, const tune_question *q)
{
    int64_t flit = t->flit_bytes * 8 / dtype_row_of(q->type)->bits;
    if (q->group == 0)
        return q->size[TUNE_SUM] <= flit ? flit : 2 * flit;
    for (int64_t packet = 2 * flit; packet >= flit; packet /= 2)
        if (q->size[TUNE_SUM] % packet == 0 && (!q->folds_groups || q->group % packet == 0 || packet % q->group == 0))
            return packet;
    return 0;
}

/* Of what is stored otherwise and lies turned each slice makes whole packets; it is not turned aside. */
static bool can_widen_turned(const tune_question *q, const tune_plan *p)
{
    for (int role = TUNE_ROW; role < TUNE_SUM; role++) {
        if (!tune_is_widened(q, (tune_role)role) || !q->turned[role == TUNE_ROW ? q->stream : q->weights])
            continue;
        const int64_t tile = role == TUNE_ROW ? p->split[TUNE_ROW].tile : tune_turned_tile(q, p->split[TUNE_COLUMN].tile);
        if (p->aside[role] > 0 || p->rings || tile % widened_packet(q, (tune_role)role, tile) != 0)
            return false;
    }
    return true;
}

/* Zero points of operands that slices bring a part of each, which they have not the same of. */
static bool hands_on_with_zeros(const tune_question *q, const tune_plan *p)
{
    for (size_t i = 0; i < q->extra_count; i++)
        if (q->extras[i].zero_of != TUNE_OUT && (tune_kept_of(q, q->extras[i].zero_of) == TUNE_ROW ? p->rings : p->spreads))
            return true;
    return false;
}

/* Sums of groups that wait for the others of theirs, in halves of a flit where it has more lanes than the units that multiply. */
static bool has_slots_for_groups(const target *t, const tune_question *q, const tune_plan *p)
{
    int64_t halves = p->lanes > t->vector_narrow_lanes ? 2 : 1;
    return !q->folds_groups || (p->sum_loop == 1 && p->split[TUNE_COLUMN].tile / p->lanes * halves <= t->vector_reduce_slots);
}

int64_t tune_sum_part(const tune_plan *p)
{
    return p->sum_padded / p->sum_loop;
}

int64_t tune_sum_of_rows(const tune_plan *p)
{
    return p->rows_ahead ? p->sum_padded : tune_sum_part(p);
}

bool tune_can_come_ahead(const tune_question *q, const tune_plan *p)
{
    return p->sum_loop > 1 && p->split[TUNE_ROW].loop == 1 && p->split[TUNE_BATCH].loop == 1 && p->split[TUNE_COLUMN].loop == 1 &&
           p->columns_outside && !p->rings && p->row_copies == 0 && !tune_lies_turned(q, p, TUNE_ROW) && p->aside[TUNE_ROW] == 0 &&
           !tune_is_widened(q, TUNE_ROW) && !q->folds_groups;
}

static tune_place operand_of(const tune_question *q, tune_role role)
{
    return role == TUNE_ROW ? q->stream : q->weights;
}

bool tune_is_free(const tune_question *q, tune_role role)
{
    return q->tensors[operand_of(q, role)].is_free;
}

bool tune_is_one_run(const tune_question *q, const tune_plan *p, tune_role role)
{
    return tune_is_free(q, role) && (p->sum_padded == q->size[TUNE_SUM] || tune_is_dense(q, p, role));
}

int64_t tune_free_block(const target *t, const tune_question *q, const tune_plan *p, tune_role role, int64_t sums)
{
    int64_t block = t->hbm_block_bytes * 8 / dtype_row_of(q->type)->bits;
    bool is_whole = tune_is_measured(q) && !tune_is_widened(q, role) && tune_is_one_run(q, p, role) && sums % block == 0 && sums > block;
    return is_whole ? block : 0;
}

bool tune_lies_turned(const tune_question *q, const tune_plan *p, tune_role role)
{
    return q->turned[operand_of(q, role)] && p->aside[role] == 0;
}

bool tune_is_dense(const tune_question *q, const tune_plan *p, tune_role role)
{
    enum { WORD_BITS = 64 };
    int64_t size = q->size[TUNE_SUM];
    bool is_whole = p->sum_loop == 1 && (role == TUNE_ROW ? p->ring_sums == 1 : true);
    return !q->turned[operand_of(q, role)] && is_whole && p->sum_padded != size && size * dtype_row_of(q->type)->bits % WORD_BITS == 0;
}

int64_t tune_free_columns(const target *t, const tune_question *q, const tune_plan *p)
{
    int64_t sums = q->size[TUNE_SUM], block = t->hbm_block_bytes * 8 / dtype_row_of(q->type)->bits, together = 1;
    bool goes_around = p->spreads || p->column_sharers > 1 || p->sum_loop > 1, is_whole = p->sum_padded == sums;
    if (!tune_is_measured(q) || tune_is_widened(q, TUNE_COLUMN) || goes_around || !is_whole || !tune_is_one_run(q, p, TUNE_COLUMN) ||
        tune_free_block(t, q, p, TUNE_COLUMN, sums) > 0)
        return 0;
    while (together < p->lanes && together * sums % block != 0)
        together *= 2;
    bool has_parts = together > 1 && p->lanes % together == 0 && together * sums % block == 0 && block / together >= p->packet;
    return has_parts && sums % (block / together) == 0 ? together : 0;
}

int64_t tune_sum_in_hbm(const tune_question *q, const tune_plan *p)
{
    enum { WORD_BITS = 64 };
    return q->size[TUNE_SUM] * dtype_row_of(q->type)->bits % WORD_BITS == 0 ? q->size[TUNE_SUM] : p->sum_padded;
}

/* May a slice have an operand in another order than HBM has it? */
static bool can_deal(const tune_question *q, const tune_plan *p, tune_role role)
{
    bool goes_around = role == TUNE_ROW ? p->row_sharers > 1 : p->spreads || p->column_sharers > 1;
    return tune_is_measured(q) && !tune_is_widened(q, role) && !goes_around && !tune_is_free(q, role) && !q->turned[operand_of(q, role)] &&
           p->sum_padded == tune_sum_in_hbm(q, p);
}

int64_t tune_dealt_block(const target *t, const tune_question *q, const tune_plan *p, tune_role role)
{
    int64_t block = t->hbm_block_bytes * 8 / dtype_row_of(q->type)->bits, sums = tune_sum_part(p) / (role == TUNE_ROW ? p->ring_sums : 1);
    return can_deal(q, p, role) && sums % block == 0 && sums > block ? block : 0;
}

int64_t tune_dealt_columns(const target *t, const tune_question *q, const tune_plan *p)
{
    int64_t together = 1, bytes = tune_bytes_of(q->type, tune_sum_part(p)), tile = p->split[TUNE_COLUMN].tile;
    if (!can_deal(q, p, TUNE_COLUMN) || p->sum_loop > 1 || tune_dealt_block(t, q, p, TUNE_COLUMN) > 0)
        return 0;
    while (together < tile && together * bytes % t->hbm_block_bytes != 0)
        together *= 2;
    return tile % (2 * together) == 0 && p->lanes % (2 * together) == 0 && tile >= 4 * together ? together : 0;
}

int64_t tune_turns_ahead(const tune_plan *p)
{
    enum { FEWEST = 4 }; /* iterations: in the first ones its copy comes, in the others what follows it */
    bool is_in_parts = p->sum_loop > 1 && p->aside[TUNE_ROW] + p->aside[TUNE_COLUMN] > 0;
    return is_in_parts && p->split[TUNE_ROW].loop >= FEWEST ? p->split[TUNE_ROW].loop / FEWEST : 0;
}

int64_t tune_columns_of_results(const tune_split *s)
{
    return s->loop * s->cluster * s->slice * s->tile;
}

bool tune_pads_rows(const tune_question *q, const tune_plan *p)
{
    return tune_columns_of_results(&p->split[TUNE_COLUMN]) != q->size[TUNE_COLUMN];
}

int64_t tune_closing_packet(const target *t, const tune_question *q, const tune_plan *p)
{
    enum { WORD_BYTES = 8 };
    int64_t bytes = tune_bytes_of(q->out_type, q->size[TUNE_COLUMN]), packet = t->flit_bytes; /* a fetch takes powers of two */
    while (bytes % packet != 0)
        packet /= 2;
    return p->closes && tune_pads_rows(q, p) && packet >= WORD_BYTES ? packet * 8 / dtype_row_of(q->out_type)->bits : 0;
}

/* A slice that writes whole rows has all columns of them, in the end. */
static bool can_close(const target *t, const tune_question *q, const tune_plan *p)
{
    const tune_split *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    bool has_rows = p->regroup == 1 || row->padded < 2 * q->size[TUNE_ROW]; /* for each of those that exchange them */
    int64_t together = tune_rows_of_blocks(t, q);
    has_rows = has_rows && (q->size[TUNE_BATCH] == 1 || q->size[TUNE_ROW] % together == 0); /* a batch begins where a block does */
    return !p->closes || (has_rows && column->loop * column->cluster == 1 && column->slice == p->regroup && p->joined == 1 &&
                          p->lanes == p->lanes_kept && p->split[TUNE_ROW].tile % (p->regroup * tune_rows_of_blocks(t, q)) == 0 &&
                          (!tune_pads_rows(q, p) || tune_closing_packet(t, q, p) > 0));
}

int64_t tune_clusters_of(const tune_plan *p)
{
    return p->split[TUNE_BATCH].cluster * p->split[TUNE_ROW].cluster * p->split[TUNE_COLUMN].cluster;
}

static int64_t slices_of(const tune_plan *p)
{
    return p->split[TUNE_BATCH].slice * p->split[TUNE_ROW].slice * p->split[TUNE_COLUMN].slice;
}

/* Has each of so many slices whole packets of the sum, or a flit? */
static bool can_part_sum(const tune_plan *p, int64_t slices)
{
    int64_t flits = tune_sum_part(p) / p->flit;
    return flits == slices || flits % (slices * (p->packet / p->flit)) == 0;
}

/* The digits that go around a ring: of a tile's rows as many as there are, then of the sum. */
static bool complete_ring(const tune_question *q, tune_plan *p)
{
    int64_t around = p->split[TUNE_COLUMN].slice, rows = p->split[TUNE_ROW].tile;
    p->ring_rows = p->ring_sums = 1;
    if (!p->rings)
        return true;
    if (around == 1 || p->split[TUNE_COLUMN].padded == 0)
        return false;
    if (q->turned[q->stream]) { /* parts of the sum: runs of a copy are of rows, or of flits of rows */
        for (p->ring_sums = around; !can_part_sum(p, p->ring_sums);)
            p->ring_sums /= 2;
        p->ring_rows = around / p->ring_sums;
        return rows % p->ring_rows == 0;
    }
    p->ring_rows = rows % around == 0 ? around : around % rows == 0 ? rows : 0;
    if (p->ring_rows == 0)
        return false;
    p->ring_sums = around / p->ring_rows;
    return can_part_sum(p, p->ring_sums);
}

int64_t tune_spread_slices(const tune_plan *p)
{
    return p->spreads ? p->split[TUNE_ROW].slice : 1;
}

bool tune_spread_of(const target *t, const tune_question *q, const tune_plan *p, tune_spread *out)
{
    int64_t part = tune_sum_part(p), tiles = p->split[TUNE_COLUMN].tile / p->lanes, parts = tune_spread_slices(p);
    *out = (tune_spread){1, 1, 1};
    if (!tune_lies_turned(q, p, TUNE_COLUMN)) { /* whole columns as long as there are some: their runs are longest */
        out->lanes = smaller(parts, p->lanes);
        out->groups = smaller(parts / out->lanes, tiles);
        if (p->lanes % out->lanes != 0 || tiles % out->groups != 0)
            return false;
    }
    out->sums = parts / (out->lanes * out->groups);
    int64_t unit = tune_lies_turned(q, p, TUNE_COLUMN) ? larger(p->flit, tune_turn_rows(t, q)) : p->flit;
    return out->lanes * out->groups * out->sums == parts && part % (out->sums * unit) == 0 &&
           (out->sums == 1 || p->sum_padded == q->size[TUNE_SUM]);
}

static bool can_spread(const target *t, const tune_question *q, const tune_plan *p)
{
    tune_spread x;
    return !p->spreads || (tune_spread_slices(p) > 1 && !p->rings && p->gather == 1 && p->regroup == 1 && p->joined == 1 &&
                           p->idle_inside == 1 && tune_spread_of(t, q, p, &x));
}

/* Elements of an operand that a slice turns at once, which is aside. */
static int64_t turned_by_slice(const target *t, const tune_question *q, const tune_plan *p, tune_role role)
{
    return p->aside[role] * aside_turners_of(t, q, &(aside){.role = role, .kept = p->aside[role], .sums = tune_sum_part(p)}).sums;
}

/* Operands that lie turned: whole blocks of the Transpose Engine, and slices that exchange columns for parts of the sum. */
static bool can_turn(const target *t, const tune_question *q, const tune_plan *p)
{
    const tune_split *column = &p->split[TUNE_COLUMN];
    int64_t rest = p->split[TUNE_ROW].tile / p->ring_rows, part = tune_sum_part(p);
    if (tune_lies_turned(q, p, TUNE_ROW) && (rest % tune_turn_columns(q, rest) != 0 || part / p->ring_sums % tune_turn_rows(t, q) != 0))
        return false;
    for (int role = TUNE_ROW; role < TUNE_SUM; role++)
        if (p->aside[role] > 0 && (p->sum_padded != q->size[TUNE_SUM] || p->split[role].padded != q->size[role] ||
                                   2 * tune_bytes_of(q->type, turned_by_slice(t, q, p, (tune_role)role)) > t->dm_bytes_per_slice))
            return false;
    if (!tune_lies_turned(q, p, TUNE_COLUMN))
        return p->gather == 1;
    int64_t turned = tune_turned_tile(q, column->tile);
    return (turned == column->tile || turned == column->padded) && part % larger(p->gather, tune_turn_rows(t, q)) == 0 &&
           column->slice % p->gather == 0 && (p->gather == 1 || p->idle_inside == 1) && turned <= t->dm_bytes_per_slice;
}

int64_t tune_elements_of_extra(const tune_extra *e, const tune_plan *p)
{
    enum { FLIT = 8, WORD_BITS = 64 };
    if (e->zero_of != TUNE_OUT) { /* an element for all lanes, groups or what is kept in whole flits */
        const int64_t tile = (e->has[TUNE_ROW] ? p->split[TUNE_ROW].tile : 1) * (e->has[TUNE_COLUMN] ? p->split[TUNE_COLUMN].tile : 1);
        return e->groups > 1 && !e->groups_first ? tile * round_up(e->groups, larger(FLIT, WORD_BITS / dtype_row_of(e->type)->bits))
                                                 : e->groups * round_up(tile, FLIT);
    }
    int64_t groups = e->groups > 1 && !e->has[TUNE_COLUMN] ? round_up(e->groups, 8) : e->groups;
    return groups * (e->has[TUNE_ROW] ? p->split[TUNE_ROW].tile : 1) * (e->has[TUNE_COLUMN] ? round_up(p->split[TUNE_COLUMN].tile, 8) : 1);
}

int64_t tune_vrf_of_operands(const tune_question *q, const tune_plan *p)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < q->extra_count; i++)
        bytes +=
            4 * round_up(tune_elements_of_extra(&q->extras[i], p), 8) * (tune_is_handed_on(p, &q->extras[i]) ? tune_hand_padding(p) : 1);
    return bytes;
}

/* What is done to the sums: its operands in the VRF, and what waits for another pass in DM. */
static bool has_room_for_epilogue(const target *t, const tune_question *q, const tune_plan *p, int64_t dm_left)
{
    const tune_epilogue *e = tune_epilogue_of(q, p->sum_loop, p->sums_wait);
    int64_t tile = 4 * p->split[TUNE_ROW].tile * round_up(p->split[TUNE_COLUMN].tile, 8), vrf = p->sum_loop > 1 ? tile : 0, extras = 0;
    for (size_t i = 0; i < q->extra_count; i++)
        extras += 4 * round_up(tune_elements_of_extra(&q->extras[i], p), 8);
    vrf += tune_vrf_of_operands(q, p) + (tune_epilogue_has_gate(e) ? tile : 0) + (tune_epilogue_stashes(e) ? TUNE_STASH_BYTES : 0);
    int64_t waiting = e->count > 1 ? (int64_t)(e->count - 1) * tile : 0;
    bool padded = e->count > 1 && p->lanes != p->lanes_kept;
    return !padded && vrf <= t->vrf_bytes && extras * (p->extras_once ? p->split[TUNE_COLUMN].loop : 1) + waiting <= dm_left;
}

int64_t tune_column_bytes(const tune_question *q, const tune_plan *p)
{
    return tune_bytes_of(q->type, tune_is_dense(q, p, TUNE_COLUMN) ? q->size[TUNE_SUM] : p->sum_padded);
}

bool tune_can_share_columns(const target *t, const tune_question *q, const tune_plan *p)
{
    enum { WORD_BYTES = 8 };
    int64_t bytes = tune_column_bytes(q, p);
    bool is_whole = p->sum_loop == 1 && p->split[TUNE_COLUMN].loop == 1 && q->size[TUNE_BATCH] == 1;
    return is_whole && !p->spreads && !tune_is_widened(q, TUNE_COLUMN) && !tune_lies_turned(q, p, TUNE_COLUMN) &&
           p->aside[TUNE_COLUMN] == 0 && p->split[TUNE_ROW].slice % p->column_sharers == 0 &&
           (bytes % t->flit_bytes == 0 || (bytes < t->flit_bytes && bytes % WORD_BYTES == 0));
}

bool tune_can_share_rows(const tune_question *q, const tune_plan *p)
{
    const tune_split *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    bool comes_once =
        (p->sum_loop == 1 || p->rows_ahead) && row->loop == 1 && q->size[TUNE_BATCH] == 1 && (!p->columns_outside || column->loop == 1);
    return comes_once && !p->rings && !p->spreads && !tune_is_widened(q, TUNE_ROW) && !q->turned[q->stream] &&
           column->slice % p->row_sharers == 0 && p->row_sharers % p->row_parts == 0 && p->sum_padded % (p->row_parts * p->flit) == 0;
}

/* Positions of the kept axis that follow each other in a slice. */
static int64_t side_of(const target *t, const tune_question *q, const tune_plan *p, tune_role role)
{
    tune_spread of;
    tune_spread_of(t, q, p, &of);
    return role == TUNE_ROW ? p->split[TUNE_ROW].tile / p->ring_rows : p->spreads ? p->lanes / of.lanes : p->split[TUNE_COLUMN].tile;
}

aside tune_aside_of(const target *t, const tune_question *q, const tune_plan *p, tune_role role)
{
    return (aside){
        .role = role, .kept = p->aside[role], .sums = tune_sum_part(p), .block = aside_block_of(t, q, role, side_of(t, q, p, role))};
}

bool tune_plan_begin(const target *t, const tune_question *q, tune_plan *p)
{
    const tune_split *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    p->flit = t->flit_bytes * 8 / dtype_row_of(q->type)->bits;
    p->packet = tune_packet_of(t, q);
    if (p->packet == 0)
        return false;
    p->sum_padded = round_up(q->size[TUNE_SUM], p->packet);
    if (p->sum_padded / p->packet % p->sum_loop != 0)
        return false;
    p->lanes = column->tile >= t->rows ? t->rows : column->tile;
    int64_t words = larger(1, 64 / dtype_row_of(q->out_type)->bits); /* of 8 bytes */
    p->lanes_kept = round_up(p->lanes, words);
    if (!can_widen_turned(q, p) || !has_slots_for_groups(t, q, p) || hands_on_with_zeros(q, p) ||
        slices_of(p) > tune_slices_of(t, q->most_slices) || tune_clusters_of(p) > t->clusters_per_chip ||
        t->slices_per_cluster % slices_of(p) != 0 || !complete_ring(q, p) || !can_spread(t, q, p) || !can_close(t, q, p))
        return false;
    if (!can_turn(t, q, p) || (p->column_sharers > 1 && !tune_can_share_columns(t, q, p)) ||
        (p->row_sharers > 1 && !tune_can_share_rows(q, p)))
        return false;
    int64_t part = tune_sum_part(p), tiles = column->tile / p->lanes;
    if (tune_bytes_of(q->type, column->tile * part) > target_trf_capacity_bytes(t, TRF_FULL))
        return false;
    if (p->results_stay && (column->loop == 1 || row->loop > 1 || p->split[TUNE_BATCH].loop > 1 || p->columns_outside || p->sum_loop > 1 ||
                            p->regroup > 1 || p->lanes_kept != p->lanes || tune_lies_turned(q, p, TUNE_COLUMN)))
        return false;
    if (p->joined == 1 ? p->results_stay && column->padded != q->size[TUNE_COLUMN] : column->slice % p->joined != 0)
        return false;
    if (p->joined > 1 && !p->results_stay &&
        (column->loop > 1 || p->sum_loop > 1 || p->regroup > 1 || p->lanes_kept != p->lanes || tune_lies_turned(q, p, TUNE_COLUMN)))
        return false;
    if (part > p->packet && tiles > t->accumulator_columns * t->accumulator_registers)
        return false;
    if (p->regroup > 1 && (tune_pads_inside(column, q->size[TUNE_COLUMN]) || column->slice % p->regroup != 0 ||
                           row->tile % p->regroup != 0 || p->lanes_kept != p->lanes || p->idle_inside > 1))
        return false;
    /* padding inside a ring: where a slice has one packet of a row, the switch that adds what others have in place of it will do */
    return !p->rings || p->idle_inside == 1 || part / p->ring_sums <= p->packet;
}

bool tune_plan_complete(const target *t, const tune_question *q, tune_plan *p)
{
    const tune_split *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    if (!tune_plan_begin(t, q, p))
        return false;
    if (p->rows_ahead && !tune_can_come_ahead(q, p))
        return false;
    if (p->sums_wait && (q->waiting.count == 0 || p->sum_loop * row->loop * column->loop * p->split[TUNE_BATCH].loop > 1))
        return false;
    int64_t part = tune_sum_part(p), weights = tune_bytes_of(q->type, column->tile * part), tiles = column->tile / p->lanes;
    int64_t rows = tune_bytes_of(q->type, row->tile / p->ring_rows * tune_sum_of_rows(p) / p->ring_sums),
            out = tune_bytes_of(q->out_type, row->tile * tiles * p->lanes_kept);
    if (p->extras_once && (column->loop == 1 || tune_pads_inside(column, q->size[TUNE_COLUMN])))
        return false;
    weights +=
        tune_is_widened(q, TUNE_COLUMN) ? tune_bytes_of(tune_stored_of(q, TUNE_COLUMN), column->tile * part) : 0; /* as it is stored */
    rows += tune_is_widened(q, TUNE_ROW) ? tune_bytes_of(tune_stored_of(q, TUNE_ROW), row->tile / p->ring_rows * part / p->ring_sums) : 0;
    weights = weights / tune_spread_slices(p) * (tune_lies_turned(q, p, TUNE_COLUMN) ? 2 : 1); /* as it lies, and turned */
    weights *= p->column_sharers > 1 ? 1 + p->column_sharers : 1; /* as they come, and with what others send in place of them */
    rows *= tune_lies_turned(q, p, TUNE_ROW) ? 2 : 1;
    rows = p->row_sharers > 1 ? rows / p->row_parts * (1 + p->row_sharers) : rows; /* what others send in place of them, too */
    int64_t kept = out * (tune_iterations_that_stay(p) + (p->joined > 1));
    if (p->row_copies > 0) { /* of the next part of the sum, or batch, too */
        if (!p->columns_outside || row->loop == 1 || row->loop % p->row_copies != 0 || tune_lies_turned(q, p, TUNE_ROW) ||
            tune_is_widened(q, TUNE_ROW) || tune_pads_inside(row, q->size[TUNE_ROW]))
            return false;
        rows *= row->loop * (p->sum_loop * p->split[TUNE_BATCH].loop > 1 ? 2 : 1);
    }
    if (p->brought > 0) {
        bool has_all = column->loop == 1 || p->results_stay;
        if (!has_all || p->regroup > 1 || p->joined > 1 || p->closes || p->lanes != p->lanes_kept)
            return false;
        kept += p->brought * tune_brought_bytes(q, tune_brought_role(q, p));
    }
    if (weights + rows + kept > t->dm_bytes_per_slice)
        return false;
    /* sums of all rows stay, those up to here and those of the part at hand, and a tile of them is an operand of the Vector Engine */
    int64_t sums = 4 * row->tile * column->tile;
    if (p->sum_loop > 1 && (p->sum_padded != q->size[TUNE_SUM] || p->lanes != p->lanes_kept || p->lanes != t->rows || !p->columns_outside ||
                            sums > t->vrf_bytes || weights + rows + out + 2 * sums * row->loop > t->dm_bytes_per_slice))
        return false;
    return (q->operation_count == 0 && q->whole.count == 0) ||
           has_room_for_epilogue(t, q, p, t->dm_bytes_per_slice - weights - rows - kept);
}
