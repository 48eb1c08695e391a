/* The least that any kernel can take by the timing model itself, for tensors of so many bytes and so many products.
 *
 * The one idea: a bound that nothing in the model forbids to reach. Copies run one after the other; each moves one tensor at most, starts
 * once, and all engines and channels together carry it. Nothing is multiplied before both operands have something there, and nothing leaves
 * before that: of results that are stored in several copies each waits for its share of the products, and those for copies; and where
 * each tensor comes in one copy all results are made after the last of them. A copy finds all banks closed: what is more than a row of
 * each costs a switch for each row, or another copy. Reports and visac tune have it from here; rules and sources: docs/timing.md. */
#ifndef VISA_RUNTIME_TIMING_ATTAINABLE_H
#define VISA_RUNTIME_TIMING_ATTAINABLE_H

#include "runtime/timing/timing_preset.h"
#include "target/target.h"

enum { ATTAINABLE_OPERANDS = 8 };

typedef struct attainable {
    int64_t starts, start_cycles;    /* of copies */
    int64_t bytes, bytes_per_kcycle; /* of all tensors; what carries them, per 1000 cycles */
    int64_t partial_cycles;          /* of a block that is written in part: what its copy takes more than for its bytes */
    int64_t row_cycles;              /* rows of HBM that those copies open in banks where another one is open */
    int64_t copies, products;        /* each alone */
    int64_t waits;                   /* both, where stores wait for their products, in the best number of stores; 0: nothing is known */
    int64_t cycles;                  /* the largest of the three */
} attainable;

/* What a kernel must do at least. */
typedef struct attainable_work {
    int64_t chips;
    int64_t slices;        /* of each cluster that work at most; 0: all */
    int64_t loads, stores; /* tensors in HBM that are read for a computation, and those that are written by one */
    int64_t bytes;         /* of the tensors in HBM */
    bool far_bank;         /* addresses in HBM differ in bit 34: twice as many banks */
    int64_t mac_cycles;    /* with every lane of all chips at work */
    int64_t
        ending_bytes;    /* of a result that lies in one piece and ends, or begins, inside a block of HBM; 0: there is none, or not known */
    int64_t first_loads; /* tensors that are read before anything is multiplied; 0: nothing is known */
    int64_t stored_bytes,
        stored_mac_cycles; /* of the only result, and the products that each part of it needs its share of; 0: not known */
    /* of the tensors that all products need: a share of so many bytes of one is in as large a share of the products at most; after the last
     * one, and where nothing is known, 0 */
    int64_t operand_bytes[ATTAINABLE_OPERANDS];
    int64_t operand_load_bytes; /* of all of them: what is loaded, where that is more */
    int64_t made_cycles; /* that all results take at least after the last of the tensors has come, whichever that is, where each comes in
                            one copy and every result needs a part of each; 0: not known */
} attainable_work;

/* All zero where the preset states no limits (published schedules). */
attainable attainable_of(const target *t, timing_preset preset, const attainable_work *w);

#endif
