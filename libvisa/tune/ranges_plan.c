#include "libvisa/tune/ranges_plan.h"

#include "libvisa/tune/folded_plan.h"
#include "libvisa/tune/machine.h"
#include "libvisa/tune/plan.h"
#include "runtime/timing/hbm_address.h"
#include "support/integer.h"
#include "support/order.h"

enum {
    WORD_BYTES = 8,
    FILL = 9,
    SUB_ACCESSES = 4 /* of a flit */,
    MOST_ITERATIONS = 128,
    MOST_IDLE = 8,
    ROW_BYTES = 1 << 21 /* of HBM, in all banks */
};

int64_t ranges_slices(const target *t, const ranges_plan *p)
{
    return t->clusters_per_chip / p->row_clusters * t->slices_per_cluster / p->idle;
}

int64_t ranges_rows(const ranges_plan *p)
{
    return p->rows / p->row_clusters;
}

int64_t ranges_width(const target *t, const ranges_plan *p)
{
    return p->tile * ranges_slices(t, p);
}

int64_t ranges_stored(const target *t, const ranges_plan *p)
{
    return ranges_width(t, p) * p->iterations;
}

int64_t ranges_last(const target *t, const ranges_plan *p)
{
    return p->last_tile * ranges_slices(t, p);
}

int64_t ranges_left(const target *t, const tune_question *q, const ranges_plan *p)
{
    return q->size[TUNE_COLUMN] - ranges_stored(t, p) * p->stores;
}

int64_t ranges_padded_sum(const target *t, const tune_question *q)
{
    return round_up(q->size[TUNE_SUM], tune_packet_of(t, q));
}

bool ranges_shifts_extra(const target *t, const tune_question *q, const ranges_plan *p, const tune_extra *e)
{
    return tune_bytes_of(e->type, q->size[TUNE_COLUMN] - ranges_last(t, p)) % WORD_BYTES != 0;
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
    return ranges_rows(p) / p->row_parts * (column_bytes(t, q, 1) / p->sum_parts / t->flit_bytes);
}

/* Rows as all slices have them, with what is padding in the place of parts that nobody brings; and as they come. */
static int64_t rows_bytes(const target *t, const tune_question *q, const ranges_plan *p)
{
    int64_t sent = p->row_parts > 0 ? sent_flits(t, q, p) * t->flit_bytes : 0;
    return p->row_parts > 0 ? sent * (1 + t->slices_per_cluster) : column_bytes(t, q, ranges_rows(p));
}

/* Does it all fit: weights of an iteration in the TRF, two of them in DM with all rows, what waits for its store, and whole rows? */
static bool fits(const target *t, const tune_question *q, const ranges_plan *p)
{
    int64_t tile = larger(p->tile, p->last_tile), rows = ranges_rows(p), waiting = results_bytes(q, rows * p->tile * p->iterations),
            products = results_bytes(q, rows * tile), whole = p->brings ? results_bytes(q, ranges_stored(t, p) / p->pieces) : 0,
            last = p->last_tile > 0 ? results_bytes(q, rows * p->last_tile + ranges_last(t, p)) : 0;
    int64_t in_vrf = (int64_t)q->extra_count * tune_bytes_of(DTYPE_F32, round_up(tile, t->rows)) +
                     (tune_epilogue_stashes(&q->whole) ? TUNE_STASH_BYTES : 0);
    /* rows that a slice keeps after the exchange are one, or of both clusters in equal parts */
    int64_t kept = rows / p->exchange;
    bool parts_alike = p->exchange == 1 || kept == 1 || kept % ranges_row_clusters(t, q) == 0;
    return parts_alike && in_vrf <= t->vrf_bytes && column_bytes(t, q, tile) <= target_trf_capacity_bytes(t, TRF_FULL) &&
           ranges_last(t, p) <= q->size[TUNE_COLUMN] &&
           2 * column_bytes(t, q, tile) + rows_bytes(t, q, p) + 2 * products + waiting + larger(whole, last) <= t->dm_bytes_per_slice;
}

/* A copy of so many bytes that lie side by side: of more than one row of each bank these are switched. */
static int64_t hbm_cycles(const target *t, int64_t bytes)
{
    int64_t blocks = larger(0, bytes - ROW_BYTES) / (8 * t->hbm_block_bytes * t->hbm_channels);
    return ceil_div(bytes / t->hbm_burst_bytes * t->hbm_burst_millicycles, 1000 * t->hbm_channels) +
           blocks * t->hbm_row_switch_cycles * 7 / 8;
}

static int64_t load_cycles(const target *t, const tune_question *q, const ranges_plan *p, int64_t tile)
{
    int64_t run = column_bytes(t, q, tile);
    return t->dma_startup_cycles + larger(p->row_clusters * hbm_cycles(t, run * ranges_slices(t, p)),
                                          ceil_div(run, t->dmn_bytes_per_cycle) * t->dm_slices_per_dmn / p->idle);
}

/* Rows for all slices, and how long the main context takes them around. */
static int64_t load_rows_cycles(const target *t, const tune_question *q, const ranges_plan *p, int64_t *around)
{
    *around = p->row_parts > 0 ? FILL + sent_flits(t, q, p) * t->slices_per_cluster : 0;
    int64_t run = p->row_parts > 0 ? sent_flits(t, q, p) * t->flit_bytes : column_bytes(t, q, ranges_rows(p));
    bool has_rest = p->row_parts > 1 && p->rows != q->size[TUNE_ROW];
    return (has_rest ? 2 : 1) * t->dma_startup_cycles + ceil_div(run, t->dmn_bytes_per_cycle) * t->dm_slices_per_dmn / p->idle;
}

/* Whole rows of so many columns, in pieces of a tile for each that exchange: a copy from DM to DM takes turns. */
static int64_t bring_cycles(const target *t, const tune_question *q, const ranges_plan *p, int64_t columns, int64_t tile, int64_t pieces)
{
    int64_t run = results_bytes(q, tile * p->exchange), count = ceil_div(q->size[TUNE_ROW] * columns, tile * p->exchange),
            dmns = tune_dmns_of(t) * t->clusters_per_chip, engines = dmns / t->dma_dmns_per_engine,
            written = smaller(tune_dmns_of(t) * ranges_row_clusters(t, q), q->size[TUNE_ROW] * pieces);
    bool has_rest = p->rows != q->size[TUNE_ROW] || q->size[TUNE_ROW] % ranges_row_clusters(t, q) != 0;
    return (has_rest ? 2 : 1) * t->dma_startup_cycles + larger(2 * (count / engines) * ceil_div(run, t->dma_request_bytes),
                                                               (count / dmns + count / written) * ceil_div(run, t->dmn_bytes_per_cycle));
}

/* Rows that begin inside of a block of HBM are written in packets, each of which begins and ends inside of one: blocks are written in part,
 * and the channel that has most of these binds. */
static int64_t partial_cycles(const target *t, const tune_question *q, int64_t begin, int64_t columns, int64_t pieces)
{
    enum { FOLLOWED = 16384 };
    int64_t block = t->hbm_block_bytes, run = results_bytes(q, columns / pieces), packet = largest_divisor(run, t->dma_packet_max_bytes),
            pitch = results_bytes(q, q->size[TUNE_COLUMN]), of_row = results_bytes(q, columns) / packet, writes[32] = {0}, most = 0,
            all = q->size[TUNE_ROW] * of_row, followed = smaller(all, FOLLOWED);
    for (int64_t i = 0; i < followed; i++) {
        int64_t from = i / of_row * pitch + results_bytes(q, begin) + i % of_row * packet, to = from + packet;
        writes[hbm_channel_of(from) & 31] += from % block != 0;
        writes[hbm_channel_of(to) & 31] += to % block != 0;
        most = larger(most, larger(writes[hbm_channel_of(from) & 31], writes[hbm_channel_of(to) & 31]));
    }
    return most * all / larger(1, followed) * tune_partial_block_cycles(t);
}

static int64_t store_cycles(const target *t, const tune_question *q, const ranges_plan *p, int64_t begin, int64_t columns, int64_t pieces)
{
    int64_t bytes = results_bytes(q, columns), rows = q->size[TUNE_ROW], slices = rows * pieces,
            under = ceil_div(slices, smaller(slices, tune_dmns_of(t) * ranges_row_clusters(t, q)));
    int64_t partial = partial_cycles(t, q, begin, columns, pieces),
            dmn = p->brings ? under * ceil_div(bytes / pieces, t->dmn_bytes_per_cycle) : 0;
    return t->dma_startup_cycles + larger(partial + hbm_cycles(t, rows * bytes), dmn);
}

/* What the contexts take for an iteration, the longer of both. */
static int64_t work_cycles(const target *t, const tune_question *q, const ranges_plan *p, int64_t tile)
{
    int64_t packet_bytes = tune_bytes_of(q->type, tune_packet_of(t, q)), packets = column_bytes(t, q, 1) / packet_bytes,
            flits = packet_bytes / t->flit_bytes, groups = ceil_div(tile, t->rows), fill = column_bytes(t, q, tile) / t->flit_bytes,
            rows = ranges_rows(p), passed = rows * groups * (q->whole.count > 0 && q->whole.passes[0].narrow.count > 0 ? 2 : 1),
            products = FILL + larger(passed, rows * packets * larger(flits, groups)), out = results_bytes(q, rows * tile),
            packet = smaller(t->flit_bytes, results_bytes(q, tile)),
            exchange = p->exchange > 1 || p->iterations > 1 ? out / packet * larger(p->exchange, packet / WORD_BYTES) : 0;
    bool in_two = 2 * column_bytes(t, q, tile) <= target_trf_capacity_bytes(t, TRF_FULL);
    if (p->main_weights)
        return larger(products + fill, exchange);
    return in_two ? larger(products, SUB_ACCESSES * fill + exchange) : products + SUB_ACCESSES * fill;
}

static void estimate(const target *t, const tune_question *q, ranges_plan *p)
{
    int64_t around, ranges = p->iterations * p->stores, rows = load_rows_cycles(t, q, p, &around), load = load_cycles(t, q, p, p->tile),
                    work = work_cycles(t, q, p, p->tile), columns = ranges_stored(t, p), left = ranges_left(t, q, p);
    int64_t store = store_cycles(t, q, p, 0, columns, p->pieces) + (p->brings ? bring_cycles(t, q, p, columns, p->tile, p->pieces) : 0),
            extras = (int64_t)q->extra_count * p->stores * t->dma_startup_cycles, dma = rows + ranges * load + p->stores * store + extras,
            main = rows + larger(around, load) + ranges * work + store;
    if (p->last_tile > 0) {
        int64_t last_store =
            bring_cycles(t, q, p, ranges_last(t, p), p->last_tile, 1) + store_cycles(t, q, p, columns * p->stores, left, 1);
        dma += load_cycles(t, q, p, p->last_tile) + last_store + (int64_t)q->extra_count * 2 * t->dma_startup_cycles;
        main += work_cycles(t, q, p, p->last_tile) + last_store;
    }
    p->cycles = larger(dma + (p->main_weights ? work / 2 : work), main);
}

static int by_cycles(const void *a, const void *b)
{
    return ORDER(((const ranges_plan *)a)->cycles, ((const ranges_plan *)b)->cycles);
}

/* Whole sums of one chip and all its slices; what is done to them is a pass at most, with operands of columns. */
static bool is_of_this_form(const target *t, const tune_question *q)
{
    for (size_t i = 0; i < q->extra_count; i++)
        if (q->extras[i].has[TUNE_ROW] || !q->extras[i].has[TUNE_COLUMN])
            return false;
    return folded_shares_sums(q) && !q->turned[q->stream] && !q->turned[q->weights] && q->whole.count <= 1 &&
           !q->tensors[TUNE_OUT].is_free && !tune_is_free(q, TUNE_ROW) && !tune_is_free(q, TUNE_COLUMN) &&
           tune_slices_of(t, q->most_slices) == t->slices_per_cluster && q->axis_text[TUNE_COLUMN] != NULL;
}

/* Columns of a slice come in whole words of the result, and fill the Rows where they are more. */
static bool is_tile(const target *t, const tune_question *q, int64_t tile)
{
    bool is_whole = results_bytes(q, smaller(tile, t->rows)) % WORD_BYTES == 0 && results_bytes(q, tile) % WORD_BYTES == 0;
    for (size_t i = 0; i < q->extra_count; i++)
        is_whole = is_whole && tune_bytes_of(q->extras[i].type, smaller(tile, t->rows)) % WORD_BYTES == 0;
    return is_whole;
}

/* The fewest columns of a slice that a range with all that is left has; 0: nothing is left. */
static int64_t last_tile_of(const target *t, const tune_question *q, const ranges_plan *p)
{
    int64_t tile = 1, left = ranges_left(t, q, p);
    while (left > 0 && (tile * ranges_slices(t, p) < left || !is_tile(t, q, tile)))
        tile *= 2;
    return left > 0 ? tile : 0;
}

/* May slices write what they have? In whole blocks of HBM. */
static bool can_write_pieces(const target *t, const tune_question *q, const ranges_plan *p)
{
    return results_bytes(q, q->size[TUNE_COLUMN]) % t->hbm_block_bytes == 0 &&
           results_bytes(q, p->tile * p->exchange) % t->hbm_block_bytes == 0;
}

typedef struct found_plans {
    ranges_plan *of;
    size_t count, most;
} found_plans;

/* How results are stored, and who fills the TRF. */
static void consider_stores(const target *t, const tune_question *q, ranges_plan p, found_plans *out)
{
    for (int brings = 0; brings <= 1; brings++)
        for (p.pieces = 1; p.pieces <= (brings ? p.iterations : 1); p.pieces++) {
            p.brings = brings;
            if (p.iterations % p.pieces != 0 || ranges_row_slices(t, q) * power_of_two_above(p.pieces) > t->slices_per_cluster ||
                (!brings && !can_write_pieces(t, q, &p)) || !fits(t, q, &p))
                continue;
            ranges_plan best = {.cycles = INT64_MAX};
            for (int by_main = 0; by_main <= 1; by_main++) {
                p.main_weights = by_main;
                estimate(t, q, &p);
                best = p.cycles < best.cycles ? p : best;
            }
            order_keep(out->of, &out->count, out->most, sizeof best, &best, by_cycles);
        }
}

/* How rows come: each slice gets all of them, or brings a part that goes around. Of these the fastest. */
static void consider_rows(const target *t, const tune_question *q, ranges_plan p, found_plans *out)
{
    enum { MOST_PADDING = 8 }; /* a part of the rows */
    const int64_t rows = q->size[TUNE_ROW], all = t->slices_per_cluster, flits = column_bytes(t, q, 1) / t->flit_bytes;
    const bool is_whole = ranges_padded_sum(t, q) == q->size[TUNE_SUM];
    ranges_plan best = p;
    int64_t least = INT64_MAX;
    for (p.row_parts = 0; p.row_parts <= (p.idle > 1 ? 0 : all); p.row_parts = larger(1, 2 * p.row_parts)) {
        p.rows = round_up(rows, p.row_clusters * larger(p.exchange, larger(1, p.row_parts)));
        for (p.sum_parts = p.row_parts > 0;
             p.sum_parts * p.row_parts <= all && flits % larger(1, p.sum_parts) == 0 && (is_whole || p.sum_parts <= 1);
             p.sum_parts = larger(1, 2 * p.sum_parts)) {
            int64_t around, load = load_cycles(t, q, &p, p.tile);
            int64_t cycles = load_rows_cycles(t, q, &p, &around) + larger(0, around - load) +
                             p.iterations * p.stores * work_cycles(t, q, &p, p.tile) / 2;
            best = cycles < least ? p : best;
            least = smaller(least, cycles);
            if (p.row_parts == 0)
                break;
        }
        if (p.rows > rows + rows / MOST_PADDING + p.row_clusters * p.exchange)
            break;
    }
    consider_stores(t, q, best, out);
}

size_t ranges_plans(const target *t, const tune_question *q, ranges_plan *out, size_t most)
{
    const int64_t columns = q->size[TUNE_COLUMN], rows = q->size[TUNE_ROW];
    found_plans found = {out, 0, most};
    if (!is_of_this_form(t, q) || rows > t->clusters_per_chip * t->slices_per_cluster)
        return 0;
    ranges_plan p = {0};
    for (p.row_clusters = 1; p.row_clusters <= smaller(rows, t->clusters_per_chip); p.row_clusters *= 2)
        for (p.idle = 1; p.idle <= (p.row_clusters == 1 ? MOST_IDLE : 1); p.idle *= 2)
            for (p.tile = 1; ranges_width(t, &p) <= columns && column_bytes(t, q, p.tile) <= target_trf_capacity_bytes(t, TRF_FULL);
                 p.tile = p.tile < t->rows ? 2 * p.tile : p.tile + t->rows) {
                const int64_t ranges = columns / ranges_width(t, &p);
                if (!is_tile(t, q, p.tile) || ranges > MOST_ITERATIONS)
                    continue;
                for (p.stores = 1; p.stores <= ranges; p.stores++) {
                    p.iterations = ranges / p.stores;
                    if (ranges % p.stores != 0)
                        continue;
                    p.last_tile = last_tile_of(t, q, &p);
                    for (p.exchange = 1; p.exchange <= (p.idle > 1 ? 1 : smaller(t->switch_blocking_flits, 2 * rows - 1)); p.exchange *= 2)
                        consider_rows(t, q, p, &found);
                }
            }
    return found.count;
}
