#include "runtime/timing/measured_cost.h"

#include "codegen/copy_command.h"
#include "runtime/engine/vector_slices.h"
#include "support/integer.h"

static const measured_costs costs = {
#define MEASURED_COST(field, value, unit, source) .field = (value),
#include "target/measured_cost.def"
#undef MEASURED_COST
};

const measured_costs *measured_costs_of(void)
{
    return &costs;
}

/* Rounded, without loss for what fits. */
static int64_t times_milli(int64_t count, int64_t milli)
{
    __int128 all = ((__int128)count * milli + 500) / 1000;
    return all > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)all;
}

int64_t measured_cycles_of(int64_t documented)
{
    return times_milli(documented, costs.millicycles_per_step);
}

/* "contraction: 1090 + 960 x 2.2": documented cycles of the slowest stage. */
void measured_cost_of_chain(const chain *c, duration *d)
{
    arena *a = c->machine->arena;
    bool contracts = chain_part(c, &stage_contract) != NULL;
    int64_t in = d->items * d->item_cycles, out = d->beats * d->beat_cycles, slowest = larger(in, out),
            around = d->routes * d->route_cycles;
    const vector_slices *s = chain_part(c, &stage_vector_slices);
    const char *what = chain_trf_store(c) ? "TRF fill" : contracts ? "contraction" : "pass";
    d->fill = contracts ? costs.contraction_base_cycles : costs.pass_base_cycles;
    if (contracts)
        slowest = larger(slowest, d->items * larger(d->tiling, 1) * costs.step_cycles);
    if (around > slowest) {
        slowest = around;
        d->fill = costs.switch_base_cycles;
        what = "switch";
    }
    d->fill += s ? (s->ring - 1) * costs.reduce_slice_cycles : 0;
    d->drains = false;
    d->total = d->fill + measured_cycles_of(slowest);
    d->text = arena_printf(a, "%s: %lld + %lld x %lld.%03lld", what, (long long)d->fill, (long long)slowest,
                           (long long)(costs.millicycles_per_step / 1000), (long long)(costs.millicycles_per_step % 1000));
}

/* Bytes of the blocks that the pieces of a copy touch, where they begin at one. */
static int64_t block_bytes(const target *t, const dma_cost *k, int64_t bytes)
{
    return k->piece_bytes == 0 ? bytes : larger(bytes, round_up(k->piece_bytes, t->hbm_block_bytes) * larger(k->pieces, 1));
}

int64_t measured_rate(const target *t, int64_t engines, int64_t run_bytes)
{
    int64_t doublings = 0;
    for (int64_t run = t->hbm_block_bytes; 2 * run <= run_bytes && doublings < 16; run *= 2)
        doublings++;
    return larger(1, engines * costs.engine_bytes_per_kcycle / 1000 * (1000 - doublings * costs.longer_run_permille) / 1000);
}

void measured_cost_of_dma(const target *t, const command *c, arena *a, duration *d)
{
    const dma_cost *k = &d->dma;
    int64_t bytes = k->steps * copy_command_read(c).packet_bytes, engines = larger(k->engines, 1);
    int64_t blocks = block_bytes(t, k, bytes), rate = measured_rate(t, engines, k->piece_bytes);
    int64_t inside = k->walked ? (int64_t)((__int128)k->unaligned_pieces * k->steps / k->walked) : 0;
    if (inside > 0 && k->piece_bytes >= t->hbm_block_bytes) /* a request touches two blocks */
        blocks += times_milli(blocks, (costs.unaligned_permille - 1000) * smaller(inside, k->pieces) / larger(k->pieces, 1));
    int64_t most = (blocks + rate / 2) / rate;
    d->bound = BOUND_DMA;
    d->fill = costs.dma_start_cycles;
    d->text = arena_printf(a, "copy: %lld + %lld/%lld (%lld engines)", (long long)d->fill, (long long)blocks, (long long)rate,
                           (long long)engines);
    int64_t repeated =
        k->to_dm && k->copies > 1 ? times_milli(blocks / t->hbm_block_bytes / larger(k->clusters, 1), costs.repeated_block_millicycles) : 0;
    int64_t partial = k->to_dm ? 0 : times_milli(k->partial_writes, costs.partial_write_millicycles);
    if (larger(repeated, partial) > most) {
        most = larger(repeated, partial);
        d->bound = BOUND_HBM;
        d->text = arena_printf(a, "%s: %lld + %lld", repeated > partial ? "replicated load" : "store", (long long)d->fill, (long long)most);
    }
    d->total = d->fill + most;
}
