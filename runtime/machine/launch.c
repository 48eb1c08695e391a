#include "runtime/machine/launch.h"

#include "codegen/command.h"

enum { STREAMS = sizeof((binary_kernel *)NULL)->streams / sizeof *((binary_kernel *)NULL)->streams };

size_t launch_conditions(const binary_kernel *k)
{
    size_t count = 0;
    for (int c = 0; c < STREAMS; c++)
        for (size_t i = 0; i < k->streams[c].count; i++)
            count += k->streams[c].commands[i].op == OP_GUARD;
    return count;
}

/* The input whose number a condition reads; port_count: none. */
static uint32_t port_of(const binary_kernel *k, const command *guard)
{
    uint32_t i = 0;
    while (i < k->port_count &&
           (k->ports[i].direction != PORT_IN || k->ports[i].space != PORT_HBM || k->ports[i].address != command_get(guard, GUARD_BASE)))
        i++;
    return i;
}

bool launch_lets_run(const binary_kernel *k, const command *guard, const unsigned char *const *numbers)
{
    uint32_t number = port_of(k, guard);
    const unsigned char *bytes = number < k->port_count ? numbers[number] : NULL;
    if (!bytes)
        return true;
    int64_t bits = command_get(guard, GUARD_BITS);
    uint64_t value = 0, most = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
    for (int64_t i = bits / 8; i-- > 0;)
        value = value << 8 | bytes[i];
    return ((value - (uint64_t)command_get(guard, GUARD_FIRST)) & most) <= (uint64_t)command_get(guard, GUARD_SPAN);
}

size_t launch_hold(const binary_kernel *k, const unsigned char *const *numbers, bool *held)
{
    size_t condition = 0, more = 0;
    for (int c = 0; c < STREAMS; c++) {
        size_t skipped = 0; /* commands from here on that do not run */
        for (size_t i = 0; i<k->streams[c].count; i++, skipped -= skipped> 0) {
            const command *now = &k->streams[c].commands[i];
            if (now->op != OP_GUARD)
                continue;
            bool runs = skipped == 0 && launch_lets_run(k, now, numbers);
            if (skipped == 0 && !runs)
                skipped = (size_t)command_get(now, GUARD_COMMANDS) + 1;
            more += runs && !held[condition];
            held[condition] = held[condition] || runs;
            condition++;
        }
    }
    return more;
}
