/* A chain: the commands from fetch or stream_in to trf_store, commit or stream_out.
 *
 * The one idea: a chain is read and checked as a whole, against shapes that are the same in every slice, and
 * then run slice by slice. In a slice flits are pulled from the source in blocks, pass the contraction step
 * by step and are pushed into the sink in blocks, so that no stream is ever held as a whole. */
#ifndef VISA_RUNTIME_CHAIN_H
#define VISA_RUNTIME_CHAIN_H

#include "runtime/accumulate.h"
#include "runtime/collect.h"
#include "runtime/commit.h"
#include "runtime/contraction.h"
#include "runtime/source.h"
#include "runtime/trf_store.h"

typedef enum chain_form {
    CHAIN_PACKETS,     /* packets go to a port as they are */
    CHAIN_FLITS,       /* flits, perhaps cast, go to the sink */
    CHAIN_PAIR,        /* aligned data and weight packets go to two ports */
    CHAIN_PARTIALS,    /* the contraction tensor goes to a port */
    CHAIN_CONTRACTION, /* contraction, accumulation, sink */
    CHAIN_SUMS,        /* a contraction tensor from a port, accumulation, sink */
} chain_form;

typedef struct chain {
    machine *machine;
    unit_mask units;
    const command *commands;
    size_t count;
    chain_form form;
    source source;
    collect collect;
    contraction contraction;
    accumulate accumulate;
    convert_run *cast;  /* NULL: none */
    int64_t cast_bytes; /* from one narrowed flit to the next */
    stream_shape shape; /* what reaches the sink */
    const command *sink;
    trf_store trf_store;
    commit commit;
    uint32_t port; /* of a stream_out; a pair uses the next one too */
} chain;

/* Reads the chain that begins at commands[0], of which `available` are left in the context. c->count is then
 * its length. */
bool chain_plan(chain *c, machine *m, const unit_mask *units, const command *commands, size_t available,
                fault *f);

/* Runs a planned chain in every active slice. */
bool chain_run(const chain *c, fault *f);

#endif
