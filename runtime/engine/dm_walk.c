#include "runtime/engine/dm_walk.h"

static bool inside_dm(const walk *in_bits, const target *t, const command *c, unsigned bits, const char *verb, fault *f)
{
    int64_t counters[WALK_MAX_LOOPS];
    walk_address address;
    if (!walk_first_outside(in_bits, 0, t->dm_bytes_per_slice * 8 - bits, counters, &address))
        return true;
    char text[160];
    walk_counters_text(in_bits, counters, text, sizeof text);
    return fault_set(f, E_RUN_ACCESS, c,
                     "%s outside the slice's DM: entry counters %s, address %lld bytes, size %u bits; the DM has "
                     "%lld bytes",
                     verb, text, (long long)(address >> 3) /* floor, also below zero */, bits, (long long)t->dm_bytes_per_slice);
}

bool dm_walk_plan(dm_walk *w, const target *t, const command *c, int64_t base, unsigned bits, command_column size, command_column stride,
                  const char *verb, fault *f)
{
    walk in_bits = {.count = c->entry_count, .base = base * 8};
    for (unsigned i = 0; i < in_bits.count; i++) {
        in_bits.size[i] = command_entry(c, i, size);
        in_bits.stride[i] = command_entry(c, i, stride) * bits;
    }
    if (!walk_positions(&in_bits, &w->positions))
        return fault_set(f, E_RUN_CHAIN, c, "the product of the entry sizes overflows");
    if (!inside_dm(&in_bits, t, c, bits, verb, f))
        return false;
    walk_address low, high;
    walk_bounds(&in_bits, &low, &high);
    w->low_byte = (int64_t)low / 8;
    w->span_bytes = ((int64_t)high + bits + 7) / 8 - w->low_byte;
    w->bits = bits;
    w->elements = in_bits;
    w->elements.base = (in_bits.base - w->low_byte * 8) / bits;
    for (unsigned i = 0; i < w->elements.count; i++)
        w->elements.stride[i] /= bits;
    walk_merge(&w->elements);
    return true;
}
