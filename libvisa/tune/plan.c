#include "libvisa/tune/plan.h"

#include "support/integer.h"

tune_split tune_split_of(int64_t size, int64_t loop, int64_t cluster, int64_t slice, int64_t tile_multiple)
{
    int64_t parts = loop * cluster * slice;
    tune_split s = {.loop = loop, .cluster = cluster, .slice = slice, .tile = round_up(ceil_div(size, parts), tile_multiple)};
    s.padded = parts * s.tile;
    return s;
}

int64_t tune_sum_part(const tune_plan *p)
{
    return p->sum_padded / p->sum_loop;
}

static int64_t bytes_of(dtype type, int64_t elements)
{
    return elements * dtype_row_of(type)->bits / 8;
}

int64_t tune_turn_rows(const target *t, const tune_question *q)
{
    return t->transpose_row_bytes * 8 / dtype_row_of(q->type)->bits;
}

int64_t tune_turn_columns(const tune_question *q, int64_t tile)
{
    return dtype_row_of(q->type)->bits == 4 || tile % 16 == 0 ? 16 : 8;
}

static int64_t clusters_of(const tune_plan *p)
{
    return p->split[TUNE_BATCH].cluster * p->split[TUNE_ROW].cluster * p->split[TUNE_COLUMN].cluster;
}

static int64_t slices_of(const tune_plan *p)
{
    return p->split[TUNE_BATCH].slice * p->split[TUNE_ROW].slice * p->split[TUNE_COLUMN].slice;
}

/* The digits that go around a ring: of a tile's rows as many as there are, then of the sum's packets. */
static bool complete_ring(const tune_question *q, tune_plan *p)
{
    int64_t around = p->split[TUNE_COLUMN].slice, rows = p->split[TUNE_ROW].tile, packets = tune_sum_part(p) / p->packet;
    p->ring_rows = p->ring_sums = 1;
    if (!p->rings)
        return true;
    if (around == 1 || p->split[TUNE_COLUMN].padded == 0)
        return false;
    if (q->turned[q->stream]) { /* parts of the sum: runs of a copy are of rows */
        for (p->ring_sums = around; packets % p->ring_sums != 0;)
            p->ring_sums /= 2;
        p->ring_rows = around / p->ring_sums;
        return rows % p->ring_rows == 0;
    }
    p->ring_rows = rows % around == 0 ? around : around % rows == 0 ? rows : 0;
    if (p->ring_rows == 0)
        return false;
    p->ring_sums = around / p->ring_rows;
    return packets % p->ring_sums == 0;
}

/* Operands that lie turned: whole blocks of the Transpose Engine, and slices that exchange columns for parts of the sum. */
static bool can_turn(const target *t, const tune_question *q, const tune_plan *p)
{
    const tune_split *column = &p->split[TUNE_COLUMN];
    int64_t rest = p->split[TUNE_ROW].tile / p->ring_rows, part = tune_sum_part(p);
    if (q->turned[q->stream] && (rest % tune_turn_columns(q, rest) != 0 || part / p->ring_sums % tune_turn_rows(t, q) != 0))
        return false;
    if (!q->turned[q->weights])
        return p->gather == 1;
    return column->tile % tune_turn_columns(q, column->tile) == 0 && part % larger(p->gather, tune_turn_rows(t, q)) == 0 &&
           column->slice % p->gather == 0 && (p->gather == 1 || p->idle_inside == 1) && column->tile <= t->dm_bytes_per_slice;
}

bool tune_plan_complete(const target *t, const tune_question *q, tune_plan *p)
{
    const tune_split *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    unsigned bits = dtype_row_of(q->type)->bits;
    int64_t k = q->size[TUNE_SUM];
    p->flit = t->flit_bytes * 8 / bits;
    p->packet = k <= p->flit ? p->flit : 2 * p->flit;
    p->sum_padded = round_up(k, p->packet);
    if (p->sum_padded / p->packet % p->sum_loop != 0)
        return false;
    p->lanes = column->tile >= t->rows ? t->rows : column->tile;
    int64_t words = larger(1, 64 / dtype_row_of(q->out_type)->bits); /* of 8 bytes */
    p->lanes_kept = round_up(p->lanes, words);
    if (slices_of(p) > t->slices_per_cluster || clusters_of(p) > t->clusters_per_chip || t->slices_per_cluster % slices_of(p) != 0 ||
        !complete_ring(q, p))
        return false;
    if (!can_turn(t, q, p))
        return false;
    int64_t part = tune_sum_part(p), weights = bytes_of(q->type, column->tile * part), tiles = column->tile / p->lanes;
    int64_t rows = bytes_of(q->type, row->tile / p->ring_rows * part / p->ring_sums),
            out = bytes_of(q->out_type, row->tile * tiles * p->lanes_kept);
    if (weights > target_trf_capacity_bytes(t, TRF_FULL))
        return false;
    weights *= q->turned[q->weights] ? 2 : 1; /* as it lies, and turned */
    rows *= q->turned[q->stream] ? 2 : 1;
    if (weights + rows + out > t->dm_bytes_per_slice)
        return false;
    /* sums of all rows stay, those up to here and those of the part at hand, and a tile of them is an operand of the Vector Engine */
    int64_t sums = 4 * row->tile * column->tile;
    if (p->sum_loop > 1 &&
        (p->sum_padded != k || p->lanes != p->lanes_kept || p->lanes != t->rows || p->split[TUNE_BATCH].loop > 1 || column->loop > 1 ||
         !p->columns_outside || sums > t->vrf_bytes || weights + rows + out + 2 * sums * row->loop > t->dm_bytes_per_slice))
        return false;
    if (part > p->packet && tiles > t->accumulator_columns * t->accumulator_registers)
        return false;
    if (p->regroup > 1 &&
        (column->slice % p->regroup != 0 || row->tile % p->regroup != 0 || p->lanes_kept != p->lanes || p->idle_inside > 1))
        return false;
    return !(p->rings && p->idle_inside > 1);
}

/* ---- how long the pieces take ---- */

/* A copy between HBM and DM of `pieces` contiguous runs of `bytes`, spread over `dmns` DMNs. */
static int64_t copy_cycles(const target *t, int64_t pieces, int64_t bytes, int64_t dmns, bool store, bool aligned)
{
    int64_t block = t->hbm_block_bytes, requests = pieces * ceil_div(bytes, t->dma_request_bytes),
            dmn = ceil_div(pieces, dmns) * ceil_div(bytes, t->dmn_bytes_per_cycle);
    int64_t partial = !store ? 0 : bytes < block ? pieces : aligned && bytes % block == 0 ? 0 : 2 * pieces;
    int64_t burst = block / t->hbm_burst_bytes * t->hbm_burst_millicycles;
    int64_t channel = partial * burst / 1000 * t->hbm_partial_write_factor / t->hbm_channels + pieces * bytes / t->hbm_bytes_per_cycle;
    return t->dma_startup_cycles + larger(ceil_div(requests, larger(1, dmns / t->dma_dmns_per_engine)), larger(dmn, channel));
}

/* DMNs that the slices of a copy lie in. */
static int64_t dmns_of(const target *t, const tune_plan *p, bool spread)
{
    int64_t slices = slices_of(p), all = t->slices_per_cluster / t->dm_slices_per_dmn;
    int64_t of_cluster = spread && p->idle_inside > 1 ? (smaller(slices, all)) : larger(1, slices / t->dm_slices_per_dmn);
    const tune_split *outer = &p->split[TUNE_ROW];
    if (p->idle_inside <= 1 && slices < t->slices_per_cluster)
        of_cluster = larger(of_cluster, smaller(outer->slice * p->split[TUNE_BATCH].slice, all));
    return of_cluster * clusters_of(p);
}

typedef struct piece_times {
    int64_t rows, turn_rows, weights, turn_weights, store_weights, multiply, regroup, store;
} piece_times;

/* The longest run of a copy: rows that follow each other both in HBM and in a slice, at most 4 KiB of them. */
static int64_t run_of(int64_t row_bytes, int64_t rows, bool whole_rows, int64_t *pieces)
{
    enum { PACKET_MAX = 4096 };
    int64_t run = row_bytes, joined = 1;
    while (whole_rows && joined * 2 <= rows && rows % (joined * 2) == 0 && run * 2 <= PACKET_MAX) {
        run *= 2;
        joined *= 2;
    }
    *pieces = rows / joined;
    return run;
}

/* The same of a tensor that lies turned: `tile` positions of its kept axis follow each other, `sums` times. */
static int64_t run_of_turned(const tune_question *q, const tune_split *s, int64_t tile, int64_t sums, int64_t *pieces)
{
    return run_of(bytes_of(q->type, tile), sums, s->padded == tile, pieces);
}

/* Through the Transpose Engine, and around rings of `gather` slices where there are some. */
static int64_t turn_cycles(const target *t, const tune_question *q, int64_t tile, int64_t sums, int64_t gather)
{
    int64_t fill = 16, in = tile * sums / tune_turn_columns(q, tile), out = tile * sums / tune_turn_rows(t, q);
    return fill + larger(gather > 1 ? in * gather : in, out);
}

static piece_times times_of(const target *t, const tune_question *q, const tune_plan *p)
{
    const tune_split *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    int64_t clusters = clusters_of(p), slices = slices_of(p), k = p->sum_loop > 1 ? tune_sum_part(p) : q->size[TUNE_SUM],
            packets = tune_sum_part(p) / p->packet, tiles = column->tile / p->lanes, flits = p->packet / p->flit, pieces;
    bool whole = p->sum_padded == k;
    int64_t part = bytes_of(q->type, p->ring_sums > 1 ? tune_sum_part(p) / p->ring_sums : k);
    piece_times x;
    int64_t run = run_of(part, row->tile / p->ring_rows, whole && p->ring_sums == 1, &pieces);
    if (q->turned[q->stream])
        run = run_of_turned(q, row, row->tile / p->ring_rows, tune_sum_part(p) / p->ring_sums, &pieces);
    x.rows = copy_cycles(t, pieces * slices * clusters, run, dmns_of(t, p, true), false, true);
    run = run_of(bytes_of(q->type, k), column->tile, whole, &pieces);
    if (q->turned[q->weights])
        run = run_of_turned(q, column, column->tile * p->gather, tune_sum_part(p) / p->gather, &pieces);
    x.weights = copy_cycles(t, pieces * slices * clusters, run, dmns_of(t, p, true), false, true);
    x.store_weights = bytes_of(q->type, column->tile * tune_sum_part(p)) / (p->main_weights ? t->flit_bytes : t->flit_bytes / 4);
    x.turn_rows = !q->turned[q->stream] ? 0 : turn_cycles(t, q, row->tile / p->ring_rows, tune_sum_part(p) / p->ring_sums, 1);
    x.turn_weights = !q->turned[q->weights] ? 0 : turn_cycles(t, q, column->tile, tune_sum_part(p), p->gather);
    int64_t in = row->tile * packets * larger(flits, tiles), out = row->tile * tiles,
            ring = p->rings ? row->tile * packets * flits * (p->idle_inside > 1 ? p->idle_inside : 1) : 0;
    x.multiply = 9 + larger(in, larger(out, ring)) + (row->tile == 1 && row->loop == 1 ? out : 0);
    x.regroup = p->regroup > 1 ? out * p->regroup : 0;
    int64_t side_by_side = column->tile * p->regroup, piece = bytes_of(q->out_type, side_by_side), columns = q->size[TUNE_COLUMN];
    bool all = column->padded == column->tile && column->padded == columns;
    int64_t rows = row->tile / p->regroup;
    run = run_of(piece, rows, all, &pieces);
    bool aligned = bytes_of(q->out_type, columns) % t->hbm_block_bytes == 0 || (all && run % t->hbm_block_bytes == 0);
    x.store = copy_cycles(t, pieces * slices * clusters, run, dmns_of(t, p, true), true, aligned);
    return x;
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
    int64_t rows = bytes_of(q->type, row->tile / p->ring_rows * tune_sum_part(p) / p->ring_sums),
            weights = bytes_of(q->type, column->tile * tune_sum_part(p)), out = 4 * row->tile * column->tile;
    int64_t room = t->dm_bytes_per_slice - 2 * weights - 2 * out - (p->sum_loop > 1 ? 2 * out * row->loop : 0);
    int64_t each = p->columns_outside ? rows : weights;
    return larger(2, smaller(MOST_BUFFERS, room / larger(1, each)));
}

/* The schedule of the loops: copies run ahead while there are buffers, and a result leaves when the copies at hand are done. */
void tune_plan_estimate(const target *t, const tune_question *q, tune_plan *p)
{
    piece_times x = times_of(t, q, p);
    const tune_split *row = &p->split[TUNE_ROW], *column = &p->split[TUNE_COLUMN];
    int64_t inner = p->columns_outside ? row->loop : column->loop, of_sum = row->loop * column->loop * p->split[TUNE_BATCH].loop,
            count = of_sum * p->sum_loop, result = 0, store_at = 0, loaded = 0, buffers = buffers_of(t, q, p);
    int64_t multiplied[MOST_BUFFERS] = {0}, rows_at[MOST_BUFFERS] = {0}, weights_at[MOST_BUFFERS] = {0}, weights = 0, rows = 0,
            stored_at = 0;
    bool fills_trf = 2 * bytes_of(q->type, column->tile * tune_sum_part(p)) > target_trf_capacity_bytes(t, TRF_FULL);
    clocks c = {0, 0, 0};
    for (int64_t i = 0; i < count; i++) {
        for (; loaded < count && loaded < i + buffers; loaded++) {
            bool is_first = loaded % inner == 0;
            int64_t free_at = loaded < buffers ? 0 : multiplied[loaded % buffers];
            if (is_first || !p->columns_outside)
                weights = run_on(&c.dma, free_at, x.weights);
            if (is_first || p->columns_outside)
                rows = run_on(&c.dma, free_at, x.rows);
            weights_at[loaded % MOST_BUFFERS] = weights;
            rows_at[loaded % MOST_BUFFERS] = rows;
        }
        if (store_at > 0)
            run_on(&c.dma, store_at, x.store);
        if (i % inner == 0 || !p->columns_outside) {
            int64_t free_at = i > 0 && fills_trf ? multiplied[(i - 1) % buffers] : 0;
            if (x.turn_weights)
                weights_at[i % MOST_BUFFERS] = run_on(&c.main, weights_at[i % MOST_BUFFERS], x.turn_weights);
            stored_at = run_on(p->main_weights ? &c.main : &c.sub, larger(weights_at[i % MOST_BUFFERS], free_at), x.store_weights);
        }
        if (x.turn_rows && (p->columns_outside || i % inner == 0))
            rows_at[i % MOST_BUFFERS] = run_on(&c.main, rows_at[i % MOST_BUFFERS], x.turn_rows);
        multiplied[i % buffers] = result = run_on(&c.main, larger(rows_at[i % MOST_BUFFERS], stored_at), x.multiply);
        bool is_last = i >= count - of_sum;
        if (is_last && p->regroup > 1)
            result = run_on(&c.main, 0, x.regroup);
        store_at = is_last ? result : 0;
    }
    p->cycles = run_on(&c.dma, store_at, x.store);
}

attainable tune_bound_of(const target *t, const tune_question *q)
{
    const int64_t *size = q->size;
    int64_t batch = size[TUNE_BATCH], k = size[TUNE_SUM], bits = dtype_row_of(q->type)->bits;
    attainable_work w = {.chips = 1, .loads = 2, .stores = 1};
    w.bytes = bytes_of(q->type, batch * size[TUNE_ROW] * k) + bytes_of(q->type, batch * size[TUNE_COLUMN] * k) +
              bytes_of(q->out_type, batch * size[TUNE_ROW] * size[TUNE_COLUMN]);
    int64_t lanes = t->rows * t->mac_width_bytes * 8 / bits * t->slices_per_cluster * t->clusters_per_chip;
    w.mac_cycles = ceil_div(batch * size[TUNE_ROW] * size[TUNE_COLUMN] * k, lanes);
    return attainable_of(t, TIMING_DOCUMENTED, &w);
}
