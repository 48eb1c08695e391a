/* Processes that try points of a stream program together, `mpirun visac tune FILE.vm`.
 *
 * The one idea: each process tries another one of the next points, and all are told what every one of them gave, in the order of the
 * points. So each goes on as if it had tried them all, one after the other, and the answer does not depend on how many there are. */
#ifndef VISA_LIBVISA_VARIANTS_PROGRAM_TEAM_H
#define VISA_LIBVISA_VARIANTS_PROGRAM_TEAM_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/step/figures.h"
#include "support/arena.h"

/* As in visa_tune_options; gather NULL: there is one process. */
typedef struct program_team {
    int64_t part, parts;
    bool (*gather)(void *user, const int64_t *mine, size_t count, int64_t **all, size_t **counts, size_t *ranks);
    bool (*share)(unsigned char **bytes, size_t *size);
} program_team;

typedef struct program_outcome {
    const char *refused; /* why it is no point; NULL: it is one */
    step_figures figures;
    uint64_t work; /* that it took */
} program_outcome;

typedef void program_try(void *user, size_t which, program_outcome *out);

/* Points that are tried at once. */
size_t program_team_size(const program_team *t);

/* Tries the first `count` points, at most program_team_size, and fills in outcomes in all processes. False: no memory, or a process has
 * gone. */
bool program_team_run(const program_team *t, size_t count, program_try *try, void *user, arena *a, program_outcome *outcomes);

#endif
