/* Points of a stream program that the processes of `mpirun visac tune FILE.vm` try together, each another one (support/peers.h). */
#ifndef VISA_LIBVISA_VARIANTS_PROGRAM_TEAM_H
#define VISA_LIBVISA_VARIANTS_PROGRAM_TEAM_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/step/figures.h"
#include "support/arena.h"
#include "support/peers.h"

typedef struct program_outcome {
    const char *refused; /* why it is no point; NULL: it is one */
    step_figures figures;
    uint64_t work; /* that it took */
} program_outcome;

typedef void program_try(void *user, size_t which, program_outcome *out);

/* Tries the first `count` points, at most peers_size, and fills in outcomes in all processes. False: no memory, or a process has
 * ended. */
bool program_team_run(const peers *p, size_t count, program_try *try, void *user, arena *a, program_outcome *outcomes);

#endif
