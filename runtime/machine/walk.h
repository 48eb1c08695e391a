/* A nested loop table: the shape that every sequencer shares.
 *
 * The one idea: address = base + sum(counter * stride) with the counters of nested loops, outermost first.
 * Legality of a whole walk is decided from the table, without walking it; the walk itself goes run by run of
 * the innermost loop. The unit of addresses is the caller's (bytes or elements). */
#ifndef VISA_RUNTIME_MACHINE_WALK_H
#define VISA_RUNTIME_MACHINE_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codegen/copy_command.h"

enum { WALK_MAX_LOOPS = 16 };

typedef struct walk {
    unsigned count; /* loops, outermost first; at least one */
    int64_t base;
    int64_t size[WALK_MAX_LOOPS];   /* iterations, at least 1 */
    int64_t stride[WALK_MAX_LOOPS]; /* address units */
} walk;

/* Wide enough for every sum of 15 products of a 48-bit stride and a 48-bit counter. */
typedef __int128 walk_address;

/* The addresses of one side of a copy, in bytes of the DMA address space. */
walk walk_of_copy(const copy_command *k, const copy_side *s);

/* Product of the sizes; false when it passes 2^62. */
bool walk_positions(const walk *w, int64_t *positions);

/* Lowest and highest address of the whole walk. */
void walk_bounds(const walk *w, walk_address *low, walk_address *high);

/* The first position, in walking order, whose address is below `low` or above `high`: its counters and its
 * address. False: there is none. */
bool walk_first_outside(const walk *w, int64_t low, int64_t high, int64_t *counters, walk_address *address);

/* The counters of position `position`. */
void walk_counters(const walk *w, int64_t position, int64_t *counters);

/* "(3, 0, 7)": counters of the walk, outermost first. */
void walk_counters_text(const walk *w, const int64_t *counters, char *text, size_t bytes);

/* Drops loops of size 1 and joins neighbours that continue each other (outer stride = inner size * inner
 * stride); the sequence of addresses stays the same. */
void walk_merge(walk *w);

/* Addresses that follow each other at the end of every run: size of the innermost loop if its stride is 1,
 * else 1. */
int64_t walk_run(const walk *w);

typedef struct walk_cursor {
    int64_t counter[WALK_MAX_LOOPS]; /* of all loops but the innermost */
    int64_t run_address;             /* address of the innermost loop's first iteration */
    int64_t run_position;            /* iterations of the innermost loop that are done */
} walk_cursor;

void walk_start(const walk *w, walk_cursor *c);
/* To the next iteration of the loops around the innermost; after the last one it starts again. */
void walk_next_run(const walk *w, walk_cursor *c);
/* The address of the current position, and one step forward. Only for walks whose addresses fit int64_t. */
static inline int64_t walk_step(const walk *w, walk_cursor *c)
{
    int64_t address = c->run_address + c->run_position * w->stride[w->count - 1];
    if (++c->run_position == w->size[w->count - 1])
        walk_next_run(w, c);
    return address;
}

#endif
