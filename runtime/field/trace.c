/* From a cell back to what it is made of.
 *
 * The one idea: a cell has what the last event before a time wrote there. A DMA came from another cell, a
 * sink's element is asked of its chain, whose source asks on, and inputs are known; so one value costs what
 * reaches it, however large the kernel is. */
#include <stdlib.h>
#include <string.h>

#include "codegen/copy_command.h"
#include "runtime/field/engine.h"
#include "runtime/field/known.h"
#include "support/integer.h"

enum { REMEMBERED = 4096 /* values of memory that nobody wrote */ };
enum { MOST_DEPTH = 200 /* chains that read each other's results: the stack is as deep */, MOST_PLANS = 1 << 16 };

struct field_trace {
    field_machine *machine;
    chain **plans; /* by event; NULL: not planned yet */
    size_t plan_count;
    size_t *writers[FIELD_SPACES], writer_count[FIELD_SPACES]; /* events by the space that they write, in order */
    field_numbers *numbers;                                    /* by port: elements by position; neither: not asked for yet, or too many */
    field_known known;                                         /* what chains computed, by event, unit and element */
    field_terms *terms;
    field_value unwritten[REMEMBERED];
    size_t unwritten_count; /* in all */
    int depth;
    bool given_up;
};

static bool writes_to(const field_machine *m, const field_event *e, field_space space)
{
    static const field_space spaces[] = {
        [PORT_HBM] = FIELD_HBM, [PORT_DM] = FIELD_DM, [PORT_TRF] = FIELD_TRF, [PORT_STREAM] = FIELD_PORT, [PORT_VRF] = FIELD_VRF};
    switch (e->kind) {
    case FIELD_LOAD: return spaces[m->plans->kernel->ports[e->port].space] == space;
    case FIELD_DMA: return (command_get(e->commands, DMA_DESTINATION) ? FIELD_DM : FIELD_HBM) == space;
    default:
        for (unsigned i = 0; i < e->range_count; i++)
            if (e->ranges[i].space == space)
                return true;
        return false;
    }
}

struct field_trace *field_trace_new(field_machine *m)
{
    struct field_trace *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->machine = m;
    t->plans = calloc(m->event_count + 1, sizeof(chain *));
    t->numbers = calloc(m->plans->kernel->port_count + 1, sizeof *t->numbers);
    bool ok = t->plans && t->numbers;
    for (int s = 0; s < FIELD_SPACES; s++) {
        t->writers[s] = calloc(m->event_count + 1, sizeof(size_t));
        ok = ok && t->writers[s];
        for (size_t i = 0; ok && i < m->event_count; i++)
            if (writes_to(m, &m->events[i], (field_space)s))
                t->writers[s][t->writer_count[s]++] = i;
    }
    if (ok)
        return t;
    field_trace_free(t);
    return NULL;
}

void field_trace_free(struct field_trace *t)
{
    if (!t)
        return;
    for (size_t i = 0; t->plans && i < t->machine->event_count; i++)
        free(t->plans[i]);
    for (int s = 0; s < FIELD_SPACES; s++)
        free(t->writers[s]);
    for (uint32_t i = 0; t->numbers && i < t->machine->plans->kernel->port_count; i++)
        free(t->numbers[i].list);
    free(t->numbers);
    free(t->plans);
    field_known_free(&t->known);
    free(t);
}

void field_trace_terms(struct field_trace *t, field_terms *terms)
{
    t->terms = terms;
}

field_terms *field_trace_noting(const struct field_trace *t)
{
    return t ? t->terms : NULL;
}

static bool give_up(struct field_trace *t, const char *what, fault *f)
{
    t->given_up = true;
    return fault_set(f, E_RUN_LIMIT, NULL, "%s", what);
}

static const chain *plan_of(struct field_trace *t, size_t time, fault *f)
{
    if (t->plans[time])
        return t->plans[time];
    chain *c = t->plan_count < MOST_PLANS ? malloc(sizeof *c) : NULL;
    if (!c) {
        give_up(t, "too many chains to trace a value through", f);
        return NULL;
    }
    if (!field_event_plan(t->machine, time, c, f)) {
        free(c);
        return NULL;
    }
    t->plan_count++;
    t->plans[time] = c;
    return c;
}

/* ---- who wrote a cell ---- */

/* The element of an input at a position; -1: none. */
static int64_t input_element(struct field_trace *t, uint32_t index, int64_t position)
{
    field_numbers *n = &t->numbers[index];
    bool known = n->in_order || n->list || field_port_numbers(t->machine, index, n);
    return known ? field_number_at(n, position) : field_port_element(t->machine, index, position);
}

typedef struct location {
    field_event_kind kind;
    bool written, zeros; /* zeros: by a transfer without a source */
    size_t time;
    int64_t unit, element;
    dtype type;
    unsigned part;
    int64_t bits; /* side by side from the cell on that come from the same place */
} location;

static bool unit_selected(const field_machine *m, const unit_mask *u, int64_t unit)
{
    const target *t = m->plans->target;
    int64_t slice = unit % t->slices_per_cluster, cluster = unit / t->slices_per_cluster % t->clusters_per_chip,
            chip = unit / t->slices_per_cluster / t->clusters_per_chip;
    return u->chips >> chip & 1 && u->clusters >> cluster & 1 && u->slices[slice / 64 % 4] >> slice % 64 & 1;
}

/* May the event write one of the bits of that memory? Its own range is taken as a whole. */
static bool may_write(const field_machine *m, const field_event *e, const field_place *at, int64_t bits)
{
    switch (e->kind) {
    case FIELD_LOAD: return at->bit + bits > m->plans->kernel->ports[e->port].address * 8;
    case FIELD_DMA: return at->bit < e->inner_end * 8 && at->bit + bits > e->inner_low * 8;
    default:
        for (unsigned i = 0; i < e->range_count; i++) {
            const field_range *r = &e->ranges[i];
            if (r->space == at->space && at->bit < r->end_bit && at->bit + bits > r->low_bit &&
                (at->space != FIELD_PORT || at->number == r->port))
                return at->space == FIELD_PORT || unit_selected(m, &e->out_units, at->number);
        }
        return false;
    }
}

/* The slice whose part of a stream port has the bit; -1: none. */
static int64_t port_unit(const field_machine *m, const field_place *at)
{
    const stream_port *p = &m->plans->streams[at->number];
    int64_t position = at->bit / dtype_row_of(m->plans->kernel->ports[at->number].dtype)->bits / p->packet_elements / p->steps / p->rows;
    int64_t slice = position % p->slices, cluster = position / p->slices % p->clusters, chip = position / p->slices / p->clusters;
    return chip < p->chips ? machine_unit_index(m->plans, chip, cluster, slice) : -1;
}

static bool opened(struct field_trace *t, size_t time, int64_t unit, field_run *r, fault *f)
{
    const chain *c = plan_of(t, time, f);
    return c && field_run_open(r, t->machine, c, time, unit, f);
}

/* Does the event have written the cell? Then where from. limit: packets of this DMA before which to look; -1:
 * all. */
static bool wrote(struct field_trace *t, size_t time, const field_place *at, int64_t limit, location *l, field_place *from, int64_t *packet,
                  fault *f)
{
    const field_machine *m = t->machine;
    const field_event *e = &m->events[time];
    *l = (location){.kind = e->kind, .written = true, .time = time};
    if (e->kind == FIELD_DMA) {
        *packet = field_dma_source(m, e, at, limit, from, &l->bits);
        l->zeros = *packet >= 0 && command_get(e->commands, DMA_SOURCE) == COPY_NONE;
        if (*packet == -2)
            give_up(t, "a transfer is too irregular to be traced", f);
        return *packet >= 0;
    }
    if (e->kind == FIELD_LOAD) {
        int64_t position = field_port_find(m, e->port, at, &l->part);
        l->element = position < 0 ? -1 : position;
        l->type = m->plans->kernel->ports[e->port].dtype;
        if (position < 0 || input_element(t, e->port, position) < 0)
            return false;
        field_place to;
        int64_t bits = dtype_row_of(l->type)->bits;
        l->bits = field_port_place(m, e->port, position, &to) * bits - l->part * FIELD_CELL_BITS;
        return true;
    }
    l->unit = at->space == FIELD_PORT ? port_unit(m, at) : at->number;
    if (l->unit < 0 || !unit_selected(m, &e->out_units, l->unit))
        return false;
    field_run r;
    if (!opened(t, time, l->unit, &r, f))
        return false;
    field_stage_run *sink = &r.stages[r.stage_count - 1];
    int64_t count = 0;
    l->element = sink->stage->type->field->find(sink, at, &count, &l->part);
    l->type = sink->stage->stored;
    l->bits = count * (int64_t)dtype_row_of(l->type)->bits - l->part * FIELD_CELL_BITS;
    field_run_close(&r);
    if (l->element == -2)
        give_up(t, "a commit is too irregular to be traced", f);
    return l->element >= 0;
}

/* A later event has not written the cell. How many bits from there on has it certainly not written? `width`:
 * of an element, which is looked at cell by cell. */
static int64_t untouched(struct field_trace *t, size_t time, const field_place *at, int64_t bits, int64_t width, int64_t limit, fault *f)
{
    location l;
    field_place from, cell = *at;
    int64_t packet;
    if (!may_write(t->machine, &t->machine->events[time], at, bits))
        return bits;
    for (int64_t i = FIELD_CELL_BITS; i < width && i < bits; i += FIELD_CELL_BITS) {
        cell.bit = at->bit + i;
        if (wrote(t, time, &cell, limit, &l, &from, &packet, f))
            return i;
    }
    return smaller(width, bits);
}

/* Follows transfers to the chain or input that made what is at `at` before event number `time`. */
static location locate(struct field_trace *t, field_place at, int64_t bits, int64_t width, size_t time, fault *f)
{
    location l = {.written = false};
    int64_t limit = -1, packet = -1;
    for (bool again = true; again && !f->set;) {
        const size_t *writers = t->writers[at.space];
        size_t count = t->writer_count[at.space];
        again = false;
        while (count > 0 && writers[count - 1] >= time + (limit >= 0))
            count--;
        for (; count > 0 && !f->set; count--) {
            size_t i = writers[count - 1];
            int64_t before = i == time ? limit : -1;
            field_place from;
            if (!may_write(t->machine, &t->machine->events[i], &at, bits))
                continue;
            if (!wrote(t, i, &at, before, &l, &from, &packet, f)) {
                bits = untouched(t, i, &at, bits, width, before, f);
                l.written = false;
                continue;
            }
            bits = smaller(bits, l.bits);
            if (l.kind != FIELD_DMA || l.zeros)
                break;
            again = true;
            at = from;
            time = i;
            limit = t->machine->events[i].overlaps ? packet : -1;
            l.written = false;
            break;
        }
    }
    l.bits = bits;
    return l;
}

/* ---- values ---- */

/* Does the chain compute? Then what an element costs is what it is made of, and others may ask for it again. */
static bool computes(const chain *c)
{
    return chain_part(c, &stage_contract) || chain_part(c, &stage_vector) || chain_part(c, &stage_vector_slices);
}

/* Elements of a sink, side by side. What was computed is kept. */
static void read_chain(struct field_trace *t, const location *l, int64_t count, field_value *out, fault *f)
{
    field_run r;
    if (t->depth >= MOST_DEPTH) {
        give_up(t, "too many chains depend on each other for a value to be traced", f);
        return;
    }
    if (!opened(t, l->time, l->unit, &r, f))
        return;
    bool keeps = computes(r.chain) && !(t->terms && t->terms->depth == 0);
    field_stage_run *sink = &r.stages[r.stage_count - 1];
    t->depth++;
    for (int64_t i = 0; i < count && !f->set; i++) {
        field_known_key key = {l->time, l->unit, l->element + i};
        if (!keeps) {
            sink->stage->type->field->read(sink, l->element, count, out);
            break;
        }
        out[i] = field_known_find(&t->known, key);
        if (out[i] != FIELD_NOTHING)
            continue;
        sink->stage->type->field->read(sink, l->element + i, 1, out + i);
        field_known_add(&t->known, key, out[i]);
    }
    t->depth--;
    field_run_close(&r);
}

static void read_location(struct field_trace *t, const location *l, int64_t count, field_value *out, fault *f)
{
    const field_machine *m = t->machine;
    uint32_t number = m->events[l->time].port;
    if (l->kind == FIELD_CHAIN)
        read_chain(t, l, count, out, f);
    else
        for (int64_t i = 0; i < count; i++) {
            int64_t element = input_element(t, number, l->element + i);
            out[i] = element < 0 ? FIELD_NOTHING : field_inputs_value(&m->inputs, number, (uint64_t)element);
        }
}

/* An element whose cells come from several places, or were written otherwise. */
static field_value read_cells(struct field_trace *t, const field_place *at, dtype type, size_t time, field_unknowns *u, fault *f)
{
    field_cell cells[32 / FIELD_CELL_BITS] = {{0}};
    for (unsigned i = 0; i < dtype_row_of(type)->bits / FIELD_CELL_BITS && !f->set; i++) {
        field_place cell = *at;
        cell.bit += i * FIELD_CELL_BITS;
        location l = locate(t, cell, FIELD_CELL_BITS, FIELD_CELL_BITS, time, f);
        if (!l.written || f->set)
            continue;
        cells[i] = field_cell_zero();
        if (l.zeros)
            continue;
        read_location(t, &l, 1, &cells[i].value, f);
        cells[i] = (field_cell){cells[i].value, l.type, (unsigned char)l.part, true};
    }
    field_value v = field_cells_read(cells, type, u);
    for (unsigned i = 0; i < dtype_row_of(type)->bits / FIELD_CELL_BITS; i++)
        if (!cells[i].written) {
            t->unwritten[t->unwritten_count++ % REMEMBERED] = v;
            break;
        }
    return v;
}

bool field_trace_unwritten(const struct field_trace *t, field_value v)
{
    for (size_t i = 0; i < REMEMBERED && i < t->unwritten_count; i++)
        if (t->unwritten[i] == v)
            return true;
    return false;
}

void field_trace_read(struct field_trace *t, const field_place *at, dtype type, int64_t stride, int64_t count, size_t time,
                      field_value *out, field_unknowns *u, fault *f)
{
    int64_t bits = dtype_row_of(type)->bits;
    for (int64_t i = 0, n; i < count && !f->set; i += n) {
        field_place cell = *at;
        cell.bit += i * stride * bits;
        location l = locate(t, cell, stride == 1 ? (count - i) * bits : bits, bits, time, f);
        n = 1;
        if (f->set)
            return;
        if (l.zeros && l.bits >= bits) {
            n = l.bits / bits;
            memset(out + i, 0, (size_t)n * sizeof *out);
            continue;
        }
        if (!l.written || l.zeros || l.type != type || l.part != 0 || l.bits < bits) {
            out[i] = read_cells(t, &cell, type, time, u, f);
            continue;
        }
        n = l.bits / bits;
        read_location(t, &l, n, out + i, f);
        for (int64_t j = 0; j < n; j++)
            if (out[i + j] == FIELD_NOTHING) { /* a dead position of an input: nobody wrote it, or somebody before */
                field_place dead = cell;
                dead.bit += j * bits;
                out[i + j] = read_cells(t, &dead, type, time, u, f);
            }
    }
}
