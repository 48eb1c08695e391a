/* Processes that look for an answer together, under a launcher: `mpirun visac tune`.
 *
 * The one idea: which piece of work is next depends on what was found, so each process does another one of those that are next by what is
 * known now, and all are told what every one of them gave, in the order of the pieces. So each goes on as if it had done them all itself,
 * one after the other, and the answer does not depend on how many there are. */
#ifndef VISA_SUPPORT_PEERS_H
#define VISA_SUPPORT_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/arena.h"

/* As in visa_tune_options; gather NULL: there is one process. */
typedef struct peers {
    int64_t part, parts;
    void *user;
    bool (*gather)(void *user, const int64_t *mine, size_t count, int64_t **all, size_t **counts, size_t *ranks);
    bool (*share)(unsigned char **bytes, size_t *size);
} peers;

/* The pieces that may be done at once. */
size_t peers_size(const peers *p);

/* Which of the first `count` pieces this process does; false: none. */
bool peers_has_piece(const peers *p, size_t count, size_t *piece);

/* The numbers of all processes, one after the other in the order of their parts, in all of them; those that they give need not be equally
 * many. From the arena. False: no memory, or a process has ended. */
bool peers_exchange(const peers *p, const int64_t *mine, size_t count, arena *a, const int64_t **all, size_t *all_count);

/* The first process's bytes in all of them: *bytes is malloc'd in the others. False: no memory. */
bool peers_share(const peers *p, unsigned char **bytes, size_t *size);

#endif
