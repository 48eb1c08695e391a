/* The order of a kernel in which one operand goes around slices in steps and the other one comes in two halves and stays.
 *
 * The one idea: what can be ordered is a few numbers: which steps each copy brings, which of them main hands around, what meets the first
 * half while the other half comes, and after which steps results are stored. All of them are tried on a clock for each context. */
#ifndef VISA_LIBVISA_TUNE_STEPS_H
#define VISA_LIBVISA_TUNE_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STEPS_MOST = 32,
    STEPS_MOST_STORES = 6,
    STEPS_COPIES = 3,
    STEPS_HALVES = 2,
    STEPS_CHAIN_FILL = 16,
    STEPS_TRF_FILL = 2,
    STEPS_SPLIT = 2
};

/* What the pieces of work take, in cycles. */
typedef struct steps_costs {
    int64_t steps;
    int64_t load[STEPS_MOST + 1];  /* of so many steps: a copy */
    int64_t load_extras;           /* what meets the sums: a copy of each */
    int64_t load_half, fill;       /* of what stays: a copy of half of it, and into the TRF */
    int64_t main_ring, sub_ring;   /* of one step */
    int64_t products, alone;       /* of one step with a half, without the fill of a pass; more where a packet is alone in one */
    int64_t store[STEPS_MOST + 1]; /* of so many steps, in one copy of both halves, or, where these are stored apart, of one */
    int64_t startup;               /* of a copy */
    int64_t inner;                 /* so many steps follow each other in HBM: what is copied, or met in a pass, is a part of them or all */
    int64_t packet;                /* steps of a pass: a multiple of these */
    int64_t together;              /* steps whose results are whole blocks of HBM: a multiple of these is stored */
    int64_t unit;                  /* steps whose results lie together in DM: a part of them is met in a pass, or all of several */
    int64_t most;                  /* steps of a pass: what meets them has room for no more of them in the VRF */
    int64_t later, later_passes;   /* of one step with a half: passes over its sums before they are stored; how many */
    bool at_once;                  /* what stays comes in one copy */
    bool one_store;                /* of all */
    bool halves_apart;             /* results of each half are stored when they are there */
} steps_costs;

typedef struct steps_order {
    int64_t steps;
    int64_t copied[STEPS_COPIES];      /* steps of each copy: two in front of what stays and one behind it; 0: none */
    int64_t by_main;                   /* of the first steps this many, every other one, go around by the main context, the others by sub */
    int64_t early[STEPS_MOST];         /* steps that meet the first half in one pass each, in front of the other half */
    int64_t early_count;               /* of these passes */
    bool at_once, halves_apart;        /* as in steps_costs */
    int64_t stored[STEPS_MOST_STORES]; /* steps of each store */
    int64_t parted[STEPS_MOST_STORES]; /* of these the first ones that meet both halves while the others are on their way; 0: none */
    int64_t store_count;
    int64_t cycles; /* as estimated */
} steps_order;

/* Steps of the first pass over a range of `count` from `from` on: a part of a unit, all of several in those that follow each other, or all
 * of several of these. */
int64_t steps_of_pass(int64_t inner, int64_t unit, int64_t from, int64_t count);

/* The best order. What was not multiplied before the second half is multiplied after it. */
steps_order steps_best_order(const steps_costs *c);

#endif
