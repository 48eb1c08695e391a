#include "runtime/timing/cycles.h"

#include "codegen/copy_command.h"
#include "runtime/machine/machine_state.h"
#include "runtime/timing/schedule.h"

/* Of the commands of a context, one after the other, up to the first that is not legal; saturates. */
static uint64_t context_cycles(machine *m, int number, arena *a)
{
    const command *commands = m->kernel->streams[number].commands;
    size_t count = m->kernel->streams[number].count;
    uint64_t cycles = 0;
    unit_mask units = m->masks[number];
    for (size_t at = 0, length; at < count; at += length) {
        const command *c = &commands[at];
        fault f = {0};
        chain *k = m->chain;
        duration time = {0};
        length = 1;
        if (c->op == OP_WAIT || c->op == OP_UNITS || c->op == OP_GUARD) {
            if (c->op == OP_UNITS)
                unit_mask_select(&units, c);
            continue;
        }
        if (!command_is_copy(c) && !chain_plan(k, m, &units, c, count - at, &f))
            return cycles;
        length = command_is_copy(c) ? 1 : k->count;
        bool known = command_is_copy(c) ? duration_of_dma(m->target, c, TIMING_DOCUMENTED, NULL, a, &time, &f)
                                        : duration_of_chain(k, TIMING_DOCUMENTED, &time, &f);
        if (__builtin_add_overflow(cycles, known ? (uint64_t)time.total : UINT64_MAX, &cycles))
            return UINT64_MAX;
    }
    return cycles;
}

static uint64_t serial_cycles(const target *t, const binary_kernel *k, arena *a)
{
    arena *scratch = arena_new_inside(a);
    machine *m = machine_new(t, k, scratch, &(machine_options){.sizes_only = true});
    uint64_t cycles = 0;
    for (int i = 0; i < 3; i++)
        if (__builtin_add_overflow(cycles, context_cycles(m, i, scratch), &cycles))
            cycles = UINT64_MAX;
    machine_free(m);
    arena_free(scratch);
    return cycles;
}

static const char *count_text(uint64_t cycles, arena *a)
{
    return cycles == UINT64_MAX ? "more cycles than can be counted" : arena_printf(a, "%llu cycles", (unsigned long long)cycles);
}

bool cycles_within(const target *t, const binary_kernel *k, uint64_t most, arena *a, uint64_t *cycles, diag_list *diags)
{
    *cycles = serial_cycles(t, k, a);
    if (*cycles <= most)
        return true;
    schedule s;
    diag_list silent; /* a schedule that cannot be made is longer than anybody waits for */
    diag_list_init(&silent, a);
    if (*cycles < UINT64_MAX && schedule_make(t, k, TIMING_DOCUMENTED, a, &silent, &s))
        *cycles = (uint64_t)s.cycles;
    if (*cycles <= most)
        return true;
    diag *d = diag_add(diags, E_RUN_CYCLES, SRC_NOWHERE, "kernel %s takes %s of the machine; a run may take %llu", k->name,
                       count_text(*cycles, a), (unsigned long long)most);
    diag_help(diags, d, "to run it all the same: --max-cycles=%llu", *cycles < UINT64_MAX ? (unsigned long long)*cycles : 0ull);
    return false;
}
