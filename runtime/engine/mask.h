/* Lanes that count in a contraction.
 *
 * The one idea: a mask is live where a sum of step terms plus a sum of lane terms is below its limit. The
 * lane sums are tabled once; a step then costs one sum per mask, and lanes are looked at one by one only
 * where the two ends of the lane table disagree. */
#ifndef VISA_RUNTIME_ENGINE_MASK_H
#define VISA_RUNTIME_ENGINE_MASK_H

#include "runtime/machine/fault.h"

typedef enum mask_state { MASK_ALL, MASK_NONE, MASK_SOME } mask_state;

/* Counters of a unit: which slice, cluster and chip it is (docs/isa.md, mask, counters 2 to 4). */
typedef struct mask_unit {
    int64_t counters[3];
} mask_unit;

typedef struct mask_term {
    unsigned unit_counter; /* of unit terms: index in mask_unit */
    int64_t div, mod, weight;
} mask_term;

typedef struct mask {
    int64_t limit;
    unsigned step_term_count, unit_term_count;
    mask_term step_terms[COMMAND_MAX_ENTRIES], unit_terms[COMMAND_MAX_ENTRIES];
    int64_t *lane_sum; /* per lane */
    int64_t lane_low, lane_high;
} mask;

typedef struct mask_set {
    mask *masks;
    size_t count;
    int64_t lanes;
    bool fixed;    /* no step term anywhere: every step of a slice has the same lanes */
    bool per_unit; /* a unit term somewhere: slices have lanes of their own */
} mask_set;

/* Tables the masks of a contraction of `steps` steps and `lanes` lanes, in the arena. */
bool mask_set_plan(mask_set *s, const command *commands, size_t count, int64_t steps, int64_t lanes, const target *t, arena *a, fault *f);

/* Which lanes are live at `step` of a unit; live[lane] is 1 or 0, and is filled only for MASK_SOME. */
mask_state mask_set_at(const mask_set *s, const mask_unit *unit, int64_t step, unsigned char *live);

/* The same from the sum of each mask's step terms, given in two parts; not for masks with unit terms. */
mask_state mask_set_live(const mask_set *s, const int64_t *sums, const int64_t *more, unsigned char *live);
/* Is the answer to that the same for all sums between `low` and `high`? */
bool mask_set_agrees(const mask_set *s, const int64_t *low, const int64_t *high, const int64_t *more);

#endif
