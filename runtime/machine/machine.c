#include "runtime/machine/machine.h"

#include <string.h>

#include "runtime/engine/dma.h"
#include "runtime/engine/indirect.h"
#include "runtime/machine/chain.h"
#include "runtime/machine/port.h"
#include "runtime/machine/proof.h"

enum { CONTEXTS = 3, HBM_BLOCK_BYTES = 1 << 20 };

memory *machine_hbm_new(const target *t, arena *a, unsigned char poison, memory_budget *budget)
{
    memory *hbm = ARENA_ARRAY(a, memory, (size_t)t->chips);
    for (int64_t i = 0; i < t->chips; i++)
        memory_init(&hbm[i], t->hbm_bytes_per_chip, HBM_BLOCK_BYTES, poison, budget);
    return hbm;
}

void machine_hbm_free(const target *t, memory *hbm)
{
    for (int64_t i = 0; hbm && i < t->chips; i++)
        memory_free(&hbm[i]);
}

static int64_t unit_count_of(const target *t)
{
    return t->chips * t->clusters_per_chip * t->slices_per_cluster;
}

static void dm_init(const target *t, unsigned char poison, memory_budget *budget, memory *dm)
{
    memory_init(dm, t->spm_base_bytes + t->spm_bytes_per_pe, t->dm_bytes_per_slice, poison, budget);
}

memory *machine_dm_new(const target *t, arena *a, unsigned char poison, memory_budget *budget)
{
    memory *dm = ARENA_ARRAY(a, memory, (size_t)unit_count_of(t));
    for (int64_t i = 0; i < unit_count_of(t); i++)
        dm_init(t, poison, budget, &dm[i]);
    return dm;
}

void machine_dm_free(const target *t, memory *dm)
{
    for (int64_t i = 0; dm && i < unit_count_of(t); i++)
        memory_free(&dm[i]);
}

/* Plans of stages may want more than the arena aligns for. Whatever is in it before it is planned: most of it stays untouched. */
static chain *new_chain(arena *a)
{
    uintptr_t wanted = _Alignof(chain), at = (uintptr_t)arena_alloc_unset(a, sizeof(chain) + wanted - ARENA_ALIGNMENT);
    return (chain *)((at + wanted - 1) / wanted * wanted);
}

machine *machine_new(const target *t, const binary_kernel *k, arena *a, const machine_options *options)
{
    machine *m = ARENA_NEW(a, machine);
    m->target = t;
    m->kernel = k;
    m->arena = a;
    if (options)
        m->options = *options;
    m->proof = m->options.prove ? ARENA_NEW(a, proof) : NULL;
    m->budget.limit_bytes = m->options.memory_limit_bytes;
    unsigned char poison = m->options.poison;
    m->unit_count = unit_count_of(t);
    bool runs = !m->options.sizes_only;
    m->units = runs ? ARENA_ARRAY(a, machine_unit, (size_t)m->unit_count) : NULL;
    for (int64_t i = 0; runs && i < m->unit_count; i++) {
        if (m->options.dm) /* lent until the machine is freed */
            m->units[i].dm = m->options.dm[i];
        else
            dm_init(t, poison, &m->budget, &m->units[i].dm);
        memory_init(&m->units[i].trf, t->trf_bytes, t->trf_bytes, poison, &m->budget);
        memory_init(&m->units[i].trf_signs, t->trf_bytes, t->trf_bytes, poison, &m->budget);
        memory_init(&m->units[i].vrf, t->vrf_bytes, t->vrf_bytes, poison, &m->budget);
    }
    m->hbm = m->options.hbm ? m->options.hbm : runs ? machine_hbm_new(t, a, poison, &m->budget) : NULL;
    m->coords = ARENA_ARRAY(a, int64_t, k->axis_count);
    m->chain = new_chain(a);
    stream_ports_init(m);
    return m;
}

void machine_free(machine *m)
{
    for (int64_t i = 0; m->units && i < m->unit_count; i++) {
        if (m->options.dm)
            m->options.dm[i] = m->units[i].dm;
        else
            memory_free(&m->units[i].dm);
        memory_free(&m->units[i].trf);
        memory_free(&m->units[i].trf_signs);
        memory_free(&m->units[i].vrf);
    }
    if (!m->options.hbm)
        machine_hbm_free(m->target, m->hbm);
    stream_ports_free(m);
}

/* The next command of a context, or NULL at its end. */
static const command *next_command(const machine *m, int number)
{
    return m->done[number] < m->kernel->streams[number].count ? &m->kernel->streams[number].commands[m->done[number]] : NULL;
}

static bool is_blocked(const machine *m, const command *c)
{
    return c->op == OP_WAIT && m->done[command_get(c, WAIT_CONTEXT)] < (size_t)command_get(c, WAIT_COUNT);
}

void unit_mask_select(unit_mask *units, const command *c)
{
    *units = (unit_mask){.set = true,
                         .chips = (unsigned)command_get(c, UNITS_CHIPS),
                         .clusters = (unsigned)command_get(c, UNITS_CLUSTERS),
                         .slices = {(uint64_t)command_get(c, UNITS_SLICES_0), (uint64_t)command_get(c, UNITS_SLICES_1),
                                    (uint64_t)command_get(c, UNITS_SLICES_2), (uint64_t)command_get(c, UNITS_SLICES_3)}};
}

size_t unit_mask_list(const machine *m, const unit_mask *units, int64_t only, int64_t *list)
{
    const target *t = m->target;
    size_t count = 0;
    for (int64_t chip = 0; chip < t->chips; chip++)
        for (int64_t cluster = 0; cluster < t->clusters_per_chip; cluster++)
            for (int64_t slice = 0; slice < t->slices_per_cluster; slice++)
                if (units->chips >> chip & 1 && units->clusters >> cluster & 1 && units->slices[slice / 64 % 4] >> slice % 64 & 1 &&
                    (only < 0 || only == chip * t->clusters_per_chip + cluster))
                    list[count++] = machine_unit_index(m, chip, cluster, slice);
    return count;
}

/* May these commands stand in this context? */
static bool context_allows(const command *commands, size_t count, int number, fault *f)
{
    for (size_t i = 0; i < count; i++)
        if (!(command_row_of(commands[i].op)->contexts >> number & 1))
            return fault_set(f, E_RUN_CHAIN, &commands[i], "may not stand in the %s context", context_name((context)number));
    return true;
}

static bool run_chain(machine *m, const command *c, int number, fault *f)
{
    chain *k = m->chain;
    size_t available = m->kernel->streams[number].count - m->done[number];
    if (!chain_plan(k, m, &m->masks[number], c, available, f) || !context_allows(c, k->count, number, f) || !chain_run(k, f))
        return false;
    m->done[number] += k->count;
    proof_chain(m, number, k, m->done[number]);
    return true;
}

/* A guard's commands are a copy or a whole chain, after further guards: whether they run or not. */
static bool guards_whole(const command *c, size_t available, fault *f)
{
    size_t guards = 1, count = 1;
    while (guards < available && c[guards].op == OP_GUARD)
        guards++;
    if (guards == available)
        return fault_set(f, E_RUN_CHAIN, c, "a guard with nothing after it");
    if (!command_is_copy(&c[guards]) && !chain_extent(&c[guards], available - guards, &count, f))
        return false;
    int64_t commands = command_get(c, GUARD_COMMANDS), whole = (int64_t)(guards - 1 + count);
    return commands == whole ||
           fault_set(f, E_RUN_CHAIN, c, "a guard of %lld commands, where the next copy or chain, with the guards in front of it, has %lld",
                     (long long)commands, (long long)whole);
}

bool guard_check(const machine *m, int number, const command *c, fault *f)
{
    int64_t bits = command_get(c, GUARD_BITS);
    if (bits != 8 && bits != 32 && bits != 64)
        return fault_set(f, E_RUN_CHAIN, c, "a guard reads 8, 32 or 64 bits, not %lld", (long long)bits);
    return guards_whole(c, m->kernel->streams[number].count - m->done[number], f);
}

/* Where its number is in the range the commands after it run, else they are complete with it. */
static bool run_guard(machine *m, const command *c, int number, fault *f)
{
    unsigned char bytes[8] = {0};
    int64_t bits = command_get(c, GUARD_BITS), base = command_get(c, GUARD_BASE), left = command_get(c, GUARD_COMMANDS);
    if (!guard_check(m, number, c, f))
        return false;
    if (base > m->target->hbm_bytes_per_chip - bits / 8)
        return fault_set(f, E_RUN_ACCESS, c, "reads its number outside HBM: address %lld, size %lld bytes", (long long)base,
                         (long long)bits / 8);
    if (!memory_read(&m->hbm[0], base, bytes, bits / 8))
        return fault_memory(f, c, "HBM");
    proof_read(m, &m->hbm[0], base, bits / 8);
    uint64_t value = 0, most = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
    for (int i = 8; i-- > 0;)
        value = value << 8 | bytes[i];
    bool holds = ((value - (uint64_t)command_get(c, GUARD_FIRST)) & most) <= (uint64_t)command_get(c, GUARD_SPAN);
    m->done[number] += holds ? 0 : (size_t)left;
    return true;
}

/* One command, or the whole chain that it begins. */
static bool run_command(machine *m, const command *c, int number, fault *f)
{
    if (!context_allows(c, 1, number, f))
        return false;
    switch (c->op) {
    case OP_WAIT: proof_wait(m, number, (int)command_get(c, WAIT_CONTEXT), (size_t)command_get(c, WAIT_COUNT)); break;
    case OP_UNITS: unit_mask_select(&m->masks[number], c); break;
    case OP_GUARD:
        if (!run_guard(m, c, number, f))
            return false;
        break;
    case OP_DMA:
        if (!dma_run(m, c, number, f))
            return false;
        break;
    case OP_DMA_INDIRECT:
        if (!indirect_run(m, c, number, f))
            return false;
        break;
    default: return run_chain(m, c, number, f);
    }
    m->done[number]++;
    return true;
}

static void report_deadlock(const machine *m, diag_list *diags)
{
    diag *d = NULL;
    for (int i = 0; i < CONTEXTS; i++) {
        const command *c = next_command(m, i);
        if (!c)
            continue;
        int other = (int)command_get(c, WAIT_CONTEXT);
        const char *text = arena_printf(diags->arena,
                                        "the %s context, offset 0x%x, line %u, waits for %lld commands of the %s "
                                        "context, which has completed %zu of %zu",
                                        context_name((context)i), c->offset, c->line, (long long)command_get(c, WAIT_COUNT),
                                        context_name((context)other), m->done[other], m->kernel->streams[other].count);
        if (d)
            diag_note(diags, d, SRC_NOWHERE, "%s", text);
        else
            d = diag_add(diags, E_RUN_DEADLOCK, SRC_NOWHERE, "kernel %s: %s", m->kernel->name, text);
    }
}

static void tell_progress(const machine *m)
{
    size_t done = 0, total = 0;
    for (int i = 0; i < CONTEXTS; i++) {
        done += m->done[i];
        total += m->kernel->streams[i].count;
    }
    m->options.progress(m->options.progress_context, done, total);
}

bool machine_run(machine *m, diag_list *diags)
{
    fault f = {0};
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < CONTEXTS; i++) {
            int number = (i + (int)m->options.first_context) % CONTEXTS;
            for (const command *c; (c = next_command(m, number)) && !is_blocked(m, c); moved = true) {
                if (!run_command(m, c, number, &f)) {
                    fault_report(&f, m->kernel->name, diags);
                    return false;
                }
                if (m->options.progress)
                    tell_progress(m);
            }
        }
    }
    if (next_command(m, 0) || next_command(m, 1) || next_command(m, 2)) {
        report_deadlock(m, diags);
        return false;
    }
    return true;
}
