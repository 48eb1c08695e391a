/* DMA Engine: cells are copied with the types with which they were written. */
#include "runtime/engine/dma.h"

#include "codegen/copy_command.h"
#include "runtime/field/engine.h"
#include "support/integer.h"

/* One side: its walk in bytes of the address space of all chips or slices. */
typedef struct side {
    field_space space;
    walk walk;
    int64_t window, count; /* bytes from one memory to the next; memories */
    const target *target;
} side;

static side side_of(const field_machine *m, const command *c, bool destination)
{
    const target *t = m->plans->target;
    bool dm = command_get(c, destination ? DMA_DESTINATION : DMA_SOURCE) != 0;
    side s = {.space = dm ? FIELD_DM : FIELD_HBM};
    s.walk = (walk){.count = c->entry_count, .base = command_get(c, destination ? DMA_DESTINATION_BASE : DMA_SOURCE_BASE)};
    for (unsigned i = 0; i < c->entry_count; i++) {
        s.walk.size[i] = command_entry(c, i, DMA_ENTRY_SIZE);
        s.walk.stride[i] = command_entry(c, i, destination ? DMA_ENTRY_DESTINATION_STRIDE : DMA_ENTRY_SOURCE_STRIDE);
    }
    s.window = dm ? t->dm_slice_stride_bytes : t->hbm_chip_stride_bytes;
    s.count = dm ? m->plans->unit_count : t->chips;
    s.target = t;
    return s;
}

static bool place_of(const side *s, int64_t address, int64_t bytes, field_place *out)
{
    int64_t number = address / s->window, offset = address % s->window;
    if (address < 0 || number >= s->count ||
        (s->space == FIELD_HBM ? offset > s->target->hbm_bytes_per_chip - bytes : !target_unit_holds(s->target, number, offset, bytes)))
        return false;
    *out = (field_place){s->space, address / s->window, address % s->window * 8};
    return true;
}

static bool outside(const command *c, const side *s, int64_t address, int64_t bytes, fault *f)
{
    return fault_set(f, E_RUN_ACCESS, c, "outside %s: address %lld (0x%llx), size %lld bytes", s->space == FIELD_HBM ? "HBM" : "DM",
                     (long long)address, (unsigned long long)address, (long long)bytes);
}

/* The bytes of each memory that a side touches; all of them if that is not simple. */
static void inner_range(const side *s, int64_t bytes, int64_t *low, int64_t *end)
{
    walk inner = {.base = s->walk.base % s->window};
    for (unsigned i = 0; i < s->walk.count; i++)
        if (s->walk.stride[i] % s->window != 0) { /* else from memory to memory */
            inner.size[inner.count] = s->walk.size[i];
            inner.stride[inner.count++] = s->walk.stride[i];
        }
    walk_address from, to;
    walk_bounds(&inner, &from, &to);
    bool simple = from >= 0 && to + bytes <= s->window;
    *low = simple ? (int64_t)from : 0;
    *end = simple ? (int64_t)to + bytes : s->window;
}

bool field_dma_plan(field_machine *m, field_event *e, fault *f)
{
    const command *c = e->commands;
    int64_t bytes = command_get(c, DMA_PACKET_BYTES), packets, unit = m->plans->target->dma_dm_multiple_bytes;
    bool zeros = command_get(c, DMA_SOURCE) == COPY_NONE;
    side from = side_of(m, c, false), to = side_of(m, c, true);
    walk_address low, high, to_low, to_high;
    if (!walk_positions(&from.walk, &packets))
        return fault_set(f, E_RUN_CHAIN, c, "the product of the entry sizes overflows");
    if (bytes > m->plans->target->dma_packet_max_bytes)
        return fault_set(f, E_RUN_CHAIN, c, "packets of %lld bytes are too long", (long long)bytes);
    walk_bounds(&from.walk, &low, &high);
    walk_bounds(&to.walk, &to_low, &to_high);
    if (!zeros && (low < 0 || high + bytes > (INT64_C(1) << 48)))
        return outside(c, &from, (int64_t)(low < 0 ? low : high), bytes, f);
    if (to_low < 0 || to_high + bytes > (INT64_C(1) << 48))
        return outside(c, &to, (int64_t)(to_low < 0 ? to_low : to_high), bytes, f);
    bool aligned = bytes % unit == 0 && to.walk.base % unit == 0;
    for (unsigned i = 0; i < to.walk.count; i++)
        aligned &= to.walk.size[i] == 1 || to.walk.stride[i] % unit == 0;
    bool spm = to.space == FIELD_DM && to.walk.base % to.window >= m->plans->target->spm_base_bytes;
    if (!aligned && !spm && to.space == FIELD_DM && !command_get(c, DMA_GRANULAR))
        return fault_set(f, E_RUN_ACCESS, c, "packet_bytes, base and strides of a DM destination must be multiples of %lld bytes",
                         (long long)unit);
    e->low = (int64_t)to_low;
    e->end = (int64_t)to_high + bytes;
    inner_range(&to, bytes, &e->inner_low, &e->inner_end);
    e->overlaps = !zeros && from.space == to.space && low < e->end && to_low < high + bytes;
    return true;
}

/* Packet after packet, as the engine does it. */
bool field_dma_run(field_machine *m, const field_event *e, fault *f)
{
    const command *c = e->commands;
    int64_t bytes = command_get(c, DMA_PACKET_BYTES), packets;
    side from = side_of(m, c, false), to = side_of(m, c, true);
    bool zeros = command_get(c, DMA_SOURCE) == COPY_NONE;
    walk_positions(&from.walk, &packets);
    walk_cursor a, b;
    walk_start(&from.walk, &a);
    walk_start(&to.walk, &b);
    for (int64_t i = 0; i < packets; i++) {
        field_place origin, target_place;
        int64_t x = walk_step(&from.walk, &a), y = walk_step(&to.walk, &b);
        if (!zeros && !place_of(&from, x, bytes, &origin))
            return outside(c, &from, x, bytes, f);
        if (!place_of(&to, y, bytes, &target_place))
            return outside(c, &to, y, bytes, f);
        field_memory *into = field_memory_of(m, &target_place);
        if (zeros ? !field_memory_zero(into, target_place.bit, bytes * 8)
                  : !field_memory_copy(into, target_place.bit, field_memory_of(m, &origin), origin.bit, bytes * 8))
            return fault_memory(f, c, "HBM and DM");
    }
    return true;
}

/* Elements at the same offset of packets that follow each other: how many there are from packet number `packet` on, which all come from the
 * memory of the first, and how far apart. */
static int64_t along_packets(const side *from, const side *to, const field_cells *of, int64_t packet, int64_t bytes, int64_t *apart)
{
    field_span packets = {packet, 0, of->count};
    int64_t bytes_apart = 0;
    *apart = 0;
    if (of->apart % 8 != 0)
        return 1;
    packets.count = field_walk_follow(&to->walk, packet, bytes, of->apart / 8, of->count, &packets.apart);
    packets.count = packets.count > 1 && from ? field_walk_along(&from->walk, packets, &bytes_apart) : packets.count;
    if (packets.count > 1 && from) {
        field_place first, last;
        int64_t address = field_walk_address(&from->walk, packet);
        if (bytes_apart <= 0 || !place_of(from, address, bytes, &first) ||
            !place_of(from, address + (packets.count - 1) * bytes_apart, bytes, &last) || first.number != last.number)
            return 1;
    }
    *apart = bytes_apart * 8;
    return packets.count;
}

int64_t field_dma_source(const field_machine *m, const field_event *e, const field_cells *of, int64_t limit, field_cells *from)
{
    const command *c = e->commands;
    side origin = side_of(m, c, false), to = side_of(m, c, true);
    bool zeros = command_get(c, DMA_SOURCE) == COPY_NONE;
    int64_t bytes = command_get(c, DMA_PACKET_BYTES), address = of->at.number * to.window + of->at.bit / 8, apart;
    if (to.space != of->at.space || address < e->low || address >= e->end)
        return -1;
    int64_t packet = field_walk_find(&to.walk, address, bytes, limit);
    if (packet < 0)
        return packet;
    int64_t offset_bits = (address - field_walk_address(&to.walk, packet)) * 8 + of->at.bit % 8, left = bytes * 8 - offset_bits - of->width;
    *from = *of;
    from->count = left < 0 ? 0 : of->count == 1 ? 1 : smaller(left / of->apart + 1, of->count);
    if (from->count > 0 && from->count < of->count && limit < 0 && !e->overlaps) {
        int64_t more = along_packets(zeros ? NULL : &origin, &to, of, packet, bytes, &apart);
        from->apart = more > from->count ? apart : from->apart;
        from->count = larger(more, from->count);
    }
    if (zeros)
        return packet;
    if (!place_of(&origin, field_walk_address(&origin.walk, packet), bytes, &from->at))
        return -2;
    from->at.bit += offset_bits;
    return packet;
}
