/* How long one command or chain takes when nothing disturbs it.
 *
 * The one idea: every engine of a chain works at its own steady rate, so a chain takes its slowest engine's
 * time and the few cycles until the first result is through; all of it follows from the commands. What other
 * contexts do to it is in schedule.h. Each formula with its source: docs/timing.md. */
#ifndef VISA_RUNTIME_TIMING_DURATION_H
#define VISA_RUNTIME_TIMING_DURATION_H

#include "runtime/machine/chain.h"
#include "runtime/timing/known_costs.h"
#include "runtime/timing/timing_preset.h"

/* What works on a command, each on its own. */
typedef enum engine {
#define BUSY(symbol, name) ENGINE_##symbol,
#include "target/engines.def"
    ENGINE_COUNT
} engine;
const char *engine_name(engine e);

/* The engine that a duration follows from. */
typedef enum duration_bound {
#define BOUND(symbol, name, what) BOUND_##symbol,
#include "target/engines.def"
    BOUND_COUNT
} duration_bound;
const char *duration_bound_name(duration_bound b);

/* fill + max(items * item_cycles, beats * beat_cycles), or with drains their sum. */
typedef struct duration {
    int64_t fill;                /* cycles until the first result leaves */
    int64_t items;               /* what goes in: packets, flits, DMA requests ... */
    int64_t item_cycles;         /* ... each */
    int64_t feed_cycles, tiling; /* of a contraction, whose item_cycles is the larger: for a packet's flits, and for its steps */
    int64_t beats;               /* flits that leave; 0: nothing is slower on that side than on the other */
    int64_t beat_cycles;
    duration_bound in, out;       /* what binds when what goes in is the slower side, and when what leaves is */
    int64_t routes, route_cycles; /* packets that go around rings, and cycles of each; 0: none does */
    duration_bound route;
    bool drains; /* everything leaves at the end, because the outermost loop is summed over */
    duration_bound bound;
    int64_t total;
    int64_t busy[ENGINE_COUNT]; /* cycles of each engine */
    dma_cost dma;               /* of a DMA command */
    const char *text;           /* the formula, where it is none of the above */
    bool interpolated;          /* between published durations, which have none like it */
} duration;

/* False, with E_RUN_LIMIT, when the number is absurdly large. */
bool duration_of_chain(const chain *c, timing_preset preset, duration *out, fault *f);
/* `known`: where costs of copies are remembered; NULL: nowhere. */
bool duration_of_dma(const target *t, const command *c, timing_preset preset, known_costs *known, arena *a, duration *out, fault *f);

/* For stages: cycles between the items that reach one which takes `together` flits at once, and what binds there; */
int64_t duration_arrival(const chain *c, int64_t together, duration_bound *bound);
/* so many packets go around rings, before all that is counted above; */
void duration_routes(duration *d, int64_t packets, int64_t cycles, duration_bound bound);
/* what leaves an engine takes that long, `beats` x `cycles`: kept where nothing else that leaves is slower; */
void duration_leaves(duration *d, int64_t beats, int64_t cycles, duration_bound bound);
/* an engine's cycles, a * b of them; more than can be told are as many as the chain takes. */
void duration_busy(duration *d, engine e, int64_t a, int64_t b);

/* "8 + max(256 x 4, 128 x 1)"; the published kind says what it is: "TRF fill: 263 + 4096/8" */
const char *duration_formula(const duration *c, arena *a);

#endif
