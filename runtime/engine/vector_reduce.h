/* The Vector Engine's reduction inside a slice, of packets of 4 lanes.
 *
 * The one idea: time is a loop nest, of which some loops are reduced over; inside the outermost of those each combination of the kept ones
 * has a slot that begins with the operation's identity, takes its packets one after the other, and leaves with the last one. Lanes that do
 * not count, by the Valid Count Generator, are absent. */
#ifndef VISA_RUNTIME_ENGINE_VECTOR_REDUCE_H
#define VISA_RUNTIME_ENGINE_VECTOR_REDUCE_H

#include "runtime/engine/vector_ops.h"
#include "runtime/machine/fault.h"

enum { REDUCE_MOST_SLOTS = 8, REDUCE_MOST_COUNTS = 4, REDUCE_LANES = 4 };

typedef struct vector_counter {
    valid_count_kind kind;
    int64_t span;        /* lanes; of a clipper */
    int64_t mask, slice; /* of a filter */
    int64_t limit;       /* coordinates */
    unsigned loop_count;
    struct {
        int64_t size, stride;
    } loops[COMMAND_MAX_ENTRIES]; /* outermost first */
} vector_counter;

typedef struct vector_reduction {
    const vector_op_row *row;
    vector_function function;
    stream_word identity;
    bool tree;   /* the lanes of a packet become lane 0 */
    bool splits; /* two packets are a flit */
    int64_t slots;
    unsigned count;
    accumulate_loop loops[COMMAND_MAX_ENTRIES]; /* outermost first */
    int64_t packets, results;                   /* that arrive and leave in a slice */
    unsigned counter_count;
    vector_counter counters[REDUCE_MOST_COUNTS];
} vector_reduction;

typedef struct vector_reduction_run {
    int64_t packet; /* number of the next one */
    int64_t index[COMMAND_MAX_ENTRIES];
    stream_word cells[REDUCE_MOST_SLOTS * REDUCE_LANES];
} vector_reduction_run;

/* Reads the command and the valid counts after it; `packets` of 4 lanes arrive, of flits that were split or trimmed. */
bool vector_reduction_plan(vector_reduction *r, const command *c, const command *counts, unsigned count, int64_t packets, bool splits,
                           const vector_set *set, fault *f);
/* The lanes of a packet that count, from the first one on, in a slice of that number in its cluster. */
int64_t vector_reduction_lanes(const vector_reduction *r, int64_t slice, int64_t packet);
/* Takes `count` packets and leaves the results in their place; returns how many. */
int64_t vector_reduction_run_packets(const vector_reduction *r, vector_reduction_run *at, int64_t slice, stream_word *words, int64_t count,
                                     unsigned char poison);

/* The packets that result number `result` is made of: calls for each in the order of time. */
void vector_reduction_packets(const vector_reduction *r, int64_t result, void (*call)(void *of, int64_t packet), void *of);

/* What a reduction of nothing gives. */
stream_word vector_identity_of(const vector_op_row *row);

#endif
