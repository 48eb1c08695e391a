/* Indirect DMA: cells are copied with the types with which they were written; the list's cells are numbers. */
#include "runtime/engine/indirect.h"

#include "runtime/field/engine.h"
#include "runtime/field/inputs.h"
#include "runtime/machine/walk.h"

enum { ELEMENT_BITS = 32 };

static walk walk_of(const copy_command *k, const copy_side *s)
{
    walk w = {.count = k->count, .base = s->base};
    for (unsigned i = 0; i < k->count; i++) {
        w.size[i] = k->size[i];
        w.stride[i] = s->stride[i];
    }
    return w;
}

static bool place_of(const field_machine *m, const copy_side *s, int64_t address, int64_t bytes, field_place *out)
{
    const target *t = m->plans->target;
    bool hbm = s->memory == COPY_HBM;
    int64_t window = hbm ? t->hbm_chip_stride_bytes : t->dm_slice_stride_bytes, count = hbm ? t->chips : m->plans->unit_count;
    if (address < 0 || address / window >= count ||
        (hbm ? address % window > t->hbm_bytes_per_chip - bytes : !target_unit_holds(t, address / window, address % window, bytes)))
        return false;
    *out = (field_place){hbm ? FIELD_HBM : FIELD_DM, address / window, address % window * 8};
    return true;
}

static bool outside(const command *c, const copy_side *s, int64_t address, int64_t bytes, fault *f)
{
    return fault_set(f, E_RUN_ACCESS, c, "outside %s: address %lld (0x%llx), size %lld bytes", s->memory == COPY_HBM ? "HBM" : "DM",
                     (long long)address, (unsigned long long)address, (long long)bytes);
}

/* An i32 of a list, or its count, as the number that came in. */
static bool number_at(field_machine *m, const command *c, const copy_side *s, int64_t address, int64_t step, int64_t *out, fault *f)
{
    field_place at;
    field_value v;
    field_unknowns unknowns = {.seed = m->seed, .key = field_hash((uint64_t)address, (uint64_t)step)};
    if (!place_of(m, s, address, ELEMENT_BITS / 8, &at))
        return outside(c, s, address, ELEMENT_BITS / 8, f);
    field_memory_read(field_memory_of(m, &at), at.bit, DTYPE_I32, 1, 1, &v, &unknowns);
    if (field_number(v) < 0)
        return fault_set(f, E_RUN_INDEX, c, "an element of the list is no number that came in: address %lld", (long long)address);
    *out = field_number(v);
    return true;
}

/* Packet after packet, as the engine does it. */
bool field_indirect_run(field_machine *m, const field_event *e, fault *f)
{
    const command *c = e->commands;
    copy_command k = copy_command_read(c);
    walk from = walk_of(&k, &k.source), to = walk_of(&k, &k.destination), list = walk_of(&k, &k.list);
    int64_t steps, bytes = k.packet_bytes, taken = INT64_MAX;
    if (!walk_positions(&from, &steps))
        return fault_set(f, E_RUN_CHAIN, c, "the product of the entry sizes overflows");
    if (k.counted && !number_at(m, c, &k.front, k.front.base, 0, &taken, f))
        return false;
    walk_cursor a, b, l;
    walk_start(&from, &a);
    walk_start(&to, &b);
    walk_start(&list, &l);
    for (int64_t i = 0; i < steps; i++) {
        field_place origin, target_place;
        int64_t x = walk_step(&from, &a), y = walk_step(&to, &b), at = walk_step(&list, &l), element, moved;
        if (!number_at(m, c, &k.list, at, i, &element, f) || !indirect_moves(c, &k, element, i, &moved, f))
            return false;
        x += k.source.moved ? moved : 0;
        y += k.destination.moved ? moved : 0;
        if (!place_of(m, &k.source, x, bytes, &origin))
            return outside(c, &k.source, x, bytes, f);
        if (!place_of(m, &k.destination, y, bytes, &target_place))
            return outside(c, &k.destination, y, bytes, f);
        if (!field_memory_copy(field_memory_of(m, &target_place), target_place.bit, field_memory_of(m, &origin), origin.bit, bytes * 8))
            return fault_memory(f, c, "HBM and DM");
        if (k.counted && copy_list_number(&k, at, m->plans->target->hbm_chip_stride_bytes) >= taken &&
            !field_memory_clear(field_memory_of(m, &target_place), target_place.bit, bytes * 8))
            return fault_memory(f, c, "HBM and DM");
    }
    return true;
}
