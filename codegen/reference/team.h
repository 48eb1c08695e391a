/* Threads that share the parts of a computation, and wait for the next one.
 *
 * The one idea: parts are taken, not given. Whoever runs the computation takes parts too, so a thread that wakes late costs nothing but
 * its help; between two computations the threads watch for a moment before they sleep, because a product of a few hundred
 * microseconds would not pay for waking them. */
#ifndef VISA_CODEGEN_REFERENCE_TEAM_H
#define VISA_CODEGEN_REFERENCE_TEAM_H

typedef struct team team;
typedef void team_part(void *argument, unsigned part);

/* `count` threads beside the caller, or as many as start; NULL without memory. */
team *team_new(unsigned count);
void team_free(team *t);
unsigned team_count(const team *t);
/* Every part once; returns when all are done. One computation at a time. Less than 2^16 parts. t may be NULL. */
void team_run(team *t, unsigned parts, team_part *work, void *argument);

#endif
