#include "libvisa/tune/lay_plan.h"

#include <string.h>

#include "libvisa/tune/machine.h"
#include "libvisa/tune/question.h"
#include "support/integer.h"
#include "support/order.h"

/* Boxes that are looked at, and sizes of one axis in them. */
enum { BOXES = 20000, SIZES_MAX = 40, WHOLES_MAX = 128, WORD_BYTES = 8 };

size_t lay_innermost(const lay_order *x)
{
    return x->count - 1;
}

size_t lay_innermost_before(const lay_order *x)
{
    return x->source[x->count - 1];
}

int64_t lay_row(const target *t, const lay_order *x)
{
    return t->transpose_row_bytes * 8 / dtype_row_of(x->into)->bits;
}

int64_t lay_padded(const lay_box *b, size_t axis)
{
    return b->tile[axis] * b->count[axis];
}

int64_t lay_elements(const lay_box *b, size_t count)
{
    int64_t all = 1;
    for (size_t i = 0; i < count; i++)
        all *= b->tile[i];
    return all;
}

bool lay_order_trim(lay_order *x)
{
    size_t at[TUNE_AXES_MAX], kept = 0;
    for (size_t i = 0; i < x->count; i++) /* an axis of one position lies anywhere */
        at[i] = x->axes[i].size > 1 || x->axes[i].padded > 1 ? kept++ : TUNE_AXES_MAX;
    size_t sources = 0;
    for (size_t i = 0; i < x->count; i++)
        if (at[x->source[i]] < TUNE_AXES_MAX)
            x->source[sources++] = at[x->source[i]];
    for (size_t i = 0; i < x->count; i++)
        if (at[i] < TUNE_AXES_MAX)
            x->axes[at[i]] = x->axes[i];
    x->count = kept;
    return x->count > 1 || (x->count == 1 && x->axes[0].wide);
}

bool lay_order_join(lay_order *x, arena *a)
{
    lay_order_trim(x);
    for (size_t i = 0; i + 1 < x->count;) {
        lay_axis *one = &x->axes[i], *next = &x->axes[i + 1];
        size_t place = 0;
        while (x->source[place] != i)
            place++;
        if (one->wide || next->wide || one->apart || next->apart || place + 1 == x->count || x->source[place + 1] != i + 1) {
            i++;
            continue;
        }
        *one = (lay_axis){.name = arena_printf(a, "%s_%s", one->name, next->name),
                          .parts = arena_printf(a, "%s, %s", one->parts, next->parts),
                          .size = one->size * next->size,
                          .padded = one->size * next->size};
        memmove(next, next + 1, (x->count - i - 2) * sizeof *next);
        memmove(&x->source[place + 1], &x->source[place + 2], (x->count - place - 2) * sizeof *x->source);
        x->count--;
        for (size_t k = 0; k < x->count; k++)
            x->source[k] -= x->source[k] > i;
    }
    return x->count > 1 || (x->count == 1 && x->axes[0].wide);
}

/* ---- where boxes are ---- */

size_t lay_cluster_axis(const target *t, const lay_order *x, const lay_box *b)
{
    size_t axis = 0;
    while (axis < x->count && (t->clusters_per_chip == 1 || b->count[axis] % t->clusters_per_chip != 0))
        axis++;
    return axis;
}

int64_t lay_slices(const target *t, const lay_order *x, const lay_box *b)
{
    int64_t all = 1;
    for (size_t i = 0; i < x->count; i++)
        all *= b->count[i];
    return lay_cluster_axis(t, x, b) < x->count ? all / t->clusters_per_chip : all;
}

int64_t lay_apart(const target *t, int64_t slices)
{
    int64_t apart = 1;
    while (slices * apart * 2 <= t->slices_per_cluster)
        apart *= 2;
    return apart;
}

/* ---- what copies take ---- */

/* Elements that follow each other in HBM, of what a box has: trailing axes that it has all of, and a part of the one outside of them. As
 * they lie before, what is innermost then has zeros after it in DM, unless it is `dense`. */
static int64_t run_of(const lay_order *x, const lay_box *b, bool before, bool dense)
{
    int64_t run = 1;
    for (size_t i = x->count; i-- > 0;) {
        size_t axis = before ? x->source[i] : i;
        int64_t all = before ? x->axes[axis].size : x->axes[axis].padded;
        run *= smaller(all, b->tile[axis]);
        if (x->parts > 1 && axis == x->looped)
            break;
        if (b->tile[axis] != all && (!before || !x->axes[axis].wide || (axis == lay_innermost(x) && !dense)))
            break;
    }
    return run;
}

typedef struct copy_pieces {
    int64_t count, bytes; /* of a slice; of one */
    int64_t slices, apart, clusters;
} copy_pieces;

static copy_pieces pieces_of(const target *t, const lay_order *x, const lay_box *b, int64_t run, dtype type)
{
    copy_pieces p = {.bytes = larger(1, tune_bytes_of(type, run)), .slices = lay_slices(t, x, b)};
    p.count = ceil_div(lay_elements(b, x->count), run);
    p.apart = lay_apart(t, p.slices);
    p.clusters = lay_cluster_axis(t, x, b) < x->count ? t->clusters_per_chip : 1;
    return p;
}

/* Steps of the busiest DMA engine, and cycles of the busiest DMN. */
static int64_t engine_cycles(const target *t, const copy_pieces *p)
{
    int64_t of_engine = t->dma_dmns_per_engine * t->dm_slices_per_dmn, requests = ceil_div(p->bytes, t->dma_request_bytes);
    int64_t slices_of_engine = smaller(p->slices, ceil_div(of_engine, p->apart)),
            slices_of_dmn = smaller(p->slices, ceil_div(t->dm_slices_per_dmn, p->apart));
    return larger(slices_of_engine * p->count * requests, slices_of_dmn * p->count * ceil_div(p->bytes, t->dmn_bytes_per_cycle));
}

static int64_t copy_start(const target *t)
{
    return t->dma_startup_cycles;
}

/* What is more than a row of HBM in each bank costs switches: about as much again. */
static int64_t channel_cycles(const target *t, int64_t bytes)
{
    enum { ROWS_BYTES = 2 << 20, PERCENT = 180 };
    bytes += larger(0, bytes - ROWS_BYTES) * (PERCENT - 100) / 100;
    return bytes * t->hbm_burst_millicycles / (1000 * t->hbm_burst_bytes * t->hbm_channels);
}

/* Pieces far apart are each in another row of HBM than the one before: where what a copy reaches over is several rows of each bank. */
static int64_t switch_cycles(const target *t, const lay_order *x, bool before, int64_t pieces, dtype type)
{
    enum { NEAR_BYTES = 8 << 20 };
    int64_t elements = 1;
    for (size_t i = 0; i < x->count; i++)
        elements *= x->axes[i].padded;
    bool is_part = x->parts > 1 && (before ? x->source[0] : 0) != x->looped;
    return tune_bytes_of(type, is_part ? elements * x->parts : elements) > NEAR_BYTES ? pieces * t->hbm_row_switch_cycles / t->hbm_channels
                                                                                      : 0;
}

static int64_t load_cycles(const target *t, const lay_order *x, const lay_box *b, bool dense)
{
    copy_pieces p = pieces_of(t, x, b, run_of(x, b, true, dense), x->from);
    int64_t read = p.slices * p.clusters * p.count * round_up(p.bytes, t->hbm_burst_bytes);
    int64_t switches = switch_cycles(t, x, true, p.slices * p.clusters * p.count, x->from);
    return copy_start(t) + larger(engine_cycles(t, &p), channel_cycles(t, read) + switches);
}

/* A block that is written in part is dear. */
static int64_t store_cycles(const target *t, const lay_order *x, const lay_box *b)
{
    copy_pieces p = pieces_of(t, x, b, run_of(x, b, false, false), x->into);
    int64_t all = p.slices * p.clusters * p.count, partial = p.bytes % t->hbm_block_bytes == 0 ? 0 : all > 1 ? 2 * all : 1;
    int64_t channel = channel_cycles(t, all * p.bytes) + ceil_div(partial, t->hbm_channels) * tune_partial_block_cycles(t);
    channel += switch_cycles(t, x, false, all, x->into);
    return copy_start(t) + larger(engine_cycles(t, &p), channel);
}

static int64_t turn_cycles(const target *t, const lay_order *x, const lay_box *b, int64_t packet)
{
    int64_t elements = lay_elements(b, x->count);
    return packet > 1 ? elements / lay_row(t, x) : elements;
}

/* From DM to DM: what follows each other in both boxes, read and written. */
static int64_t bring_cycles(const target *t, const lay_order *x, const lay_box *from, const lay_box *to)
{
    int64_t run = 1;
    for (size_t i = x->count; i-- > 0;) {
        run *= smaller(from->tile[i], to->tile[i]);
        if (from->count[i] > 1 || to->count[i] > 1)
            break;
    }
    copy_pieces p = pieces_of(t, x, from, run, x->into), q = pieces_of(t, x, to, run, x->into);
    return copy_start(t) + 2 * larger(engine_cycles(t, &p), engine_cycles(t, &q));
}

/* ---- boxes ---- */

static bool is_new(const int64_t *sizes, size_t count, int64_t size)
{
    for (size_t i = 0; i < count; i++)
        if (sizes[i] == size)
            return false;
    return true;
}

static size_t add_size(int64_t *sizes, size_t count, size_t most, int64_t size)
{
    if (count < most && size >= 1 && is_new(sizes, count, size))
        sizes[count++] = size;
    return count;
}

/* All of an axis, powers of two, and its divisors, as many as there is time for. What has zeros after it is in one slice. */
static size_t sizes_of_axis(const lay_axis *x, size_t most, int64_t *sizes)
{
    size_t count = add_size(sizes, 0, most, x->padded);
    if (x->wide)
        return count;
    count = add_size(sizes, count, most, 1);
    for (int64_t n = 2; n < x->size; n *= 2)
        if (x->size % n == 0)
            count = add_size(sizes, count, most, x->size / n);
    for (int64_t n = 4; n < x->size; n *= 2)
        count = add_size(sizes, count, most, n);
    for (int64_t n = 2; n < 2048 && n < x->size; n++)
        if (x->size % n == 0)
            count = add_size(sizes, count, most, x->size / n);
    return count;
}

static bool has_room(const target *t, const lay_order *x, const lay_box *b)
{
    int64_t all = lay_slices(t, x, b), slices = tune_slices_of(t, x->most_slices), elements = lay_elements(b, x->count);
    return all <= slices && elements <= t->dm_bytes_per_slice &&
           tune_bytes_of(x->from, elements) + 2 * tune_bytes_of(x->into, elements) <= t->dm_bytes_per_slice * 7 / 8;
}

/* Rows in DM are whole 8 bytes, of what is copied into it. */
static bool is_whole_words(dtype type, int64_t elements)
{
    return elements * dtype_row_of(type)->bits % (WORD_BYTES * 8) == 0;
}

/* In DM what is innermost is whole 8 bytes as it leaves: of all of an axis the rest is padding. */
static bool fits_rows(const target *t, const lay_order *x, lay_box *b)
{
    size_t inner = lay_innermost(x);
    int64_t row = lay_row(t, x);
    if (b->count[inner] == 1)
        b->tile[inner] = round_up(b->tile[inner], row);
    return b->tile[inner] % row == 0;
}

/* The packet that a box allows, of what was innermost. */
static int64_t packet_of(const target *t, const lay_order *x, const lay_box *b)
{
    size_t before = lay_innermost_before(x);
    int64_t bits = dtype_row_of(x->from)->bits, most = smaller(16, t->flit_bytes * 8 / larger(bits, dtype_row_of(x->into)->bits));
    if (before == lay_innermost(x) || bits < 8 || x->axes[before].wide)
        return 1;
    for (int64_t packet = most; packet * bits >= WORD_BYTES * 8; packet /= 2)
        if (b->tile[before] % packet == 0)
            return packet;
    return 1;
}

typedef struct finder {
    const target *t;
    const lay_order *x;
    lay_plan *plans;
    size_t count, most, room;
    lay_box wholes[WHOLES_MAX];
    size_t whole_count;
} finder;

static int by_estimate(const void *a, const void *b)
{
    return ORDER(((const lay_plan *)a)->cycles, ((const lay_plan *)b)->cycles);
}

/* Rows that are no whole 8 bytes are put together where boxes have whole rows, and no padding else. */
static bool can_pack(const finder *f, const lay_box *b)
{
    size_t inner = lay_innermost(f->x);
    int64_t rows = 1;
    if (b->count[inner] > 1)
        return false;
    for (size_t i = 0; i < inner; i++) {
        if (lay_padded(b, i) != f->x->axes[i].padded)
            return false;
        rows *= b->tile[i];
    }
    return is_whole_words(f->x->into, rows * f->x->axes[inner].size);
}

/* `cycles` of copies, `turned` of passes, of which all but one part's have time beside those. */
static void keep(finder *f, lay_plan p, int64_t cycles, int64_t turned)
{
    const lay_box *written = p.brings ? &p.whole : &p.turned;
    size_t inner = lay_innermost(f->x);
    p.packs = f->x->axes[inner].padded % lay_row(f->t, f->x) != 0 && written->count[inner] == 1;
    if (p.packs && !can_pack(f, written))
        return;
    if (p.packs && f->x->parts > 1)
        return;
    p.looped = f->x->looped;
    p.parts = larger(1, f->x->parts);
    cycles = p.parts * (cycles + store_cycles(f->t, f->x, written));
    p.cycles = cycles + turned + (p.packs ? lay_elements(written, f->x->count) : 0);
    order_keep(f->plans, &f->count, f->most, sizeof p, &p, by_estimate);
}

static void consider(finder *f, lay_box b)
{
    const lay_order *x = f->x;
    bool dense = !is_whole_words(x->from, run_of(x, &b, true, false));
    if (!fits_rows(f->t, x, &b) || !has_room(f->t, x, &b) || !is_whole_words(x->from, run_of(x, &b, true, true)))
        return;
    lay_plan p = {.turned = b, .packet = dense ? 1 : packet_of(f->t, x, &b), .unpacks = dense};
    int64_t cycles = load_cycles(f->t, x, &b, dense), turned = turn_cycles(f->t, x, &b, p.packet);
    turned += dense ? lay_elements(&b, x->count) : 0;
    if (is_whole_words(x->into, run_of(x, &b, false, false)) || x->axes[lay_innermost(x)].padded % lay_row(f->t, x) != 0)
        keep(f, p, cycles, turned);
    p.brings = true;
    for (size_t i = 0; i < f->whole_count; i++) {
        p.whole = f->wholes[i];
        keep(f, p, cycles + bring_cycles(f->t, x, &b, &p.whole), turned);
    }
}

/* Boxes that are one run in the new order: a part of one axis, all of those inside of it. */
static void find_wholes(finder *f)
{
    const lay_order *x = f->x;
    for (size_t cut = 0; cut < x->count; cut++) {
        int64_t sizes[SIZES_MAX];
        size_t count = sizes_of_axis(&x->axes[cut], SIZES_MAX, sizes);
        for (size_t k = 0; k < count && f->whole_count < WHOLES_MAX; k++) {
            lay_box b;
            for (size_t i = 0; i < x->count; i++) {
                b.tile[i] = i < cut ? 1 : i == cut ? sizes[k] : x->axes[i].padded;
                b.count[i] = ceil_div(x->axes[i].padded, b.tile[i]);
            }
            if (fits_rows(f->t, x, &b) && has_room(f->t, x, &b))
                f->wholes[f->whole_count++] = b;
        }
    }
}

/* The best `most` of them, after those that there are. */
static void find_boxes(finder *f, const lay_order *x, size_t most)
{
    f->x = x;
    f->whole_count = 0;
    f->plans += f->count;
    f->room -= f->count;
    f->count = 0;
    f->most = most < f->room ? most : f->room;
    int64_t sizes[TUNE_AXES_MAX][SIZES_MAX];
    size_t count[TUNE_AXES_MAX], at[TUNE_AXES_MAX] = {0}, each = SIZES_MAX;
    for (;; each--) { /* so many of each axis */
        int64_t boxes = 1;
        for (size_t i = 0; i < x->count; i++) {
            count[i] = sizes_of_axis(&x->axes[i], each, sizes[i]);
            boxes *= (int64_t)count[i];
        }
        if (boxes <= BOXES || each == 2)
            break;
    }
    find_wholes(f);
    for (size_t axis = 0; axis < x->count;) {
        lay_box b;
        for (size_t i = 0; i < x->count; i++) {
            b.tile[i] = sizes[i][at[i]];
            b.count[i] = ceil_div(x->axes[i].padded, b.tile[i]);
        }
        consider(f, b);
        for (axis = 0; axis < x->count && ++at[axis] == count[axis]; axis++)
            at[axis] = 0;
    }
}

/* Parts of the outermost axis in either order, where there is enough of it: each has rows of HBM open once, and is turned beside the copies
 * of the next one. */
static void find_parts(finder *f, const lay_order *x, size_t looped)
{
    enum { LEAST_BYTES = 1 << 18, MOST_PARTS = 256, EACH = 16 };
    int64_t elements = 1;
    for (size_t i = 0; i < x->count; i++)
        elements *= x->axes[i].padded;
    int64_t bytes = larger(tune_bytes_of(x->from, elements), tune_bytes_of(x->into, elements));
    for (int64_t parts = 2; parts <= MOST_PARTS && bytes / parts >= LEAST_BYTES; parts *= 2) {
        lay_order part = *x;
        lay_axis *one = &part.axes[looped];
        if (one->wide || one->size % parts != 0 || one->size == parts)
            return;
        one->size = one->padded = one->size / parts;
        part.looped = looped;
        part.parts = parts;
        find_boxes(f, &part, EACH);
    }
}

size_t lay_plans(const target *t, const lay_order *x, lay_plan *plans, size_t most)
{
    finder f = {.t = t, .plans = plans, .room = most};
    find_boxes(&f, x, most / 5);
    find_parts(&f, x, 0);
    if (x->source[0] != 0)
        find_parts(&f, x, x->source[0]);
    size_t count = (size_t)(f.plans - plans) + f.count;
    order_sort(plans, count, sizeof *plans, by_estimate);
    return count;
}
