/* Rules of thumb, not of the machine: each looks at one finished configuration and compares it with the limit that it leaves
 * unused. All are warnings of -Wperformance; a report (runtime/timing/lint.c) says the same, in the same words (support/advice.h), where it
 * costs cycles. The thresholds are one half, because a factor of two is the least that the halving limits of the machine (reads of 8, 16,
 * 32 bytes; 1, 2, 4, 8 Rows; two TRF halves) can give back; a copy's is the size of a DMA request, below which users measured a factor of
 * two (field notes, A3). */
#include "passes/advice.h"

#include "passes/verify.h"
#include "support/advice.h"

/* Positions that hold an element, at most: digits count for themselves. */
static int64_t live_positions(const mapping *m)
{
    int64_t live = 1;
    for (uint32_t i = 0; m && i < m->count; i++)
        live *= m->factors[i].live < m->factors[i].extent ? m->factors[i].live : m->factors[i].extent;
    return live;
}

static void advise_align(pass_context *p, kernel *k, op *o)
{
    (void)k;
    int64_t width = p->target->mac_width_bytes, live = live_positions(o->out.part[PACKET]),
            bytes = live * dtype_row_of(o->out.dtype)->bits / 8;
    int64_t rows = o->align->rows, all_rows = p->target->rows;
    if (bytes * rows * 2 > width * all_rows)
        return;
    diag *d = diag_add(p->diags, W_MAC_IDLE, o->range, "%s, %s: %lld %% of the multipliers", advice_rows(p->arena, rows, all_rows),
                       advice_lanes(p->arena, bytes, width), (long long)(100 * rows * bytes / (all_rows * width)));
    diag_help(p->diags, d, "%s", rows < all_rows ? advice_more_rows(p->arena, all_rows) : advice_more_lanes(p->arena, width));
}

static void advise_to_trf(pass_context *p, kernel *k, op *o)
{
    (void)k;
    int64_t bytes = o->to_trf->rows * o->to_trf->bytes_per_row, half = target_trf_capacity_bytes(p->target, TRF_FIRST_HALF);
    if (o->out.trf_address != TRF_FULL || bytes > half)
        return;
    diag *d = diag_add(p->diags, W_TRF_HALF, o->range, "the weights take %lld of the %lld bytes that TrfAddress::Full blocks",
                       (long long)bytes, (long long)target_trf_capacity_bytes(p->target, TRF_FULL));
    diag_help(p->diags, d, "TrfAddress::FirstHalf leaves %lld bytes for the next weights", (long long)half);
}

/* Of a stream as the engines get it: a switch or a lift after the fetch gives other slices work. Reported where the slices are chosen. */
/* Of a kernel that asks for a part of the chip the rest is not idle. */
static void advise_idle_units(pass_context *p, const kernel *k, const op *collect)
{
    int64_t all_slices = k->slices > 0 ? k->slices : p->target->slices_per_cluster;
    int64_t all_clusters = k->clusters > 0 ? k->clusters : p->target->clusters_per_chip;
    const op *o = op_input(collect);
    while (o->kind != IR_FETCH && o->kind != IR_SWITCH && op_input(o))
        o = op_input(o);
    int64_t slices = live_positions(collect->out.part[SLICE]), clusters = live_positions(collect->out.part[CLUSTER]);
    if (slices * 2 <= all_slices) {
        diag *d = diag_add(p->diags, W_IDLE_SLICES, o->range, "%s", advice_slices(p->arena, slices, all_slices));
        diag_help(p->diags, d, "put an axis that is kept, or a part of it, into Slice");
    }
    if (clusters * 2 <= all_clusters) {
        diag *d = diag_add(p->diags, W_IDLE_CLUSTER, o->range, "%lld of %lld clusters has elements: half the chip is idle",
                           (long long)clusters, (long long)all_clusters);
        diag_help(p->diags, d, "split an axis over Cluster: m![X / n] with n half of its size");
    }
}

static void advise_fetch(pass_context *p, kernel *k, op *o)
{
    (void)k;
    int64_t read = o->sequencer->access_bytes, most = p->target->fetch_access_max_bytes;
    int64_t packet = o->sequencer->packet * dtype_row_of(op_input(o)->out.dtype)->bits / 8;
    if (o->context != CONTEXT_MAIN)
        return;
    if (read * 2 > most || packet <= read)
        return;
    diag *d = diag_add(p->diags, W_FETCH_NARROW, op_part_range(o, PACKET),
                       "one read takes %lld of %lld bytes: a packet of %lld bytes needs %lld reads", (long long)read, (long long)most,
                       (long long)packet, (long long)(packet / read));
    if (packet % most)
        diag_help(p->diags, d, "pad the packet, and Element in DM, to a multiple of %lld bytes", (long long)most);
    else
        diag_help(p->diags, d, "%lld bytes lie together in DM: keep at least %lld of the packet side by side",
                  (long long)o->sequencer->contiguous_bytes, (long long)most);
}

static void advise_collect(pass_context *p, kernel *k, op *o)
{
    if (k->is_device && o->context == CONTEXT_MAIN)
        advise_idle_units(p, k, o);
    int64_t bytes = o->collect->flits_per_packet * p->target->flit_bytes, padding = o->collect->pad_bytes;
    if (padding * 2 < bytes)
        return;
    diag *d = diag_add(p->diags, W_FLIT_PADDING, o->range, "%lld of the %lld bytes of each collected packet are padding",
                       (long long)padding, (long long)bytes);
    diag_help(p->diags, d, "fetch packets of a multiple of %lld bytes", (long long)p->target->flit_bytes);
}

static void advise_copy(pass_context *p, kernel *k, op *o)
{
    (void)k;
    const dma_config *c = o->dma;
    int64_t pieces = 1;
    for (uint32_t i = 0; c && i < c->sequencer.count; i++)
        pieces = __builtin_mul_overflow(pieces, c->sequencer.entries[i].size, &pieces) ? INT64_MAX : pieces;
    if (!c || pieces < 2 || c->packet_bytes >= p->target->dma_request_bytes)
        return;
    diag *d = diag_add(p->diags, W_DMA_PIECES, op_part_range(o, ELEMENT), "%s, a request could carry %lld",
                       advice_pieces(p->arena, pieces, c->packet_bytes), (long long)p->target->dma_request_bytes);
    diag_help(p->diags, d, "%s", advice_larger_pieces(p->arena, p->target->dma_request_bytes));
}

void pass_advice(pass_context *p, kernel *k)
{
    if (k->bad)
        return;
    pass_each(p, k, IR_ALIGN, advise_align);
    pass_each(p, k, IR_TO_TRF, advise_to_trf);
    pass_each(p, k, IR_FETCH, advise_fetch);
    pass_each(p, k, IR_COLLECT, advise_collect);
    pass_each(p, k, IR_TO_DM, advise_copy);
    pass_each(p, k, IR_TO_HBM, advise_copy);
}
