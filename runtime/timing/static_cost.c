#include "runtime/timing/static_cost.h"

#include "codegen/copy_command.h"
#include "runtime/engine/switch.h"
#include "runtime/engine/vector_slices.h"
#include "support/integer.h"

/* Does the chain's switch have one ring of all slices of a cluster? */
static bool widest_ring(const chain *c)
{
    const routes *k = chain_part(c, &stage_switch);
    return k && k->ring == c->machine->target->slices_per_cluster;
}

/* What a reduction over slices adds to its pass: published for groups of 8 and of 256; between them on a line, below 8 by trips of a slice.
 */
static int64_t reduction_of(const chain *c)
{
    enum { FEW = 8, ALL = 256 };
    const static_costs *k = target_static_costs();
    const vector_slices *s = chain_part(c, &stage_vector_slices);
    int64_t few = k->reduce_8_cycles, all = k->reduce_256_cycles;
    if (!s || s->ring < FEW)
        return s ? (s->ring - 1) * few / (FEW - 1) : 0;
    return few + (s->ring - FEW) * (all - few) / (ALL - FEW);
}

/* "contraction: 265 + 4096/32" where what comes in binds, else cycles. */
void static_cost_of_chain(const chain *c, duration *d)
{
    const static_costs *k = target_static_costs();
    arena *a = c->machine->arena;
    bool contracts = chain_part(c, &stage_contract) != NULL, computes = chain_part(c, &stage_vector) != NULL;
    int64_t in = d->items * d->item_cycles, out = d->beats * d->beat_cycles, slowest = larger(in, out);
    int64_t bytes = d->busy[ENGINE_COLLECT] * c->machine->target->flit_bytes;
    const char *what = chain_trf_store(c) ? "TRF fill" : contracts ? "contraction" : computes ? "vector pass" : "pass";
    if (d->routes * d->route_cycles > slowest) {
        int64_t more = widest_ring(c) ? k->widest_ring_cycles : 0, around = d->routes * d->route_cycles;
        d->fill = k->pass_base_cycles + more;
        d->drains = false;
        d->total = d->fill + around;
        d->text = arena_printf(a, "switch: %lld + %lld", (long long)d->fill, (long long)around);
        return;
    }
    d->fill = computes ? k->vector_base_cycles : contracts ? k->contraction_base_cycles : k->pass_base_cycles;
    d->fill += reduction_of(c);
    const vector_slices *slices = chain_part(c, &stage_vector_slices);
    d->interpolated = slices && slices->ring != 8 && slices->ring != c->machine->target->slices_per_cluster;
    d->drains = false;
    d->total = d->fill + slowest;
    if (in >= out && in > 0 && bytes % in == 0)
        d->text = arena_printf(a, "%s: %lld + %lld/%lld", what, (long long)d->fill, (long long)bytes, (long long)(bytes / in));
    else
        d->text = arena_printf(a, "%s: %lld + %lld", what, (long long)d->fill, (long long)slowest);
}

/* Points of a kind around a piece; both are the nearest one outside the range of the points. */
static void points_around(static_point_kind kind, double bytes, const static_point **low, const static_point **high)
{
    *low = *high = NULL;
    const static_point *p;
    for (size_t i = 0; (p = target_static_point_at(i)); i++) {
        if (p->kind != kind)
            continue;
        if ((double)p->piece_bytes <= bytes || !*low)
            *low = p;
        if ((double)p->piece_bytes >= bytes && !*high)
            *high = p;
    }
    if (!*high)
        *high = *low;
}

/* Cycles above `base` of `pieces` like those of p; the smallest transfer has one piece and takes the base. */
static double above(const static_point *p, int64_t base, double pieces)
{
    return (double)(p->cycles - base) * (pieces - 1) / (double)(p->pieces - 1);
}

/* Between two points in proportion; a piece longer than the longest one counts as several of it. */
static double interpolated(static_point_kind kind, int64_t base, double bytes, double pieces)
{
    const static_point *low, *high;
    points_around(kind, bytes, &low, &high);
    if (bytes > (double)high->piece_bytes) {
        pieces *= bytes / (double)high->piece_bytes;
        bytes = (double)high->piece_bytes;
    }
    double a = above(low, base, pieces), b = above(high, base, pieces);
    double part = low == high ? 0 : (bytes - (double)low->piece_bytes) / (double)(high->piece_bytes - low->piece_bytes);
    return (double)base + a + (b - a) * part;
}

static bool is_published(static_point_kind kind, int64_t bytes, int64_t pieces)
{
    const static_point *p;
    for (size_t i = 0; (p = target_static_point_at(i)); i++)
        if (p->kind == kind && p->piece_bytes == bytes && p->pieces == pieces)
            return true;
    return false;
}

static int64_t whole(double cycles)
{
    return (int64_t)(cycles + 0.5);
}

/* Bytes that go to several slices: to all of a cluster by the formula, to some of them between that, the point and a load of as many bytes.
 */
static void copied(const target *t, const dma_cost *dma, int64_t bytes, double alone, arena *a, duration *d)
{
    const static_costs *k = target_static_costs();
    const static_point *p = NULL, *unused;
    int64_t clusters = larger(dma->clusters, 1), each = bytes / clusters, copies = dma->copies; /* clusters in parallel */
    int64_t full = k->copy_base_cycles + (int64_t)((__int128)k->copy_unit_cycles * each / k->copy_unit_bytes);
    d->fill = k->copy_base_cycles;
    d->total = full;
    d->text = arena_printf(a, "replicated load: %lld + %lld x %lld/%lld", (long long)d->fill, (long long)k->copy_unit_cycles,
                           (long long)each, (long long)k->copy_unit_bytes);
    d->interpolated = copies < t->slices_per_cluster;
    if (!d->interpolated)
        return;
    points_around(dma->copies_inside ? STATIC_POINT_COPIES_INSIDE : STATIC_POINT_COPIES_OUTSIDE, 0, &p, &unused);
    double some = (double)d->fill + (double)(p->cycles - d->fill) * (double)each / (double)(p->piece_bytes * p->pieces), low = some,
           high = (double)full;
    int64_t from = p->copies, to = t->slices_per_cluster;
    if (copies < p->copies) {
        low = alone < some ? alone : some;
        high = some;
        from = 1;
        to = p->copies;
    }
    d->interpolated = copies != p->copies || each != p->piece_bytes * p->pieces;
    d->fill = whole(low);
    int64_t rise = whole(high) - d->fill;
    d->total = d->fill + whole((double)rise * (double)(copies - from) / (double)(to - from));
    d->text = arena_printf(a, "replicated load: %lld + %lld x %lld/%lld (%lld copies)", (long long)d->fill, (long long)rise,
                           (long long)(copies - from), (long long)(to - from), (long long)copies);
}

/* As many decimals as it takes for the formula to give the cycles. */
static const char *cycles_of_a_piece(const duration *d, int64_t pieces, arena *a)
{
    enum { LEAST = 2, MOST = 9 };
    double each = (double)(d->total - d->fill) / (double)pieces, unit = 1;
    int decimals = 0;
    do {
        decimals++;
        unit /= 10;
    } while (decimals < LEAST ||
             (decimals < MOST && whole((double)d->fill + (double)pieces * unit * (double)whole(each / unit)) != d->total));
    return arena_printf(a, "%.*f", decimals, each);
}

void static_cost_of_dma(const target *t, const command *c, arena *a, duration *d)
{
    const static_costs *k = target_static_costs();
    d->bound = BOUND_DMA;
    int64_t packet = copy_command_read(c).packet_bytes, bytes = d->dma.steps * packet;
    static_point_kind kind = d->dma.to_dm ? STATIC_POINT_LOAD : STATIC_POINT_STORE;
    d->fill = d->dma.to_dm ? k->load_base_cycles : k->store_base_cycles;
    int64_t piece = larger(d->dma.piece_bytes, packet), pieces = larger(bytes / piece, 1);
    d->interpolated = pieces > 1 && !is_published(kind, piece, pieces);
    if (!d->dma.to_dm && piece % t->dma_request_bytes == 0) { /* whole blocks go by bytes, at the rate of the last point */
        const static_point *last, *unused;
        points_around(kind, (double)INT64_MAX, &last, &unused);
        double blocks = (double)(last->piece_bytes * last->pieces / t->dma_request_bytes);
        pieces = larger(bytes / t->dma_request_bytes, 1);
        piece = t->dma_request_bytes;
        d->total = whole((double)d->fill + (double)(last->cycles - d->fill) * (double)(pieces - 1) / (blocks - 1));
    } else {
        d->total = whole(interpolated(kind, d->fill, (double)piece, (double)pieces));
    }
    if (d->dma.to_dm && d->dma.copies > 1) {
        copied(t, &d->dma, bytes, (double)d->total, a, d);
        return;
    }
    const char *name = d->dma.to_dm ? "load" : "store";
    d->text = pieces == 1 ? arena_printf(a, "smallest %s", name)
                          : arena_printf(a, "%s: %lld + %lld x %s (%lld bytes each)", name, (long long)d->fill, (long long)pieces - 1,
                                         cycles_of_a_piece(d, pieces - 1, a), (long long)piece);
}
