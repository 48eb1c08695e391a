#include "libvisa/tune/standing_plan.h"

#include "libvisa/tune/brought.h"
#include "libvisa/tune/folded_plan.h"
#include "libvisa/tune/machine.h"
#include "runtime/timing/hbm_address.h"
#include "support/integer.h"
#include "support/order.h"

enum { HALVES = STEPS_HALVES };

int64_t standing_padded_columns(const standing_plan *p)
{
    return p->column_slices * p->columns;
}

int64_t standing_rows(const standing_plan *p)
{
    return p->column_slices * p->brought;
}

int64_t standing_rows_kept(const standing_plan *p)
{
    return standing_rows(p) / p->sum_slices;
}

int64_t standing_padded_rows(const standing_plan *p)
{
    return p->steps * p->clusters * p->groups * standing_rows(p);
}

int64_t standing_padded_sum(const standing_plan *p)
{
    return p->sum_slices * p->sums;
}

/* Of the rows of a step, in all clusters. */
static int64_t stride_in_step(const tune_question *q, const standing_plan *p)
{
    return standing_padded_rows(p) == q->size[TUNE_ROW] ? 1 : p->steps;
}

int64_t standing_row_stride(const tune_question *q, const standing_plan *p)
{
    return stride_in_step(q, p) * (p->clusters_inside ? p->clusters : 1);
}

int64_t standing_cluster_stride(const tune_question *q, const standing_plan *p)
{
    return stride_in_step(q, p) * (p->clusters_inside ? 1 : standing_rows(p) * p->groups);
}

int64_t standing_step_stride(const tune_question *q, const standing_plan *p)
{
    return standing_padded_rows(p) == q->size[TUNE_ROW] ? standing_padded_rows(p) / p->steps : 1;
}

/* As a plan of slices that write what they have: what brings whole rows together. */
static tune_plan plan_of_rows(const standing_plan *p)
{
    int64_t rows = standing_padded_rows(p), slices = p->groups * p->column_slices * p->brought;
    tune_plan of = {.split = {{1, 1, 1, 1, 1, false}, {rows, 1, p->clusters, slices, rows / (p->clusters * slices), false}},
                    .brought = p->whole,
                    .brought_clusters = p->whole_clusters,
                    .brought_partial = p->whole_partial};
    return of;
}

/* A copy from DM to DM takes turns between what it reads and what it writes. */
static int64_t bring_cycles(const target *t, const tune_question *q, const standing_plan *p)
{
    if (p->whole == 0)
        return 0;
    int64_t run = tune_bytes_of(q->out_type, smaller(p->columns, q->size[TUNE_COLUMN])), pieces = p->steps * standing_rows_kept(p),
            live = ceil_div(q->size[TUNE_COLUMN], p->columns);
    int64_t of_dmn = larger(1, t->dm_slices_per_dmn * live / p->column_slices) * pieces, of_engine = of_dmn * t->dma_dmns_per_engine;
    tune_plan of = plan_of_rows(p);
    return (standing_padded_rows(p) == q->size[TUNE_ROW] ? 1 : 2) * t->dma_startup_cycles +
           larger(2 * of_engine * ceil_div(run, t->dma_request_bytes), of_dmn * ceil_div(run, t->dmn_bytes_per_cycle)) +
           tune_whole_store_cycles(t, q, &of);
}

bool standing_is_of_results(const tune_extra *e)
{
    return e->has[TUNE_ROW] && e->has[TUNE_COLUMN];
}

int64_t standing_copies(const tune_question *q, const standing_plan *p, const tune_extra *e)
{
    int64_t copies = ceil_div(tune_bytes_of(e->type, q->size[TUNE_ROW] * q->size[TUNE_COLUMN]), INT64_C(1) << HBM_ROW_BIT);
    while (copies < p->steps && p->steps % copies != 0)
        copies++;
    return smaller(copies, p->steps);
}

static int64_t extras_of_results(const tune_question *q)
{
    int64_t count = 0;
    for (size_t i = 0; i < q->extra_count; i++)
        count += standing_is_of_results(&q->extras[i]);
    return count;
}

/* Operands of what is done to the sums: those of a slice's columns, whatever it has of the rows, or those of its results. */
static int64_t load_extras_cycles(const target *t, const tune_question *q, const standing_plan *p, int64_t live)
{
    int64_t cycles = 0;
    for (size_t i = 0; i < q->extra_count; i++) {
        const tune_extra *e = &q->extras[i];
        int64_t run = tune_bytes_of(e->type, p->columns);
        if (standing_is_of_results(e)) {
            int64_t copies = standing_copies(q, p, e), pieces = p->steps / copies * standing_rows_kept(p);
            cycles += copies * folded_copy_cycles(t, pieces, run, live, p->column_slices);
        } else
            cycles += folded_copy_cycles_of(t, 1, run, live, p->column_slices, tune_bytes_of(e->type, q->size[TUNE_COLUMN]));
    }
    return cycles;
}

/* A copy of so many steps of rows. Each slice takes its part of every row: of more than lie in one row of HBM each block waits for a switch
 * to another one. */
static int64_t load_cycles(const target *t, const tune_question *q, const standing_plan *p, int64_t steps)
{
    int64_t cycles = folded_copy_cycles(t, steps * p->brought, tune_bytes_of(q->type, p->sums), 1, 1),
            bytes = tune_bytes_of(q->type, steps * (q->size[TUNE_ROW] / p->steps) * q->size[TUNE_SUM]);
    int64_t switches = bytes > INT64_C(1) << HBM_ROW_BIT ? ceil_div(bytes, t->hbm_block_bytes * t->hbm_channels) : 0;
    return larger(cycles, t->dma_startup_cycles + switches * t->hbm_row_switch_cycles);
}

/* Stores of rows that not all slices have are two copies: the rest has a start of its own. */
static steps_costs costs_of(const target *t, const tune_question *q, const standing_plan *p)
{
    int64_t run = tune_bytes_of(q->type, p->sums), flits = run / t->flit_bytes, packet = tune_packet_of(t, q),
            columns = p->columns / HALVES, around = p->column_slices * p->sum_slices, rows = standing_rows(p);
    int64_t live = ceil_div(q->size[TUNE_COLUMN], p->columns), packet_flits = tune_bytes_of(q->type, packet) / t->flit_bytes;
    int64_t later_passes = larger(1, (int64_t)tune_epilogue_of(q, 1, false)->count) - 1;
    int64_t bring = bring_cycles(t, q, p), rests = standing_padded_rows(p) == q->size[TUNE_ROW] ? 0 : t->dma_startup_cycles;
    steps_costs c = {
        .steps = p->steps,
        .load_extras = load_extras_cycles(t, q, p, live),
        .load_half = folded_copy_cycles(t, columns, run, live, p->column_slices),
        .fill = STEPS_TRF_FILL + columns * flits,
        .main_ring = folded_around_cycles(around, p->brought * flits, rows * flits, true),
        .sub_ring = folded_around_cycles(around, p->brought * flits, rows * flits, false),
        .products = rows * (p->sums / packet) * larger(packet_flits, columns / t->rows),
        .startup = t->dma_startup_cycles,
        .inner = p->steps,
        .packet = 1,
        .together = 1,
        .unit = p->steps,
        .most = p->most_steps,
        .later = later_passes * standing_rows_kept(p) * columns / t->rows * STEPS_SPLIT,
        .later_passes = later_passes,
        .at_once = p->columns_at_once,
        .one_store = p->whole > 0,
    };
    for (int64_t n = 1; n <= p->steps; n++) {
        c.load[n] = load_cycles(t, q, p, n);
        c.store[n] = p->whole > 0 ? bring
                                  : rests + folded_copy_cycles(t, n * standing_rows_kept(p), tune_bytes_of(q->out_type, p->columns), live,
                                                               p->column_slices);
    }
    return c;
}

/* Bytes of the VRF that what meets the columns of a slice takes all the time, and what is set aside. */
static int64_t bytes_of_columns_met(const tune_question *q, const standing_plan *p)
{
    return ((int64_t)q->extra_count - extras_of_results(q)) * tune_bytes_of(q->meets, p->columns) +
           (tune_epilogue_stashes(tune_epilogue_of(q, 1, false)) ? TUNE_STASH_BYTES : 0);
}

/* Steps of a pass: all, or as many as what meets their sums with half of the columns has room for in the VRF, and what comes for the next
 * pass meanwhile. */
static int64_t most_steps_of(const target *t, const tune_question *q, const standing_plan *p)
{
    enum { AT_ONCE = 2 };
    const int64_t in_vrf = AT_ONCE * extras_of_results(q) + tune_epilogue_has_gate(tune_epilogue_of(q, 1, false)),
                  step = in_vrf * standing_rows_kept(p) * tune_bytes_of(q->meets, p->columns / HALVES);
    return step == 0 ? p->steps : smaller(p->steps, (t->vrf_bytes - bytes_of_columns_met(q, p)) / step);
}

/* Do they fit: half of the columns in half of the TRF, all that a slice has of the operands and all results in DM, with what meets them and
 * values between passes, what meets the sums in the VRF? */
static bool fits(const target *t, const tune_question *q, const standing_plan *p)
{
    int64_t run = tune_bytes_of(q->type, p->sums), kept = p->steps * standing_rows_kept(p) * p->columns,
            whole_row = tune_bytes_of(q->out_type, q->size[TUNE_COLUMN]), results = tune_bytes_of(q->out_type, kept), met = 0;
    for (size_t i = 0; i < q->extra_count; i++)
        met += tune_bytes_of(q->extras[i].type, standing_is_of_results(&q->extras[i]) ? kept : p->columns);
    if (tune_epilogue_of(q, 1, false)->count > 1)
        met += tune_bytes_of(tune_type_of_values(q), kept);
    int64_t operands = run * (p->columns + p->steps * (p->brought + standing_rows(p)));
    return p->columns / HALVES * run <= target_trf_capacity_bytes(t, TRF_FIRST_HALF) && p->most_steps > 0 &&
           bytes_of_columns_met(q, p) <= t->vrf_bytes && operands + results + met + p->whole * whole_row <= t->dm_bytes_per_slice;
}

/* Sorted by cycles; of equals the one that was found first. */
static int by_cycles(const void *a, const void *b)
{
    return ORDER(((const standing_plan *)a)->order.cycles, ((const standing_plan *)b)->order.cycles);
}

/* Operands lie with the sum innermost; what meets the sums is of their columns, which a slice keeps, or of the results: of rows alone a
 * slice has too few that follow each other. */
static bool is_of_this_form(const tune_question *q)
{
    for (size_t i = 0; i < q->extra_count; i++)
        if (!q->extras[i].has[TUNE_COLUMN])
            return false;
    return folded_shares_sums(q) && !q->turned[q->stream] && !q->turned[q->weights];
}

/* Steps of all rows: as few as there are, where these are whole steps, or the next divisor of the rows; 0: too many. */
static int64_t steps_of(const tune_question *q, const standing_plan *p)
{
    int64_t rows = q->size[TUNE_ROW], steps = ceil_div(rows, p->clusters * p->groups * standing_rows(p));
    while (steps <= STEPS_MOST && rows % steps != 0)
        steps++;
    return steps <= STEPS_MOST ? steps : 0;
}

/* Each slice has some of the sum, and padding is less than what is padded. */
static bool divides(const tune_question *q, const standing_plan *p)
{
    const int64_t *size = q->size;
    return standing_padded_columns(p) < 2 * size[TUNE_COLUMN] && standing_rows(p) % p->sum_slices == 0 &&
           standing_padded_rows(p) < 2 * size[TUNE_ROW];
}

/* Columns of a slice: whole packets of the Reducer in halves, and whole blocks of HBM where slices write them. */
static int64_t columns_of(const target *t, const tune_question *q, int64_t slices, bool in_blocks)
{
    int64_t block = t->hbm_block_bytes * 8 / dtype_row_of(q->out_type)->bits, packets = HALVES * t->rows;
    return round_up(ceil_div(q->size[TUNE_COLUMN], slices), in_blocks ? block / gcd(block, packets) * packets : packets);
}

/* Where rows of the result are no whole blocks of HBM a copy brings whole ones together. */
static bool brings_together(const target *t, const tune_question *q, brought_memo *known, standing_plan *p)
{
    p->whole = 0;
    if (tune_bytes_of(q->out_type, q->size[TUNE_COLUMN]) % t->hbm_block_bytes == 0)
        return q->size[TUNE_COLUMN] % p->columns == 0 && tune_bytes_of(q->out_type, p->columns) % t->hbm_block_bytes == 0;
    tune_plan of = plan_of_rows(p);
    tune_bring_together(t, q, known, &of);
    p->whole = of.brought;
    p->whole_clusters = of.brought_clusters;
    p->whole_partial = of.brought_partial;
    return p->whole > 0;
}

/* Ways to divide what is divided so: columns of a slice that are no whole blocks of HBM, clusters inside of the rows. */
enum { NO_BLOCKS = 1, INSIDE = 2, WAYS = 4 };

/* A plan of that way and so many rows of a step in a slice; false: the question has none. */
static bool plan_of_way(const target *t, const tune_question *q, int way, brought_memo *known, standing_plan *p)
{
    p->groups = t->slices_per_cluster / (p->column_slices * p->sum_slices);
    p->sums = folded_sums_of(t, q, p->sum_slices);
    p->columns = columns_of(t, q, p->column_slices, !(way & NO_BLOCKS));
    p->columns_at_once = q->size[TUNE_COLUMN] % p->columns != 0;
    p->clusters_inside = way & INSIDE;
    if ((way & NO_BLOCKS) && p->columns == columns_of(t, q, p->column_slices, true))
        return false;
    p->steps = p->sums > 0 ? steps_of(q, p) : 0;
    p->most_steps = p->steps > 0 ? most_steps_of(t, q, p) : 0;
    if (extras_of_results(q) > 0 && standing_padded_rows(p) != q->size[TUNE_ROW])
        return false;
    return p->steps > 0 && divides(q, p) && brings_together(t, q, known, p) && (!p->clusters_inside || p->whole > 0);
}

size_t standing_plans(const target *t, const tune_question *q, arena *a, standing_plan *out, size_t most)
{
    const int64_t all = t->slices_per_cluster;
    size_t count = 0;
    if (!is_of_this_form(q) || tune_slices_of(t, q->most_slices) < all) /* every slice works */
        return 0;
    standing_plan p = {.clusters = t->clusters_per_chip};
    brought_memo known = brought_memo_new(a);
    for (p.sum_slices = 2; p.sum_slices <= all; p.sum_slices *= 2)
        for (p.column_slices = 1; p.column_slices * p.sum_slices <= all; p.column_slices *= 2)
            for (int way = 0; way < WAYS; way++) {
                standing_plan whole = {0}; /* of those that bring rows together the best: they differ in little else */
                for (p.brought = 1; p.brought <= all; p.brought *= 2) {
                    if (!plan_of_way(t, q, way, &known, &p))
                        continue;
                    if (!fits(t, q, &p))
                        continue;
                    standing_plan best = p;
                    steps_costs costs = costs_of(t, q, &p);
                    best.order = steps_best_order(&costs);
                    if (p.whole == 0)
                        order_keep(out, &count, most, sizeof best, &best, by_cycles);
                    else if (whole.order.cycles == 0 || best.order.cycles < whole.order.cycles)
                        whole = best;
                }
                if (whole.order.cycles > 0)
                    order_keep(out, &count, most, sizeof whole, &whole, by_cycles);
            }
    return count;
}
