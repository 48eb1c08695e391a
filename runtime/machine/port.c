#include "runtime/machine/port.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/engine/trf.h"
#include "runtime/machine/proof.h"
#include "runtime/tensor/port_data.h"

static int64_t component_size(const machine *m, const port *p, port_component c)
{
    return p->mapping[c].count ? layout_size(p->mapping[c], m->kernel->axes) : 1;
}

/* Unit counts of the port's mapping and the elements of one unit; false when the target does not have so
 * many. */
typedef struct port_shape {
    int64_t chips, clusters, slices, rows;
    int64_t row_elements; /* elements of one Row of one unit */
} port_shape;

static bool port_shape_of(const machine *m, const port *p, port_shape *s)
{
    *s = (port_shape){component_size(m, p, COMPONENT_CHIP), component_size(m, p, COMPONENT_CLUSTER), component_size(m, p, COMPONENT_SLICE),
                      component_size(m, p, COMPONENT_ROW), component_size(m, p, COMPONENT_ELEMENT)};
    const target *t = m->target;
    if (p->space == PORT_STREAM &&
        __builtin_mul_overflow(component_size(m, p, COMPONENT_TIME), component_size(m, p, COMPONENT_PACKET), &s->row_elements))
        return false;
    if (p->space == PORT_TRF && !trf_rows_legal(t, s->rows))
        return false;
    return s->chips <= t->chips && s->clusters <= t->clusters_per_chip && s->slices <= t->slices_per_cluster;
}

/* Bits of a range of elements; false past 2^62. */
static bool bits_of(const port *p, int64_t units, int64_t rows, int64_t elements, int64_t *bits)
{
    int64_t limit = INT64_C(1) << 62;
    return !__builtin_mul_overflow((int64_t)dtype_row_of(p->dtype)->bits, units, bits) && !__builtin_mul_overflow(*bits, rows, bits) &&
           !__builtin_mul_overflow(*bits, elements, bits) && *bits <= limit;
}

int64_t machine_port_bytes(const machine *m, uint32_t index)
{
    const port *p = &m->kernel->ports[index];
    port_shape s;
    int64_t bits;
    if (!port_shape_of(m, p, &s) || !bits_of(p, s.chips * s.clusters * s.slices, s.rows, s.row_elements, &bits))
        return -1;
    return (bits + 7) / 8;
}

static bool position_live(const machine *m, const port *p, port_component c, int64_t position)
{
    if (!p->mapping[c].count)
        return position == 0;
    memset(m->coords, 0, m->kernel->axis_count * sizeof *m->coords);
    return layout_map(p->mapping[c], m->kernel->axes, position, m->coords);
}

/* Copies `bits` bits between bit positions that are multiples of 4. */
static void bits_copy(unsigned char *to, int64_t to_bit, const unsigned char *from, int64_t from_bit, int64_t bits)
{
    if (to_bit % 8 == 0 && from_bit % 8 == 0) {
        memcpy(to + to_bit / 8, from + from_bit / 8, (size_t)(bits / 8));
        to_bit += bits / 8 * 8, from_bit += bits / 8 * 8, bits %= 8;
    }
    for (; bits > 0; to_bit += 4, from_bit += 4, bits -= 4) {
        unsigned nibble = from[from_bit / 8] >> from_bit % 8 & 15;
        unsigned char *d = &to[to_bit / 8];
        *d = (unsigned char)((*d & ~(15u << to_bit % 8)) | nibble << to_bit % 8);
    }
}

/* One transfer between a range of a memory, which starts at a byte, and a bit range of the port's buffer. */
typedef struct transfer {
    machine *machine;
    const port *port;
    unsigned char *buffer; /* the port's physical bytes */
    int64_t bit;           /* position in the buffer */
    bool to_memory;
    bool whole; /* every position has an element */
} transfer;

static bool transfer_piece(transfer *x, memory *mem, int64_t address, int64_t bits)
{
    while (bits > 0) {
        int64_t room = (mem->block_bytes - address % mem->block_bytes) * 8;
        int64_t part = bits < room ? bits : room;
        unsigned char *to = x->to_memory ? memory_span(mem, address, (part + 7) / 8) : NULL;
        const unsigned char *from = x->to_memory ? NULL : memory_look(mem, address, (part + 7) / 8);
        if (!to && !from)
            return false;
        if (to)
            bits_copy(to, 0, x->buffer, x->bit, part);
        else
            bits_copy(x->buffer, x->bit, from, 0, part);
        if (!x->to_memory)
            proof_read(x->machine, mem, address, (part + 7) / 8);
        else if (x->whole)
            proof_write(x->machine, mem, address, part / 8);
        x->bit += part, bits -= part, address += part / 8;
    }
    return true;
}

static bool transfer_trf(transfer *x, memory *trf, const port_shape *s, int64_t row_bits)
{
    const target *t = x->machine->target;
    for (int64_t row = 0; row < s->rows; row++)
        for (int64_t byte = 0; byte * 8 < row_bits;) {
            int64_t together = trf_contiguous_bytes(t, x->port->trf_address, byte);
            int64_t bits = row_bits - byte * 8 < together * 8 ? row_bits - byte * 8 : together * 8;
            int64_t address = trf_address_of(t, row, s->rows, x->port->trf_address, byte);
            if (!transfer_piece(x, trf, address, bits))
                return false;
            byte += together;
        }
    return true;
}

static bool transfer_unit(transfer *x, const port_shape *s, int64_t row_bits, int64_t chip, int64_t cluster, int64_t slice)
{
    machine *m = x->machine;
    machine_unit *u = &m->units[machine_unit_index(m, chip, cluster, slice)];
    if (x->port->space == PORT_HBM)
        return transfer_piece(x, &m->hbm[chip], x->port->address, row_bits);
    if (x->port->space == PORT_DM)
        return transfer_piece(x, &u->dm, x->port->address, row_bits);
    if (x->port->space == PORT_VRF)
        return transfer_piece(x, &u->vrf, x->port->address, row_bits);
    return transfer_trf(x, &u->trf, s, row_bits);
}

static bool transfer_units(transfer *x, const port_shape *s, int64_t row_bits)
{
    const machine *m = x->machine;
    for (int64_t chip = 0; chip < s->chips; chip++) {
        bool chip_live = position_live(m, x->port, COMPONENT_CHIP, chip);
        for (int64_t cluster = 0; cluster < s->clusters; cluster++) {
            bool cluster_live = chip_live && position_live(m, x->port, COMPONENT_CLUSTER, cluster);
            for (int64_t slice = 0; slice < s->slices; slice++) {
                if (!cluster_live || !position_live(m, x->port, COMPONENT_SLICE, slice))
                    x->bit += s->rows * row_bits;
                else if (!transfer_unit(x, s, row_bits, chip, cluster, slice))
                    return false;
            }
        }
    }
    return true;
}

/* Does one unit's piece fit the memory of its space? */
static bool port_fits(const machine *m, const port *p, const port_shape *s, int64_t row_bits)
{
    const target *t = m->target;
    int64_t bytes = (row_bits + 7) / 8;
    if (p->space == PORT_TRF)
        return bytes <= trf_partition_bytes(t, s->rows, p->trf_address);
    int64_t capacity = p->space == PORT_HBM ? t->hbm_bytes_per_chip : p->space == PORT_VRF ? t->vrf_bytes : t->dm_bytes_per_slice;
    return p->address >= 0 && p->address <= capacity && bytes <= capacity - p->address;
}

static bool port_transfer(transfer *x, size_t size, diag_list *diags)
{
    machine *m = x->machine;
    const port *p = x->port;
    int64_t bytes = machine_port_bytes(m, (uint32_t)(p - m->kernel->ports)), row_bits;
    port_shape s;
    if (bytes < 0 || !port_shape_of(m, p, &s) || !bits_of(p, 1, 1, s.row_elements, &row_bits) || !port_fits(m, p, &s, row_bits)) {
        diag_add(diags, E_RUN_ACCESS, SRC_NOWHERE, "port %s does not fit the machine at address %lld", p->name, (long long)p->address);
        return false;
    }
    if ((uint64_t)bytes != size) {
        diag_add(diags, E_TENSOR_SHAPE, SRC_NOWHERE, "port %s has %lld physical bytes, the buffer has %zu", p->name, (long long)bytes,
                 size);
        return false;
    }
    if (transfer_units(x, &s, row_bits))
        return true;
    diag_add(diags, E_RUN_LIMIT, SRC_NOWHERE, "no memory left for port %s", p->name);
    return false;
}

static bool stream_transfer(machine *m, uint32_t index, const unsigned char *in, unsigned char *out, size_t size, diag_list *diags)
{
    const port *p = &m->kernel->ports[index];
    stream_port *s = &m->streams[index];
    proof_doubt(m);
    if (!s->usable) {
        diag_add(diags, E_RUN_ACCESS, SRC_NOWHERE, "stream port %s does not fit the machine", p->name);
        return false;
    }
    int64_t bytes = machine_port_bytes(m, index);
    if (bytes < 0 || (uint64_t)bytes != size) {
        diag_add(diags, E_TENSOR_SHAPE, SRC_NOWHERE, "port %s has %lld physical bytes, the buffer has %zu", p->name, (long long)bytes,
                 size);
        return false;
    }
    if (!stream_port_open(m, index)) {
        diag_add(diags, E_RUN_LIMIT, SRC_NOWHERE, "no memory left for port %s", p->name);
        return false;
    }
    if (out) {
        memcpy(out, s->bytes, size);
    } else {
        memcpy(s->bytes, in, size);
        memset(s->cursors, 0, (size_t)s->unit_count * sizeof *s->cursors);
    }
    return true;
}

bool machine_port_write(machine *m, uint32_t index, const unsigned char *bytes, size_t size, diag_list *diags)
{
    const port *p = &m->kernel->ports[index];
    if (p->space == PORT_STREAM)
        return stream_transfer(m, index, bytes, NULL, size, diags);
    /* The buffer is only read in this direction. */
    bool whole = proof_is_open(m) && port_is_whole(p, m->kernel->axes, m->kernel->axis_count);
    transfer x = {m, p, (unsigned char *)(uintptr_t)bytes, 0, true, whole};
    return port_transfer(&x, size, diags);
}

bool machine_port_read(machine *m, uint32_t index, unsigned char *bytes, size_t size, diag_list *diags)
{
    const port *p = &m->kernel->ports[index];
    if (p->space == PORT_STREAM)
        return stream_transfer(m, index, NULL, bytes, size, diags);
    memset(bytes, m->options.poison, size);
    transfer x = {m, p, bytes, 0, false, false};
    return port_transfer(&x, size, diags);
}

static void stream_port_init(machine *m, uint32_t index)
{
    const port *p = &m->kernel->ports[index];
    stream_port *s = &m->streams[index];
    port_shape shape;
    if (!port_shape_of(m, p, &shape) || machine_port_bytes(m, index) < 0)
        return;
    s->chips = shape.chips, s->clusters = shape.clusters, s->slices = shape.slices;
    s->unit_count = s->chips * s->clusters * s->slices;
    s->rows = shape.rows;
    s->steps = component_size(m, p, COMPONENT_TIME);
    s->packet_elements = component_size(m, p, COMPONENT_PACKET);
    s->packet_bytes = dtype_bytes(p->dtype, s->packet_elements);
    s->usable = s->packet_bytes > 0;
    s->live = ARENA_ARRAY(m->arena, bool, (size_t)s->unit_count);
    for (int64_t i = 0; i < s->unit_count; i++)
        s->live[i] = position_live(m, p, COMPONENT_CHIP, i / (s->slices * s->clusters)) &&
                     position_live(m, p, COMPONENT_CLUSTER, i / s->slices % s->clusters) &&
                     position_live(m, p, COMPONENT_SLICE, i % s->slices);
}

void stream_ports_init(machine *m)
{
    m->streams = ARENA_ARRAY(m->arena, stream_port, m->kernel->port_count);
    for (uint32_t i = 0; i < m->kernel->port_count; i++)
        if (m->kernel->ports[i].space == PORT_STREAM)
            stream_port_init(m, i);
}

void stream_ports_free(machine *m)
{
    for (uint32_t i = 0; i < m->kernel->port_count; i++) {
        free(m->streams[i].bytes);
        m->streams[i].bytes = NULL;
    }
}

bool stream_port_open(machine *m, uint32_t index)
{
    stream_port *s = &m->streams[index];
    if (s->bytes)
        return true;
    int64_t bytes = machine_port_bytes(m, index);
    int64_t used = atomic_fetch_add(&m->budget.used_bytes, bytes);
    if (m->budget.limit_bytes && bytes > m->budget.limit_bytes - used)
        return false;
    s->bytes = malloc((size_t)bytes);
    if (!s->bytes)
        return false;
    memset(s->bytes, m->options.poison, (size_t)bytes);
    s->cursors = ARENA_ARRAY(m->arena, int64_t, (size_t)s->unit_count);
    return true;
}

int64_t stream_port_position(const stream_port *p, const target *t, int64_t unit_index)
{
    int64_t slice = unit_index % t->slices_per_cluster;
    int64_t cluster = unit_index / t->slices_per_cluster % t->clusters_per_chip;
    int64_t chip = unit_index / t->slices_per_cluster / t->clusters_per_chip;
    if (chip >= p->chips || cluster >= p->clusters || slice >= p->slices)
        return -1;
    int64_t position = (chip * p->clusters + cluster) * p->slices + slice;
    return p->live[position] ? position : -1;
}

void stream_port_advance(stream_port *p, const target *t, const int64_t *units, size_t count, int64_t packets)
{
    for (size_t i = 0; i < count; i++) {
        int64_t position = stream_port_position(p, t, units[i]);
        if (position >= 0)
            p->cursors[position] += packets;
    }
}
