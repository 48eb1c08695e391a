#include "libvisa/tune/ranges_plan.h"

#include "libvisa/tune/folded_plan.h"
#include "libvisa/tune/machine.h"
#include "libvisa/tune/plan.h"
#include "support/integer.h"
#include "support/order.h"

enum { WORD_BYTES = 8, FILL = 9, SUB_ACCESSES = 4 /* of a flit */, MOST_ITERATIONS = 128, ROW_BYTES = 1 << 21 /* of HBM, in all banks */ };

int64_t ranges_slices(const target *t)
{
    return t->clusters_per_chip * t->slices_per_cluster;
}

int64_t ranges_width(const target *t, const ranges_plan *p)
{
    return p->tile * ranges_slices(t);
}

int64_t ranges_stored(const target *t, const ranges_plan *p)
{
    return ranges_width(t, p) * p->iterations;
}

int64_t ranges_last(const target *t, const ranges_plan *p)
{
    return p->last_tile * ranges_slices(t);
}

int64_t ranges_left(const target *t, const tune_question *q, const ranges_plan *p)
{
    return q->size[TUNE_COLUMN] - ranges_stored(t, p) * p->stores;
}

int64_t ranges_padded_sum(const target *t, const tune_question *q)
{
    return round_up(q->size[TUNE_SUM], tune_packet_of(t, q));
}

int64_t ranges_row_clusters(const target *t, const tune_question *q)
{
    return q->size[TUNE_ROW] > 1 ? t->clusters_per_chip : 1;
}

int64_t ranges_row_slices(const target *t, const tune_question *q)
{
    return power_of_two_above(ceil_div(q->size[TUNE_ROW], ranges_row_clusters(t, q)));
}

/* Bytes of a slice's columns, and of rows that all slices have. */
static int64_t column_bytes(const target *t, const tune_question *q, int64_t columns)
{
    return tune_bytes_of(q->type, columns * ranges_padded_sum(t, q));
}

static int64_t results_bytes(const tune_question *q, int64_t results)
{
    return tune_bytes_of(q->out_type, results);
}

/* Flits that a slice sends of the rows that go around. */
static int64_t sent_flits(const target *t, const tune_question *q, const ranges_plan *p)
{
    return p->rows / p->row_parts * (column_bytes(t, q, 1) / p->sum_parts / t->flit_bytes);
}

/* Rows as all slices have them, with what is padding in the place of parts that nobody brings. */
static int64_t rows_bytes(const target *t, const tune_question *q, const ranges_plan *p)
{
    return p->row_parts > 0 ? sent_flits(t, q, p) * t->slices_per_cluster * t->flit_bytes : column_bytes(t, q, p->rows);
}

/* Does it all fit: weights of an iteration in the TRF, two of them in DM with all rows, what waits for its store, and whole rows? */
static bool fits(const target *t, const tune_question *q, const ranges_plan *p)
{
    int64_t waiting = results_bytes(q, p->rows * p->tile * p->iterations), products = results_bytes(q, p->rows * p->tile),
            whole = p->brings ? results_bytes(q, ranges_stored(t, p) / p->pieces) : 0, brought = p->row_parts > 0 ? rows_bytes(t, q, p) / t->slices_per_cluster : 0,
            last = p->last_tile > 0 ? results_bytes(q, p->rows * p->last_tile + ranges_last(t, p)) : 0;
    return column_bytes(t, q, p->tile) <= target_trf_capacity_bytes(t, TRF_FULL) &&
           2 * column_bytes(t, q, p->tile) + rows_bytes(t, q, p) + brought + 2 * products + waiting + larger(whole, last) <= t->dm_bytes_per_slice;
}

/* A copy that touches so much of HBM: of more than one row of each bank these are switched. */
static int64_t hbm_cycles(const target *t, int64_t bytes)
{
    int64_t switched = larger(0, bytes - ROW_BYTES) / (t->hbm_block_bytes * 8 * t->hbm_channels) * t->hbm_row_switch_cycles;
    return ceil_div(bytes / t->hbm_burst_bytes * t->hbm_burst_millicycles, 1000 * t->hbm_channels) + switched * 7 / 8;
}

static int64_t load_cycles(const target *t, const tune_question *q, int64_t tile)
{
    int64_t run = column_bytes(t, q, tile);
    return t->dma_startup_cycles + larger(hbm_cycles(t, run * ranges_slices(t)), ceil_div(run, t->dmn_bytes_per_cycle) * t->dm_slices_per_dmn);
}

/* Rows for all slices, and how long the main context takes them around. */
static int64_t load_rows_cycles(const target *t, const tune_question *q, const ranges_plan *p, int64_t *around)
{
    *around = p->row_parts > 0 ? FILL + sent_flits(t, q, p) * t->slices_per_cluster : 0;
    int64_t run = p->row_parts > 0 ? sent_flits(t, q, p) * t->flit_bytes : column_bytes(t, q, p->rows);
    return t->dma_startup_cycles + ceil_div(run, t->dmn_bytes_per_cycle) * t->dm_slices_per_dmn;
}

/* Whole rows of so many columns, in pieces of so many bytes: a copy from DM to DM takes turns. */
static int64_t bring_cycles(const target *t, const tune_question *q, const ranges_plan *p, int64_t columns, int64_t tile, int64_t pieces)
{
    int64_t run = results_bytes(q, tile * p->exchange), count = ceil_div(q->size[TUNE_ROW] * columns, tile * p->exchange),
            dmns = tune_dmns_of(t) * t->clusters_per_chip, engines = dmns / t->dma_dmns_per_engine,
            written = smaller(dmns, q->size[TUNE_ROW] * pieces);
    return t->dma_startup_cycles + larger(2 * (count / engines) * ceil_div(run, t->dma_request_bytes),
                                          (count / dmns + count / written) * ceil_div(run, t->dmn_bytes_per_cycle));
}

/* Rows that begin inside of a block of HBM are written in packets of which each has two blocks in part. */
static int64_t store_cycles(const target *t, const tune_question *q, const ranges_plan *p, int64_t columns, int64_t pieces)
{
    int64_t bytes = results_bytes(q, columns), rows = q->size[TUNE_ROW], slices = rows * pieces,
            under = ceil_div(slices, smaller(slices, tune_dmns_of(t) * ranges_row_clusters(t, q)));
    bool is_aligned = rows == 1 || results_bytes(q, q->size[TUNE_COLUMN]) % t->hbm_block_bytes == 0;
    int64_t partial = is_aligned ? 0 : ceil_div(2 * rows * ceil_div(bytes, t->dma_packet_max_bytes), t->hbm_channels) * tune_partial_block_cycles(t),
            dmn = p->brings ? under * ceil_div(bytes / pieces, t->dmn_bytes_per_cycle) : 0;
    return t->dma_startup_cycles + larger(larger(partial * 4 / 3, dmn), hbm_cycles(t, rows * bytes));
}

/* What the contexts take for an iteration, the longer of both. */
static int64_t work_cycles(const target *t, const tune_question *q, const ranges_plan *p, int64_t tile)
{
    int64_t packets = column_bytes(t, q, 1) / tune_bytes_of(q->type, tune_packet_of(t, q)), flits = tune_bytes_of(q->type, tune_packet_of(t, q)) / t->flit_bytes,
            groups = ceil_div(tile, t->rows), fill = column_bytes(t, q, tile) / t->flit_bytes,
            products = FILL + p->rows * packets * larger(flits, groups), out = results_bytes(q, p->rows * tile),
            packet = smaller(t->flit_bytes, results_bytes(q, tile)),
            exchange = p->exchange > 1 ? out / packet * larger(p->exchange, packet / WORD_BYTES) : 0;
    bool in_two = 2 * column_bytes(t, q, tile) <= target_trf_capacity_bytes(t, TRF_FULL);
    if (p->main_weights)
        return larger(products + fill, exchange);
    return in_two ? larger(products, SUB_ACCESSES * fill + exchange) : products + SUB_ACCESSES * fill;
}

static void estimate(const target *t, const tune_question *q, ranges_plan *p)
{
    int64_t around, ranges = p->iterations * p->stores, rows = load_rows_cycles(t, q, p, &around), load = load_cycles(t, q, p->tile), work = work_cycles(t, q, p, p->tile), columns = ranges_stored(t, p),
            left = ranges_left(t, q, p),
            store = store_cycles(t, q, p, columns, p->pieces) + (p->brings ? bring_cycles(t, q, p, columns, p->tile, p->pieces) : 0),
            dma = rows + ranges * load + p->stores * store, main = rows + larger(around, load) + ranges * work + store;
    int64_t last_work = 0;
    if (p->last_tile > 0) {
        int64_t last_load = load_cycles(t, q, p->last_tile), last_store = bring_cycles(t, q, p, ranges_last(t, p), p->last_tile, 1) + store_cycles(t, q, p, left, 1);
        last_work = work_cycles(t, q, p, p->last_tile);
        dma += last_load + last_store;
        main += last_work + last_store;
    }
    p->cycles = larger(dma + work / 2, main);
}

/* How rows come: each slice gets all of them, or brings a part that goes around. */
static void share_rows(const target *t, const tune_question *q, ranges_plan *p)
{
    int64_t all = t->slices_per_cluster, flits = column_bytes(t, q, 1) / t->flit_bytes, least = INT64_MAX, load = load_cycles(t, q, p->tile);
    bool is_whole = ranges_padded_sum(t, q) == q->size[TUNE_SUM] && p->rows == q->size[TUNE_ROW];
    ranges_plan best = *p;
    for (int64_t of_rows = 0; of_rows <= (is_whole ? smaller(all, p->rows) : 0); of_rows = of_rows > 0 ? 2 * of_rows : 1)
        for (int64_t of_sum = of_rows > 0; of_sum * of_rows <= all; of_sum *= 2) {
            ranges_plan x = *p;
            int64_t around;
            x.row_parts = of_rows;
            x.sum_parts = of_sum;
            if (of_rows == 0 || (p->rows % of_rows == 0 && flits % of_sum == 0)) {
                int64_t cycles = load_rows_cycles(t, q, &x, &around) + larger(0, around - load);
                best = cycles < least ? x : best;
                least = smaller(least, cycles);
            }
            if (of_rows == 0)
                break;
        }
    *p = best;
}

static int by_cycles(const void *a, const void *b)
{
    return ORDER(((const ranges_plan *)a)->cycles, ((const ranges_plan *)b)->cycles);
}

/* Whole sums of one chip and all its slices, which nothing is done to. */
static bool is_of_this_form(const target *t, const tune_question *q)
{
    return folded_shares_sums(q) && !q->turned[q->stream] && !q->turned[q->weights] && q->operation_count == 0 && q->extra_count == 0 && !q->tensors[TUNE_OUT].is_free &&
           !tune_is_free(q, TUNE_ROW) && !tune_is_free(q, TUNE_COLUMN) && tune_slices_of(t, q->most_slices) == t->slices_per_cluster && q->axis_text[TUNE_COLUMN] != NULL;
}

/* Columns of a slice come in whole words of the result, and fill the Rows where they are more. */
static bool is_tile(const target *t, const tune_question *q, int64_t tile)
{
    return results_bytes(q, smaller(tile, t->rows)) % WORD_BYTES == 0 && results_bytes(q, tile) % WORD_BYTES == 0;
}

/* The fewest columns of a slice that a range of `left` columns has; 0: none. */
static int64_t last_tile_of(const target *t, const tune_question *q, int64_t left)
{
    int64_t tile = 1;
    while (left > 0 && (tile * ranges_slices(t) < left || !is_tile(t, q, tile)))
        tile *= 2;
    return left > 0 ? tile : 0;
}

/* May slices write what they have? In whole blocks of HBM, and there is no last range, whose first columns nobody writes. */
static bool can_write_pieces(const target *t, const tune_question *q, const ranges_plan *p)
{
    return results_bytes(q, q->size[TUNE_COLUMN]) % t->hbm_block_bytes == 0 && results_bytes(q, p->tile * p->exchange) % t->hbm_block_bytes == 0;
}

static void consider(const target *t, const tune_question *q, ranges_plan p, ranges_plan *out, size_t *count, size_t most)
{
    for (int brings = 0; brings <= 1; brings++)
        for (int by_main = 0; by_main <= 1; by_main++)
            for (p.pieces = 1; p.pieces <= (brings ? p.iterations : 1) && p.pieces * ranges_row_slices(t, q) <= t->slices_per_cluster; p.pieces++) {
                p.brings = brings;
                p.main_weights = by_main;
                if (p.iterations % p.pieces != 0 || (!brings && !can_write_pieces(t, q, &p)) || !fits(t, q, &p))
                    continue;
                estimate(t, q, &p);
                order_keep(out, count, most, sizeof p, &p, by_cycles);
            }
}

size_t ranges_plans(const target *t, const tune_question *q, ranges_plan *out, size_t most)
{
    const int64_t columns = q->size[TUNE_COLUMN], rows = q->size[TUNE_ROW];
    size_t count = 0;
    if (!is_of_this_form(t, q) || rows > t->clusters_per_chip * t->slices_per_cluster)
        return 0;
    ranges_plan p = {0};
    for (p.tile = 1; p.tile * ranges_slices(t) <= columns && column_bytes(t, q, p.tile) <= target_trf_capacity_bytes(t, TRF_FULL);
         p.tile = p.tile < t->rows ? 2 * p.tile : p.tile + t->rows) {
        if (!is_tile(t, q, p.tile))
            continue;
        const int64_t ranges = columns / ranges_width(t, &p);
        for (p.stores = 1; p.stores <= smaller(ranges, MOST_ITERATIONS); p.stores++) {
            p.iterations = ranges / p.stores;
            if (p.iterations * p.stores > MOST_ITERATIONS || (ranges - p.iterations * p.stores >= 1))
                continue;
            p.last_tile = last_tile_of(t, q, ranges_left(t, q, &p));
            for (p.exchange = 1; p.exchange <= smaller(t->switch_blocking_flits, rows > 1 ? 2 * rows - 1 : 1); p.exchange *= 2) {
                p.rows = round_up(rows, p.exchange);
                share_rows(t, q, &p);
                consider(t, q, p, out, &count, most);
            }
        }
    }
    return count;
}
