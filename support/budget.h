/* What a compilation may spend: work, memory, nesting, and in an editor time.
 *
 * The one idea: everything that grows with the input is counted where it is done, in the account of the arena that all of it has at
 * hand, and whoever would pass a limit unwinds to the arena's guard, as one does who finds no memory. A step is an allocation, a node
 * that is evaluated, an element that is looked at: their number depends on the input alone, so that the same input has the same
 * verdict everywhere. The clock decides only where somebody waits for an answer. */
#ifndef VISA_SUPPORT_BUDGET_H
#define VISA_SUPPORT_BUDGET_H

#include "support/arena.h"
#include "support/src_range.h"

/* LIMIT(name, value, unit, what is counted) */
enum {
#define LIMIT(name, value, unit, what) name = (value),
#include "support/limits.def"
#undef LIMIT
};

/* What ran out. */
typedef enum budget_end { BUDGET_MEMORY, BUDGET_STEPS, BUDGET_BYTES, BUDGET_TIME, BUDGET_ASKED, BUDGET_NESTING } budget_end;

typedef struct budget {
    uint64_t steps, bytes;         /* spent; bytes of the arena's blocks */
    uint64_t max_steps, max_bytes; /* UINT64_MAX: any number */
    uint64_t max_milliseconds;     /* from the start, of this thread's processor; 0: any number */
    uint64_t started;              /* nanoseconds; 0: the clock does not run yet */
    /* Past the limit of time: does somebody wait now? Work goes on until somebody does, or as many milliseconds are over. NULL: at once. */
    bool (*is_asked)(void *user);
    void *asked_user;
    uint64_t unasked_milliseconds;
    uint64_t look;  /* steps at which limit or clock are looked at again */
    unsigned depth; /* of recursions under way */
    src_range at;   /* what is being read: where the work was, when it became too much */
    budget_end end; /* why the arena unwound the last time */
} budget;

/* Limits from now on; what was spent stays. Milliseconds 0: no clock; else it runs from the first such call, or the last budget_clock. */
void budget_limit(arena *a, uint64_t max_steps, uint64_t max_bytes, uint64_t max_milliseconds);
/* The clock runs from here, and somebody waits. */
void budget_clock(arena *a);
/* Milliseconds that are left of the limit, at least 1; 0: there is none. */
uint64_t budget_milliseconds_left(const arena *a);
/* No limits any more, but of nesting: for saying what happened. */
void budget_lift(arena *a);
/* So many steps were spent, and the clock does not run yet; bytes are those of the blocks that there are. */
void budget_restart(arena *a, uint64_t steps);
/* Counts work. Does not return when it is too much. */
void budget_spend(arena *a, uint64_t steps);
/* The same, and says what is being read. */
void budget_spend_at(arena *a, src_range at, uint64_t steps);
/* Around each recursion whose depth the input has in its hand. Does not return from the level NESTING_MAX on. */
void budget_enter(arena *a);
void budget_leave(arena *a);
/* Something is put together that is nested `depth` levels deep, and has so many parts where each is counted as often as it is met: what is
 * named once and used twice in every level has 2^depth of them. Everybody who walks through it pays for them. */
void budget_nested(arena *a, unsigned depth, uint64_t parts);
/* One of those that it is put together from: depth and parts of the whole, which begin at 0. */
static inline void budget_hold(unsigned *depth, uint64_t *parts, unsigned inner_depth, uint64_t inner_parts)
{
    if (inner_depth >= *depth)
        *depth = inner_depth + 1;
    if (__builtin_add_overflow(*parts, inner_parts + 1, parts))
        *parts = UINT64_MAX - 1;
}

/* Before a function that takes part in a recursion, or is called by one: in its caller it would take its part of the stack in every level.
 * NESTING_MAX levels have to fit a stack of 256 KiB (test/recursion.py). */
#define STACK_APART __attribute__((noinline))

#endif
