#define _GNU_SOURCE /* sched_getaffinity */
#include "runtime/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

enum { MOST_WORKERS = 64 };

typedef struct pool {
    void (*job)(void *context, unsigned worker, size_t index);
    void *context;
    size_t count;
    atomic_size_t next;
} pool;

typedef struct worker {
    pool *pool;
    unsigned number;
    pthread_t thread;
    bool started;
} worker;

static void *work(void *argument)
{
    worker *w = argument;
    pool *p = w->pool;
    for (size_t i; (i = atomic_fetch_add(&p->next, 1)) < p->count;)
        p->job(p->context, w->number, i);
    return NULL;
}

void parallel_for(size_t count, unsigned workers, void (*job)(void *context, unsigned worker, size_t index),
                  void *context)
{
    pool p = {.job = job, .context = context, .count = count};
    worker all[MOST_WORKERS] = {0};
    if (workers > MOST_WORKERS)
        workers = MOST_WORKERS;
    for (unsigned i = 0; i < workers || i == 0; i++)
        all[i] = (worker){.pool = &p, .number = i};
    for (unsigned i = 1; i < workers; i++)
        all[i].started = pthread_create(&all[i].thread, NULL, work, &all[i]) == 0;
    work(&all[0]);
    for (unsigned i = 1; i < workers; i++)
        if (all[i].started)
            pthread_join(all[i].thread, NULL);
}

unsigned parallel_processors(void)
{
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (unsigned)CPU_COUNT(&set);
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}
