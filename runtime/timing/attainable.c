#include "runtime/timing/attainable.h"

#include "runtime/timing/hbm_address.h"
#include "runtime/timing/measured_cost.h"
#include "support/integer.h"

/* Of a cluster's units, one for so many slices, those that have a slice which works. */
static int64_t units_at_work(const target *t, const attainable_work *w, int64_t slices_of_unit)
{
    int64_t all = t->slices_per_cluster / slices_of_unit;
    return w->slices > 0 ? smaller(all, w->slices) : all;
}

static int64_t engines_at_work(const target *t, const attainable_work *w)
{
    return t->clusters_per_chip * units_at_work(t, w, t->dm_slices_per_dmn * t->dma_dmns_per_engine);
}

/* Bytes in 1000 cycles of a chip: all its DMA engines, all its DMNs, all its HBM channels; the slowest. */
static int64_t documented_bytes_per_kcycle(const target *t, const attainable_work *w)
{
    int64_t dmns = t->clusters_per_chip * units_at_work(t, w, t->dm_slices_per_dmn);
    int64_t engines = engines_at_work(t, w) * t->dma_request_bytes * 1000, delivered = dmns * t->dmn_bytes_per_cycle * 1000;
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

/* Shares of all products, results and bytes are counted in 2^-40. */
static const int64_t ALL = INT64_C(1) << 40;

static int64_t part_of(int64_t cycles, int64_t share)
{
    return (int64_t)((__int128)cycles * share / ALL);
}

static int64_t carried_cycles(const attainable *x, int64_t bytes)
{
    return (int64_t)((__int128)bytes * 1000 / x->bytes_per_kcycle);
}

/* Copies that end before the first product which a result waits for. */
static int64_t loads_before(const attainable_work *w)
{
    int64_t operands = 0;
    while (operands < ATTAINABLE_OPERANDS && w->operand_bytes[operands] > 0)
        operands++;
    return larger(w->first_loads, operands);
}

/* Copies that bring the operands, a part of one of them each, and the cycles that their bytes take: of all, of all but the largest, and
 * with what is in fewer products than the rest. */
typedef struct operand_loads {
    int64_t operands, count, of_all, of_others, loaded;
} operand_loads;

/* Can all products be done in so many cycles? What a copy brings is there when it ends, and a share of an operand is in no larger share of
 * the products: those that need one of the copies from the m-th on are what is missing of an operand before it, at least, and they come
 * after it. So it ends early, and copies up to it have few bytes; the most that they can have leaves the least to the next ones. */
static bool can_multiply(const attainable_work *w, const attainable *x, const operand_loads *l, int64_t cycles)
{
    int64_t complete = 0; /* of the operand that has the least of itself there */
    for (int64_t m = 1; m <= l->count; m++) {
        int64_t loaded = cycles - m * x->start_cycles - part_of(w->stored_mac_cycles, ALL - complete);
        if (loaded < 0 || (m == l->count && loaded < l->loaded))
            return false;
        loaded = smaller(loaded, l->of_all);
        if (m < l->operands) /* of one of them there is nothing */
            complete = 0;
        else if (m == l->count - 1) { /* the last copy has one of them only */
            if (loaded < l->of_others)
                return false;
            complete = (int64_t)((__int128)(loaded + 1 - l->of_others) * ALL / larger(1, l->of_all - l->of_others));
        } else
            complete = (int64_t)((__int128)(loaded + 1) * ALL / larger(1, l->of_all));
        complete = smaller(complete, ALL);
    }
    return true;
}

/* The end of the last product. */
static int64_t end_of_products(const attainable_work *w, const attainable *x, const operand_loads *l)
{
    int64_t low = loads_before(w) * x->start_cycles + w->stored_mac_cycles, high = low + l->count * x->start_cycles + l->loaded;
    if (l->count == 0)
        return low;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (can_multiply(w, x, l, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* How results come to be: none before `begins`, in so many cycles for all of them, and the last one not before `ends`. */
typedef struct making {
    int64_t begins, cycles, ends;
} making;

/* Can `stores` copies write all results in so many cycles? Each takes as much as is made when it has to begin: those after it have a start
 * each, and carry what is left with it. */
static bool can_store(const attainable_work *w, const attainable *x, const making *of, int64_t stores, int64_t cycles)
{
    const int64_t of_results = carried_cycles(x, w->stored_bytes);
    int64_t stored = 0;
    for (int64_t left = stores; left > 0; left--) {
        int64_t begins = cycles - left * x->start_cycles - part_of(of_results, ALL - stored), made = begins - of->begins;
        if (made <= 0)
            return false;
        stored = (int64_t)smaller((__int128)made * ALL / of->cycles + 1, begins >= of->ends ? ALL : ALL - 1);
        if (stored == ALL)
            return true;
    }
    return false;
}

/* The least cycles of so many stores, at least `low`, where `high` is enough. */
static int64_t cycles_of_stores(const attainable_work *w, const attainable *x, const making *of, int64_t stores, int64_t low, int64_t high)
{
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (can_store(w, x, of, stores, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* So many copies bring all tensors that are loaded, `l` of them the operands.
 * More stores wait less, and have more starts. Each one more gains less than the one before, by the factor of results to what makes them:
 * who gained nothing so often gains nothing later. 0 says nothing: so many stores are not tried, each takes as many steps as there are.
 * `least` is known of fewer copies: what they cannot beat is not looked at. */
static int64_t waits_of_loads(const target *t, const attainable_work *w, const attainable *x, int64_t carried, int64_t loads,
                              const operand_loads *l, int64_t least)
{
    enum { IN_VAIN = 64, MOST_STORES = 512 };
    const int64_t start = x->start_cycles, of_results = carried_cycles(x, w->stored_bytes);
    /* where each operand comes in one copy, all products are after the last of them; and all results after the last copy of all */
    making products = {l->count > 0 && l->count == l->operands ? l->count * start + l->loaded : loads_before(w) * start,
                       w->stored_mac_cycles, end_of_products(w, x, l)},
           results = {loads * start + carried_cycles(x, w->bytes - w->stored_bytes), loads == w->loads ? w->made_cycles : 0, 0};
    results.ends = results.begins + results.cycles;
    int64_t best = INT64_MAX, of_best = 0, most = larger(products.ends, results.ends) + start + of_results;
    for (int64_t stores = 1;; stores++) {
        attainable of = {.starts = loads + stores, .start_cycles = start};
        count_rows(t, w, &of);
        int64_t cycles = of.starts * of.start_cycles + of.row_cycles + carried;
        if (cycles >= smaller(best, least) || stores - of_best > IN_VAIN)
            return smaller(best, least);
        if (stores > MOST_STORES)
            return 0;
        cycles = larger(cycles, cycles_of_stores(w, x, &products, stores, 0, most + stores * start));
        if (results.cycles > 0)
            cycles = larger(cycles, cycles_of_stores(w, x, &results, stores, 0, most + stores * start));
        of_best = cycles < best ? stores : of_best;
        best = smaller(best, cycles);
    }
}

/* The least over all numbers of copies that bring the operands. Of more than MOST_LOADS it is only known that they have a start each. */
static int64_t waits_of(const target *t, const attainable_work *w, const attainable *x, int64_t carried)
{
    enum { MOST_LOADS = 16 };
    operand_loads l = {0};
    int64_t most = 0;
    for (; l.operands < ATTAINABLE_OPERANDS && w->operand_bytes[l.operands] > 0; l.operands++) {
        int64_t of_one = carried_cycles(x, w->operand_bytes[l.operands]);
        l.of_all += of_one;
        most = larger(most, of_one);
    }
    operand_loads any = {0};
    if (l.operands < 2)
        return waits_of_loads(t, w, x, carried, w->loads, &any, INT64_MAX);
    l.of_others = l.of_all - most;
    l.loaded = larger(l.of_all, carried_cycles(x, w->operand_load_bytes));
    l.count = l.operands;
    int64_t best = waits_of_loads(t, w, x, carried, w->loads, &l, INT64_MAX);
    if (best > 0 && w->loads > l.operands) /* another tensor in two copies */
        best = waits_of_loads(t, w, x, carried, w->loads + 1, &l, best);
    for (l.count = l.operands + 1; l.count <= MOST_LOADS && best > 0; l.count++)
        best = waits_of_loads(t, w, x, carried, w->loads + l.count - l.operands, &l, best);
    return best > 0 ? waits_of_loads(t, w, x, carried, w->loads + MOST_LOADS + 1 - l.operands, &any, best) : 0;
}

attainable attainable_of(const target *t, timing_preset preset, const attainable_work *w)
{
    attainable x = {.starts = w->loads + w->stores, .bytes = w->bytes};
    int64_t macs = w->mac_cycles, carried;
    if (preset == TIMING_SCHEDULE)
        return (attainable){0};
    x.start_cycles = t->dma_startup_cycles;
    x.bytes_per_kcycle = documented_bytes_per_kcycle(t, w) * w->chips;
    if (preset == TIMING_MEASURED) {
        x.start_cycles = measured_costs_of()->dma_start_cycles;
        x.bytes_per_kcycle = engines_at_work(t, w) * measured_costs_of()->engine_bytes_per_kcycle * w->chips;
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
