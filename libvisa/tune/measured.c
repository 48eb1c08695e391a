#include "libvisa/tune/measured.h"

#include "runtime/timing/measured_cost.h"
#include "support/integer.h"

enum { PER_THOUSAND = 1000 };

int64_t measured_start_cycles(void)
{
    return measured_costs_of()->dma_start_cycles;
}

/* The first command, the copy after an empty queue, and the end. */
int64_t measured_ends_cycles(void)
{
    const measured_costs *k = measured_costs_of();
    return k->first_command_cycles + k->dma_idle_cycles + k->end_sync_cycles;
}

int64_t measured_step_cycles(void)
{
    return measured_costs_of()->step_cycles;
}

int64_t measured_pass_cycles(measured_pass kind, int64_t documented)
{
    const measured_costs *k = measured_costs_of();
    int64_t base = kind == MEASURED_CONTRACTION ? k->contraction_base_cycles
                   : kind == MEASURED_SWITCH    ? k->switch_base_cycles
                                                : k->pass_base_cycles;
    return documented == 0 ? 0 : base + measured_cycles_of(documented);
}

/* Of runs of so many bytes one after the other, how many of a thousand begin inside a block. */
static int64_t inside_permille(int64_t run, int64_t block)
{
    return PER_THOUSAND - gcd(run, block) * PER_THOUSAND / block;
}

int64_t measured_copy_cycles(const target *t, const measured_copy *c)
{
    const measured_costs *k = measured_costs_of();
    int64_t block = t->hbm_block_bytes, all = c->pieces * c->bytes * c->slices; /* with padding, of which a store writes nothing */
    all = c->is_store ? smaller(all, c->distinct) : all;
    int64_t runs = larger(1, all / larger(1, c->run)), blocks = larger(all, runs * round_up(c->run, block)),
            rate = measured_rate(t, c->engines, c->run);
    if (!c->is_aligned && c->run >= block)
        blocks += blocks / PER_THOUSAND * (k->unaligned_permille - PER_THOUSAND) * inside_permille(c->run, block) / PER_THOUSAND;
    int64_t cycles = blocks / rate;
    if (!c->is_store && all > c->distinct)
        cycles = larger(cycles, blocks / block / larger(1, c->clusters) * k->repeated_block_millicycles / PER_THOUSAND);
    if (c->is_store && !c->is_aligned)
        cycles = larger(cycles, runs * k->partial_write_millicycles / PER_THOUSAND);
    return k->dma_start_cycles + cycles;
}
