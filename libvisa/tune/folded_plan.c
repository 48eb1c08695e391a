#include "libvisa/tune/folded_plan.h"

#include "libvisa/tune/machine.h"
#include "libvisa/tune/plan_cycles.h"
#include "support/integer.h"
#include "support/order.h"

enum { MOST_ITERATIONS = 16, MOST_PIECES = 4, SUB_ACCESSES = 4 /* of a flit, in the sub context */, CHAIN_FILL = 15 };

int64_t folded_piece(const folded_plan *p)
{
    return p->columns / p->pieces;
}

int64_t folded_columns_brought(const folded_plan *p)
{
    return folded_piece(p) / folded_column_bringers(p);
}

int64_t folded_column_bringers(const folded_plan *p)
{
    return p->row_slices * p->brought_sums / p->sums;
}

int64_t folded_columns_together(const folded_plan *p)
{
    return folded_columns_brought(p) * larger(1, p->gather / p->sum_slices);
}

int64_t folded_rows_kept(const folded_plan *p)
{
    return p->rows / p->sum_slices;
}

int64_t folded_padded_rows(const folded_plan *p)
{
    return p->row_slices * p->rows;
}

int64_t folded_padded_sum(const folded_plan *p)
{
    return p->sum_slices * p->sums;
}

int64_t folded_sums_of(const target *t, const tune_question *q, int64_t slices)
{
    enum { WORD_BYTES = 8 };
    int64_t sums = round_up(ceil_div(q->size[TUNE_SUM], slices), tune_packet_of(t, q));
    bool lies_in_words = tune_bytes_of(q->type, q->size[TUNE_SUM]) % WORD_BYTES == 0, is_padded = slices * sums != q->size[TUNE_SUM],
         is_turned = q->turned[q->stream] || q->turned[q->weights];
    return (slices - 1) * sums < q->size[TUNE_SUM] && (!is_padded || (lies_in_words && !is_turned)) ? sums : 0;
}

int64_t folded_rows_together(const folded_plan *p)
{
    return p->in_halves ? p->rows / 2 : p->rows;
}

aside folded_aside_of(const target *t, const tune_question *q, const folded_plan *p)
{
    return (aside){
        .role = TUNE_ROW, .kept = p->aside, .sums = q->size[TUNE_SUM], .block = aside_block_of(t, q, TUNE_ROW, folded_rows_together(p))};
}

int64_t folded_turned_columns(const target *t, const tune_question *q)
{
    return t->transpose_row_bytes * 8 / dtype_row_of(q->out_type)->bits;
}

bool folded_shares_sums(const tune_question *q)
{
    return tune_chips_of(q->share, TUNE_ROLES) == 1 && q->window_count == 0 && !q->depthwise && q->size[TUNE_BATCH] == 1 &&
           q->stored[q->stream] == q->type && q->stored[q->weights] == q->type;
}

/* What is done to the sums is a pass at most, between the reducer and the Transpose Engine; what meets them there has an element for each
 * row, or for each column, since with both it lies the other way than packets. Rows that lie turned can be turned aside. */
static bool is_of_this_form(const target *t, const tune_question *q)
{
    for (size_t i = 0; i < q->extra_count; i++)
        if (q->extras[i].has[TUNE_ROW] == q->extras[i].has[TUNE_COLUMN])
            return false;
    return folded_shares_sums(q) && tune_epilogue_of(q, 1, false)->count <= 1 &&
           (!q->turned[q->stream] || aside_kept_of(t, q, TUNE_ROW) > 0);
}

static int64_t bytes_of_run(const tune_question *q, const folded_plan *p)
{
    return tune_bytes_of(q->type, p->sums);
}

static int64_t bytes_of_stored_run(const tune_question *q, const folded_plan *p)
{
    return tune_bytes_of(q->out_type, p->columns);
}

/* Positions of a slice that an operand of what is done to the sums has: of columns those of all its iterations. */
static int64_t met_by(const folded_plan *p, const tune_extra *e)
{
    return e->has[TUNE_COLUMN] ? p->iterations * p->columns : folded_rows_kept(p);
}

/* Do they fit: rows in the TRF, all that a slice has of the operands and two iterations of results in DM, what meets the sums in the VRF?
 */
static bool fits(const target *t, const tune_question *q, const folded_plan *p)
{
    int64_t met = 0;
    for (size_t i = 0; i < q->extra_count; i++)
        met += 4 * met_by(p, &q->extras[i]);
    if (met > t->vrf_bytes)
        return false;
    int64_t run = bytes_of_run(q, p), of_group = p->iterations * p->columns;
    int64_t brought = of_group / p->row_slices * (q->turned[q->weights] ? 2 : 1); /* as they lie, and turned */
    int64_t turned = p->aside > 0 ? 2 * p->aside * aside_turners_of(t, q, &(aside){TUNE_ROW, p->aside, q->size[TUNE_SUM], 0}).sums : 0;
    int64_t operands = run * (p->rows + of_group + brought) + tune_bytes_of(q->type, turned),
            results = 2 * folded_rows_kept(p) * bytes_of_stored_run(q, p);
    return p->rows * run <= target_trf_capacity_bytes(t, TRF_FULL) && operands + results <= t->dm_bytes_per_slice;
}

int64_t folded_copy_cycles(const target *t, int64_t pieces, int64_t run, int64_t live, int64_t slices)
{
    return folded_copy_cycles_of(t, pieces, run, live, slices, INT64_MAX);
}

int64_t folded_copy_cycles_of(const target *t, int64_t pieces, int64_t run, int64_t live, int64_t slices, int64_t hbm_bytes)
{
    int64_t all = t->slices_per_cluster * t->clusters_per_chip / slices * live, of_dmn = pieces * t->dm_slices_per_dmn;
    int64_t engine = of_dmn * t->dma_dmns_per_engine * ceil_div(run, t->dma_request_bytes),
            dmn = of_dmn * ceil_div(run, t->dmn_bytes_per_cycle);
    int64_t bursts =
        ceil_div(pieces * all * ceil_div(run, t->hbm_burst_bytes), smaller(t->hbm_channels, larger(1, hbm_bytes / t->hbm_block_bytes)));
    return t->dma_startup_cycles + larger(larger(engine, dmn), ceil_div(bursts * t->hbm_burst_millicycles, 1000));
}

int64_t folded_around_cycles(int64_t slices, int64_t brought_flits, int64_t written_flits, bool by_main)
{
    return larger(slices * brought_flits, written_flits * (by_main ? 1 : SUB_ACCESSES));
}

/* A piece of the columns. */
static int64_t ring_cycles(const target *t, const tune_question *q, const folded_plan *p, bool by_main)
{
    return folded_around_cycles(p->row_slices * p->sum_slices,
                                folded_columns_brought(p) * tune_bytes_of(q->type, p->brought_sums) / t->flit_bytes,
                                folded_piece(p) * bytes_of_run(q, p) / t->flit_bytes, by_main);
}

/* Columns of so many pieces: a copy. Where they lie turned its runs are of columns; of pieces, and of iterations of one group, whose
 * columns a slice has all, they follow each other. */
static int64_t load_cycles(const target *t, const tune_question *q, const folded_plan *p, int64_t pieces)
{
    if (!q->turned[q->weights])
        return folded_copy_cycles(t, pieces * folded_columns_brought(p), bytes_of_run(q, p), 1, 1);
    int64_t brought = pieces * folded_columns_brought(p) * p->brought_sums, together = folded_columns_together(p);
    if (together == folded_piece(p))
        together *= p->groups == 1 ? pieces : p->pieces;
    return folded_copy_cycles(t, brought / together, tune_bytes_of(q->type, together), 1, 1);
}

/* They are turned by main: through rings of those that exchange them, and the Transpose Engine. */
static int64_t turn_cycles(const target *t, const tune_question *q, const folded_plan *p, int64_t pieces)
{
    int64_t brought = pieces * folded_columns_brought(p) * p->brought_sums;
    return !q->turned[q->weights]
               ? 0
               : CHAIN_FILL + larger(brought / tune_turn_columns(q, folded_columns_brought(p)) * p->gather, brought / tune_turn_rows(t, q));
}

/* Packets of columns meet the rows in the TRF, and what is left after the reducer is turned. */
static int64_t products_cycles(const target *t, const tune_question *q, const folded_plan *p)
{
    int64_t tiles = p->rows / t->rows, flits = tune_packet_of(t, q) / (t->flit_bytes * 8 / dtype_row_of(q->type)->bits);
    int64_t in = folded_piece(p) * (p->sums / tune_packet_of(t, q)) * larger(flits, tiles);
    int64_t turned = folded_piece(p) / folded_turned_columns(t, q) * folded_rows_kept(p);
    return CHAIN_FILL + larger(in, larger(folded_piece(p) * tiles, turned));
}

/* What meets the sums, for the iterations that begin with half of the rows, or the others: a copy of each. */
static int64_t extras_cycles(const target *t, const tune_question *q, const folded_plan *p, bool begins)
{
    int64_t cycles = 0;
    for (size_t i = 0; i < q->extra_count; i++) {
        const tune_extra *e = &q->extras[i];
        bool of_columns = e->has[TUNE_COLUMN];
        int64_t pieces = of_columns ? (begins ? 1 : p->iterations) : 1 + begins,
                run = tune_bytes_of(e->type, of_columns ? p->columns : folded_rows_kept(p)),
                parts = of_columns && begins ? p->iterations / 2 : 1;
        cycles += folded_copy_cycles_of(t, pieces, run, 1, 1, tune_bytes_of(e->type, q->size[of_columns ? TUNE_COLUMN : TUNE_ROW]) / parts);
    }
    return cycles;
}

/* The schedule: columns, then rows, by one copy or two; meanwhile columns go around; products of each piece and stores of each iteration
 * follow. Half of the rows with two iterations are as many products, and results, as all rows with one. Of rows that are turned aside the
 * copy is in front of that of the columns, or after it. */
static int64_t estimate_in_order(const target *t, const tune_question *q, const folded_plan *p, bool columns_first)
{
    int64_t run = bytes_of_run(q, p), together = folded_rows_together(p), live = ceil_div(q->size[TUNE_ROW], p->rows),
            store = folded_copy_cycles(t, folded_rows_kept(p), bytes_of_stored_run(q, p), live, p->row_slices),
            multiply = products_cycles(t, q, p), begun = p->in_halves ? 2 : 0, pieces = p->iterations * p->pieces;
    int64_t column_copies = p->columns_in_halves ? 2 : 1, row_copies = p->in_halves ? 2 : 1, in_copy = pieces / column_copies;
    int64_t loaded_at[2], rows_at[2], columns_at[MOST_ITERATIONS * MOST_PIECES], dma = 0, main = 0, sub = 0;
    int64_t aside_in = 0, turn_aside = 0, aside_out = 0, turned_at = 0, turn = turn_cycles(t, q, p, in_copy);
    if (p->aside > 0) {
        aside rows = folded_aside_of(t, q, p);
        tune_aside_cycles(t, q, &rows, &aside_in, &turn_aside, &aside_out);
        if (!columns_first)
            turned_at = main = (dma = aside_in) + turn_aside;
    }
    for (int64_t half = 0; half < column_copies; half++) {
        loaded_at[half] = dma += load_cycles(t, q, p, in_copy);
        if (half == 0 && turn > 0)
            loaded_at[0] = main = larger(main, loaded_at[0]) + turn;
        if (half == 0 && columns_first)
            turned_at = main = larger(main, dma += aside_in) + turn_aside;
        if (half == 0 && p->aside > 0)
            dma = larger(dma, turned_at) + aside_out;
    }
    if (p->in_halves)
        dma += extras_cycles(t, q, p, true);
    for (int64_t half = 0; half < row_copies; half++) /* in one run where they were turned */
        rows_at[half] = dma += p->aside > 0 ? folded_copy_cycles(t, 1, together * run, live, p->row_slices)
                                            : folded_copy_cycles(t, together, run, live, p->row_slices);
    if (p->iterations > begun)
        dma += extras_cycles(t, q, p, false);
    for (int64_t i = 0; i < pieces; i++) {
        if (turn > 0 && i == 1 && column_copies > 1) /* the other half, after what is main's to begin with */
            loaded_at[1] = main = larger(main, loaded_at[1]) + turn;
        int64_t *clock = i == 0 && p->main_begins ? &main : &sub;
        columns_at[i] = *clock = larger(*clock, loaded_at[i / in_copy]) + ring_cycles(t, q, p, clock == &main);
    }
    for (int64_t half = 0; half < begun; half++) {
        main = larger(larger(main, rows_at[half]) + together * run / t->flit_bytes, larger(columns_at[0], columns_at[1])) + multiply;
        dma = larger(dma, main) + store;
    }
    if (p->iterations > begun)
        main = larger(main, rows_at[0]) + p->rows * run / t->flit_bytes;
    for (int64_t i = begun; i < p->iterations; i++) {
        for (int64_t piece = 0; piece < p->pieces; piece++)
            main = larger(main, columns_at[i * p->pieces + piece]) + multiply;
        dma = larger(dma, main) + store;
    }
    return dma;
}

static void estimate(const target *t, const tune_question *q, folded_plan *p)
{
    p->cycles = estimate_in_order(t, q, p, false);
    if (p->aside > 0)
        p->cycles = smaller(p->cycles, estimate_in_order(t, q, p, true));
}

/* Sorted by cycles; of equals the one that was found first. */
static int by_cycles(const void *a, const void *b)
{
    return ORDER(((const folded_plan *)a)->cycles, ((const folded_plan *)b)->cycles);
}

/* Are columns whole blocks of HBM, shared evenly by the slices that bring them, and whole blocks of the Transpose Engine? */
static bool divides_columns(const target *t, const tune_question *q, const folded_plan *p)
{
    return p->columns % (p->pieces * folded_column_bringers(p)) == 0 && folded_piece(p) % folded_turned_columns(t, q) == 0 &&
           bytes_of_stored_run(q, p) % t->hbm_block_bytes == 0;
}

/* Halves of the rows are whole tiles, and two iterations beside each other a whole part of all. */
static bool can_halve(const target *t, const tune_question *q, const folded_plan *p)
{
    return p->pieces == 1 && p->iterations % 2 == 0 && p->rows % (2 * t->rows) == 0 && folded_padded_rows(p) == q->size[TUNE_ROW];
}

/* Elements of the sum that a slice brings: of columns that lie turned as few whole flits as there are slices for, since runs of its copy
 * are of columns. */
static int64_t brought_sums_of(const target *t, const tune_question *q, const folded_plan *p)
{
    int64_t flits = bytes_of_run(q, p) / t->flit_bytes, parts = 1;
    while (q->turned[q->weights] && 2 * parts <= p->row_slices && flits % (2 * parts) == 0)
        parts *= 2;
    return p->sums / parts;
}

/* Slices that exchange parts of the sum for columns: none, or neighbours with all parts and the columns of so many that bring them. */
static bool can_gather(const target *t, const tune_question *q, const folded_plan *p)
{
    if (!q->turned[q->weights])
        return p->gather == 1;
    int64_t columns = folded_columns_brought(p);
    return columns % tune_turn_columns(q, columns) == 0 && p->gather <= t->switch_blocking_flits && p->brought_sums % p->gather == 0 &&
           (p->gather == 1 || folded_column_bringers(p) % (p->gather / p->sum_slices) == 0);
}

/* The ways that are worth a try of what is divided so. */
static void consider_ways(const target *t, const tune_question *q, folded_plan p, folded_plan *out, size_t *count, size_t most)
{
    for (p.gather = 1; can_gather(t, q, &p); p.gather = p.gather == 1 ? 2 * p.sum_slices : 2 * p.gather)
        for (int way = 0; way < (!can_halve(t, q, &p) ? 2 : p.iterations < 4 ? 4 : 6); way++) {
            p.main_begins = way & 1;
            p.in_halves = way >= 2;
            p.columns_in_halves = way >= 4;
            estimate(t, q, &p);
            order_keep(out, count, most, sizeof p, &p, by_cycles);
        }
}

size_t folded_plans(const target *t, const tune_question *q, folded_plan *out, size_t most)
{
    const int64_t *size = q->size, all = t->slices_per_cluster;
    size_t count = 0;
    if (!is_of_this_form(t, q) || tune_slices_of(t, q->most_slices) < all) /* every slice works */
        return 0;
    folded_plan p = {.clusters = t->clusters_per_chip, .aside = aside_kept_of(t, q, TUNE_ROW)};
    for (p.sum_slices = 2; p.sum_slices <= all; p.sum_slices *= 2)
        for (p.row_slices = 1; p.row_slices * p.sum_slices <= all; p.row_slices *= 2) {
            p.groups = all / (p.row_slices * p.sum_slices);
            p.sums = folded_sums_of(t, q, p.sum_slices);
            if (p.sums == 0)
                continue;
            p.brought_sums = brought_sums_of(t, q, &p);
            p.rows = round_up(ceil_div(size[TUNE_ROW], p.row_slices), p.sum_slices * t->rows);
            int64_t of_group = size[TUNE_COLUMN] / (p.clusters * p.groups);
            if (size[TUNE_ROW] % folded_rows_kept(&p) != 0 || folded_padded_rows(&p) >= 2 * size[TUNE_ROW] ||
                (p.aside > 0 && folded_padded_rows(&p) != size[TUNE_ROW]) || size[TUNE_COLUMN] % (p.clusters * p.groups) != 0)
                continue;
            for (p.iterations = 1; p.iterations <= smaller(of_group, MOST_ITERATIONS); p.iterations++)
                for (p.pieces = 1; p.pieces <= MOST_PIECES; p.pieces *= 2) {
                    p.columns = of_group / p.iterations;
                    if (of_group % p.iterations != 0 || !divides_columns(t, q, &p) || !fits(t, q, &p))
                        continue;
                    consider_ways(t, q, p, out, &count, most);
                }
        }
    return count;
}
