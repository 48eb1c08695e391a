/* Plans that the processes of `mpirun visac tune` compile together, each another one (support/peers.h). */
#ifndef VISA_LIBVISA_TUNE_TEAM_H
#define VISA_LIBVISA_TUNE_TEAM_H

#include <stdbool.h>
#include <stddef.h>

#include "include/visa.h"
#include "support/arena.h"

/* The result of compiling a plan. */
typedef struct tune_outcome {
    bool known, legal;
    int64_t cycles, dma_cycles; /* of the kernel; in which the DMA Engine works */
    uint64_t steps;             /* of work that it took */
} tune_outcome;

/* Compiles one plan. False: no memory. */
typedef bool tune_team_compile(void *user, size_t plan, tune_outcome *out);

/* The plans that may be compiled at once. */
size_t tune_team_size(const visa_tune_options *o);

/* Compiles the first `count` of these plans, at most tune_team_size, and fills in outcomes[plan] in all processes. False: no memory. */
bool tune_team_run(const visa_tune_options *o, const size_t *plans, size_t count, tune_team_compile *compile, void *user, arena *a,
                   tune_outcome *outcomes);

/* The first process's text in all of them: *text is malloc'd in the others. False: no memory. */
bool tune_team_share(const visa_tune_options *o, unsigned char **text, size_t *bytes);

#endif
