/* The TRF cycle by cycle: one chain reads weights while another one stores.
 *
 * The one idea: a read happens at its cycle whatever else happens; it occupies the bank columns in which any Row
 * misses; a flit to be stored waits while its column is occupied, and the next one is fetched meanwhile. So reads are never late, and only
 * the writer's time has to be found. What repeats is not walked again: when an iteration of a loop of the TRF Sequencer begins in the same
 * state as an earlier one (the addresses moved along with the cached tags), the rest of the loop is counted instead of stepped. Rules and
 * their sources: docs/timing.md. */
#ifndef VISA_RUNTIME_TIMING_TRF_TIMING_H
#define VISA_RUNTIME_TIMING_TRF_TIMING_H

#include "runtime/machine/walk.h"
#include "runtime/timing/trf_cache.h"

/* The reads of one trf_read command. */
typedef struct trf_reads {
    trf_view view;
    walk table;         /* bytes within each Row's partition, outermost first */
    int64_t read_bytes; /* reg_read_size; base and strides are multiples of it */
    int64_t tiling;     /* reads in consecutive cycles, at the beginning of each packet's ... */
    int64_t period;     /* ... cycles; at least tiling */
    int64_t delay;      /* cycles before the first read */
} trf_reads;

/* The flits of one trf_store command: Row after Row, flits_per_row each, from `base` on. */
typedef struct trf_writes {
    trf_view view;
    int64_t base; /* bytes */
    int64_t flits_per_row, flits;
    int64_t delay;           /* cycles before the first flit is on its way */
    int64_t cycles_per_flit; /* from one flit's first attempt to the next one's, which is after its write too */
} trf_writes;

typedef struct trf_read_counts {
    int64_t reads;
    int64_t column_hits;   /* bank columns served from the cache in every Row ... */
    int64_t column_misses; /* ... or occupied in that cycle, by at least one Row */
} trf_read_counts;

typedef struct trf_write_counts {
    int64_t flits;         /* written */
    int64_t stall_cycles;  /* cycles in which a flit found its column occupied */
    int64_t stalled_flits; /* flits that found it so at least once */
    int64_t late_cycles;   /* by which the last of them was written later than alone */
} trf_write_counts;

enum { TRF_TIMING_MAX_LOOPS = WALK_MAX_LOOPS };

/* The state when a loop began an iteration, to be recognised. */
typedef struct trf_snapshot {
    int64_t patience, age; /* iterations until it is taken anew; since it was taken */
    int64_t address, phase, countdown, waited, flit, read_number, cycle;
    bool stalled;
    trf_read_counts read_counts;
    trf_write_counts write_counts;
    int32_t tags[TRF_CACHE_MAX_ENTRIES];
} trf_snapshot;

/* Begin with trf_timing_init; the counts may be read at any time. */
typedef struct trf_timing {
    const target *target;
    trf_cache cache;
    bool reading, writing;
    bool apart;    /* the reader and the writer run in different slices: they never meet */
    bool stepwise; /* never count, always step: for comparison */
    int64_t cycle; /* since trf_timing_init */
    int64_t stepped_cycles;
    trf_read_counts read_counts;   /* of the current or last reads */
    trf_write_counts write_counts; /* of the current or last writes */
    /* reader */
    trf_reads reads;
    int64_t last_byte; /* highest address at which a read stays in the partition */
    bool inside;       /* every read does */
    bool meets_writes; /* a write may hit a cached entry: the Rows differ */
    int64_t delay, phase, address, counter[TRF_TIMING_MAX_LOOPS];
    int64_t low[TRF_TIMING_MAX_LOOPS], high[TRF_TIMING_MAX_LOOPS]; /* what the loops inside add to an address */
    int64_t used_at[TRF_CACHE_MAX_ENTRIES];                        /* number of the last read that used the entry */
    /* writer */
    trf_writes writes;
    int64_t flit, countdown;
    int64_t waited; /* cycles that the flit which is stalled has waited, as far as the next one is on its way in them */
    bool stalled;
    bool has_snapshot[TRF_TIMING_MAX_LOOPS];
    trf_snapshot snapshots[TRF_TIMING_MAX_LOOPS]; /* of the reader; last: most of all bytes, of which few are ever touched */
} trf_timing;

/* The target must satisfy trf_cache_fits. */
void trf_timing_init(trf_timing *s, const target *t);

/* A new trf_read command: its counts and the cache begin empty. The table's positions must be below 2^62. */
void trf_timing_begin_reads(trf_timing *s, const trf_reads *reads);
/* A new trf_store command. `flits` may be INT64_MAX: a writer without an end. */
void trf_timing_begin_writes(trf_timing *s, const trf_writes *writes);

/* Goes forward `cycles` cycles, or to the end of the cycle in which the last flit is written. Returns the cycles
 * that passed, which are fewer than both only when `step_limit` cycles had to be stepped one by one. */
int64_t trf_timing_run(trf_timing *s, int64_t cycles, int64_t step_limit);

#endif
