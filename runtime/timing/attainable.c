#include "runtime/timing/attainable.h"

#include "runtime/timing/hbm_address.h"
#include "runtime/timing/measured_cost.h"
#include "support/integer.h"

/* Bytes in 1000 cycles of a chip: all its DMA engines, all its DMNs, all its HBM channels; the slowest. */
static int64_t documented_bytes_per_kcycle(const target *t)
{
    int64_t dmns = t->clusters_per_chip * t->slices_per_cluster / t->dm_slices_per_dmn;
    int64_t engines = dmns / t->dma_dmns_per_engine * t->dma_request_bytes * 1000, delivered = dmns * t->dmn_bytes_per_cycle * 1000;
    int64_t channels = t->hbm_channels * t->hbm_burst_bytes * 1000 * 1000 / t->hbm_burst_millicycles;
    return smaller(engines, smaller(delivered, channels));
}

/* So many copies, more than `copies` where that is cheaper than rows that are switched. Of `rows` a copy opens one in each bank of each
 * channel as part of its bursts; each one more takes a switch in place of a block. That is spread over the channels at best. */
static void count_rows(const target *t, const attainable_work *w, attainable *x)
{
    enum { BANK_BITS = 5 };
    int64_t channels = t->hbm_channels * w->chips, row_bytes = (INT64_C(1) << HBM_ROW_BIT) / (t->hbm_channels << BANK_BITS);
    int64_t open = channels << (w->far_bank ? BANK_BITS + 1 : BANK_BITS), rows = w->bytes / row_bytes;
    int64_t more = t->hbm_row_switch_cycles * 1000 - t->hbm_block_bytes / t->hbm_burst_bytes * t->hbm_burst_millicycles;
    if (rows <= open * x->starts)
        return;
    int64_t rest = rows % open, of_rest = (int64_t)((__int128)rest * more / channels / 1000);
    bool is_worth_a_copy = of_rest > x->start_cycles;
    x->starts = rows / open + is_worth_a_copy;
    x->row_cycles = is_worth_a_copy ? 0 : of_rest;
}

attainable attainable_of(const target *t, timing_preset preset, const attainable_work *w)
{
    attainable x = {.starts = w->loads + w->stores, .bytes = w->bytes};
    int64_t macs = w->mac_cycles, carried;
    if (preset == TIMING_SCHEDULE)
        return (attainable){0};
    x.start_cycles = t->dma_startup_cycles;
    x.bytes_per_kcycle = documented_bytes_per_kcycle(t) * w->chips;
    if (preset == TIMING_MEASURED) {
        x.start_cycles = measured_costs_of()->dma_start_cycles;
        int64_t dmns = t->clusters_per_chip * t->slices_per_cluster / t->dm_slices_per_dmn;
        x.bytes_per_kcycle = dmns / t->dma_dmns_per_engine * measured_costs_of()->engine_bytes_per_kcycle * w->chips;
        macs = measured_cycles_of(macs);
    }
    if (__builtin_mul_overflow(w->bytes, 1000, &carried))
        carried = INT64_MAX - x.bytes_per_kcycle;
    int64_t ends = (w->loads > 0) + (w->stores > 0); /* the first copy and the last one, of a byte at least */
    if (preset == TIMING_DOCUMENTED)
        count_rows(t, w, &x);
    x.copies = x.starts * x.start_cycles + x.row_cycles + carried / x.bytes_per_kcycle;
    x.products = ends * x.start_cycles + macs;
    x.cycles = larger(x.copies, x.products);
    return x;
}
