#include "libvisa/tune/lanes_plan.h"

#include "libvisa/tune/folded_plan.h"
#include "libvisa/tune/machine.h"
#include "libvisa/tune/plan.h"
#include "runtime/timing/hbm_tally.h"
#include "support/integer.h"
#include "support/order.h"

enum { HALVES = STEPS_HALVES };

int64_t lanes_padded_standing(const lanes_plan *p)
{
    return p->standing_slices * p->standing;
}

/* Slices that have some of what stands. */
static int64_t live_slices(const tune_question *q, const lanes_plan *p)
{
    return q->size[p->stands] / p->standing;
}

int64_t lanes_brought(const lanes_plan *p)
{
    return p->sums / p->standing_slices;
}

int64_t lanes_paired(const target *t, const tune_question *q)
{
    return tune_packet_of(t, q) / t->accumulator_columns;
}

int64_t lanes_outer_stride(const lanes_plan *p)
{
    return lanes_group_stride(p) * p->groups * (p->clusters_outside ? 1 : p->clusters);
}

int64_t lanes_group_stride(const lanes_plan *p)
{
    return p->step * p->inner;
}

int64_t lanes_cluster_stride(const lanes_plan *p)
{
    return lanes_group_stride(p) * p->groups * (p->clusters_outside ? p->order.steps / p->inner : 1);
}

/* Rows that are stored by halves follow each other, so that a store is of as few rows of HBM as can be; columns of a slice are whole
 * blocks. */
static bool halves_are_outside(const lanes_plan *p)
{
    return p->stands == TUNE_ROW && p->order.halves_apart;
}

int64_t lanes_half_stride(const lanes_plan *p)
{
    return p->standing / HALVES * (halves_are_outside(p) ? p->standing_slices : 1);
}

int64_t lanes_slice_stride(const lanes_plan *p)
{
    return halves_are_outside(p) ? p->standing / HALVES : p->standing;
}

static int64_t columns_of_block(const target *t, const tune_question *q)
{
    return t->hbm_block_bytes * 8 / dtype_row_of(q->out_type)->bits;
}

int64_t lanes_unit(const target *t, const tune_question *q, const lanes_plan *p)
{
    return p->stands == TUNE_COLUMN ? p->inner : smaller(p->inner, larger(1, columns_of_block(t, q) / p->step));
}

int64_t lanes_refetches(const target *t, const lanes_plan *p)
{
    enum { PARTS = 2 };
    int64_t tiles = p->standing / HALVES / t->rows;
    return tiles % PARTS == 0 && tiles / PARTS >= t->mac_width_bytes / t->flit_bytes ? PARTS : 1;
}

/* A copy, by what its blocks take in the channels of HBM where that is looked at: some steps may lie in a part of the channels, or in
 * several rows of them. */
typedef struct copy_walk {
    walk loops; /* over what it touches, by descending strides */
    int64_t run_bytes;
} copy_walk;

static void add_loop(copy_walk *w, int64_t size, int64_t stride_bytes)
{
    unsigned at = w->loops.count++;
    for (; at > 0 && w->loops.stride[at - 1] < stride_bytes; at--) {
        w->loops.size[at] = w->loops.size[at - 1];
        w->loops.stride[at] = w->loops.stride[at - 1];
    }
    w->loops.size[at] = size;
    w->loops.stride[at] = stride_bytes;
}

/* So many steps of what goes around, of all groups and clusters: positions are so many bytes apart. */
static void add_steps(const lanes_plan *p, copy_walk *w, int64_t steps, int64_t bytes)
{
    add_loop(w, larger(1, steps / p->inner), lanes_outer_stride(p) * bytes);
    add_loop(w, p->clusters, lanes_cluster_stride(p) * bytes);
    add_loop(w, p->groups, lanes_group_stride(p) * bytes);
}

static int64_t channel_cycles(const target *t, const copy_walk *w, bool write)
{
    hbm_tally *tally = &(hbm_tally){0};
    int64_t most = 0;
    hbm_tally_init(tally, t);
    hbm_tally_walk(tally, &w->loops, w->run_bytes, write);
    for (int64_t i = 0; i < t->hbm_channels; i++)
        most = larger(most, tally->channel_millicycles[i]);
    return ceil_div(most, 1000);
}

/* So many steps of what goes around, each with all of the sum. */
static int64_t load_cycles(const target *t, const tune_question *q, const lanes_plan *p, int64_t steps, bool looks)
{
    int64_t together = smaller(steps, p->inner), bytes = tune_bytes_of(q->type, 1);
    copy_walk w = {.run_bytes = tune_bytes_of(q->type, together * p->step)};
    int64_t cycles = folded_copy_cycles(t, lanes_brought(p) * steps / together, w.run_bytes, 1, 1);
    if (!looks)
        return cycles;
    add_loop(&w, q->size[TUNE_SUM], tune_bytes_of(q->type, q->size[p->around]));
    add_steps(p, &w, steps, bytes);
    return larger(cycles, t->dma_startup_cycles + channel_cycles(t, &w, false));
}

static int64_t store_cycles(const target *t, const tune_question *q, const lanes_plan *p, int64_t steps, bool looks)
{
    int64_t stands = p->order.halves_apart ? p->standing / HALVES : p->standing, together = smaller(steps, p->inner) * p->step,
            row = tune_bytes_of(q->out_type, q->size[TUNE_COLUMN]), bytes = tune_bytes_of(q->out_type, 1);
    bool of_rows = p->stands == TUNE_ROW;
    copy_walk w = {.run_bytes = tune_bytes_of(q->out_type, of_rows ? together : stands)};
    int64_t pieces = (of_rows ? stands * steps / smaller(steps, p->inner) : steps * p->step) / p->sum_slices,
            cycles = folded_copy_cycles(t, pieces, w.run_bytes, live_slices(q, p), p->standing_slices);
    if (!looks)
        return cycles;
    if (of_rows) {
        add_loop(&w, live_slices(q, p) * stands, row);
        add_steps(p, &w, steps, bytes);
    } else {
        add_steps(p, &w, steps, row);
        add_loop(&w, together, row);
        add_loop(&w, live_slices(q, p), tune_bytes_of(q->out_type, p->standing));
    }
    return larger(cycles, t->dma_startup_cycles + channel_cycles(t, &w, true));
}

/* Half of what stands, for every group. */
static int64_t load_half_cycles(const target *t, const tune_question *q, const lanes_plan *p, bool looks)
{
    int64_t run = tune_bytes_of(q->type, p->sums), row = tune_bytes_of(q->type, q->size[TUNE_SUM]), half = p->standing / HALVES;
    int64_t cycles = folded_copy_cycles(t, half, run, live_slices(q, p), p->standing_slices);
    copy_walk w = {.loops = {.count = 1, .size = {p->clusters * p->groups}}, .run_bytes = row};
    if (!looks)
        return cycles;
    w.loops.stride[0] = INT64_MAX; /* the outermost, though it stays where it is */
    add_loop(&w, live_slices(q, p), lanes_slice_stride(p) * row);
    add_loop(&w, half, row);
    w.loops.stride[0] = 0;
    return larger(cycles, t->dma_startup_cycles + channel_cycles(t, &w, false));
}

/* Operands of what is done to the sums: those of a slice's columns. */
static int64_t load_extras_cycles(const target *t, const tune_question *q, const lanes_plan *p)
{
    int64_t cycles = 0;
    for (size_t i = 0; i < q->extra_count; i++) {
        dtype type = q->extras[i].type;
        int64_t hbm_bytes = tune_bytes_of(type, q->size[TUNE_COLUMN]);
        cycles += p->stands == TUNE_ROW
                      ? folded_copy_cycles_of(t, p->order.steps / p->inner, tune_bytes_of(type, p->inner * p->step), 1, 1, hbm_bytes)
                      : folded_copy_cycles_of(t, 1, tune_bytes_of(type, p->standing), live_slices(q, p), p->standing_slices, hbm_bytes);
    }
    return cycles;
}

/* Do so many steps begin at a piece's beginning, as copies and stores do? */
static bool is_piece(const lanes_plan *p, int64_t steps)
{
    return steps <= p->inner || steps % p->inner == 0;
}

/* What is no piece is never copied. */
static steps_costs costs_of(const target *t, const tune_question *q, const lanes_plan *p, bool looks)
{
    int64_t run = tune_bytes_of(q->type, p->sums), half = p->standing / HALVES, lanes = t->accumulator_columns,
            beats = half * lanes / t->rows, around = p->standing_slices * p->sum_slices,
            flits = tune_bytes_of(q->type, p->step) * lanes_brought(p) / t->flit_bytes,
            in = p->sums / lanes_paired(t, q) * larger(t->mac_width_bytes / t->flit_bytes, half / t->rows);
    steps_costs c = {
        .steps = p->order.steps,
        .load_extras = load_extras_cycles(t, q, p),
        .load_half = load_half_cycles(t, q, p, looks),
        .fill = STEPS_TRF_FILL + half * run / t->flit_bytes,
        .main_ring = folded_around_cycles(around, flits, flits * p->standing_slices, true),
        .sub_ring = folded_around_cycles(around, flits, flits * p->standing_slices, false),
        .products = p->step * larger(in, beats) / lanes,
        .alone = p->step <= lanes && lanes_refetches(t, p) == 1 ? beats : 0,
        .startup = t->dma_startup_cycles,
        .inner = p->inner,
        .packet = larger(1, lanes / p->step),
        .together = larger(larger(1, lanes / p->step), p->stands == TUNE_ROW ? columns_of_block(t, q) / p->step : 1),
        .unit = lanes_unit(t, q, p),
        .most = STEPS_MOST,
        .halves_apart = p->order.halves_apart,
    };
    for (int64_t n = 1; n <= c.steps; n++)
        if (is_piece(p, n)) {
            c.load[n] = load_cycles(t, q, p, n, looks);
            c.store[n] = n % c.together == 0 ? store_cycles(t, q, p, n, looks) : 0;
        }
    return c;
}

/* Do they fit: half of what stands in half of the TRF, as many tiles of it as the accumulator has slots for, all that a slice has of the
 * operands and all results in DM, what meets the sums in the VRF, for each pass? */
static bool fits(const target *t, const tune_question *q, const lanes_plan *p)
{
    int64_t run = tune_bytes_of(q->type, p->sums), half = p->standing / HALVES, all = p->order.steps * p->step;
    int64_t operands = run * (p->standing + all) + tune_bytes_of(q->type, all * lanes_brought(p)),
            results = tune_bytes_of(q->out_type, all * p->standing / p->sum_slices);
    int64_t met = (int64_t)q->extra_count * tune_bytes_of(q->meets, p->stands == TUNE_ROW ? HALVES * all : p->standing * p->order.steps);
    return half * run <= target_trf_capacity_bytes(t, TRF_FIRST_HALF) && half <= t->accumulator_registers * t->rows &&
           met <= t->vrf_bytes && operands + results + met <= t->dm_bytes_per_slice;
}

/* Flits are whole: of the sum in the TRF, of pairs of the sum by columns in what goes around. Slices keep whole parts of the results, which
 * are whole blocks of HBM. */
static bool divides(const target *t, const tune_question *q, const lanes_plan *p)
{
    int64_t half = p->standing / HALVES, block = columns_of_block(t, q);
    int64_t in_row = p->stands == TUNE_ROW ? p->step * p->inner : p->standing;
    return tune_bytes_of(q->type, p->sums) % t->flit_bytes == 0 && p->sums % p->standing_slices == 0 &&
           lanes_brought(p) % lanes_paired(t, q) == 0 && half % t->rows == 0 && in_row % block == 0 &&
           (p->stands == TUNE_ROW ? half % p->sum_slices == 0 : t->accumulator_columns % p->sum_slices == 0) &&
           p->step * p->inner % t->accumulator_columns == 0 && (p->stands != TUNE_ROW || block % p->step == 0 || p->step % block == 0);
}

/* One operand lies turned, and in its flits pairs of the sum can be put side by side. What is done to the sums is a pass at most, which
 * follows the reducer; what meets them is of their columns alone. */
static bool is_of_this_form(const target *t, const tune_question *q)
{
    int64_t paired = lanes_paired(t, q);
    for (size_t i = 0; i < q->extra_count; i++)
        if (!q->extras[i].has[TUNE_COLUMN] || q->extras[i].has[TUNE_ROW])
            return false;
    return folded_shares_sums(q) && q->turned[q->stream] != q->turned[q->weights] &&
           (paired == 1 || (dtype_row_of(q->type)->transpose_rows & (unsigned)paired)) && tune_epilogue_of(q, 1, false)->count <= 1;
}

/* Sorted by cycles; of equals the one that was found first. */
static int by_cycles(const void *a, const void *b)
{
    return ORDER(((const lanes_plan *)a)->order.cycles, ((const lanes_plan *)b)->order.cycles);
}

/* The best order of what is divided so, with results of halves together or apart. Channels are looked at where it would be among the best
 * without them. */
static void consider(const target *t, const tune_question *q, lanes_plan p, lanes_plan *out, size_t *count, size_t most)
{
    if (p.order.halves_apart && p.stands == TUNE_COLUMN && tune_bytes_of(q->out_type, p.standing / HALVES) % t->hbm_block_bytes != 0)
        return;
    for (int looks = 0; looks < 2; looks++) {
        steps_costs costs = costs_of(t, q, &p, looks);
        if (costs.steps % costs.together != 0)
            return;
        p.order = steps_best_order(&costs);
        if (p.order.cycles == 0 || (*count == most && p.order.cycles >= out[most - 1].order.cycles))
            return;
    }
    order_keep(out, count, most, sizeof p, &p, by_cycles);
}

/* Every size of steps, of whole flits, and so many that follow each other. */
static void consider_steps(const target *t, const tune_question *q, lanes_plan p, lanes_plan *out, size_t *count, size_t most)
{
    int64_t of_group = q->size[p.around] / (p.clusters * p.groups),
            flit = t->flit_bytes * 8 / dtype_row_of(q->type)->bits / lanes_paired(t, q), packet = t->accumulator_columns;
    for (p.step = flit; p.step <= of_group; p.step *= 2) {
        p.order = (steps_order){.steps = of_group / p.step};
        if (of_group % larger(p.step, packet) != 0 || p.order.steps > STEPS_MOST)
            continue;
        for (p.inner = 1; p.inner <= p.order.steps; p.inner *= 2)
            for (int way = 0; way < 4 && p.order.steps % p.inner == 0; way++) {
                p.clusters_outside = way & 1;
                p.order.halves_apart = way & 2;
                if (p.order.halves_apart && p.stands == TUNE_ROW && lanes_padded_standing(&p) != q->size[TUNE_ROW])
                    continue; /* padding would be inside of them */
                if (divides(t, q, &p) && fits(t, q, &p) && (p.clusters_outside || p.inner < p.order.steps))
                    consider(t, q, p, out, count, most);
            }
    }
}

size_t lanes_plans(const target *t, const tune_question *q, lanes_plan *out, size_t most)
{
    const int64_t all = t->slices_per_cluster;
    size_t count = 0;
    if (!is_of_this_form(t, q) || tune_slices_of(t, q->most_slices) < all) /* every slice works */
        return 0;
    lanes_plan p = {.clusters = t->clusters_per_chip};
    p.around = q->turned[q->weights] ? TUNE_COLUMN : TUNE_ROW;
    p.stands = q->turned[q->weights] ? TUNE_ROW : TUNE_COLUMN;
    int64_t whole = larger(HALVES * t->rows, p.stands == TUNE_COLUMN ? columns_of_block(t, q) : 1);
    for (p.sum_slices = 2; p.sum_slices <= all; p.sum_slices *= 2)
        for (p.standing_slices = 2; p.standing_slices * p.sum_slices <= all; p.standing_slices *= 2) {
            p.groups = all / (p.standing_slices * p.sum_slices);
            p.sums = q->size[TUNE_SUM] / p.sum_slices;
            p.standing = round_up(ceil_div(q->size[p.stands], p.standing_slices), whole);
            if (q->size[TUNE_SUM] % p.sum_slices == 0 && q->size[p.stands] % p.standing == 0 &&
                lanes_padded_standing(&p) < 2 * q->size[p.stands] && q->size[p.around] % (p.clusters * p.groups) == 0)
                consider_steps(t, q, p, out, &count, most);
        }
    return count;
}
