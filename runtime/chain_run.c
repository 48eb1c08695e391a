#include <stdlib.h>
#include <string.h>

#include "runtime/blocks.h"
#include "runtime/chain.h"
#include "runtime/parallel.h"
#include "runtime/port.h"
#include "runtime/proof.h"
#include "support/integer.h"

enum {
    BLOCK_FLITS = 252,        /* pulled or pushed at once; a multiple of 1, 2 and 3 collect_flits */
    THREAD_PACKETS = 1 << 14, /* less work than this is not worth a thread */
    MOST_COLUMNS = 64,
    MOST_ROWS = 8,
};

/* One slice's run of a chain; a worker uses the same buffers slice after slice. */
typedef struct slice_run {
    const chain *chain;
    const blocks *blocks; /* NULL: the contraction goes step by step */
    blocks_run block;
    int64_t unit_index;
    source_run source;
    collect_run collect;
    contraction_run contraction;
    accumulate_run accumulate;
    commit_run commit;
    trf_store_run trf_store;
    unsigned char *in;    /* flits from the source */
    unsigned char *beats; /* flits of the accumulator */
    unsigned char *cast;  /* narrowed flits; bytes past the elements keep the poison */
    int64_t beat_count;
    unsigned char *port[2]; /* next packet of Row 0 at the ports; NULL: the port lacks this unit */
    int64_t port_step;
    fault fault;
    size_t fault_index; /* which active unit had it */
    bool ready;         /* buffers are there */
} slice_run;

static int64_t buffer_flits(const chain *c)
{
    return BLOCK_FLITS + c->accumulate.beats_each;
}

static bool slice_run_new(slice_run *r, const chain *c, const blocks *plan)
{
    const target *t = c->machine->target;
    size_t bytes = (size_t)(buffer_flits(c) * t->flit_bytes);
    r->chain = c;
    r->blocks = plan;
    r->in = malloc(bytes);
    r->beats = malloc(bytes);
    r->cast = malloc(bytes);
    size_t cells = c->accumulate.command ? accumulate_cell_bytes(&c->accumulate) : 0;
    r->accumulate.cells = malloc(cells + 1);
    r->accumulate.seen = malloc((size_t)c->accumulate.slots * sizeof(uint64_t) + 1);
    bool steps = c->form == CHAIN_PAIR || c->form == CHAIN_PARTIALS || c->form == CHAIN_CONTRACTION;
    if (!r->in || !r->beats || !r->cast || !r->accumulate.cells || !r->accumulate.seen ||
        (steps && !plan && !contraction_run_new(&c->contraction, &r->contraction)) ||
        (plan && !blocks_run_new(plan, &r->block)))
        return fault_memory(&r->fault, c->commands, "the buffers of a slice");
    memset(r->beats, c->machine->options.poison, bytes);
    memset(r->cast, c->machine->options.poison, bytes);
    r->ready = true;
    return true;
}

static void slice_run_free(slice_run *r)
{
    free(r->in);
    free(r->beats);
    free(r->cast);
    free(r->accumulate.cells);
    free(r->accumulate.seen);
    contraction_run_free(&r->contraction);
    blocks_run_free(&r->block);
}

/* --- into the sink
 * ------------------------------------------------------------------------------------------ */

static void push_sink(slice_run *r, const unsigned char *flits, int64_t count)
{
    const chain *c = r->chain;
    const target *t = c->machine->target;
    if (c->sink->op == OP_COMMIT) {
        commit_push(&c->commit, &r->commit, flits, count);
    } else if (c->sink->op == OP_TRF_STORE) {
        trf_store_push(&c->trf_store, t, &r->trf_store, flits, count);
    } else if (r->port[0]) {
        memcpy(r->port[0], flits, (size_t)(count * t->flit_bytes));
        r->port[0] += count * t->flit_bytes;
    }
}

static void push_flits(slice_run *r, const unsigned char *flits, int64_t count)
{
    const chain *c = r->chain;
    int64_t bytes = c->machine->target->flit_bytes, elements = bytes / 4;
    if (!c->cast) {
        push_sink(r, flits, count);
        return;
    }
    if (c->cast_bytes < bytes)
        c->cast(r->cast, flits, count * elements);
    for (int64_t i = 0; c->cast_bytes == bytes && i < count; i++)
        c->cast(r->cast + i * bytes, flits + i * bytes, elements);
    push_sink(r, r->cast, count);
}

static void flush_beats(slice_run *r)
{
    if (r->beat_count > 0)
        push_flits(r, r->beats, r->beat_count);
    r->beat_count = 0;
}

/* A step's partial results into the accumulator, complete beats on to the sink. */
static void push_words(slice_run *r, const stream_word *words, uint64_t present)
{
    const chain *c = r->chain;
    unsigned char *to = r->beats + r->beat_count * c->accumulate.beat_bytes;
    r->beat_count += accumulate_step(&c->accumulate, &r->accumulate, words, present, to);
    if (r->beat_count >= BLOCK_FLITS)
        flush_beats(r);
}

/* A step of a contraction tensor at a port: one packet per Row; columns without a live lane are zero. */
static void push_partials(slice_run *r, uint64_t present)
{
    const chain *c = r->chain;
    const stream_port *p = &c->machine->streams[c->port];
    const tree_shape *s = &c->contraction.tree;
    for (int64_t row = 0; r->port[0] && row < s->rows; row++) {
        unsigned char *packet = r->port[0] + (row * p->steps + r->port_step) * p->packet_bytes;
        for (int64_t g = 0; g < s->columns; g++) {
            uint32_t value = present >> g & 1 ? r->contraction.words[g * s->rows + row] : 0;
            memcpy(packet + g * 4, &value, sizeof value);
        }
    }
    r->port_step++;
}

/* An aligned pair at its two ports: the data packet for every Row, and every Row's weights. */
static void push_pair(slice_run *r, const unsigned char *data)
{
    const chain *c = r->chain;
    const contraction *k = &c->contraction;
    const stream_port *p = &c->machine->streams[c->port], *q = &c->machine->streams[c->port + 1];
    int64_t address = walk_step(&k->weights.walk, &r->contraction.cursor);
    for (int64_t row = 0; row < k->rows; row++) {
        unsigned char *packet =
            r->port[0] ? r->port[0] + (row * p->steps + r->port_step) * p->packet_bytes : NULL;
        if (packet) {
            memcpy(packet, data, (size_t)k->data_bytes);
            memset(packet + k->data_bytes, 0, (size_t)(k->packet_bytes - k->data_bytes));
        }
        if (r->port[1])
            weights_packet(&k->weights, r->contraction.file, row, address,
                           r->port[1] + (row * q->steps + r->port_step) * q->packet_bytes);
    }
    r->port_step++;
}

/* --- through the chain
 * -------------------------------------------------------------------------------------- */

static bool run_flits(slice_run *r)
{
    const chain *c = r->chain;
    for (int64_t left = c->collect.shape.packets, n; left > 0; left -= n) {
        n = smaller(left, BLOCK_FLITS);
        collect_read(&c->collect, &r->collect, &c->source, &r->source, r->in, n);
        push_flits(r, r->in, n);
    }
    return true;
}

static bool run_packets(slice_run *r)
{
    const chain *c = r->chain;
    for (int64_t i = 0; r->port[0] && i < c->shape.packets; i++) {
        source_read(&c->source, &r->source, r->port[0], c->shape.packet_elements);
        r->port[0] += c->shape.packet_bytes;
    }
    return true;
}

/* Steps of one packet. */
static bool run_packet_steps(slice_run *r, const unsigned char *packet, int64_t steps)
{
    const chain *c = r->chain;
    const contraction *k = &c->contraction;
    uint64_t present;
    if (k->commands.contract)
        contraction_load(k, &r->contraction, packet);
    for (int64_t i = 0; i < steps; i++) {
        if (c->form == CHAIN_PAIR) {
            push_pair(r, packet);
            continue;
        }
        if (!contraction_step(k, &r->contraction, &present, &r->fault))
            return false;
        if (c->form == CHAIN_PARTIALS)
            push_partials(r, present);
        else
            push_words(r, r->contraction.words, present);
    }
    return true;
}

/* All steps of the flits of one pop. */
static bool run_pop(slice_run *r, const unsigned char *flits, int64_t pop)
{
    const contraction *k = &r->chain->contraction;
    unsigned char collected[SHIFT_MAX_BYTES], packet[SHIFT_MAX_BYTES];
    if (!k->shift.command)
        return run_packet_steps(r, flits, k->tiling);
    shift_pop(&k->shift, flits, collected);
    for (int64_t i = 0; i < k->shift.windows; i++) {
        shift_window(&k->shift, collected, pop, i, packet);
        if (!run_packet_steps(r, packet, k->shift.repeat))
            return false;
    }
    return true;
}

static bool run_contraction(slice_run *r)
{
    const chain *c = r->chain;
    const contraction *k = &c->contraction;
    int64_t packet_bytes = k->collect_flits * c->collect.flit_bytes;
    for (int64_t left = k->packets, n; left > 0; left -= n) {
        n = smaller(left, BLOCK_FLITS / k->collect_flits);
        collect_read(&c->collect, &r->collect, &c->source, &r->source, r->in, n * k->collect_flits);
        for (int64_t i = 0; i < n; i++)
            if (!run_pop(r, r->in + i * packet_bytes, k->packets - left + i))
                return false;
    }
    flush_beats(r);
    return true;
}

/* The next packets where they lie, or read to where the blocks have room for them. */
static void read_places(slice_run *r, int64_t packets)
{
    const chain *c = r->chain;
    int64_t flits = c->contraction.collect_flits;
    r->block.apart = r->blocks->raw_bytes;
    if (r->source.memory && collect_has_places(&c->collect, &c->source, flits)) {
        if (!source_places(&c->source, &r->source, flits * c->collect.flit_elements, r->block.places, packets))
            r->block.apart = 0;
        return;
    }
    collect_read(&c->collect, &r->collect, &c->source, &r->source, r->block.raw, packets * flits);
    r->block.places[0] = r->block.raw;
}

/* Output `number` of a region and those behind it whose sums are beats already. Returns how many. */
static int64_t push_outputs(slice_run *r, int64_t number)
{
    const accumulate *k = &r->chain->accumulate;
    stream_word words[MOST_COLUMNS * MOST_ROWS];
    const stream_word *beats;
    int64_t n = k->rows == k->lanes && !k->sequential ? blocks_beats(r->blocks, &r->block, number, BLOCK_FLITS, &beats) : 0;
    if (n > 0) {
        flush_beats(r);
        push_flits(r, (const unsigned char *)beats, n);
        return n;
    }
    uint64_t seen = blocks_words(r->blocks, &r->block, number, words);
    r->beat_count += accumulate_emit(k, words, seen, r->beats + r->beat_count * k->beat_bytes);
    if (r->beat_count >= BLOCK_FLITS)
        flush_beats(r);
    return 1;
}

/* The same by blocks: region by region. */
static bool run_blocks(slice_run *r)
{
    for (int64_t packets; (packets = blocks_next(r->blocks, &r->block)) > 0;) {
        read_places(r, packets);
        for (int64_t i = 0, count = blocks_sum(r->blocks, &r->block); i < count;)
            i += push_outputs(r, i);
    }
    flush_beats(r);
    blocks_close(r->blocks);
    return true;
}

/* A contraction tensor from a port: the Rows of a step lie apart. */
static bool run_sums(slice_run *r)
{
    const chain *c = r->chain;
    const accumulate *k = &c->accumulate;
    const stream_port *p = c->source.stream;
    stream_word words[64 * 8];
    for (int64_t step = 0; step < c->source.shape.packets; step++) {
        if (r->source.memory)
            for (int64_t row = 0; row < k->rows; row++)
                for (int64_t g = 0; g < k->columns; g++)
                    memcpy(&words[g * k->rows + row],
                           r->source.memory + (row * p->steps + step) * p->packet_bytes + g * 4,
                           sizeof *words);
        else
            memset(words, r->source.poison, sizeof words);
        push_words(r, words, ~UINT64_C(0));
    }
    flush_beats(r);
    return true;
}

static bool open_port(slice_run *r, int which)
{
    const machine *m = r->chain->machine;
    const stream_port *p = &m->streams[r->chain->port + (uint32_t)which];
    int64_t position = stream_port_position(p, m->target, r->unit_index);
    r->port[which] = position < 0 ? NULL : stream_port_packet(p, position, 0, p->cursors[position]);
    return true;
}

static bool open_sink(slice_run *r)
{
    const chain *c = r->chain;
    if (c->sink->op == OP_COMMIT)
        return commit_open(&c->commit, c->machine, r->unit_index, &r->commit, &r->fault);
    if (c->sink->op == OP_TRF_STORE)
        return trf_store_open(&c->trf_store, c->machine, r->unit_index, &r->trf_store, &r->fault);
    return open_port(r, 0) && (c->form != CHAIN_PAIR || open_port(r, 1));
}

static bool slice_open(slice_run *r, int64_t unit_index)
{
    const chain *c = r->chain;
    r->unit_index = unit_index;
    r->collect = (collect_run){0};
    r->beat_count = r->port_step = 0;
    if (c->accumulate.command)
        accumulate_start(&c->accumulate, &r->accumulate);
    if (!source_open(&c->source, c->machine, unit_index, &r->source, &r->fault) || !open_sink(r))
        return false;
    bool steps = c->form == CHAIN_PAIR || c->form == CHAIN_PARTIALS || c->form == CHAIN_CONTRACTION;
    if (r->blocks) {
        const unsigned char *file = memory_span(&c->machine->units[unit_index].trf, 0, c->machine->target->trf_bytes);
        if (!file)
            return fault_memory(&r->fault, c->contraction.commands.trf_read, "a slice's TRF");
        blocks_open(r->blocks, &r->block, file);
        return true;
    }
    return !steps || contraction_open(&c->contraction, c->machine, unit_index, &r->contraction, &r->fault);
}

static bool slice_run_form(slice_run *r)
{
    switch (r->chain->form) {
    case CHAIN_PACKETS:
        return run_packets(r);
    case CHAIN_FLITS:
        return run_flits(r);
    case CHAIN_SUMS:
        return run_sums(r);
    default:
        return r->blocks ? run_blocks(r) : run_contraction(r);
    }
}

static bool slice_go(slice_run *r, int64_t unit_index)
{
    proof_slice_reads(r->chain, unit_index);
    bool done = slice_open(r, unit_index) && slice_run_form(r);
    proof_slice_writes(r->chain, unit_index);
    return done;
}

/* --- slices on threads
 * -------------------------------------------------------------------------------------- */

typedef struct slice_jobs {
    const chain *chain;
    const blocks *blocks;
    slice_run *runs; /* per worker */
    const int64_t *units;
    _Atomic size_t lowest_fault; /* active unit number; slices after it need not run */
} slice_jobs;

static void slice_job(void *jobs, unsigned worker, size_t index)
{
    slice_jobs *j = jobs;
    slice_run *r = &j->runs[worker];
    if (index > atomic_load(&j->lowest_fault) || r->fault.set)
        return;
    if ((r->ready || slice_run_new(r, j->chain, j->blocks)) && slice_go(r, j->units[index]))
        return;
    r->fault_index = index;
    size_t lowest = atomic_load(&j->lowest_fault);
    while (index < lowest && !atomic_compare_exchange_weak(&j->lowest_fault, &lowest, index))
        ;
}

/* Numbers of the active units, in order. */
static size_t active_units(const chain *c, int64_t *units)
{
    const target *t = c->machine->target;
    size_t count = 0;
    for (int64_t chip = 0; chip < t->chips; chip++)
        for (int64_t cluster = 0; cluster < t->clusters_per_chip; cluster++)
            for (int64_t slice = 0; slice < t->slices_per_cluster; slice++)
                if (c->units.chips >> chip & 1 && c->units.clusters >> cluster & 1 &&
                    c->units.slices[slice / 64 % 4] >> slice % 64 & 1)
                    units[count++] = machine_unit_index(c->machine, chip, cluster, slice);
    return count;
}

static unsigned worker_count(const chain *c, size_t units)
{
    int64_t packets = c->form == CHAIN_CONTRACTION ? c->contraction.steps : c->shape.packets;
    if (packets < THREAD_PACKETS / (int64_t)(units ? units : 1))
        return 1;
    unsigned workers = parallel_workers(c->machine->options.threads);
    return workers < units ? workers : (unsigned)(units ? units : 1);
}

/* Moves the ports' cursors past what the chain took and gave. */
static void ports_advance(const chain *c, const int64_t *units, size_t count)
{
    machine *m = c->machine;
    bool out = c->sink->op == OP_STREAM_OUT;
    struct {
        stream_port *port;
        int64_t packets;
    } moved[] = {{c->source.stream, c->source.shape.packets},
                 {out ? &m->streams[c->port] : NULL, c->shape.packets},
                 {out && c->form == CHAIN_PAIR ? &m->streams[c->port + 1] : NULL, c->shape.packets}};
    for (size_t p = 0; p < sizeof moved / sizeof *moved; p++)
        for (size_t i = 0; moved[p].port && i < count; i++) {
            int64_t position = stream_port_position(moved[p].port, m->target, units[i]);
            if (position >= 0)
                moved[p].port->cursors[position] += moved[p].packets;
        }
}

static bool slices_finish(slice_run *runs, unsigned workers, fault *f)
{
    const slice_run *first = NULL;
    for (unsigned i = 0; i < workers; i++) {
        if (runs[i].fault.set && (!first || runs[i].fault_index < first->fault_index))
            first = &runs[i];
        slice_run_free(&runs[i]);
    }
    if (first)
        *f = first->fault;
    return !first;
}

bool chain_run(const chain *c, fault *f)
{
    int64_t *units = calloc((size_t)c->machine->unit_count, sizeof *units);
    size_t count = units ? active_units(c, units) : 0;
    unsigned workers = worker_count(c, count);
    slice_run *runs = calloc(workers, sizeof *runs);
    bool done = false, block = c->form == CHAIN_CONTRACTION;
    blocks plan = {0};
    block = block && blocks_plan(&plan, &c->contraction, &c->accumulate, c->machine->options.cpu);
    if (!units || !runs) {
        fault_memory(f, c->commands, "the slices' state");
    } else {
        slice_jobs jobs = {c, block ? &plan : NULL, runs, units, SIZE_MAX};
        parallel_for(count, workers, slice_job, &jobs);
        done = slices_finish(runs, workers, f);
        if (done)
            ports_advance(c, units, count);
    }
    blocks_free(&plan);
    free(runs);
    free(units);
    return done;
}
