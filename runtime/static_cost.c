#include "runtime/static_cost.h"

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* "contraction: 265 + 4096/32" where what comes in binds, else cycles. */
void static_cost_of_chain(const chain *c, duration *d)
{
    const static_costs *k = target_static_costs();
    arena *a = c->machine->arena;
    bool contracts = c->contraction.commands.contract != NULL;
    int64_t in = d->items * d->item_cycles, out = d->beats * d->beat_cycles, slowest = larger(in, out);
    int64_t bytes = d->busy[ENGINE_COLLECT] * c->machine->target->flit_bytes;
    const char *what = c->sink->op == OP_TRF_STORE ? "TRF fill" : contracts ? "contraction" : "pass";
    d->fill = contracts ? k->contraction_base_cycles : k->pass_base_cycles;
    d->drains = false;
    d->total = d->fill + slowest;
    if (in >= out && in > 0 && bytes % in == 0)
        d->text = arena_printf(a, "%s: %lld + %lld/%lld", what, (long long)d->fill, (long long)bytes, (long long)(bytes / in));
    else
        d->text = arena_printf(a, "%s: %lld + %lld", what, (long long)d->fill, (long long)slowest);
}

/* Points of a kind around a piece; both are the nearest one outside the range of the points. */
static void points_around(static_point_kind kind, int64_t bytes, const static_point **low, const static_point **high)
{
    *low = *high = NULL;
    const static_point *p;
    for (size_t i = 0; (p = target_static_point_at(i)); i++) {
        if (p->kind != kind)
            continue;
        if (p->piece_bytes <= bytes || !*low)
            *low = p;
        if (p->piece_bytes >= bytes && !*high)
            *high = p;
    }
    if (!*high)
        *high = *low;
}

/* Cycles above `base` of `pieces` like those of p. */
static double above(const static_point *p, int64_t base, int64_t pieces)
{
    return (double)(p->cycles - base) * (double)pieces / (double)p->pieces;
}

/* Between two points in proportion; whole blocks beyond the last one go by bytes. */
static int64_t interpolated(static_point_kind kind, int64_t base, int64_t bytes, int64_t pieces)
{
    const static_point *low, *high;
    points_around(kind, bytes, &low, &high);
    double a = above(low, base, pieces), b = above(high, base, pieces);
    if (low == high)
        return base + (int64_t)(a * (bytes > low->piece_bytes || kind == STATIC_POINT_LOAD ? (double)bytes / (double)low->piece_bytes : 1) + 0.5);
    double part = (double)(bytes - low->piece_bytes) / (double)(high->piece_bytes - low->piece_bytes);
    return base + (int64_t)(a + (b - a) * part + 0.5);
}

void static_cost_of_dma(const target *t, const command *c, arena *a, duration *d)
{
    const static_costs *k = target_static_costs();
    d->bound = BOUND_DMA;
    int64_t packet = command_get(c, DMA_PACKET_BYTES), bytes = d->dma.steps * packet;
    if (d->dma.replicates && d->dma.to_dm) {
        int64_t each = bytes / larger(d->dma.clusters, 1); /* clusters in parallel */
        d->fill = k->copy_base_cycles;
        d->total = d->fill + (int64_t)((__int128)k->copy_unit_cycles * each / k->copy_unit_bytes);
        d->text = arena_printf(a, "replicated load: %lld + %lld x %lld/%lld", (long long)d->fill, (long long)k->copy_unit_cycles, (long long)each,
                               (long long)k->copy_unit_bytes);
        return;
    }
    static_point_kind kind = d->dma.to_dm ? STATIC_POINT_LOAD : STATIC_POINT_STORE;
    d->fill = d->dma.to_dm ? k->load_base_cycles : k->store_base_cycles;
    int64_t piece = larger(d->dma.piece_bytes, packet), pieces = larger(bytes / piece, 1);
    bool blocks = piece % t->dma_request_bytes == 0;
    if (!d->dma.to_dm && blocks) { /* whole blocks go by bytes, at the rate of the last point */
        pieces = bytes / larger(t->dma_request_bytes, 1);
        piece = t->dma_request_bytes;
        int64_t last = 0;
        const static_point *p;
        for (size_t i = 0; (p = target_static_point_at(i)); i++)
            if (p->kind == kind && p->piece_bytes % piece == 0)
                last = (int64_t)((double)(p->cycles - d->fill) * (double)bytes / (double)(p->piece_bytes * p->pieces) + 0.5);
        d->total = d->fill + last;
    } else {
        d->total = interpolated(kind, d->fill, piece, pieces);
    }
    d->text = arena_printf(a, "%s: %lld + %lld x %.2f (%lld bytes each)", d->dma.to_dm ? "load" : "store", (long long)d->fill, (long long)pieces,
                           (double)(d->total - d->fill) / (double)pieces, (long long)piece);
}
