#include "libvisa/tune/pool_plan.h"

#include "libvisa/tune/machine.h"
#include "libvisa/tune/pool_frame.h"
#include "support/integer.h"
#include "support/order.h"

enum { SIZES_MAX = 24, WHOLES_MAX = 64, WORD_BITS = 64 };

int64_t pool_padded(const pool_box *b, int dim)
{
    return b->tile[dim] * b->count[dim];
}

int pool_cluster_dim(const target *t, const pool_box *b)
{
    int dim = 0;
    while (dim < POOL_DIMS && (t->clusters_per_chip == 1 || b->count[dim] % t->clusters_per_chip != 0))
        dim++;
    return dim;
}

int64_t pool_slices(const target *t, const pool_box *b)
{
    int64_t all = 1;
    for (int d = 0; d < POOL_DIMS; d++)
        all = product_bounded(all, b->count[d]);
    return pool_cluster_dim(t, b) < POOL_DIMS ? all / t->clusters_per_chip : all;
}

int64_t pool_apart(const target *t, const pool_box *b)
{
    int64_t apart = 1;
    while (pool_slices(t, b) * apart * 2 <= t->slices_per_cluster)
        apart *= 2;
    return apart;
}

int64_t pool_unit(const target *t, const pool_question *q)
{
    if (q->dims[POOL_INNER].size <= t->vector_lanes) /* one packet */
        return t->vector_lanes;
    int64_t bits = smaller(dtype_row_of(q->from)->bits, dtype_row_of(q->into)->bits);
    for (size_t i = 0; i < q->extra_count; i++)
        bits = smaller(bits, dtype_row_of(q->extras[i].type)->bits);
    return larger(t->vector_lanes, WORD_BITS / bits);
}

static int64_t elements_of(const pool_box *b)
{
    int64_t all = 1;
    for (int d = 0; d < POOL_DIMS; d++)
        all *= b->tile[d];
    return all;
}

/* Places of the image that a box takes, along an axis. */
static int64_t taken(const pool_question *q, const pool_box *b, int dim)
{
    return pool_places(&q->dims[dim], b->tile[dim]);
}

/* ---- how long it takes, about: it says what is compiled first, and no more ---- */

typedef struct copy_pieces {
    int64_t count, bytes;            /* of a slice; of one */
    int64_t slices, clusters, apart; /* apart: slices from one that works to the next */
} copy_pieces;

/* What follows each other in HBM of a box: of the image, or of the results. */
static copy_pieces pieces_of(const target *t, const pool_question *q, const pool_box *b, bool of_image)
{
    int64_t run = 1, all = 1;
    bool ends = false;
    for (int d = POOL_DIMS - 1; d >= 0; d--) {
        int64_t here = of_image ? taken(q, b, d) : smaller(b->tile[d], q->dims[d].size),
                whole = of_image ? pool_places(&q->dims[d], q->dims[d].size) : q->dims[d].size;
        all *= here;
        run *= ends ? 1 : here;
        ends = ends || here < whole;
    }
    return (copy_pieces){.count = all / run,
                         .bytes = larger(1, tune_bytes_of(of_image ? q->from : q->into, run)),
                         .slices = pool_slices(t, b),
                         .apart = 1,
                         .clusters = pool_cluster_dim(t, b) < POOL_DIMS ? t->clusters_per_chip : 1};
}

/* Steps of the busiest DMA engine, and cycles of the busiest DMN. */
static int64_t engine_cycles(const target *t, const copy_pieces *p)
{
    int64_t of_engine = smaller(p->slices, ceil_div(t->dma_dmns_per_engine * t->dm_slices_per_dmn, p->apart)),
            of_dmn = smaller(p->slices, ceil_div(t->dm_slices_per_dmn, p->apart));
    return larger(of_engine * p->count * ceil_div(p->bytes, t->dma_request_bytes),
                  of_dmn * p->count * ceil_div(p->bytes, t->dmn_bytes_per_cycle));
}

static int64_t channel_cycles(const target *t, int64_t bytes)
{
    return bytes * t->hbm_burst_millicycles / (1000 * t->hbm_burst_bytes * t->hbm_channels);
}

static int64_t load_cycles(const target *t, const pool_question *q, const pool_box *b)
{
    copy_pieces p = pieces_of(t, q, b, true);
    return t->dma_startup_cycles +
           larger(engine_cycles(t, &p), channel_cycles(t, p.slices * p.clusters * p.count * round_up(p.bytes, t->hbm_burst_bytes)));
}

/* A block that is written in part is dear. */
static int64_t store_cycles(const target *t, const pool_question *q, const pool_box *b, bool is_whole)
{
    copy_pieces p = pieces_of(t, q, b, false);
    p.apart = is_whole ? pool_apart(t, b) : 1;
    int64_t all = p.slices * p.clusters * p.count, partial = p.bytes % t->hbm_block_bytes == 0 ? 0 : 2 * all;
    return t->dma_startup_cycles + larger(engine_cycles(t, &p), channel_cycles(t, all * p.bytes) +
                                                                    ceil_div(partial, t->hbm_channels) * tune_partial_block_cycles(t));
}

/* From DM to DM, which takes turns at reading and writing. */
static int64_t bring_cycles(const target *t, const pool_question *q, const pool_box *from, const pool_box *to)
{
    copy_pieces p = pieces_of(t, q, from, false), into = pieces_of(t, q, to, false);
    into.apart = pool_apart(t, to);
    into.count *= ceil_div(into.bytes, p.bytes);
    into.bytes = smaller(into.bytes, p.bytes);
    return t->dma_startup_cycles + 2 * larger(engine_cycles(t, &p), engine_cycles(t, &into) / 2);
}

/* Float units and folds work on halves of a flit. */
static int64_t pass_cycles(const target *t, const pool_question *q, const pool_box *b, pool_order order)
{
    const tune_epilogue *e = &q->passes[order];
    const pool_dim *first = &q->dims[order == POOL_ROWS_FIRST ? POOL_ROWS : POOL_PLACES],
                   *second = &q->dims[order == POOL_ROWS_FIRST ? POOL_PLACES : POOL_ROWS];
    const int64_t flits = elements_of(b) / t->vector_lanes, kept = b->tile[second - q->dims];
    int64_t cycles = 0, folds = 0;
    for (size_t i = 0; i < e->count; i++)
        if (!e->passes[i].fold)
            cycles += flits * (e->passes[i].narrow.count > 0 ? 2 : 1);
        else if (order == POOL_AT_ONCE)
            cycles += 2 * flits * q->tap_count;
        else
            cycles += folds++ == 0 ? 2 * flits / kept * pool_places(second, kept) * first->taps : 2 * flits * second->taps;
    return cycles;
}

/* ---- boxes ---- */

typedef struct finder {
    const target *t;
    const pool_question *q;
    pool_plan *plans;
    size_t count, most;
    pool_box wholes[WHOLES_MAX];
    size_t whole_count;
} finder;

static size_t add_size(int64_t *sizes, size_t count, int64_t size)
{
    for (size_t i = 0; i < count; i++)
        if (sizes[i] == size)
            return count;
    if (count < SIZES_MAX && size >= 1)
        sizes[count++] = size;
    return count;
}

/* All of an axis, its divisors, and what is left with padding of so many parts. Channels in whole packets. */
static size_t sizes_of(const finder *f, int dim, int64_t *sizes)
{
    int64_t unit = dim == POOL_INNER ? pool_unit(f->t, f->q) : 1, size = round_up(f->q->dims[dim].size, unit) / unit;
    size_t count = add_size(sizes, 0, size);
    count = add_size(sizes, count, 1);
    for (int64_t n = 2; n < 64 && n < size; n++)
        if (size % n == 0) {
            count = add_size(sizes, count, n);
            count = add_size(sizes, count, size / n);
        }
    for (int64_t n = 2; n <= 512 && n < size; n *= 2)
        count = add_size(sizes, count, ceil_div(size, n));
    for (int64_t n = 2; n < size; n *= 2)
        count = add_size(sizes, count, n);
    for (size_t i = 0; i < count; i++)
        sizes[i] *= unit;
    return count;
}

static bool has_room(const finder *f, const pool_box *b)
{
    const pool_question *q = f->q;
    int64_t image = 1, results = elements_of(b);
    for (int d = 0; d < POOL_DIMS; d++)
        image = product_bounded(image, taken(q, b, d));
    int64_t bytes = sum_bounded(image, product_bounded(results, q->passes[0].count > 1 || !q->has_order[POOL_AT_ONCE] ? 12 : 4));
    return pool_slices(f->t, b) <= tune_slices_of(f->t, q->most_slices) && image < f->t->dm_bytes_per_slice &&
           bytes * larger(1, dtype_row_of(q->from)->bits / 8) < f->t->dm_bytes_per_slice;
}

static int by_estimate(const void *a, const void *b)
{
    return ORDER(((const pool_plan *)a)->cycles, ((const pool_plan *)b)->cycles);
}

static void keep(finder *f, pool_plan p)
{
    order_keep(f->plans, &f->count, f->most, sizeof p, &p, by_estimate);
}

static bool nests(int64_t a, int64_t b)
{
    return a % b == 0 || b % a == 0;
}

/* Where clusters end in a box along that axis. */
static int64_t of_cluster(const target *t, const pool_box *b, int dim)
{
    return pool_padded(b, dim) / (pool_cluster_dim(t, b) == dim ? t->clusters_per_chip : 1);
}

/* Are the positions of both digits of one axis? Copies cut it where both do. */
static bool fits(const finder *f, const pool_box *a, const pool_box *b)
{
    const int of_a = pool_cluster_dim(f->t, a), of_b = pool_cluster_dim(f->t, b);
    for (int d = 0; d < POOL_DIMS; d++) {
        const int64_t a_ends = of_cluster(f->t, a, d), b_ends = of_cluster(f->t, b, d);
        if (!nests(a->tile[d], b->tile[d]) || (of_a == d && !nests(a_ends, b->tile[d])) || (of_b == d && !nests(b_ends, a->tile[d])) ||
            (of_a == d && of_b == d && !nests(a_ends, b_ends)))
            return false;
    }
    return true;
}

/* Is a window of so many results nothing but digits, so that no two of them share a place? */
static bool are_digits(const pool_dim *d, int64_t results)
{
    return d->dilation == 1 ? results == 1 || d->stride == d->taps : d->stride == 1 && d->dilation == results;
}

/* Can these be folded in that order? What is between has the places of windows that are not folded yet: all of an axis, or of one result,
 * since nothing is made of a tile of windows; parts of an image have windows of their own. Both windows are, at once. */
static bool has_order(const pool_question *q, const pool_box *b, int order, bool frames)
{
    const int open = order == POOL_ROWS_FIRST ? POOL_PLACES : POOL_ROWS;
    const pool_dim *y = &q->dims[POOL_ROWS], *x = &q->dims[POOL_PLACES];
    const bool both = y->taps > 1 && x->taps > 1;
    if (frames && order == POOL_AT_ONCE)
        return !both || are_digits(y, b->tile[POOL_ROWS]) == are_digits(x, b->tile[POOL_PLACES]);
    return q->has_order[order] &&
           (order == POOL_AT_ONCE || frames || b->count[open] == 1 || (b->tile[open] == 1 && q->dims[open].dilation == 1));
}

static pool_order best_order(const finder *f, const pool_box *b, bool frames)
{
    pool_order best = POOL_ORDERS;
    for (int i = 0; i < POOL_ORDERS; i++)
        if (has_order(f->q, b, i, frames) &&
            (best == POOL_ORDERS || pass_cycles(f->t, f->q, b, (pool_order)i) < pass_cycles(f->t, f->q, b, best)))
            best = (pool_order)i;
    return best;
}

/* The image once more to HBM: two copies of all of it, and one of what is in front. */
static int64_t rewrite_cycles(const finder *f)
{
    const pool_question *q = f->q;
    int64_t elements = q->dims[POOL_OUTER].size * q->dims[POOL_INNER].size;
    for (size_t i = 0; i < TUNE_WINDOWS; i++)
        elements *= q->image.windows[i].own.size;
    return 3 * f->t->dma_startup_cycles + 2 * channel_cycles(f->t, tune_bytes_of(q->from, elements));
}

/* Parts of the image, each once, and a copy for each side that neighbours have something of. */
static int64_t frame_cycles(const finder *f, const pool_box *b)
{
    const target *t = f->t;
    int64_t own = b->tile[POOL_OUTER] * b->tile[POOL_INNER], copies = 1, cycles = 0;
    pool_frame x[POOL_DIMS];
    for (int d = POOL_ROWS; d <= POOL_PLACES; d++) {
        pool_frame_of(f->q, b, d, NULL, &x[d]);
        own *= x[d].is_made ? x[d].own : b->tile[d];
    }
    copy_pieces p = pieces_of(t, f->q, b, true);
    const int64_t rows = x[POOL_ROWS].is_made ? x[POOL_ROWS].own : b->tile[POOL_ROWS],
                  row = b->tile[POOL_INNER] * (x[POOL_PLACES].is_made ? x[POOL_PLACES].own : b->tile[POOL_PLACES]);
    const bool is_cut = b->count[POOL_INNER] > 1;
    p.count = b->tile[POOL_OUTER] * rows * (is_cut ? row / b->tile[POOL_INNER] : 1);
    p.bytes = tune_bytes_of(f->q->from, is_cut ? b->tile[POOL_INNER] : row);
    cycles = larger(engine_cycles(t, &p), channel_cycles(t, tune_bytes_of(f->q->from, own) * p.slices * p.clusters));
    for (int d = POOL_ROWS; d <= POOL_PLACES; d++)
        for (int side = 0; side < 2; side++) {
            const int64_t count = side ? x[d].behind : x[d].front;
            if (!x[d].is_made || x[d].parts == 1 || count == 0)
                continue;
            copies += pool_cluster_dim(t, b) == d ? 2 : 1;
            copy_pieces one = p;
            one.count = d == POOL_ROWS ? p.count / rows * count : b->tile[POOL_OUTER] * (rows + 1) * (is_cut ? count : 1);
            one.bytes = d == POOL_ROWS || is_cut ? p.bytes : tune_bytes_of(f->q->from, count * b->tile[POOL_INNER]);
            cycles += engine_cycles(t, &one) * (d == POOL_ROWS ? 1 : 2);
        }
    return cycles + copies * t->dma_startup_cycles;
}

/* Not where a tensor that results meet has rows or places, whose axes have other names meanwhile. */
static bool may_be_framed(const finder *f, const pool_box *b)
{
    bool has_places = false;
    for (size_t i = 0; i < f->q->extra_count; i++)
        has_places = has_places || f->q->extras[i].has[POOL_ROWS] || f->q->extras[i].has[POOL_PLACES];
    return pool_is_rewritten(f->q) && !has_places && pool_is_framed(f->t, f->q, b);
}

static void consider(finder *f, const pool_box *b)
{
    if (!has_room(f, b))
        return;
    pool_plan p = {.folded = *b};
    for (int frames = 0; frames <= may_be_framed(f, b); frames++) {
        p.order = best_order(f, b, frames);
        if (p.order == POOL_ORDERS)
            continue;
        const int64_t passes = pass_cycles(f->t, f->q, b, p.order);
        const int64_t cycles = passes + (frames                    ? frame_cycles(f, b)
                                         : pool_is_rewritten(f->q) ? load_cycles(f->t, f->q, b) + rewrite_cycles(f)
                                                                   : load_cycles(f->t, f->q, b));
        p.frames = frames;
        p.short_border = true;
        p.brings = false;
        p.cycles = cycles + store_cycles(f->t, f->q, b, false);
        keep(f, p);
        p.brings = true;
        for (size_t i = 0; i < f->whole_count; i++) {
            p.whole = f->wholes[i];
            if (!fits(f, b, &p.whole))
                continue;
            p.cycles = cycles + bring_cycles(f->t, f->q, b, &p.whole) + store_cycles(f->t, f->q, &p.whole, true);
            keep(f, p);
        }
    }
}

/* Boxes that are one run of whole blocks of HBM: a part of one axis, all of those inside of it. */
static void find_wholes(finder *f)
{
    const pool_question *q = f->q;
    if (q->dims[POOL_INNER].size % pool_unit(f->t, q) != 0)
        return;
    for (int cut = 0; cut < POOL_INNER; cut++) {
        int64_t outside = 1;
        for (int d = 0; d < cut; d++)
            outside *= q->dims[d].size;
        for (int64_t n = 1; n <= q->dims[cut].size && f->whole_count < WHOLES_MAX; n++) {
            pool_box b;
            for (int d = 0; d < POOL_DIMS; d++) {
                b.tile[d] = d < cut ? 1 : d == cut ? n : q->dims[d].size;
                b.count[d] = ceil_div(q->dims[d].size, b.tile[d]);
            }
            /* the last one may be less where nothing follows it */
            const int64_t bytes = tune_bytes_of(q->into, elements_of(&b)), all = bytes / n * q->dims[cut].size;
            if (bytes % f->t->hbm_block_bytes == 0 && (outside == 1 || (all % f->t->hbm_block_bytes == 0 && q->dims[cut].size % n == 0)) &&
                bytes <= f->t->dm_bytes_per_slice / 4 && pool_slices(f->t, &b) <= tune_slices_of(f->t, q->most_slices))
                f->wholes[f->whole_count++] = b;
        }
    }
}

size_t pool_plans(const target *t, const pool_question *q, pool_plan *plans, size_t most)
{
    finder f = {.t = t, .q = q, .plans = plans, .most = most};
    int64_t sizes[POOL_DIMS][SIZES_MAX];
    size_t count[POOL_DIMS], at[POOL_DIMS] = {0};
    find_wholes(&f);
    for (int d = 0; d < POOL_DIMS; d++)
        count[d] = sizes_of(&f, d, sizes[d]);
    for (int d = 0; d < POOL_DIMS;) {
        pool_box b;
        for (int i = 0; i < POOL_DIMS; i++) {
            b.tile[i] = sizes[i][at[i]];
            b.count[i] = ceil_div(q->dims[i].size, b.tile[i]);
        }
        consider(&f, &b);
        for (d = 0; d < POOL_DIMS && ++at[d] == count[d]; d++)
            at[d] = 0;
    }
    return f.count;
}
