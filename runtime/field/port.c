/* Where the positions of tensor ports are: chip, cluster and slice of a mapping are units, as for the machine
 * of bytes (runtime/machine/port.h). */
#include <stdlib.h>
#include <string.h>

#include "runtime/engine/trf.h"
#include "runtime/field/engine.h"
#include "runtime/tensor/port_data.h"
#include "support/integer.h"

static int64_t size_of(const field_machine *m, const port *p, port_component c)
{
    return p->mapping[c].count ? layout_size(p->mapping[c], m->plans->kernel->axes) : 1;
}

/* Positions of the components, outermost first; those of a slice one after the other. */
typedef struct port_sizes {
    int64_t chips, clusters, slices, rows, row_elements;
} port_sizes;

static port_sizes sizes_of(const field_machine *m, const port *p)
{
    int64_t inner = p->space == PORT_STREAM ? product_bounded(size_of(m, p, COMPONENT_TIME), size_of(m, p, COMPONENT_PACKET))
                                            : size_of(m, p, COMPONENT_ELEMENT);
    return (port_sizes){size_of(m, p, COMPONENT_CHIP), size_of(m, p, COMPONENT_CLUSTER), size_of(m, p, COMPONENT_SLICE),
                        size_of(m, p, COMPONENT_ROW), inner};
}

int64_t field_port_positions(const field_machine *m, uint32_t index)
{
    return port_physical_elements(&m->plans->kernel->ports[index], m->plans->kernel->axes);
}

/* The coordinates of the element at a position, added up; false: dead. */
static bool position_coords(const field_machine *m, const port *p, int64_t position, int64_t *coords)
{
    const binary_kernel *k = m->plans->kernel;
    memset(coords, 0, k->axis_count * sizeof *coords);
    bool live = true;
    for (int c = COMPONENT_COUNT; c-- > 0;)
        if (p->mapping[c].count) {
            int64_t size = layout_size(p->mapping[c], k->axes);
            live = live && layout_map(p->mapping[c], k->axes, position % size, coords);
            position /= size;
        }
    return live;
}

int64_t field_port_element(const field_machine *m, uint32_t index, int64_t position)
{
    const binary_kernel *k = m->plans->kernel;
    const port *p = &k->ports[index];
    int64_t *coords = calloc(k->axis_count + 1, sizeof *coords), element = 0;
    bool live = coords && position_coords(m, p, position, coords);
    bool *seen = calloc(k->axis_count + 1, sizeof *seen);
    for (int c = 0; live && seen && c < COMPONENT_COUNT; c++)
        for (size_t w = 0; w < p->mapping[c].count; w++) {
            uint64_t axis = p->mapping[c].words[w] >> 8;
            if ((p->mapping[c].words[w] & 0xff) != LAYOUT_AXIS || seen[axis])
                continue;
            seen[axis] = true;
            live = live && coords[axis] < k->axes[axis].size;
            element = element * k->axes[axis].size + coords[axis];
        }
    live = live && seen;
    free(coords);
    free(seen);
    return live ? element : -1;
}

bool field_port_numbers(const field_machine *m, uint32_t index, field_numbers *out)
{
    const binary_kernel *k = m->plans->kernel;
    port numbered = k->ports[index];
    *out = (field_numbers){.in_order = port_is_in_order(&numbered)};
    if (out->in_order)
        return true;
    numbered.dtype = DTYPE_I32;
    tensor_type type = port_logical_type(&numbered, k->axes, k->axis_count, m->plans->arena);
    int64_t positions = port_physical_elements(&numbered, k->axes), elements = tensor_elements(&type);
    if (positions < 0 || positions > INT32_MAX || elements < 0 || elements > INT32_MAX)
        return false;
    int32_t *physical = malloc((size_t)positions * sizeof *physical + 1), *logical = malloc((size_t)elements * sizeof *logical + 1);
    for (int64_t i = 0; logical && i < elements; i++)
        logical[i] = (int32_t)i;
    if (physical)
        memset(physical, 0xff, (size_t)positions * sizeof *physical);
    if (!physical || !logical || !port_pack(&numbered, k->axes, k->axis_count, (unsigned char *)logical, (unsigned char *)physical)) {
        free(physical);
        physical = NULL;
    }
    free(logical);
    out->list = physical;
    return physical;
}

static bool component_live(const field_machine *m, const port *p, port_component c, int64_t at)
{
    const binary_kernel *k = m->plans->kernel;
    if (!p->mapping[c].count)
        return true;
    memset(m->plans->coords, 0, k->axis_count * sizeof *m->plans->coords);
    return layout_map(p->mapping[c], k->axes, at, m->plans->coords);
}

int64_t field_port_place(const field_machine *m, uint32_t index, int64_t position, field_place *out)
{
    const port *p = &m->plans->kernel->ports[index];
    const target *t = m->plans->target;
    port_sizes s = sizes_of(m, p);
    int64_t bits = dtype_row_of(p->dtype)->bits, element = position % s.row_elements, row = position / s.row_elements % s.rows;
    int64_t unit = position / s.row_elements / s.rows, slice = unit % s.slices, cluster = unit / s.slices % s.clusters,
            chip = unit / s.slices / s.clusters;
    *out = (field_place){FIELD_HBM, -1, 0};
    int64_t left = s.row_elements - element;
    if (!component_live(m, p, COMPONENT_CHIP, chip) || !component_live(m, p, COMPONENT_CLUSTER, cluster) ||
        !component_live(m, p, COMPONENT_SLICE, slice))
        return left + (s.rows - 1 - row) * s.row_elements;
    int64_t number = machine_unit_index(m->plans, chip, cluster, slice), byte = element * bits / 8;
    switch (p->space) {
    case PORT_HBM: *out = (field_place){FIELD_HBM, chip, p->address * 8 + element * bits}; break;
    case PORT_DM: *out = (field_place){FIELD_DM, number, p->address * 8 + element * bits}; break;
    case PORT_VRF: *out = (field_place){FIELD_VRF, number, p->address * 8 + element * bits}; break;
    case PORT_TRF:
        *out = (field_place){FIELD_TRF, number, trf_address_of(t, row, s.rows, p->trf_address, byte) * 8 + element * bits % 8};
        left = smaller(left, (trf_contiguous_bytes(t, p->trf_address, byte) * 8 - element * bits % 8) / bits);
        break;
    default: *out = (field_place){FIELD_PORT, (int64_t)index, position * bits};
    }
    return left;
}

/* The byte of a Row's partition that is at this byte of the file; -1: in the half that the mode does not use.
 */
static int64_t trf_partition_byte(const target *t, int64_t rows, trf_address mode, int64_t address, int64_t *row)
{
    int64_t line_bytes = t->trf_bank_columns * t->trf_row_bytes, bank_rows = mode == TRF_FULL ? t->trf_bank_rows : t->trf_bank_rows / 2;
    int64_t line = address / line_bytes, bank = line / t->trf_bank_rows,
            in_bank = line % t->trf_bank_rows - (mode == TRF_SECOND_HALF ? t->trf_bank_rows / 2 : 0);
    if (in_bank < 0 || in_bank >= bank_rows)
        return -1;
    *row = bank / (t->rows / rows);
    return (bank % (t->rows / rows) * bank_rows + in_bank) * line_bytes + address % line_bytes;
}

int64_t field_trf_byte(const field_machine *m, int64_t rows, trf_address mode, int64_t address, int64_t *row)
{
    return trf_partition_byte(m->plans->target, rows, mode, address, row);
}

/* The slice's or chip's part of the position; -1: the port has no such unit. */
static int64_t unit_position(const field_machine *m, const port *p, const port_sizes *s, const field_place *at)
{
    const target *t = m->plans->target;
    if (p->space == PORT_HBM)
        return at->number < s->chips ? at->number : -1;
    int64_t slice = at->number % t->slices_per_cluster, cluster = at->number / t->slices_per_cluster % t->clusters_per_chip,
            chip = at->number / t->slices_per_cluster / t->clusters_per_chip;
    if (chip >= s->chips || cluster >= s->clusters || slice >= s->slices)
        return -1;
    return (chip * s->clusters + cluster) * s->slices + slice;
}

int64_t field_port_find(const field_machine *m, uint32_t index, const field_place *at, unsigned *part)
{
    static const field_space spaces[] = {
        [PORT_HBM] = FIELD_HBM, [PORT_DM] = FIELD_DM, [PORT_TRF] = FIELD_TRF, [PORT_STREAM] = FIELD_PORT, [PORT_VRF] = FIELD_VRF};
    const port *p = &m->plans->kernel->ports[index];
    port_sizes s = sizes_of(m, p);
    int64_t bits = dtype_row_of(p->dtype)->bits, bit = at->bit - p->address * 8, row = 0;
    if (spaces[p->space] != at->space || (at->space == FIELD_PORT && at->number != (int64_t)index))
        return -1;
    int64_t unit = at->space == FIELD_PORT ? 0 : unit_position(m, p, &s, at);
    if (p->space == PORT_TRF) {
        int64_t byte = trf_partition_byte(m->plans->target, s.rows, p->trf_address, at->bit / 8, &row);
        bit = byte < 0 ? -1 : byte * 8 + at->bit % 8;
    }
    int64_t element = bit < 0 ? -1 : bit / bits, positions = field_port_positions(m, index);
    if (unit < 0 || element < 0 || (at->space != FIELD_PORT && element >= s.row_elements))
        return -1;
    *part = (unsigned)(bit % bits / FIELD_CELL_BITS);
    int64_t position = at->space == FIELD_PORT ? element : (unit * s.rows + row) * s.row_elements + element;
    return position < positions ? position : -1;
}
