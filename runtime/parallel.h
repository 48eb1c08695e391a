/* Runs independent jobs on several threads. */
#ifndef VISA_RUNTIME_PARALLEL_H
#define VISA_RUNTIME_PARALLEL_H

#include <stddef.h>

/* job(context, worker, index) for every index below `count`; one worker (0 .. workers - 1) takes one index at
 * a time. Returns when all are done. Threads that the system refuses are done without. */
void parallel_for(size_t count, unsigned workers, void (*job)(void *context, unsigned worker, size_t index),
                  void *context);

/* Processors that this process may use, at least 1. */
unsigned parallel_processors(void);

#endif
