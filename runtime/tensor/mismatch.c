#include "runtime/tensor/mismatch.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/machine/origin.h"
#include "runtime/tensor/compare.h"
#include "runtime/tensor/fold.h"
#include "runtime/tensor/numeric.h"
#include "runtime/tensor/port_data.h"
#include "support/strbuf.h"

enum { MOST_LISTED = 1 << 20, MOST_POSITIONS = 1 << 26 };

typedef struct wrong {
    int64_t *elements;
    size_t count;
    double worst; /* of its bound; 0: no bound is above 0 */
} wrong;

static bool find_wrong(const mismatch *m, wrong *w, arena *a)
{
    const tensor_type *type = &m->machine->type;
    int64_t elements = tensor_elements(type);
    size_t capacity = 0;
    for (int64_t i = 0; i < elements && w->count < MOST_LISTED; i++) {
        if (m->covered && !m->covered[i])
            continue;
        double x = numeric_to_double(type->dtype, m->machine->bytes, i), y = numeric_to_double(type->dtype, m->reference, i);
        double allowed = m->allowed && m->allowed[i] > 0 ? m->allowed[i] : 0;
        if (compare_agrees(x, y, allowed))
            continue;
        ARENA_PUSH(a, w->elements, w->count, capacity, i);
        double part = allowed > 0 ? fabs(x - y) / allowed : 0;
        if (isfinite(part) && part > w->worst)
            w->worst = part;
    }
    return w->count > 0;
}

static void note_axes(const mismatch *m, const wrong *w, diag_list *diags, diag *d)
{
    const tensor_type *type = &m->machine->type;
    arena *a = diags->arena;
    strbuf s;
    strbuf_init(&s, a);
    int64_t *values = ARENA_ARRAY(a, int64_t, w->count), inner = 1;
    const char **texts = ARENA_ARRAY(a, const char *, (size_t)type->rank + 1);
    for (int axis = type->rank - 1; axis >= 0; axis--) {
        for (size_t i = 0; i < w->count; i++)
            values[i] = w->elements[i] / inner % type->shape[axis];
        texts[axis] = fold_text(values, w->count, type->shape[axis], a);
        inner *= type->shape[axis];
    }
    for (int axis = 0; axis < type->rank; axis++)
        strbuf_printf(&s, "%s%s %s", axis ? ", " : "", type->names ? type->names[axis] : "axis", texts[axis]);
    if (type->rank)
        diag_note(diags, d, SRC_NOWHERE, "differing: %s", s.text);
}

/* positions[element]: its first place in the port. Unpacking the places' numbers, as if they were the elements, gives it. */
static int32_t *first_positions(const mismatch *m)
{
    const binary_kernel *k = m->kernel;
    port numbered = *m->port;
    numbered.dtype = DTYPE_I32;
    int64_t count = port_physical_elements(&numbered, k->axes), elements = tensor_elements(&m->machine->type);
    if (count < 0 || count > MOST_POSITIONS || elements > MOST_POSITIONS)
        return NULL;
    int32_t *physical = malloc((size_t)count * 4 + 4), *logical = calloc((size_t)elements + 1, 4);
    for (int64_t i = 0; physical && i < count; i++)
        physical[i] = (int32_t)i;
    if (!physical || !logical ||
        !port_unpack(&numbered, k->axes, k->axis_count, (unsigned char *)physical, (unsigned char *)logical, NULL, NULL)) {
        free(logical);
        logical = NULL;
    }
    free(physical);
    return logical;
}

/* The column of an origin, of the elements that have one. */
static const char *fold_column(const origin *origins, size_t count, int column, int64_t all, arena *a)
{
    int64_t *values = ARENA_ARRAY(a, int64_t, count);
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t value = column == 0 ? origins[i].slice : column == 1 ? origins[i].row : origins[i].time;
        if (value >= 0)
            values[known++] = value;
    }
    return known == count ? fold_text(values, known, all, a) : NULL;
}

static void note_origins(const mismatch *m, const wrong *w, diag_list *diags, diag *d)
{
    arena *a = diags->arena;
    const origin_map *map = m->port->space == PORT_HBM ? origin_map_new(m->target, m->kernel, a) : NULL;
    int32_t *positions = map ? first_positions(m) : NULL;
    if (!positions)
        return;
    int64_t bits = dtype_row_of(m->port->dtype)->bits, chips = layout_size(m->port->mapping[COMPONENT_CHIP], m->kernel->axes);
    origin *origins = ARENA_ARRAY(a, origin, w->count);
    size_t known = 0;
    for (size_t i = 0; i < w->count && chips == 1; i++)
        known += origin_of(map, m->port->address + positions[w->elements[i]] * bits / 8, &origins[known]);
    free(positions);
    if (known == 0 || known < w->count)
        return;
    const char *slices = fold_column(origins, known, 0, 0, a), *rows = fold_column(origins, known, 1, m->target->rows, a);
    const char *times = fold_column(origins, known, 2, 0, a);
    diag_note(diags, d, SRC_NOWHERE, "written by slice %s%s%s%s%s", slices, rows ? ", Row " : "", rows ? rows : "", times ? ", time " : "",
              times ? times : "");
}

void mismatch_explain(const mismatch *m, diag_list *diags, diag *d)
{
    wrong w = {0};
    if (!find_wrong(m, &w, diags->arena))
        return;
    note_axes(m, &w, diags, d);
    note_origins(m, &w, diags, d);
    if (w.worst > 0)
        diag_note(diags, d, SRC_NOWHERE, "the worst one is off by %.3g times its bound", w.worst);
}

const char *mismatch_position_text(const binary_kernel *k, const port *p, int64_t position, arena *a)
{
    int64_t *coords = ARENA_ARRAY(a, int64_t, k->axis_count + 1), rest = position, at[COMPONENT_COUNT] = {0};
    for (int c = COMPONENT_COUNT; c-- > 0;)
        if (port_space_has(p->space, (port_component)c)) {
            int64_t size = layout_size(p->mapping[c], k->axes);
            at[c] = rest % size;
            rest /= size;
        }
    strbuf s;
    strbuf_init(&s, a);
    for (int c = 0; c < COMPONENT_COUNT; c++)
        if (port_space_has(p->space, (port_component)c)) {
            layout_map(p->mapping[c], k->axes, at[c], coords);
            if (c <= COMPONENT_TIME && layout_size(p->mapping[c], k->axes) > 1)
                strbuf_printf(&s, "%s%s %lld", s.bytes ? ", " : "", port_component_name((port_component)c), (long long)at[c]);
        }
    const char *separator = s.bytes ? ": " : "";
    uint32_t *order, count = port_logical_axes(p, k->axes, k->axis_count, a, &order);
    for (uint32_t i = 0; i < count; i++, separator = ", ")
        strbuf_printf(&s, "%s%s=%lld", separator, k->axes[order[i]].name, (long long)coords[order[i]]);
    return s.bytes ? s.text : "its only element";
}
