/* When each command of a kernel runs.
 *
 * The one idea: a context runs one command or chain after the other, a wait holds it until another context has
 * completed its count, and nothing else holds anything: chains of main and sub and copies of the DMA overlap
 * exactly where no wait stands between them. Where a main chain reads the TRF while a sub chain stores into it,
 * the store's time comes from trf_timing.h. Nothing is executed; no tensor is needed. */
#ifndef VISA_RUNTIME_TIMING_SCHEDULE_H
#define VISA_RUNTIME_TIMING_SCHEDULE_H

#include "runtime/timing/duration.h"
#include "runtime/timing/trf_timing.h"

/* A DMA command, a chain, or the load of bitmaps before it. Waits and units commands take no time and are no items. */
typedef struct schedule_item {
    context context;
    const command *commands;
    size_t count;
    const command *bitmaps;              /* of a load: the snoop command of the chain that begins at `commands`; else NULL */
    int64_t stood_cycles;                /* that it stood still while bitmaps were loaded */
    int64_t start, end;                  /* cycles */
    duration alone;                      /* when nothing disturbs it */
    const command *trf_read, *trf_store; /* NULL: the chain has none */
    trf_read_counts reads;
    int64_t held_stall_cycles; /* stall cycles of stores that the reads caused */
    trf_write_counts writes;
    int64_t bank_streak; /* of a chain: accesses in a row to one bank of DM, fetch and commit together; up to the limit */
    bool holds_dma;      /* because that starves a DMA: they do not overlap */
    int64_t held_cycles; /* that this chain and copies stood still for each other, and for nothing else */
    int64_t units;       /* slices that run a chain */
    int64_t queued;      /* cycles after what it waited for before it began: the published kind only */
    /* what a chain moves: bytes of DM read and written, of the TRF stored and read, over all its slices; multiplications */
    int64_t dm_read_bytes, dm_written_bytes, trf_written_bytes, trf_read_bytes, lane_products;
    int64_t idle_lane_bytes, rows; /* of 64 bytes of a packet; Rows that take part */
} schedule_item;

typedef struct schedule {
    const binary_kernel *kernel;
    const target *target;
    timing_preset preset;
    schedule_item *items; /* by start, then context */
    size_t count;
    int64_t cycles; /* the last end, and what the published kind does after it */
    int64_t end_sync_cycles;
    int64_t serial_cycles; /* of all items, one after the other */
    int64_t busy[3];       /* per context */
    bool starves;          /* some item holds the DMA */
    bool loads;            /* some item loads bitmaps */
    known_costs *known;    /* for other schedules of the same commands, or of others like them */
} schedule;

/* False with a diagnostic when the commands form no legal kernel, wait for each other, or take too long to be
 * followed. Everything lives in the arena. */
/* The same, and gives up where more than `steps` cycles of the TRF had to be followed one by one for a piece of work. `known`: costs that
 * other schedules found; NULL: none. */
/* What if commands of a line took so many cycles less, each, or starved no copy? Its cycles, of the whole kernel; -1: cannot be followed.
 */
typedef struct schedule_change {
    uint32_t line;
    int64_t less;
    bool starves_nothing;
} schedule_change;
int64_t schedule_cycles_with(const schedule *s, schedule_change change, arena *a);

bool schedule_make_within(const target *t, const binary_kernel *k, timing_preset preset, int64_t steps, known_costs *known, arena *a,
                          diag_list *diags, schedule *out);
bool schedule_make(const target *t, const binary_kernel *k, timing_preset preset, arena *a, diag_list *diags, schedule *out);

#endif
