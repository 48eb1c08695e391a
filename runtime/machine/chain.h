/* A chain: the commands from fetch or stream_in to trf_store, commit or stream_out.
 *
 * The one idea: a chain is a list of stages (stage.h). It is read and checked as a whole, against shapes that are the same in every
 * slice, and then run slice by slice: items are pushed from stage to stage in blocks, so that no stream is ever held as a whole. */
#ifndef VISA_RUNTIME_MACHINE_CHAIN_H
#define VISA_RUNTIME_MACHINE_CHAIN_H

#include "runtime/engine/accumulate.h"
#include "runtime/engine/collect.h"
#include "runtime/engine/commit.h"
#include "runtime/engine/contraction.h"
#include "runtime/engine/source.h"
#include "runtime/engine/stage.h"
#include "runtime/engine/trf_store.h"

enum {
    CHAIN_MAX_STAGES = 16,
    CHAIN_PLAN_BYTES = 32768, /* of all stages of a chain */
    CHAIN_BLOCK_FLITS = 252,  /* pulled or pushed at once; a multiple of 1, 2 and 3 collect_flits */
};

typedef struct chain {
    machine *machine;
    unit_mask units;     /* in which it begins; */
    unit_mask mid_units; /* in which it goes up to a reduction over slices */
    unit_mask out_units; /* and ends: others where packets go to other slices */
    const command *commands;
    size_t count, next; /* commands, and those that a stage has taken while it is planned */
    stage stages[CHAIN_MAX_STAGES];
    unsigned stage_count;
    int64_t steps; /* of work in a slice */
    size_t plan_bytes;
    _Alignas(16) unsigned char plans[CHAIN_PLAN_BYTES];
} chain; /* stages point into it: it stays where it was planned */

/* How many commands the chain has that begins at commands[0], of which `available` are left in the context. */
bool chain_extent(const command *commands, size_t available, size_t *count, fault *f);

/* Reads the chain that begins at commands[0], of which `available` are left in the context. c->count is then
 * its length. */
bool chain_plan(chain *c, machine *m, const unit_mask *units, const command *commands, size_t available, fault *f);

/* Runs a planned chain in every active slice. */
bool chain_run(const chain *c, fault *f);

/* The next command when it is `op`, which is then taken; else NULL. For a stage while it is planned; the sink's command is never taken
 * by a stage before it. */
const command *chain_take(chain *c, command_op op);
/* The next command, which is not taken. */
const command *chain_peek(const chain *c);
/* Refuses the next command: it "cannot follow" what `after` says. */
bool chain_unexpected(const chain *c, const char *after, fault *f);

/* What the chain's stage of that type planned; NULL: it has none. */
const void *chain_part(const chain *c, const stage_type *type);
const stage *chain_source(const chain *c);
const stage *chain_sink(const chain *c);

static inline const contraction *chain_contraction(const chain *c)
{
    return chain_part(c, &stage_align);
}
static inline const accumulate *chain_accumulate(const chain *c)
{
    return chain_part(c, &stage_accumulate);
}
static inline const trf_store *chain_trf_store(const chain *c)
{
    return chain_part(c, &stage_trf_store);
}
static inline const collect *chain_collect(const chain *c)
{
    return chain_part(c, &stage_collect);
}

#endif
