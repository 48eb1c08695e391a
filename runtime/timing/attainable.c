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

/* The block in which a result ends is written in part by one of the copies, which may carry all the rest of the result meanwhile. */
static int64_t partial_of(const target *t, const attainable_work *w, const attainable *x)
{
    int64_t whole = t->hbm_block_bytes / t->hbm_burst_bytes * t->hbm_burst_millicycles,
            partial = whole * t->hbm_partial_write_factor / 1000;
    if (w->ending_bytes == 0 || x->row_cycles > 0) /* rows may be switched while that block is written */
        return 0;
    return larger(0, partial - (int64_t)((__int128)w->ending_bytes * 1000 / x->bytes_per_kcycle) - 1);
}

/* Can `stores` copies write all results in so many cycles? Each takes as much as is multiplied when it has to begin: those after it have a
 * start each, and carry what is left with it. Shares are counted in 2^-40, rounded up. */
static bool can_store(const attainable_work *w, const attainable *x, int64_t stores, int64_t cycles)
{
    const int64_t all = INT64_C(1) << 40, of_results = (int64_t)((__int128)w->stored_bytes * 1000 / x->bytes_per_kcycle);
    int64_t stored = 0;
    for (int64_t left = stores; left > 0; left--) {
        int64_t rest = (int64_t)((__int128)of_results * (all - stored) / all),
                multiplied = cycles - w->first_loads * x->start_cycles - left * x->start_cycles - rest;
        if (multiplied <= 0)
            return false;
        stored = (int64_t)smaller((__int128)multiplied * all / w->stored_mac_cycles + 1, all);
        if (stored == all)
            return true;
    }
    return false;
}

/* The least cycles of so many stores, at least `low`, where `high` is enough. */
static int64_t cycles_of_stores(const attainable_work *w, const attainable *x, int64_t stores, int64_t low, int64_t high)
{
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (can_store(w, x, stores, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* More stores wait less, and have more starts. Each one more gains less than the one before, by the factor of results to products: who
 * gained nothing so often gains nothing later. 0 says nothing: so many stores are not tried, each takes as many steps as there are. */
static int64_t waits_of(const target *t, const attainable_work *w, const attainable *x, int64_t carried)
{
    enum { IN_VAIN = 64, MOST_STORES = 512 };
    int64_t best = INT64_MAX, of_best = 0,
            most = x->products + (int64_t)((__int128)w->stored_bytes * 1000 / x->bytes_per_kcycle) + x->start_cycles;
    for (int64_t stores = 1;; stores++) {
        attainable of = {.starts = w->loads + stores, .start_cycles = x->start_cycles};
        count_rows(t, w, &of);
        int64_t copies = of.starts * of.start_cycles + of.row_cycles + carried;
        if (copies >= best || stores - of_best > IN_VAIN)
            return best;
        if (stores > MOST_STORES)
            return 0;
        int64_t cycles = larger(copies, cycles_of_stores(w, x, stores, 0, most + stores * x->start_cycles));
        of_best = cycles < best ? stores : of_best;
        best = smaller(best, cycles);
    }
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
    int64_t ends = larger(w->loads > 0, w->first_loads) + (w->stores > 0); /* the first copies and the last one, of a byte at least */
    carried /= x.bytes_per_kcycle;
    if (timing_by_rates(preset)) {
        count_rows(t, w, &x);
        x.partial_cycles = partial_of(t, w, &x);
        carried += x.partial_cycles;
    }
    x.copies = x.starts * x.start_cycles + x.row_cycles + carried;
    x.products = ends * x.start_cycles + macs;
    if (timing_by_rates(preset) && w->stores == 1 && w->stored_bytes > 0 && w->stored_mac_cycles > 0)
        x.waits = waits_of(t, w, &x, carried);
    x.cycles = larger(x.copies, larger(x.products, x.waits));
    return x;
}
