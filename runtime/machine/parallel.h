/* Runs independent jobs on several threads. */
#ifndef VISA_RUNTIME_MACHINE_PARALLEL_H
#define VISA_RUNTIME_MACHINE_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

/* job(context, worker, index) for every index below `count`; one worker (0 .. workers - 1) takes one index at
 * a time. Returns when all are done. Threads that the system refuses are done without. */
void parallel_for(size_t count, unsigned workers, void (*job)(void *context, unsigned worker, size_t index), void *context);

/* The same in contiguous parts of at least `least` of `count` items: job(context, part, first, end), at most PARALLEL_PARTS of them. */
enum { PARALLEL_PARTS = 64 };
unsigned parallel_parts(int64_t count, int64_t least, unsigned workers,
                        void (*job)(void *context, unsigned part, int64_t first, int64_t end), void *context);

/* Runs job(context) on a thread while the caller goes on, until parallel_end, which waits for it. NULL: the system has no thread for it. */
typedef struct parallel_job parallel_job;
parallel_job *parallel_begin(void (*job)(void *context), void *context);
void parallel_end(parallel_job *j);
/* Waits for all such jobs: for a program that exits because a budget is exhausted, where nobody calls parallel_end any more. */
void parallel_settle(void);

/* So many workers as were asked for; 0: one for each processor that this process may use. At least 1. */
unsigned parallel_workers(unsigned asked);

#endif
