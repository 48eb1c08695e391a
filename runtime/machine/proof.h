/* The proof that a run's outputs depend neither on bytes that nobody wrote nor on the order in which contexts are served.
 *
 * The one idea: memories note which bytes were written, and every command's ranges are held against those of the commands of other contexts
 * that no wait puts before it. A run that reads written bytes only, and in which no two such commands touch the same bytes with one of them
 * writing, gives the same outputs with any filling and in any order: it needs no second run to show that. Ranges are taken too large where
 * they are not known, never too small, so what is left in doubt may still be right, and is then decided by the second run.
 *
 * Without a proof asked for (machine_options.prove) nothing of this costs anything. */
#ifndef VISA_RUNTIME_MACHINE_PROOF_H
#define VISA_RUNTIME_MACHINE_PROOF_H

#include <stdatomic.h>

#include "runtime/engine/dm_walk.h"
#include "runtime/machine/machine_state.h"

struct chain;

/* Numbers of one kind only are compared: HBM addresses with the chip above them, byte addresses of any slice's DM or VRF, halves of its
 * TRF. */
typedef enum proof_space { PROOF_HBM, PROOF_DM, PROOF_TRF, PROOF_VRF } proof_space;

typedef struct proof_range {
    proof_space space;
    int64_t begin, end; /* what ran was in memory, so it fits */
    bool writes;
} proof_range;

enum { PROOF_CONTEXTS = 3, PROOF_MOST_RANGES = 8 };

/* A chain or DMA command that ran. */
typedef struct proof_access {
    size_t end; /* commands of its context that are complete with it */
    unsigned count;
    proof_range ranges[PROOF_MOST_RANGES];
} proof_access;

/* Commands of every context that are complete whenever a context has completed `end` of its own. */
typedef struct proof_order {
    size_t end, known[PROOF_CONTEXTS];
} proof_order;

typedef struct proof {
    _Atomic bool doubt;
    struct {
        proof_access *items;
        size_t count, capacity;
    } done[PROOF_CONTEXTS];
    proof_order order[PROOF_CONTEXTS]; /* of each context now, */
    struct {
        proof_order *items;
        size_t count, capacity;
    } waits[PROOF_CONTEXTS]; /* and after each of its waits */
} proof;

static inline bool proof_is_open(const machine *m)
{
    return m->proof && !atomic_load_explicit(&m->proof->doubt, memory_order_relaxed);
}

void proof_doubt(machine *m);

/* What an engine or a port reads and writes; called for every piece. */
static inline void proof_read(machine *m, const memory *from, int64_t address, int64_t bytes)
{
    if (proof_is_open(m) && !memory_is_written(from, address, bytes))
        proof_doubt(m);
}

static inline void proof_write(machine *m, memory *to, int64_t address, int64_t bytes)
{
    if (proof_is_open(m))
        memory_mark_written(to, address, bytes);
}

/* What a stage reads before a slice runs, and has written after it: all bytes of a walk, or [begin, begin + bytes) of every Row's
 * partition. */
void proof_dm_reads(machine *m, const dm_walk *w, int64_t unit_index);
void proof_dm_writes(machine *m, const dm_walk *w, int64_t unit_index);
void proof_trf_reads(machine *m, int64_t unit_index, int64_t rows, trf_address mode, int64_t begin, int64_t bytes);
void proof_trf_writes(machine *m, int64_t unit_index, int64_t rows, trf_address mode, int64_t begin, int64_t bytes);

/* The same of a whole chain, for the order of commands. */
proof_range proof_dm_range(const dm_walk *w, bool writes);
proof_range proof_trf_range(trf_address mode, bool writes); /* first half 0, second half 1 */

/* What a context did, in the order of the run: waited for `count` commands of another, */
void proof_wait(machine *m, int number, int other, size_t count);
/* ran a chain, with which `end` of its commands are complete, */
void proof_chain(machine *m, int number, const struct chain *c, size_t end);
/* or a command of the DMA that reads and writes these (at most PROOF_MOST_RANGES). */
void proof_copy(machine *m, int number, const proof_range *ranges, unsigned count, size_t end);

#endif
