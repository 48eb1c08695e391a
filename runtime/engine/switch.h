/* Switch Engine: where the packets of a slice come from ("Switch Engine").
 *
 * The one idea: a packet that leaves in slice d at step u went in at one slice and step; for a named topology these are digits of d and u,
 * for a custom one the slices that d copies from, in ascending order, take turns. */
#ifndef VISA_RUNTIME_ENGINE_SWITCH_H
#define VISA_RUNTIME_ENGINE_SWITCH_H

#include "runtime/engine/exchange.h"

enum { SNOOP_MOST_DIGITS = 15 };

typedef struct snoop_digit {
    int64_t div, size, weight;
    bool moved;
} snoop_digit;

typedef struct routes {
    topology topology;
    int64_t ring, slice1, slice0, time0, slices; /* slices of a cluster */
    unsigned digit_count;
    snoop_digit digits[SNOOP_MOST_DIGITS];
    int64_t copied; /* CustomBroadcast: slices that each one copies from */
} routes;

/* The slices that slice `d` of a custom switch copies from, ascending; their number is k->copied where the command is legal. */
int64_t routes_copied(const routes *k, int64_t d, unsigned char *from);

/* Where the packet of slice d at step u went in. `from`: what routes_copied gave for d; not used for named topologies. */
void routes_origin(const routes *k, int64_t d, int64_t u, const unsigned char *from, int64_t *slice, int64_t *step);

#endif
