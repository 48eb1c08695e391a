/* Threads that share the parts of a computation, and wait for the next one.
 *
 * The one idea: parts are taken, not given. Whoever runs the computation takes parts too and never waits for one that nobody has begun, so
 * a thread that wakes late, or not at all, costs nothing but its help. Between two computations the threads watch for a moment before they
 * sleep, because a product of a few hundred microseconds would not pay for waking them; and they keep off the processor of their caller,
 * where they would take the time from it that they are to give. */
#ifndef VISA_CODEGEN_REFERENCE_TEAM_H
#define VISA_CODEGEN_REFERENCE_TEAM_H

typedef struct team team;
/* `member`: 0 is the caller of team_run; no two members compute at once under one number. */
typedef void team_part(void *argument, unsigned part, unsigned member);

/* `count` threads in addition to the caller, or as many as start; NULL without memory. */
team *team_new(unsigned count);
void team_free(team *t);
unsigned team_count(const team *t);
/* Every part once, by at most so many members; returns when all are done. One computation at a time. Less than 2^16 parts, at most 255
 * members. t may be NULL. */
void team_run(team *t, unsigned members, unsigned parts, team_part *work, void *argument);

#endif
