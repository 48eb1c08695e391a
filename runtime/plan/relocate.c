#include "runtime/plan/relocate.h"

#include <string.h>

#include "codegen/copy_command.h"
#include "runtime/tensor/port_data.h"

/* ---- dense ports ---- */

/* The logical tensor has the axes in the order of the port, and parts of an axis that lie next to each other are that axis in a mapping: so
 * a port is dense where it is whole axes, each of them once. */
bool port_is_dense(const binary_kernel *k, uint32_t port_number, arena *a)
{
    const port *p = &k->ports[port_number];
    layout l = p->mapping[COMPONENT_ELEMENT];
    bool whole = p->space == PORT_HBM && layout_size(p->mapping[COMPONENT_CHIP], k->axes) == 1;
    for (size_t i = 0; whole && i < l.count; i++) {
        layout_op op = (layout_op)(l.words[i] & 255);
        whole = op == LAYOUT_AXIS || op == LAYOUT_PAIR || l.words[i] == (UINT64_C(1) << 8 | LAYOUT_BROADCAST);
    }
    tensor_type type = port_logical_type(p, k->axes, k->axis_count, a);
    return whole && layout_size(l, k->axes) == tensor_elements(&type);
}

/* ---- moved commands ---- */

typedef struct relocation {
    const target *target;
    const binary_kernel *kernel;
    const int64_t *addresses;
    int64_t scratch, dm_scratch; /* where what is no port goes: that much farther, bytes of HBM, of each slice's DM */
    diag_list *diags;
} relocation;

/* The port whose place in HBM a byte is in; -1: none. */
static int64_t port_at(const relocation *r, int64_t address)
{
    for (uint32_t i = 0; i < r->kernel->port_count; i++) {
        const port *p = &r->kernel->ports[i];
        if (p->space == PORT_HBM && address >= p->address && address - p->address < port_physical_bytes(p, r->kernel->axes))
            return i;
    }
    return -1;
}

/* How far a side is moved; the bytes that it touches lie in one port or in none. */
static bool distance_of(const relocation *r, const command *c, const copy_command *k, const copy_side *side, int64_t bytes,
                        int64_t *distance)
{
    int64_t first = side->base % r->target->hbm_chip_stride_bytes, last;
    last = first + bytes - 1;
    for (unsigned i = 0; i < k->count;
         i++) { /* strides and sizes are below 2^48 and 2^16, the sum of 8 below 2^63 for what a kernel may touch */
        int64_t reach;
        if (__builtin_mul_overflow(side->stride[i], k->size[i] - 1, &reach) || reach > INT64_MAX / 32 || reach < -INT64_MAX / 32)
            reach = 0; /* outside of HBM: the run says so */
        first += reach < 0 ? reach : 0;
        last += reach > 0 ? reach : 0;
    }
    int64_t begin = port_at(r, first), end = port_at(r, last);
    *distance = begin < 0 ? r->scratch : r->addresses[begin] - r->kernel->ports[begin].address;
    if (begin == end)
        return true;
    diag_add(r->diags, E_PLAN_FIT, SRC_NOWHERE,
             "kernel `%s`: the copy of line %u begins at byte %lld of HBM and ends at %lld, in another port or outside of all",
             r->kernel->name, c->line, (long long)first, (long long)last);
    return false;
}

/* A number of a launch that a command reads from HBM. */
static bool move_number(const relocation *r, command *c, command_field base, command_field bits)
{
    copy_command one = {.count = 0};
    copy_side number = {.memory = COPY_HBM, .base = command_get(c, base)};
    int64_t distance = 0;
    if (!distance_of(r, c, &one, &number, command_get(c, bits) / 8, &distance))
        return false;
    command_set(c, base, number.base + distance);
    return true;
}

int64_t port_unit_bytes(const port *p, const layout_axis *axes)
{
    return (layout_size(p->mapping[COMPONENT_ELEMENT], axes) * dtype_row_of(p->dtype)->bits + 7) / 8;
}

/* How far what lies at a byte of each slice's DM is moved. SPM stays. */
static int64_t dm_distance(const relocation *r, int64_t address)
{
    for (uint32_t i = 0; i < r->kernel->port_count; i++) {
        const port *p = &r->kernel->ports[i];
        if (p->space == PORT_DM && address >= p->address && address - p->address < port_unit_bytes(p, r->kernel->axes))
            return r->addresses[i] - p->address;
    }
    return address < r->target->spm_base_bytes ? r->dm_scratch : 0;
}

static bool set_dm_base(const relocation *r, command *c, command_field field)
{
    int64_t base = command_get(c, field), window = r->target->dm_slice_stride_bytes, distance = dm_distance(r, base % window);
    if (base % window + distance >= r->target->dm_bytes_per_slice && base % window < r->target->spm_base_bytes) {
        diag_add(r->diags, E_PLAN_FIT, SRC_NOWHERE,
                 "kernel `%s`: what line %u touches lies %lld bytes farther in DM, past the plan's buffers, and does not fit there",
                 r->kernel->name, c->line, (long long)distance);
        return false;
    }
    command_set(c, field, base + distance);
    return true;
}

/* A kernel none of whose ports is in DM, where no buffer is, stays as it is. */
static bool move_dm(const relocation *r, command *c)
{
    bool copies = command_is_copy(c), by_index = c->op == OP_DMA_INDIRECT;
    copy_command k = copies ? copy_command_read(c) : (copy_command){.count = 0};
    if (copies)
        return (k.source.memory != COPY_DM || set_dm_base(r, c, by_index ? INDIRECT_SOURCE_BASE : DMA_SOURCE_BASE)) &&
               (k.destination.memory != COPY_DM || set_dm_base(r, c, by_index ? INDIRECT_DESTINATION_BASE : DMA_DESTINATION_BASE)) &&
               (!by_index || k.list.memory != COPY_DM || set_dm_base(r, c, INDIRECT_LIST_BASE));
    return c->op == OP_FETCH ? set_dm_base(r, c, FETCH_BASE) : c->op == OP_COMMIT ? set_dm_base(r, c, COMMIT_BASE) : true;
}

static bool move(const relocation *r, command *c)
{
    copy_command k = copy_command_read(c);
    int64_t distance = 0;
    if (k.source.memory == COPY_HBM) {
        if (!distance_of(r, c, &k, &k.source, k.packet_bytes, &distance))
            return false;
        command_set(c, k.by_index ? INDIRECT_SOURCE_BASE : DMA_SOURCE_BASE, k.source.base + distance);
    }
    if (k.destination.memory == COPY_HBM) {
        if (!distance_of(r, c, &k, &k.destination, k.packet_bytes, &distance))
            return false;
        command_set(c, k.by_index ? INDIRECT_DESTINATION_BASE : DMA_DESTINATION_BASE, k.destination.base + distance);
    }
    if (k.by_index && k.list.memory == COPY_HBM) {
        if (!distance_of(r, c, &k, &k.list, k.wide ? sizeof(int64_t) : sizeof(int32_t), &distance))
            return false;
        command_set(c, INDIRECT_LIST_BASE, k.list.base + distance);
    }
    if (k.counted) {
        copy_command one = {.count = 0};
        if (!distance_of(r, c, &one, &k.front, sizeof(int32_t), &distance))
            return false;
        command_set(c, INDIRECT_COUNT_BASE, k.front.base + distance);
    }
    return true;
}

/* What comes in and is written is two ports of one name: they are moved together. */
static bool is_one_memory(const port *a, const port *b)
{
    return strcmp(a->name, b->name) == 0 && a->address == b->address && a->direction != b->direction;
}

/* Two ports in one place: which one a copy means is ambiguous. */
static bool ports_are_apart(const relocation *r)
{
    const binary_kernel *k = r->kernel;
    for (uint32_t i = 0; i < k->port_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (k->ports[i].space == PORT_HBM && k->ports[j].space == PORT_HBM && !is_one_memory(&k->ports[i], &k->ports[j]) &&
                k->ports[i].address < k->ports[j].address + port_physical_bytes(&k->ports[j], k->axes) &&
                k->ports[j].address < k->ports[i].address + port_physical_bytes(&k->ports[i], k->axes)) {
                diag_add(r->diags, E_PLAN_FIT, SRC_NOWHERE, "kernel `%s`: the ports `%s` and `%s` overlap in HBM", k->name,
                         k->ports[j].name, k->ports[i].name);
                return false;
            }
    return true;
}

static bool move_hbm(const relocation *r, command *c)
{
    if (c->op == OP_GUARD)
        return move_number(r, c, GUARD_BASE, GUARD_BITS);
    if (c->op == OP_START)
        return move_number(r, c, START_BASE, START_BITS);
    return !command_is_copy(c) || move(r, c);
}

bool kernel_relocate(const target *t, const binary_kernel *k, const int64_t *addresses, int64_t scratch, int64_t dm_scratch, arena *a,
                     diag_list *diags, binary_kernel *out)
{
    relocation r = {t, k, addresses, scratch, dm_scratch, diags};
    port *ports = ARENA_ARRAY(a, port, (size_t)k->port_count + 1);
    if (!ports_are_apart(&r))
        return false;
    *out = *k;
    out->ports = ports;
    for (uint32_t i = 0; i < k->port_count; i++) {
        ports[i] = k->ports[i];
        if (ports[i].space == PORT_HBM || ports[i].space == PORT_DM)
            ports[i].address = addresses[i];
    }
    for (int s = 0; s < 3; s++) {
        size_t count = k->streams[s].count;
        command *commands = ARENA_ARRAY(a, command, count + 1);
        for (size_t i = 0; i < count; i++) {
            commands[i] = k->streams[s].commands[i];
            if (!move_hbm(&r, &commands[i]))
                return false;
            if (dm_scratch > 0 && !move_dm(&r, &commands[i]))
                return false;
        }
        out->streams[s].commands = commands;
        out->streams[s].stored = NULL;
    }
    return true;
}
