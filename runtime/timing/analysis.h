/* What a schedule means: who waits for whom, what could be later, how busy everything is, and what the least would be.
 *
 * The one idea: an item begins when the last of the items that it needs has ended; that one binds it, and following it back
 * from the end gives the critical path. Everything here is counted from the schedule, the ports and the einsum. */
#ifndef VISA_RUNTIME_TIMING_ANALYSIS_H
#define VISA_RUNTIME_TIMING_ANALYSIS_H

#include "runtime/timing/attainable.h"
#include "runtime/timing/schedule.h"

enum { NO_PREDECESSOR = -1 };

typedef struct item_place {
    int64_t predecessor; /* item that ended last of those it needs; NO_PREDECESSOR: it needed none */
    int64_t slack;       /* cycles that it could end later without the kernel ending later */
    bool critical;       /* on the path from the first item to the last end */
} item_place;

typedef struct analysis {
    const schedule *schedule;
    item_place *places;                /* one per item */
    int64_t engine_busy[ENGINE_COUNT]; /* cycles; of the contexts together */
    int64_t hbm_read_bytes, hbm_written_bytes, dm_read_bytes, dm_written_bytes, trf_read_bytes, trf_written_bytes;
    int64_t trf_hits, trf_misses;               /* bank columns */
    int64_t multiplications;                    /* that the einsum asks for, padding not counted */
    int64_t lane_products;                      /* that the multipliers did, padding included */
    int64_t chips;                              /* that the kernel runs on */
    int64_t machine_macs;                       /* per cycle, of all its chips, for the operands' type; 0: nothing is contracted */
    int64_t reducer_capacity;                   /* lane products of all their slices in the kernel's cycles */
    int64_t port_bytes;                         /* of the ports in HBM that some statement touches, padding not counted */
    int64_t mac_bound, byte_bound, lower_bound; /* cycles */
    attainable attainable;                      /* by the model's own limits, of the schedule's preset */
} analysis;

void analysis_make(const schedule *s, arena *a, analysis *out);

/* part of whole in tenths of a percent; 0 of nothing */
int64_t analysis_permille(int64_t part, int64_t whole);

#endif
