#include "runtime/plan/relocate.h"

#include <string.h>

#include "codegen/copy_command.h"
#include "runtime/tensor/port_data.h"

/* ---- dense ports ---- */

enum { MOST_FACTORS = 64 };

/* Positions 0 .. size - 1 are elements 0, step, 2 step, .. of an axis. */
typedef struct factor {
    uint32_t axis;
    int64_t step, size;
} factor;

/* The layout as a list of factors, outermost first. -1: it has padding, cuts, repetitions, or digits of lists. */
static int factors_of(layout l, const layout_axis *axes, factor *out)
{
    int count = 0, starts[MOST_FACTORS + 1], depth = 0; /* starts: of each operand on the stack */
    for (size_t i = 0; i < l.count; i++) {
        layout_op op = (layout_op)(l.words[i] & 255);
        int64_t n = (int64_t)(l.words[i] >> 8);
        factor *last = count > 0 ? &out[count - 1] : NULL;
        bool single = depth > 0 && count - starts[depth - 1] == 1;
        switch (op) {
        case LAYOUT_AXIS:
        case LAYOUT_BROADCAST:
            if (depth == MOST_FACTORS || count == MOST_FACTORS || (op == LAYOUT_BROADCAST && n != 1))
                return -1;
            starts[depth++] = count;
            if (op == LAYOUT_AXIS)
                out[count++] = (factor){(uint32_t)n, 1, axes[n].size};
            break;
        case LAYOUT_STRIDE:
            if (!single)
                return -1;
            last->step *= n;
            last->size /= n;
            break;
        case LAYOUT_MODULO:
            if (!single)
                return -1;
            last->size = n;
            break;
        case LAYOUT_PAIR: depth--; break;
        default: return -1;
        }
    }
    return count;
}

bool port_is_dense(const binary_kernel *k, uint32_t port_number, arena *a)
{
    const port *p = &k->ports[port_number];
    factor factors[MOST_FACTORS];
    uint32_t *order;
    if (p->space != PORT_HBM || layout_size(p->mapping[COMPONENT_CHIP], k->axes) != 1)
        return false;
    int count = factors_of(p->mapping[COMPONENT_ELEMENT], k->axes, factors);
    uint32_t rank = port_logical_axes(p, k->axes, k->axis_count, a, &order);
    int64_t position_step = 1;
    for (int i = count - 1; i >= 0; i--) {
        int64_t step = factors[i].step; /* of the logical index */
        for (uint32_t r = rank; r > 0 && order[r - 1] != factors[i].axis; r--)
            step *= k->axes[order[r - 1]].size;
        if (factors[i].size > 1 && step != position_step)
            return false;
        position_step *= factors[i].size;
    }
    tensor_type type = port_logical_type(p, k->axes, k->axis_count, a);
    return count >= 0 && position_step == tensor_elements(&type);
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

static bool move_guard(const relocation *r, command *c)
{
    copy_command one = {.count = 0};
    copy_side number = {.memory = COPY_HBM, .base = command_get(c, GUARD_BASE)};
    int64_t distance = 0;
    if (!distance_of(r, c, &one, &number, command_get(c, GUARD_BITS) / 8, &distance))
        return false;
    command_set(c, GUARD_BASE, number.base + distance);
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
                 "kernel `%s`: what line %u touches lies %lld bytes farther in DM, behind the plan's buffers, and does not fit there",
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
        if (!distance_of(r, c, &k, &k.list, sizeof(int32_t), &distance))
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

/* Two ports in one place: which one a copy means is not said. */
static bool ports_are_apart(const relocation *r)
{
    const binary_kernel *k = r->kernel;
    for (uint32_t i = 0; i < k->port_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (k->ports[i].space == PORT_HBM && k->ports[j].space == PORT_HBM && strcmp(k->ports[i].name, k->ports[j].name) != 0 &&
                k->ports[i].address < k->ports[j].address + port_physical_bytes(&k->ports[j], k->axes) &&
                k->ports[j].address < k->ports[i].address + port_physical_bytes(&k->ports[i], k->axes)) {
                diag_add(r->diags, E_PLAN_FIT, SRC_NOWHERE, "kernel `%s`: the ports `%s` and `%s` overlap in HBM", k->name,
                         k->ports[j].name, k->ports[i].name);
                return false;
            }
    return true;
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
            if (commands[i].op == OP_GUARD ? !move_guard(&r, &commands[i]) : command_is_copy(&commands[i]) && !move(&r, &commands[i]))
                return false;
            if (dm_scratch > 0 && !move_dm(&r, &commands[i]))
                return false;
        }
        out->streams[s].commands = commands;
        out->streams[s].stored = NULL;
    }
    return true;
}
