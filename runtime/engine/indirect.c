#include "runtime/engine/indirect.h"

#include <string.h>

#include "runtime/machine/proof.h"
#include "runtime/machine/walk.h"

enum { MOST_PACKET_BYTES = 4096, ELEMENT_BYTES = 4 };

typedef struct place {
    memory *memory;
    int64_t address;
} place;

static bool place_at(const machine *m, int64_t space, int64_t address, int64_t bytes, place *out)
{
    const target *t = m->target;
    int64_t window = space == COPY_HBM ? t->hbm_chip_stride_bytes : t->dm_slice_stride_bytes;
    int64_t count = space == COPY_HBM ? t->chips : m->unit_count;
    if (address < 0 || address / window >= count)
        return false;
    int64_t number = address / window;
    if (space == COPY_HBM ? address % window > t->hbm_bytes_per_chip - bytes : !target_unit_holds(t, number, address % window, bytes))
        return false;
    *out = (place){space == COPY_HBM ? (memory *)&m->hbm[number] : (memory *)&m->units[number].dm, address % window};
    return true;
}

static bool outside(const command *c, const walk *w, const char *verb, int64_t space, int64_t step, int64_t address, int64_t bytes,
                    fault *f)
{
    char text[160];
    int64_t counters[WALK_MAX_LOOPS];
    walk_counters(w, step, counters);
    walk_counters_text(w, counters, text, sizeof text);
    return fault_set(f, E_RUN_ACCESS, c, "%s outside %s: entry counters %s, address %lld (0x%llx), size %lld bytes", verb,
                     space == COPY_HBM ? "HBM" : "DM", text, (long long)address, (unsigned long long)address, (long long)bytes);
}

bool indirect_moves(const command *c, const copy_command *k, int64_t element, int64_t step, int64_t *bytes, fault *f)
{
    char text[160];
    int64_t counters[WALK_MAX_LOOPS];
    walk w = walk_of_copy(k, &k->list);
    *bytes = 0;
    bool named = element >= 0 && element % k->unit == 0 && element / k->unit < k->positions;
    if (named)
        return !__builtin_mul_overflow(element / k->unit, k->stride, bytes) ||
               fault_set(f, E_RUN_ACCESS, c, "a row is moved beyond 2^63 bytes");
    walk_counters(&w, step, counters);
    walk_counters_text(&w, counters, text, sizeof text);
    if (element < 0)
        return fault_set(f, E_RUN_INDEX, c, "an index must be non-negative: entry counters %s, index %lld", text, (long long)element);
    if (element % k->unit)
        return fault_set(f, E_RUN_INDEX, c, "an index must be a multiple of byte stride %lld: entry counters %s, index %lld",
                         (long long)k->unit, text, (long long)element);
    return fault_set(f, E_RUN_INDEX, c, "an index selects position %lld of an axis with %lld: entry counters %s, index %lld",
                     (long long)(element / k->unit), (long long)k->positions, text, (long long)element);
}

/* Tables whose addresses fit, and what the DM side needs. */
static bool is_legal(const machine *m, const command *c, const copy_command *k, int64_t *steps, fault *f)
{
    const copy_side *sides[] = {&k->source, &k->destination, &k->list};
    int64_t limit = m->options.step_limit, unit = m->target->dma_dm_multiple_bytes;
    walk w = walk_of_copy(k, &k->source);
    if (k->counted ? k->list.memory != COPY_HBM || k->source.memory != COPY_HBM : k->front.base != 0 || k->first != 0)
        return fault_set(f, E_RUN_CHAIN, c, "a count is that of a list in HBM of which rows are taken");
    if (k->wide && (k->list.memory != COPY_HBM || k->source.memory != COPY_HBM || k->counted))
        return fault_set(f, E_RUN_CHAIN, c, "elements of 64 bits are those of a whole list in HBM of which rows are taken");
    if (k->packet_bytes > MOST_PACKET_BYTES || k->packet_bytes > m->target->dma_packet_max_bytes)
        return fault_set(f, E_RUN_CHAIN, c, "packets of %lld bytes are too long", (long long)k->packet_bytes);
    if (!walk_positions(&w, steps))
        return fault_set(f, E_RUN_CHAIN, c, "the product of the entry sizes overflows");
    if (limit && *steps > limit)
        return fault_set(f, E_RUN_LIMIT, c, "%lld packets pass the limit of %lld", (long long)*steps, (long long)limit);
    for (int i = 0; i < 3; i++) {
        int64_t counters[WALK_MAX_LOOPS];
        walk_address address;
        w = walk_of_copy(k, sides[i]);
        if (walk_first_outside(&w, 0, (INT64_C(1) << 48) - k->packet_bytes, counters, &address))
            return fault_set(f, E_RUN_ACCESS, c, "%s leaves the DMA's address space: address %lld",
                             i == 0   ? "the source"
                             : i == 1 ? "the destination"
                                      : "the list",
                             (long long)address);
    }
    bool aligned = k->packet_bytes % unit == 0 && k->destination.base % unit == 0;
    for (unsigned i = 0; i < k->count; i++)
        aligned = aligned && (k->size[i] == 1 || k->destination.stride[i] % unit == 0);
    return aligned || k->destination.memory == COPY_HBM ||
           fault_set(f, E_RUN_ACCESS, c, "packet_bytes, base and strides of a DM destination must be multiples of %lld bytes",
                     (long long)unit);
}

/* Of HBM with all that the list may move it by; of DM any slice's. */
static proof_range range_of(const machine *m, const copy_command *k, const copy_side *s, int64_t bytes, bool writes)
{
    walk w = walk_of_copy(k, s);
    walk_address low, high;
    if (s->memory != COPY_HBM)
        return (proof_range){PROOF_DM, 0, m->target->dm_slice_stride_bytes, writes};
    walk_bounds(&w, &low, &high);
    high += s->moved ? (walk_address)(k->positions - 1) * k->stride : 0;
    return (proof_range){PROOF_HBM, (int64_t)low, (int64_t)(high + bytes < INT64_MAX ? high + bytes : INT64_MAX), writes};
}

/* An i32; `wide`: 64 bits without a sign, where one past 2^63 is past every end as well. */
static bool read_element(machine *m, const command *c, const walk *w, int64_t space, bool wide, int64_t step, int64_t address, int64_t *out,
                         fault *f)
{
    place p;
    unsigned char bytes[2 * ELEMENT_BYTES];
    int64_t size = wide ? 2 * ELEMENT_BYTES : ELEMENT_BYTES;
    uint64_t element = 0;
    if (!place_at(m, space, address, size, &p))
        return outside(c, w, "reads the list", space, step, address, size, f);
    if (!memory_read(p.memory, p.address, bytes, size))
        return fault_memory(f, c, "HBM and DM");
    proof_read(m, p.memory, p.address, size);
    for (int64_t i = size; i-- > 0;)
        element = element << 8 | bytes[i];
    *out = !wide ? (int32_t)(uint32_t)element : element > INT64_MAX ? INT64_MAX : (int64_t)element;
    return true;
}

/* Zeros where nothing is copied. */
static bool copy_packet(machine *m, const command *c, const place *from, const place *to, int64_t bytes, fault *f)
{
    unsigned char packet[MOST_PACKET_BYTES];
    if (!from)
        memset(packet, 0, (size_t)bytes);
    if ((from && !memory_read(from->memory, from->address, packet, bytes)) || !memory_write(to->memory, to->address, packet, bytes))
        return fault_memory(f, c, "HBM and DM");
    if (from)
        proof_read(m, from->memory, from->address, bytes);
    proof_write(m, to->memory, to->address, bytes);
    return true;
}

bool indirect_run(machine *m, const command *c, int number, fault *f)
{
    copy_command k = copy_command_read(c);
    int64_t steps;
    if (!is_legal(m, c, &k, &steps, f))
        return false;
    walk from = walk_of_copy(&k, &k.source), to = walk_of_copy(&k, &k.destination), list = walk_of_copy(&k, &k.list);
    walk_cursor a, b, l;
    walk_start(&from, &a);
    walk_start(&to, &b);
    walk_start(&list, &l);
    int64_t last = -1, moved = 0; /* the address of the element that was read */
    int64_t taken = INT64_MAX;    /* elements of the list whose rows are taken */
    walk front = {.base = k.front.base};
    place at_count;
    if (k.counted && !place_at(m, COPY_HBM, k.front.base, ELEMENT_BYTES, &at_count))
        return fault_set(f, E_RUN_ACCESS, c, "reads the count outside HBM: address %lld (0x%llx), size %d bytes", (long long)k.front.base,
                         (unsigned long long)k.front.base, ELEMENT_BYTES);
    if (k.counted && !read_element(m, c, &front, COPY_HBM, false, 0, k.front.base, &taken, f))
        return false;
    for (int64_t step = 0; step < steps; step++) {
        int64_t x = walk_step(&from, &a), y = walk_step(&to, &b), at = walk_step(&list, &l), element = 0;
        if (at != last &&
            (!read_element(m, c, &list, k.list.memory, k.wide, step, at, &element, f) || !indirect_moves(c, &k, element, step, &moved, f)))
            return false;
        last = at;
        place p, q;
        x += k.source.moved ? moved : 0;
        y += k.destination.moved ? moved : 0;
        if (!place_at(m, k.source.memory, x, k.packet_bytes, &p))
            return outside(c, &from, "reads", k.source.memory, step, x, k.packet_bytes, f);
        if (!place_at(m, k.destination.memory, y, k.packet_bytes, &q))
            return outside(c, &to, "writes", k.destination.memory, step, y, k.packet_bytes, f);
        bool is_taken = !k.counted || copy_list_number(&k, at, m->target->hbm_chip_stride_bytes) < taken;
        if (!copy_packet(m, c, is_taken ? &p : NULL, &q, k.packet_bytes, f))
            return false;
    }
    if (proof_is_open(m)) {
        const proof_range ranges[] = {range_of(m, &k, &k.source, k.packet_bytes, false),
                                      range_of(m, &k, &k.destination, k.packet_bytes, true),
                                      range_of(m, &k, &k.list, ELEMENT_BYTES, false),
                                      {PROOF_HBM, k.front.base, k.front.base + ELEMENT_BYTES, false}};
        proof_copy(m, number, ranges, k.counted ? 4 : 3, m->done[number] + 1);
    }
    return true;
}
