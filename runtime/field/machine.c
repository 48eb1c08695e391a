#include <stdlib.h>
#include <string.h>

#include "codegen/copy_command.h"
#include "runtime/engine/exchange.h"
#include "runtime/field/engine.h"
#include "runtime/field/sums.h"
#include "runtime/machine/launch.h"
#include "runtime/machine/parallel.h"
#include "runtime/machine/port.h"
#include "runtime/tensor/port_data.h"
#include "support/integer.h"

enum { CONTEXTS = 3, MOST_WORKERS = 64, SINK_BLOCK = 4096 /* elements of a sink that are asked for at once */ };

/* ---- events ---- */

static field_event *event_new(field_machine *m, field_event_kind kind)
{
    ARENA_PUSH(m->plans->arena, m->events, m->event_count, m->event_capacity, (field_event){.kind = kind});
    return &m->events[m->event_count - 1];
}

/* Every stage that a chain can have has its twin. */
static bool has_twins(const chain *c, fault *f)
{
    for (unsigned i = 0; i < c->stage_count; i++)
        if (!c->stages[i].type->field)
            return fault_set(f, E_RUN_CHAIN, c->commands, "the machine over a field has no %s", command_row_of(c->stages[i].op)->name);
    return true;
}

static stream_port *port_of(const field_machine *m, const stage *s)
{
    if (s->op == OP_STREAM_IN)
        return &m->plans->streams[command_get(s->commands, STREAM_IN_PORT)];
    if (s->op == OP_STREAM_OUT)
        return &m->plans->streams[command_get(s->commands, STREAM_OUT_PORT)];
    return NULL;
}

static void keep_cursors(field_machine *m, const chain *c, field_event *e)
{
    const stage *ends[] = {chain_source(c), chain_sink(c)};
    for (int i = 0; i < 2; i++) {
        const stream_port *p = port_of(m, ends[i]);
        if (!p)
            continue;
        e->cursors[i] = ARENA_ARRAY(m->plans->arena, int64_t, (size_t)p->unit_count);
        memcpy(e->cursors[i], p->cursors, (size_t)p->unit_count * sizeof *p->cursors);
    }
}

static void count_work(field_machine *m, const chain *c, size_t units)
{
    const contraction *k = chain_contraction(c);
    bool named = field_sums_named(c);
    double each =
        (double)chain_source(c)->out.packets * (double)chain_source(c)->out.packet_elements + (double)chain_sink(c)->in.packets * 32;
    double products = k ? (double)k->steps * (double)(k->rows * k->lanes) : 0;
    m->work += (each + products) * (double)units;
    m->named_products += named ? products * (double)units : 0;
}

static bool read_chain(field_machine *m, int number, const command *c, int64_t *units, fault *f)
{
    machine *p = m->plans;
    chain *k = p->chain;
    size_t available = p->kernel->streams[number].count - p->done[number];
    if (!chain_plan(k, p, &p->masks[number], c, available, f) || !has_twins(k, f))
        return false;
    for (size_t i = 0; i < k->count; i++)
        if (!(command_row_of(c[i].op)->contexts >> number & 1))
            return fault_set(f, E_RUN_CHAIN, &c[i], "may not stand in the %s context", context_name((context)number));
    field_event *e = event_new(m, FIELD_CHAIN);
    e->commands = c;
    e->available = available;
    e->units = k->units;
    e->out_units = k->out_units;
    e->range_count = chain_sink(k)->type->field->ranges(chain_sink(k), e->ranges);
    keep_cursors(m, k, e);
    count_work(m, k, unit_mask_list(m->plans, &e->out_units, -1, units));
    for (unsigned i = 0; i < k->stage_count; i++)
        if (k->stages[i].type->advance)
            k->stages[i].type->advance(&k->stages[i], units, unit_mask_list(m->plans, i ? &e->out_units : &e->units, -1, units));
    p->done[number] += k->count;
    return true;
}

static bool read_dma(field_machine *m, const command *c, fault *f)
{
    field_event *e = event_new(m, FIELD_DMA);
    e->commands = c;
    if (!field_dma_plan(m, e, f))
        return false;
    double packets = 1;
    for (unsigned i = 0; i < c->entry_count; i++)
        packets *= (double)command_entry(c, i, DMA_ENTRY_SIZE);
    m->work += packets * (double)command_get(c, DMA_PACKET_BYTES);
    return true;
}

static void count_copy(field_machine *m, const command *c)
{
    copy_command k = copy_command_read(c);
    double bytes = (double)k.packet_bytes;
    for (unsigned i = 0; i < k.count; i++)
        bytes *= (double)k.size[i];
    m->work += bytes;
}

static bool read_command(field_machine *m, int number, const command *c, int64_t *units, fault *f)
{
    switch (c->op) {
    case OP_WAIT: break;
    case OP_GUARD:
        if (!guard_check(m->plans, number, c, f))
            return false;
        if (!launch_lets_run(m->plans->kernel, c, m->inputs.numbers))
            m->plans->done[number] += (size_t)command_get(c, GUARD_COMMANDS);
        break;
    case OP_UNITS:
        if (number == CONTEXT_DMA)
            return fault_set(f, E_RUN_CHAIN, c, "may not stand in the %s context", context_name((context)number));
        unit_mask_select(&m->plans->masks[number], c);
        break;
    case OP_DMA:
        if (number != CONTEXT_DMA)
            return fault_set(f, E_RUN_CHAIN, c, "may not stand in the %s context", context_name((context)number));
        if (!read_dma(m, c, f))
            return false;
        break;
    case OP_DMA_INDIRECT:
        if (number != CONTEXT_DMA)
            return fault_set(f, E_RUN_CHAIN, c, "may not stand in the %s context", context_name((context)number));
        event_new(m, FIELD_INDIRECT)->commands = c;
        count_copy(m, c);
        break;
    default: return read_chain(m, number, c, units, f);
    }
    m->plans->done[number]++;
    return true;
}

/* In the order in which the machine of bytes serves the contexts. */
static bool read_streams(field_machine *m, int64_t *units, fault *f)
{
    machine *p = m->plans;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < CONTEXTS; i++)
            while (p->done[i] < p->kernel->streams[i].count) {
                const command *c = &p->kernel->streams[i].commands[p->done[i]];
                if (c->op == OP_WAIT && p->done[command_get(c, WAIT_CONTEXT)] < (size_t)command_get(c, WAIT_COUNT))
                    break;
                if (!read_command(m, i, c, units, f))
                    return false;
                moved = true;
            }
    }
    for (int i = 0; i < CONTEXTS; i++)
        if (p->done[i] < p->kernel->streams[i].count)
            return fault_set(f, E_RUN_DEADLOCK, &p->kernel->streams[i].commands[p->done[i]], "waits for commands that never complete");
    return true;
}

static field_memory *memories_new(field_machine *m, int64_t count, int64_t bytes)
{
    field_memory *list = ARENA_ARRAY(m->plans->arena, field_memory, (size_t)count);
    for (int64_t i = 0; i < count; i++)
        field_memory_init(&list[i], bytes * 8, &m->budget);
    return list;
}

/* Where the ports do not fit the machine, nobody knows what is where. */
static bool ports_fit(const field_machine *m, diag_list *diags)
{
    const machine *p = m->plans;
    for (uint32_t i = 0; i < p->kernel->port_count; i++) {
        const port *at = &p->kernel->ports[i];
        int64_t units = 1;
        for (int c = COMPONENT_CHIP; c <= COMPONENT_SLICE; c++)
            units *= at->mapping[c].count ? layout_size(at->mapping[c], p->kernel->axes) : 1;
        int64_t bytes = machine_port_bytes(p, i);
        int64_t capacity = at->space == PORT_HBM   ? p->target->hbm_bytes_per_chip
                           : at->space == PORT_DM  ? p->target->dm_bytes_per_slice
                           : at->space == PORT_VRF ? p->target->vrf_bytes
                           : at->space == PORT_TRF ? target_trf_capacity_bytes(p->target, at->trf_address)
                                                   : INT64_MAX;
        if (bytes >= 0 && at->address <= capacity && ceil_div(bytes, units) <= capacity - at->address)
            continue;
        diag_add(diags, E_RUN_ACCESS, SRC_NOWHERE, "port %s does not fit the machine at address %lld", at->name, (long long)at->address);
        return false;
    }
    return true;
}

uint64_t field_machine_seed(uint64_t seed)
{
    return field_hash(seed, UINT64_C(0x616c6765627261));
}

field_machine *field_machine_new(const target *t, const binary_kernel *k, uint64_t seed, unsigned threads, arena *a, diag_list *diags)
{
    field_machine *m = ARENA_NEW(a, field_machine);
    machine_options options = {.poison = 0};
    *m = (field_machine){.plans = machine_new(t, k, a, &options), .seed = field_machine_seed(seed), .threads = threads};
    m->faults = ARENA_ARRAY(a, fault, MOST_WORKERS);
    m->inputs = field_inputs_new(k, m->seed, a);
    pthread_mutex_init(&m->ports_lock, NULL);
    m->hbm = memories_new(m, t->chips, t->hbm_bytes_per_chip);
    m->dm = memories_new(m, m->plans->unit_count, t->spm_base_bytes + t->spm_bytes_per_pe);
    m->trf = memories_new(m, m->plans->unit_count, t->trf_bytes);
    m->vrf = memories_new(m, m->plans->unit_count, t->vrf_bytes);
    m->ports = ARENA_ARRAY(a, field_memory, (size_t)k->port_count + 1);
    if (!ports_fit(m, diags))
        return NULL;
    for (uint32_t i = 0; i < k->port_count; i++) {
        field_memory_init(&m->ports[i], larger(k->ports[i].space == PORT_STREAM ? machine_port_bytes(m->plans, i) : 0, 1) * 8, &m->budget);
        if (k->ports[i].direction == PORT_IN)
            event_new(m, FIELD_LOAD)->port = i;
    }
    fault f = {0};
    int64_t *units = ARENA_ARRAY(a, int64_t, (size_t)m->plans->unit_count);
    if (read_streams(m, units, &f))
        return m;
    fault_report(&f, k->name, diags);
    field_machine_free(m);
    return NULL;
}

void field_machine_free(field_machine *m)
{
    if (!m)
        return;
    for (int64_t i = 0; i < m->plans->target->chips; i++)
        field_memory_free(&m->hbm[i]);
    for (int64_t i = 0; i < m->plans->unit_count; i++) {
        field_memory_free(&m->dm[i]);
        field_memory_free(&m->trf[i]);
        field_memory_free(&m->vrf[i]);
    }
    for (uint32_t i = 0; i < m->plans->kernel->port_count; i++)
        field_memory_free(&m->ports[i]);
    field_trace_free(m->trace);
    m->trace = NULL;
    pthread_mutex_destroy(&m->ports_lock);
    machine_free(m->plans);
}

field_memory *field_memory_of(const field_machine *m, const field_place *at)
{
    field_memory *const lists[FIELD_SPACES] = {m->hbm, m->dm, m->trf, m->ports, m->vrf};
    return &lists[at->space][at->number];
}

/* What is read there: for a slice that ran before, what it found. */
static const field_memory *memory_for(const field_run *r, const field_place *at)
{
    if (r->kept && (at->space == FIELD_DM || at->space == FIELD_TRF))
        return &r->kept[at->space == FIELD_DM ? FIELD_KEPT_DM : FIELD_KEPT_TRF];
    return field_memory_of(r->machine, at);
}

void field_read(field_run *r, const field_place *at, dtype type, int64_t stride, int64_t count, field_value *out)
{
    if (r->machine->trace) {
        field_span one = {at->bit, stride * dtype_row_of(type)->bits, count};
        field_trace_read(r->machine->trace, at, type, &(field_spans){&one, 1, 1, false}, r->time, out, &r->unknowns, r->fault);
        return;
    }
    field_memory_read(memory_for(r, at), at->bit, type, stride, count, out, &r->unknowns);
    for (int64_t i = 0; r->computes && i < count; i++)
        if (field_is_name(out[i]))
            r->machine->named = true;
}

void field_read_spans(field_run *r, const field_place *at, dtype type, const field_spans *bits, field_value *out)
{
    int64_t each = dtype_row_of(type)->bits;
    if (r->machine->trace) {
        field_trace_read(r->machine->trace, at, type, bits, r->time, out, &r->unknowns, r->fault);
        return;
    }
    for (size_t i = 0; i < bits->count; out += bits->items[i++].count)
        for (int64_t j = 0; j < bits->items[i].count; j++) {
            field_place one = {at->space, at->number, bits->items[i].first + j * bits->items[i].apart};
            field_read(r, &one, type, each, 1, out + j);
        }
}

/* ---- chains in a slice ---- */

static int64_t cursor_of(const field_machine *m, const field_event *e, const stage *s, int end, int64_t unit)
{
    const stream_port *p = port_of(m, s);
    int64_t position = p ? stream_port_position(p, m->plans->target, unit) : -1;
    return position < 0 ? 0 : e->cursors[end][position];
}

field_run field_run_unopened(field_machine *m, const chain *c, size_t time, int64_t unit, fault *f)
{
    const field_event *e = &m->events[time];
    return (field_run){.machine = m,
                       .chain = c,
                       .time = time,
                       .unit = unit,
                       .fault = f,
                       .stage_count = c->stage_count,
                       .cursors = {cursor_of(m, e, chain_source(c), 0, unit), cursor_of(m, e, chain_sink(c), 1, unit)},
                       .unknowns = {.seed = m->seed, .key = field_hash(time, (uint64_t)unit)}};
}

bool field_run_open(field_run *r, field_machine *m, const chain *c, size_t time, int64_t unit, fault *f)
{
    *r = field_run_unopened(m, c, time, unit, f);
    size_t bytes = c->stage_count * sizeof *r->stages;
    for (unsigned i = 0; i < c->stage_count; i++)
        bytes += (c->stages[i].type->field->state_bytes + 15) / 16 * 16;
    r->stages = calloc(1, bytes);
    if (!r->stages)
        return fault_memory(f, c->commands, "the state of a slice");
    unsigned char *state = (unsigned char *)(r->stages + c->stage_count);
    for (unsigned i = 0; i < c->stage_count; i++) {
        const field_stage *type = c->stages[i].type->field;
        r->stages[i] = (field_stage_run){&c->stages[i], r, i ? &r->stages[i - 1] : NULL, state};
        state += (type->state_bytes + 15) / 16 * 16;
        if (type->open && !type->open(&r->stages[i])) {
            r->stage_count = i + 1;
            field_run_close(r);
            return f->set ? false : fault_memory(f, c->commands, "the state of a slice");
        }
    }
    return true;
}

/* The stage before it in another slice, whose run is `elsewhere`. */
static field_stage_run before_in(const field_stage_run *r, int64_t unit, field_run *elsewhere)
{
    field_stage_run before = *r->before;
    const field_event *e = &r->run->machine->events[r->run->time];
    *elsewhere = *r->run;
    elsewhere->unit = unit;
    elsewhere->cursors[0] = cursor_of(r->run->machine, e, chain_source(r->run->chain), 0, unit);
    before.run = elsewhere;
    return before;
}

void field_before_in(field_stage_run *r, int64_t unit, int64_t first, int64_t count, field_value *out)
{
    field_run elsewhere;
    field_stage_run before = before_in(r, unit, &elsewhere);
    before.stage->type->field->read(&before, first, count, out);
    r->run->unknowns = elsewhere.unknowns;
}

void field_stage_read_spans(field_stage_run *r, const field_span *spans, size_t count, field_value *out)
{
    const field_stage *type = r->stage->type->field;
    if (type->read_spans) {
        type->read_spans(r, spans, count, out);
        return;
    }
    for (size_t i = 0; i < count; out += spans[i++].count) {
        bool side_by_side = spans[i].apart == 1;
        for (int64_t j = 0; j < (side_by_side ? 1 : spans[i].count); j++)
            type->read(r, spans[i].first + j * spans[i].apart, side_by_side ? spans[i].count : 1, out + j);
    }
}

void field_before_listed(field_stage_run *r, const field_span *spans, size_t count, field_value *out)
{
    field_stage_read_spans(r->before, spans, count, out);
}

void field_before_spans(field_stage_run *r, field_spans *spans, field_value *out)
{
    if (spans->failed)
        fault_memory(r->run->fault, r->run->chain->commands, "what a value is traced back to");
    for (size_t i = 0, n; i < spans->count && !r->run->fault->set; i += n) {
        int64_t elements = 0;
        for (n = 0; i + n < spans->count && spans->items[i + n].first != FIELD_ZEROS; n++)
            elements += spans->items[i + n].count;
        if (n > 0)
            field_stage_read_spans(r->before, spans->items + i, n, out);
        out += elements;
        if (n == 0) {
            memset(out, 0, (size_t)spans->items[i].count * sizeof *out);
            out += spans->items[i].count;
            n = 1;
        }
    }
    field_spans_free(spans);
}

void field_before_spans_in(field_stage_run *r, int64_t unit, field_spans *spans, field_value *out)
{
    field_run elsewhere;
    field_stage_run before = before_in(r, unit, &elsewhere);
    if (spans->failed)
        fault_memory(r->run->fault, r->run->chain->commands, "what a value is traced back to");
    else
        field_stage_read_spans(&before, spans->items, spans->count, out);
    r->run->unknowns = elsewhere.unknowns;
    spans->count = 0;
}

void field_mapped_spans(field_stage_run *r, field_span_map *map, const field_span *spans, size_t count, field_value *out)
{
    field_spans before = {0};
    for (size_t i = 0; i < count; i++)
        for (int64_t done = 0, n; done < spans[i].count; done += n) {
            field_span from;
            n = map(r, (field_span){spans[i].first + done * spans[i].apart, spans[i].apart, spans[i].count - done}, &from);
            from.count = n;
            field_spans_add(&before, from);
        }
    field_before_spans(r, &before, out);
}

void field_run_close(field_run *r)
{
    for (unsigned i = 0; r->stages && i < r->stage_count; i++)
        if (r->stages[i].stage->type->field->close)
            r->stages[i].stage->type->field->close(&r->stages[i]);
    free(r->stages);
    r->stages = NULL;
}

/* ---- all of it, forwards ---- */

/* A port's buffer is one memory of all slices, whose elements share pages; DM and TRF are a slice's own. */
static bool write_place(field_machine *m, const field_place *to, dtype type, int64_t count, const field_value *values)
{
    if (to->space != FIELD_PORT)
        return field_memory_write(field_memory_of(m, to), to->bit, type, count, values);
    pthread_mutex_lock(&m->ports_lock);
    bool done = field_memory_write(field_memory_of(m, to), to->bit, type, count, values);
    pthread_mutex_unlock(&m->ports_lock);
    return done;
}

/* What the sink writes in the slice; NULL with the fault. */
static field_value *read_sink(field_stage_run *sink)
{
    const field_stage *type = sink->stage->type->field;
    field_run *r = sink->run;
    int64_t count = type->count(sink);
    field_value *values = malloc((size_t)count * sizeof *values + 1);
    if (!values)
        fault_memory(r->fault, r->chain->commands, "the values of a slice");
    for (int64_t i = 0, n; values && i < count && !r->fault->set; i += n) {
        n = smaller(count - i, SINK_BLOCK);
        type->read(sink, i, n, values + i);
    }
    if (!r->fault->set)
        return values;
    free(values);
    return NULL;
}

static bool write_values(field_stage_run *sink, const field_value *values)
{
    const field_stage *type = sink->stage->type->field;
    field_run *r = sink->run;
    int64_t count = type->count(sink);
    bool done = true;
    for (int64_t i = 0, n; done && i < count; i += n) {
        field_place to;
        n = smaller(type->place(sink, i, &to), count - i);
        done = to.number < 0 || write_place(r->machine, &to, sink->stage->stored, n, values + i) ||
               fault_memory(r->fault, r->chain->commands, "the values of a memory");
    }
    return done;
}

/* A chain has read all that it reads before it writes. */
static bool write_sink(field_stage_run *sink)
{
    field_value *values = read_sink(sink);
    bool done = values && write_values(sink, values);
    free(values);
    return done;
}

typedef struct slice_jobs {
    field_machine *machine;
    const chain *chain;
    size_t time;
    const int64_t *units;
    fault *faults; /* by worker */
    size_t *fault_index;
    field_value first_name; /* of the first slice's sums; 0: they are summed */
    bool computes;
    const size_t *which; /* slices that run; */
    bool *unknown;       /* by slice: it met something that nobody wrote */
} slice_jobs;

static void slice_job(void *of, unsigned worker, size_t item)
{
    slice_jobs *j = of;
    fault *f = &j->faults[worker];
    size_t index = j->which[item];
    field_run r;
    if (f->set || !field_run_open(&r, j->machine, j->chain, j->time, j->units[index], f)) {
        j->fault_index[worker] = smaller((int64_t)j->fault_index[worker], (int64_t)index);
        return;
    }
    r.first_name = j->first_name ? j->first_name + index * FIELD_NAMES_APART : 0;
    r.computes = j->computes;
    if (!write_sink(&r.stages[r.stage_count - 1]))
        j->fault_index[worker] = smaller((int64_t)j->fault_index[worker], (int64_t)index);
    j->unknown[index] = r.unknowns.count > 0;
    field_run_close(&r);
}

/* The registers that a chain fills with what it reads of its slice's DM; NULL: it is another one. */
static field_memory *filled_by(const field_machine *m, const chain *c)
{
    const source *from = chain_source(c)->plan;
    const stage_type *into = chain_sink(c)->type;
    bool alone = chain_source(c)->type == &stage_fetch && !from->lift && from->start_count == 0;
    for (unsigned i = 0; i < c->stage_count; i++)
        alone = alone && c->stages[i].type->field->moves;
    return !alone ? NULL : into == &stage_trf_store ? m->trf : into == &stage_vrf_store ? m->vrf : NULL;
}

/* A slice that finds the pages which another one found does what that does, and gets its pages. Which one: like[slice], itself where there
 * is none; `like` has room for twice as many. */
static void find_alike(const field_machine *m, const chain *c, const field_memory *files, const int64_t *units, size_t count, size_t *like)
{
    const dm_walk *read = &((const source *)chain_source(c)->plan)->dm;
    size_t firsts = 0, *first = like + count;
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < firsts && !(field_memory_same(&m->dm[units[i]], &m->dm[units[first[k]]], read->low_byte * 8, read->span_bytes * 8) &&
                               field_memory_same(&files[units[i]], &files[units[first[k]]], 0, files->bits)))
            k++;
        if (k == firsts)
            first[firsts++] = i;
        like[i] = first[k];
    }
}

/* The first of those that do the same, then the others where it met something unknown, of which each has its own. */
static void run_slices(slice_jobs *j, size_t count, unsigned workers)
{
    field_machine *m = j->machine;
    arena *scratch = arena_new_inside(m->plans->arena);
    size_t *like = ARENA_ARRAY(scratch, size_t, 2 * count + 1), *which = ARENA_ARRAY(scratch, size_t, count + 1), chosen = 0, left = 0;
    field_memory *files = filled_by(m, j->chain);
    for (size_t i = 0; i < count; i++)
        like[i] = i;
    if (files)
        find_alike(m, j->chain, files, j->units, count, like);
    j->which = which;
    j->unknown = ARENA_ARRAY(scratch, bool, count + 1);
    for (size_t i = 0; i < count; i++)
        if (like[i] == i)
            which[chosen++] = i;
    if (chosen > 0)
        parallel_for(chosen, workers, slice_job, j);
    bool done = true;
    for (size_t i = 0; i < count && done; i++) {
        if (like[i] != i && j->unknown[like[i]])
            which[left++] = i;
        else if (like[i] != i)
            done = field_memory_keep(&files[j->units[i]], &files[j->units[like[i]]], 0, files->bits);
    }
    if (left > 0)
        parallel_for(left, workers, slice_job, j);
    arena_free(scratch);
    if (!done)
        fault_memory(&j->faults[0], j->chain->commands, "the values of a memory");
}

typedef struct slice_values {
    field_run run;
    field_value *values;
} slice_values;

/* Slices that take packets of others: all of them have read before one writes. */
static bool run_exchanged(field_machine *m, const chain *c, size_t time, const int64_t *units, size_t count, fault *f)
{
    slice_values *slices = calloc(count + 1, sizeof *slices);
    if (!slices)
        return fault_memory(f, c->commands, "the values of a cluster");
    bool done = true;
    for (size_t i = 0; i < count && done; i++) {
        done = field_run_open(&slices[i].run, m, c, time, units[i], f);
        slices[i].run.computes = m->sums && !field_sums_moved(c);
        slices[i].values = done ? read_sink(&slices[i].run.stages[c->stage_count - 1]) : NULL;
        done = done && slices[i].values;
    }
    for (size_t i = 0; i < count; i++) {
        done = done && write_values(&slices[i].run.stages[c->stage_count - 1], slices[i].values);
        free(slices[i].values);
        field_run_close(&slices[i].run);
    }
    free(slices);
    return done;
}

/* The same plan as when it was decoded: cursors of ports, which may be at their ends by now, are not asked. */
static bool plan_again(const field_machine *m, const field_event *e, chain *c, fault *f)
{
    for (uint32_t i = 0; i < m->plans->kernel->port_count; i++)
        for (int64_t u = 0; m->plans->streams[i].cursors && u < m->plans->streams[i].unit_count; u++)
            m->plans->streams[i].cursors[u] = 0;
    return chain_plan(c, m->plans, &e->units, e->commands, e->available, f);
}

bool field_event_plan(const field_machine *m, size_t time, chain *c, fault *f)
{
    return plan_again(m, &m->events[time], c, f);
}

static bool run_chain(field_machine *m, size_t time, int64_t *units, fault *f)
{
    chain *c = m->plans->chain;
    if (!plan_again(m, &m->events[time], c, f))
        return false;
    size_t count = unit_mask_list(m->plans, &c->out_units, -1, units);
    if (exchange_is_needed(c))
        return run_exchanged(m, c, time, units, count, f);
    unsigned workers = (unsigned)smaller(smaller(parallel_workers(m->threads), (int64_t)count), MOST_WORKERS);
    fault *faults = m->faults;
    size_t index[MOST_WORKERS];
    memset(faults, 0, MOST_WORKERS * sizeof *faults);
    for (int i = 0; i < MOST_WORKERS; i++)
        index[i] = SIZE_MAX / 2;
    slice_jobs jobs = {.machine = m,
                       .chain = c,
                       .time = time,
                       .units = units,
                       .faults = faults,
                       .fault_index = index,
                       .computes = m->sums && !field_sums_moved(c)};
    if (m->sums && field_sums_named(c)) {
        jobs.first_name = field_sums_begin(m->sums, m, c, time, units, count);
        if (!jobs.first_name)
            return fault_memory(f, c->commands, "the names of sums");
    }
    run_slices(&jobs, count, workers);
    int first = -1;
    for (int i = 0; i < MOST_WORKERS; i++)
        if (faults[i].set && (first < 0 || index[i] < index[first]))
            first = i;
    if (first >= 0)
        *f = faults[first];
    return first < 0;
}

static bool run_load(field_machine *m, const field_event *e)
{
    enum { BLOCK = 1024 };
    field_value values[BLOCK];
    dtype type = m->plans->kernel->ports[e->port].dtype;
    field_numbers numbers;
    int64_t positions = field_port_positions(m, e->port), bits = dtype_row_of(type)->bits;
    bool done = field_port_numbers(m, e->port, &numbers);
    bool given = m->sums && numbers.in_order && m->inputs.rows[e->port].count == 0; /* where no product is made, values are read once */
    for (int64_t i = 0, n; done && i < positions; i += n) {
        field_place to;
        n = smaller(field_port_place(m, e->port, i, &to), positions - i);
        for (int64_t at = i, end = i + n, live; done && to.number >= 0 && at < end; at += live) {
            if (given) {
                live = end - at;
                done =
                    field_memory_give(field_memory_of(m, &to), to.bit, type, live, field_input_key(m->inputs.seed, e->port), (uint64_t)at);
                continue;
            }
            for (live = 0; at + live < end && live < BLOCK && field_number_at(&numbers, at + live) >= 0;)
                live++;
            if (numbers.in_order)
                field_inputs_run(&m->inputs, e->port, at, 1, live, values);
            else
                field_inputs_values(&m->inputs, e->port, numbers.list + at, live, values);
            if (live > 0)
                done = field_memory_write(field_memory_of(m, &to), to.bit + (at - i) * bits, type, live, values);
            live = larger(live, 1);
        }
    }
    free(numbers.list);
    return done;
}

static bool run_event(field_machine *m, size_t time, int64_t *units, fault *f)
{
    const field_event *e = &m->events[time];
    switch (e->kind) {
    case FIELD_LOAD: return run_load(m, e) || fault_memory(f, NULL, "the inputs");
    case FIELD_DMA: return field_dma_run(m, e, f);
    case FIELD_INDIRECT: return field_indirect_run(m, e, f);
    default: return run_chain(m, time, units, f);
    }
}

field_result field_machine_run(field_machine *m, int64_t limit_bytes, diag_list *diags)
{
    m->budget.limit_bytes = limit_bytes;
    int64_t *units = ARENA_ARRAY(m->plans->arena, int64_t, (size_t)m->plans->unit_count);
    for (size_t i = 0; i < m->event_count; i++) {
        fault f = {0};
        bool done = run_event(m, i, units, &f);
        if (m->named)
            return FIELD_NAMED;
        if (done)
            continue;
        if (f.id == E_RUN_LIMIT && m->budget.used_bytes > limit_bytes)
            return FIELD_TOO_LARGE;
        fault_report(&f, m->plans->kernel->name, diags);
        return FIELD_FAILED;
    }
    return FIELD_DONE;
}
