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

/* Where elements came from: `count` of them, which are `apart` from each other there. */
typedef struct location {
    field_event_kind kind;
    bool written, zeros; /* zeros: by a transfer without a source */
    size_t time;
    int64_t unit, element;
    dtype type;
    unsigned part;
    int64_t count, apart; /* count 0: the first is not in one piece. Of a chain its list says which they are */
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

/* Elements that stand side by side where it came from, `left` of them: how many are asked for. */
static void count_side_by_side(location *l, const field_cells *of, int64_t left)
{
    int64_t bits = dtype_row_of(l->type)->bits;
    bool whole = bits == of->width && of->apart % bits == 0 && l->part == 0;
    l->apart = whole ? of->apart / bits : 0;
    l->count = whole ? smaller((left - 1) / larger(l->apart, 1) + 1, of->count) : left * bits - l->part * FIELD_CELL_BITS >= of->width;
}

/* Elements of a sink, of which l->element is the first that was asked for: as many others as are known. */
static void find_others(const field_stage_run *sink, const field_cells *of, location *l, field_spans *found)
{
    const field_stage *type = sink->stage->type->field;
    bool asks = l->apart > 0 && l->count < of->count && type->follow;
    found->count = 0;
    int64_t more = asks ? type->follow(sink, l->element, of->apart, of->count, found) : 0;
    if (more < l->count) {
        found->count = 0;
        field_spans_add(found, (field_span){l->element, l->apart, l->count});
    }
    l->count = larger(more, l->count);
}

/* Has the event written the first cell? Then where from, and as many others as are known to come from there (elements of a chain, where
 * there are more than one: `found`). limit: packets of this DMA before which to look; -1: all. */
static bool wrote(struct field_trace *t, size_t time, const field_cells *of, int64_t limit, location *l, field_spans *found,
                  field_cells *from, int64_t *packet, fault *f)
{
    const field_machine *m = t->machine;
    const field_event *e = &m->events[time];
    const field_place *at = &of->at;
    *l = (location){.kind = e->kind, .written = true, .time = time};
    if (e->kind == FIELD_DMA) {
        *packet = field_dma_source(m, e, of, limit, from);
        l->zeros = *packet >= 0 && command_get(e->commands, DMA_SOURCE) == COPY_NONE;
        l->count = from->count;
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
        count_side_by_side(l, of, field_port_place(m, e->port, position, &to));
        return true;
    }
    l->unit = at->space == FIELD_PORT ? port_unit(m, at) : at->number;
    if (l->unit < 0 || !unit_selected(m, &e->out_units, l->unit))
        return false;
    const chain *c = plan_of(t, time, f);
    if (!c)
        return false;
    field_run r = field_run_unopened(t->machine, c, time, l->unit, f);
    const field_stage_run sink = {.stage = chain_sink(c), .run = &r};
    int64_t left = 0;
    l->element = sink.stage->type->field->find(&sink, at, &left, &l->part);
    l->type = sink.stage->stored;
    count_side_by_side(l, of, left);
    if (of->count > 1 && l->element >= 0)
        find_others(&sink, of, l, found);
    if (l->element == -2)
        give_up(t, "a commit is too irregular to be traced", f);
    return l->element >= 0;
}

static int64_t bits_reached(const field_cells *of)
{
    return (of->count - 1) * of->apart + of->width;
}

/* A later event has not written the first cell. How many of the elements has it certainly not written, the first one with all its cells? */
static int64_t untouched(struct field_trace *t, size_t time, const field_cells *of, int64_t limit, field_spans *found, fault *f)
{
    location l;
    field_cells from, cell = *of;
    int64_t packet;
    while (cell.count > 1 && may_write(t->machine, &t->machine->events[time], &cell.at, bits_reached(&cell)))
        cell.count /= 2;
    if (cell.count > 1)
        return cell.count;
    cell.apart = cell.width = FIELD_CELL_BITS;
    for (int64_t i = FIELD_CELL_BITS; i < of->width; i += FIELD_CELL_BITS) {
        cell.at.bit = of->at.bit + i;
        if (wrote(t, time, &cell, limit, &l, found, &from, &packet, f))
            return 0;
    }
    return 1;
}

/* Follows transfers to the chain or input that made the first element before event number `time`, and as many of the others as come the
 * same way. */
static location locate(struct field_trace *t, field_cells of, size_t time, field_spans *found, fault *f)
{
    location l = {.written = false};
    int64_t limit = -1, packet = -1;
    for (bool again = true; again && of.count > 0 && !f->set;) {
        const size_t *writers = t->writers[of.at.space];
        size_t count = t->writer_count[of.at.space];
        again = false;
        while (count > 0 && writers[count - 1] >= time + (limit >= 0))
            count--;
        for (; count > 0 && of.count > 0 && !f->set; count--) {
            size_t i = writers[count - 1];
            int64_t before = i == time ? limit : -1;
            field_cells from;
            if (!may_write(t->machine, &t->machine->events[i], &of.at, bits_reached(&of)))
                continue;
            if (!wrote(t, i, &of, before, &l, found, &from, &packet, f)) {
                of.count = untouched(t, i, &of, before, found, f);
                l.written = false;
                continue;
            }
            of.count = smaller(of.count, l.count);
            if (l.kind != FIELD_DMA || l.zeros)
                break;
            again = true;
            of = (field_cells){from.at, from.apart, of.count, of.width};
            time = i;
            limit = t->machine->events[i].overlaps ? packet : -1;
            l.written = false;
            break;
        }
    }
    l.count = of.count;
    return l;
}

/* ---- values ---- */

/* Does the chain compute? Then what an element costs is what it is made of, and others may ask for it again. */
static bool computes(const chain *c)
{
    return chain_part(c, &stage_contract) || chain_part(c, &stage_vector) || chain_part(c, &stage_vector_slices);
}

/* Elements of a sink, by list. What was computed is kept. */
static void read_chain(struct field_trace *t, size_t time, int64_t unit, const field_spans *elements, field_value *out, fault *f)
{
    field_run r;
    if (t->depth >= MOST_DEPTH) {
        give_up(t, "too many chains depend on each other for a value to be traced", f);
        return;
    }
    const chain *c = plan_of(t, time, f);
    if (!c || !field_run_open(&r, t->machine, c, time, unit, f))
        return;
    bool keeps = computes(r.chain) && !(t->terms && t->terms->depth == 0);
    field_stage_run *sink = &r.stages[r.stage_count - 1];
    t->depth++;
    if (!keeps)
        field_stage_read_spans(sink, elements->items, elements->count, out);
    for (size_t i = 0; keeps && i < elements->count; out += elements->items[i++].count)
        for (int64_t j = 0; j < elements->items[i].count && !f->set; j++) {
            field_known_key key = {time, unit, elements->items[i].first + j * elements->items[i].apart};
            out[j] = field_known_find(&t->known, key);
            if (out[j] != FIELD_NOTHING)
                continue;
            sink->stage->type->field->read(sink, key.element, 1, out + j);
            field_known_add(&t->known, key, out[j]);
        }
    t->depth--;
    field_run_close(&r);
}

static void read_input(struct field_trace *t, const location *l, field_value *out)
{
    const field_machine *m = t->machine;
    uint32_t number = m->events[l->time].port;
    if (t->numbers[number].in_order) {
        field_inputs_run(&m->inputs, number, l->element, l->apart, l->count, out);
        return;
    }
    for (int64_t i = 0; i < l->count; i++) {
        int64_t element = input_element(t, number, l->element + i * l->apart);
        out[i] = element < 0 ? FIELD_NOTHING : field_inputs_value(&m->inputs, number, (uint64_t)element);
    }
}

/* An element whose cells come from several places, or were written otherwise. */
static field_value read_cells(struct field_trace *t, const field_place *at, dtype type, size_t time, field_unknowns *u, fault *f)
{
    field_cell cells[32 / FIELD_CELL_BITS] = {{0}};
    field_spans found = {0};
    for (unsigned i = 0; i < dtype_row_of(type)->bits / FIELD_CELL_BITS && !f->set; i++) {
        field_place cell = *at;
        cell.bit += i * FIELD_CELL_BITS;
        location l = locate(t, (field_cells){cell, FIELD_CELL_BITS, 1, FIELD_CELL_BITS}, time, &found, f);
        if (!l.written || f->set)
            continue;
        cells[i] = field_cell_zero();
        if (l.zeros)
            continue;
        field_span one = {l.element, 1, 1};
        if (l.kind == FIELD_CHAIN)
            read_chain(t, l.time, l.unit, &(field_spans){&one, 1, 1, false}, &cells[i].value, f);
        else
            read_input(t, &l, &cells[i].value);
        cells[i] = (field_cell){cells[i].value, l.type, (unsigned char)l.part, true};
    }
    field_spans_free(&found);
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

/* What a chain wrote in a slice, which is asked for together. */
typedef struct part_read {
    size_t time;
    int64_t unit;
    field_spans elements, found; /* found: those that were located last, of this chain or another one */
    field_value *out;
} part_read;

static void read_part(struct field_trace *t, part_read *p, fault *f)
{
    if (p->elements.failed || p->found.failed)
        fault_memory(f, NULL, "what a value is traced back to");
    else if (p->elements.count > 0)
        read_chain(t, p->time, p->unit, &p->elements, p->out, f);
    p->elements.count = 0;
}

/* Elements of an input; those that it does not have nobody wrote, or somebody before. */
static void read_loaded(struct field_trace *t, const location *l, field_cells of, dtype type, size_t time, field_value *out,
                        field_unknowns *u, fault *f)
{
    read_input(t, l, out);
    for (int64_t i = 0; i < l->count; i++, of.at.bit += of.apart)
        if (out[i] == FIELD_NOTHING)
            out[i] = read_cells(t, &of.at, type, time, u, f);
}

void field_trace_read(struct field_trace *t, const field_place *at, dtype type, const field_spans *bits, size_t time, field_value *out,
                      field_unknowns *u, fault *f)
{
    part_read part = {.out = out};
    for (size_t i = 0; i < bits->count; i++)
        for (int64_t done = 0, n; done < bits->items[i].count && !f->set; done += n, out += n) {
            const field_span *s = &bits->items[i];
            field_cells of = {{at->space, at->number, s->first + done * s->apart}, s->apart, s->count - done, dtype_row_of(type)->bits};
            of.count = s->apart > 0 ? of.count : 1;
            location l = locate(t, of, time, &part.found, f);
            bool whole = l.written && l.count > 0 && (l.zeros || (l.type == type && l.part == 0)),
                 computed = whole && l.kind == FIELD_CHAIN;
            n = whole ? l.count : 1;
            if (f->set || !computed || l.time != part.time || l.unit != part.unit)
                read_part(t, &part, f);
            if (f->set)
                break;
            if (computed) {
                part = part.elements.count > 0 ? part : (part_read){l.time, l.unit, part.elements, part.found, out};
                if (n == 1)
                    field_spans_add(&part.elements, (field_span){l.element, 1, 1});
                for (size_t j = 0; j < part.found.count && n > 1; j++)
                    field_spans_add(&part.elements, part.found.items[j]);
            } else if (!whole) {
                *out = read_cells(t, &of.at, type, time, u, f);
            } else if (l.zeros) {
                memset(out, 0, (size_t)n * sizeof *out);
            } else {
                read_loaded(t, &l, of, type, time, out, u, f);
            }
        }
    if (!f->set)
        read_part(t, &part, f);
    field_spans_free(&part.elements);
    field_spans_free(&part.found);
}
