#include <stdlib.h>
#include <string.h>

#include "runtime/engine/alike.h"
#include "runtime/engine/exchange.h"
#include "runtime/fast/blocks_drive.h"
#include "runtime/machine/chain.h"
#include "runtime/machine/parallel.h"
#include "runtime/machine/proof.h"

enum { THREAD_PACKETS = 1 << 14 /* less work than this is not worth a thread */ };

/* Stages that run in a slice. What those before them give to other slices is in `from`; what is given to the one after them is kept in
 * `to`, and goes to other slices. */
typedef struct span {
    unsigned first, end;
    exchange *from; /* NULL: nothing comes from other slices */
    exchange *to;   /* NULL: they go on to the sink */
} span;

/* One slice's run of a chain; a worker uses the same buffers slice after slice. */
typedef struct slice_run {
    const chain *chain;
    stage_run stages[CHAIN_MAX_STAGES];
    unsigned driver; /* the stage that pushes the stream */
    span span;
    void *blocks;         /* NULL: the chain goes stage by stage; */
    unsigned blocks_at;   /* else the first of the BLOCKS_STAGES stages whose place they take */
    unsigned char *state; /* of all stages */
    fault fault;
    size_t fault_index; /* which active unit had it */
    bool ready;         /* buffers are there */
} slice_run;

/* The contraction as blocks. */
typedef struct chain_blocks {
    blocks plan;
    unsigned at; /* the first stage whose place they take; 0: the chain goes stage by stage */
} chain_blocks;

/* Does the stage run by itself? */
static bool takes_part(const slice_run *r, unsigned number)
{
    bool in_blocks = r->blocks && number >= r->blocks_at && number < r->blocks_at + BLOCKS_STAGES;
    return number >= r->span.first && number < r->span.end && !in_blocks;
}

static size_t state_bytes(const stage_type *t)
{
    return (t->run_bytes + 15) / 16 * 16;
}

static bool slice_run_new(slice_run *r, const chain *c, const chain_blocks *block, const span *x)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < c->stage_count; i++)
        bytes += state_bytes(c->stages[i].type);
    r->chain = c;
    r->span = *x;
    r->state = calloc(1, bytes + 1);
    r->blocks_at = block->at;
    r->blocks = block->at ? blocks_driver_new(&block->plan, c) : NULL;
    if (!r->state || (block->at && !r->blocks))
        return fault_memory(&r->fault, c->commands, "the buffers of a slice");
    unsigned char *state = r->state;
    for (unsigned i = 0; i < c->stage_count; i++) {
        const stage_type *t = c->stages[i].type;
        r->stages[i] = (stage_run){.stage = &c->stages[i],
                                   .state = state,
                                   .exchange = x->from,
                                   .record = x->to,
                                   .fault = &r->fault,
                                   .before = i ? &r->stages[i - 1] : NULL,
                                   .next = i + 1 < c->stage_count ? &r->stages[i + 1] : NULL};
        state += state_bytes(t);
        r->driver = t->drive && i >= x->first && i < x->end ? i : r->driver;
        if (t->run_new && takes_part(r, i) && !t->run_new(&r->stages[i]))
            return fault_memory(&r->fault, c->commands, "the buffers of a slice");
    }
    r->ready = true;
    return true;
}

static void slice_run_free(slice_run *r)
{
    for (unsigned i = 0; r->chain && i < r->chain->stage_count; i++)
        if (r->stages[i].stage && r->stages[i].stage->type->run_free)
            r->stages[i].stage->type->run_free(&r->stages[i]);
    blocks_driver_free(r->blocks);
    free(r->state);
}

static bool slice_open(slice_run *r, int64_t unit_index)
{
    for (unsigned i = 0; i < r->chain->stage_count; i++) {
        const stage_type *t = r->stages[i].stage->type;
        r->stages[i].unit_index = unit_index;
        if (t->open && takes_part(r, i) && !t->open(&r->stages[i]))
            return false;
    }
    return true;
}

static bool slice_drive(slice_run *r)
{
    if (r->blocks)
        return blocks_drive(r->blocks, &r->stages[r->blocks_at - 1], &r->stages[r->blocks_at + BLOCKS_STAGES]);
    return r->stages[r->driver].stage->type->drive(&r->stages[r->driver]);
}

/* What stages still hold is pushed through those after them, which end later. */
static bool slice_finish(slice_run *r)
{
    for (unsigned i = 0; i < r->chain->stage_count; i++) {
        const stage_type *t = r->stages[i].stage->type;
        if (t->finish && takes_part(r, i) && !t->finish(&r->stages[i]))
            return false;
    }
    return true;
}

static void prove(const slice_run *r, int64_t unit_index, bool writes)
{
    for (unsigned i = r->span.first; i < r->span.end && proof_is_open(r->chain->machine); i++) {
        const stage *s = &r->chain->stages[i];
        if (!writes && s->type->proof_reads)
            s->type->proof_reads(s, unit_index);
        if (writes && s->type->proof_writes)
            s->type->proof_writes(s, unit_index);
    }
}

static bool slice_go(slice_run *r, int64_t unit_index)
{
    prove(r, unit_index, false);
    bool done = slice_open(r, unit_index) && slice_drive(r) && slice_finish(r);
    prove(r, unit_index, true);
    return done;
}

/* --- slices on threads
 * -------------------------------------------------------------------------------------- */

typedef struct slice_jobs {
    const chain *chain;
    const chain_blocks *blocks;
    const span *span;
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
    if ((r->ready || slice_run_new(r, j->chain, j->blocks, j->span)) && slice_go(r, j->units[index]))
        return;
    r->fault_index = index;
    size_t lowest = atomic_load(&j->lowest_fault);
    while (index < lowest && !atomic_compare_exchange_weak(&j->lowest_fault, &lowest, index))
        ;
}

static unsigned worker_count(const chain *c, size_t units)
{
    if (c->steps < THREAD_PACKETS / (int64_t)(units ? units : 1))
        return 1;
    unsigned workers = parallel_workers(c->machine->options.threads);
    return workers < units ? workers : (unsigned)(units ? units : 1);
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

/* The chain in some slices, on threads. */
static bool run_units(const chain *c, const chain_blocks *block, const span *x, const int64_t *units, size_t count, fault *f)
{
    unsigned workers = worker_count(c, count);
    slice_run *runs = calloc(workers, sizeof *runs);
    if (!runs)
        return fault_memory(f, c->commands, "the slices' state");
    slice_jobs jobs = {c, block, x, runs, units, SIZE_MAX};
    parallel_for(count, workers, slice_job, &jobs);
    bool done = slices_finish(runs, workers, f);
    free(runs);
    return done;
}

/* A whole chain: in slices that would do what others do only those run. */
static bool run_all(const chain *c, const chain_blocks *block, int64_t *units, fault *f)
{
    span whole = {.end = c->stage_count};
    size_t count = unit_mask_list(c->machine, &c->units, -1, units), left = 0;
    int64_t *like = calloc(count + 1, sizeof *like);
    if (!like)
        return fault_memory(f, c->commands, "the slices' state");
    size_t ran = alike_find(c, units, count, like);
    bool done = run_units(c, block, &whole, units, ran, f);
    for (size_t i = ran; done && i < count; i++)
        if (!alike_take(c, units[i], like[i]))
            units[left++] = units[i];
    free(like);
    return done && (left == 0 || run_units(c, block, &whole, units, left, f));
}

/* The units of a cluster that are active there. */
static bool run_span(const chain *c, const chain_blocks *block, const span *x, const unit_mask *active, int64_t cluster, int64_t *units,
                     fault *f)
{
    return run_units(c, block, x, units, unit_mask_list(c->machine, active, cluster, units), f);
}

/* One cluster: after the packets of all of its slices, where they go to others at once; and up to where they are reduced over slices. */
static bool run_cluster(const chain *c, const chain_blocks *block, exchange *gathered, exchange *recorded, int64_t cluster, int64_t *units,
                        fault *f)
{
    unsigned recorder = exchange_recorder(c);
    span all = {.end = c->stage_count};
    if (exchange_is_gathered(c)) {
        if (!exchange_gather(gathered, c, cluster * c->machine->target->slices_per_cluster, f))
            return false;
        all.first = 1;
        all.from = gathered;
    }
    if (recorder == 0)
        return run_span(c, block, &all, &c->out_units, cluster, units, f);
    all.end = recorder;
    all.to = recorded;
    span behind = {.first = recorder, .end = c->stage_count, .from = recorded};
    return run_span(c, block, &all, &c->mid_units, cluster, units, f) &&
           run_span(c, &(chain_blocks){.at = 0}, &behind, &c->out_units, cluster, units, f);
}

static bool run_exchanged(const chain *c, const chain_blocks *block, int64_t *units, fault *f)
{
    const target *t = c->machine->target;
    exchange *x = calloc(2, sizeof *x);
    bool done = x || fault_memory(f, c->commands, "the packets of a cluster");
    for (int64_t cluster = 0; done && cluster < t->chips * t->clusters_per_chip; cluster++) {
        if (unit_mask_list(c->machine, &c->out_units, cluster, units) == 0)
            continue;
        x[0] = x[1] = (exchange){.lock = PTHREAD_MUTEX_INITIALIZER};
        done = run_cluster(c, block, &x[0], &x[1], cluster, units, f);
        exchange_free(&x[0]);
        exchange_free(&x[1]);
    }
    free(x);
    return done;
}

/* What memory says of the stages' plans. */
static bool begin_stages(const chain *c, fault *f)
{
    for (unsigned i = 0; i < c->stage_count; i++)
        if (c->stages[i].type->begin && !c->stages[i].type->begin(&c->stages[i], c->machine, f))
            return false;
    return true;
}

bool chain_run(const chain *c, fault *f)
{
    if (!begin_stages(c, f))
        return false;
    int64_t *units = calloc((size_t)c->machine->unit_count, sizeof *units);
    chain_blocks block = {.at = 0};
    block.at = blocks_chain_plan(&block.plan, c);
    bool done = units || fault_memory(f, c->commands, "the slices' state");
    if (done && exchange_is_needed(c))
        done = run_exchanged(c, &block, units, f);
    else if (done)
        done = run_all(c, &block, units, f);
    for (unsigned i = 0; done && i < c->stage_count; i++)
        if (c->stages[i].type->advance)
            c->stages[i].type->advance(&c->stages[i], units, unit_mask_list(c->machine, i ? &c->out_units : &c->units, -1, units));
    blocks_free(&block.plan);
    free(units);
    return done;
}
