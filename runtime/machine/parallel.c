#define _GNU_SOURCE /* sched_getaffinity */
#include "runtime/machine/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
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

void parallel_for(size_t count, unsigned workers, void (*job)(void *context, unsigned worker, size_t index), void *context)
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

typedef struct parts {
    void (*job)(void *context, unsigned part, int64_t first, int64_t end);
    void *context;
    int64_t count;
    unsigned parts;
} parts;

static void run_part(void *of, unsigned number, size_t index)
{
    const parts *p = of;
    int64_t each = p->count / p->parts, more = p->count % p->parts, part = (int64_t)index;
    int64_t first = part * each + (part < more ? part : more);
    (void)number;
    p->job(p->context, (unsigned)index, first, first + each + (part < more));
}

unsigned parallel_parts(int64_t count, int64_t least, unsigned workers,
                        void (*job)(void *context, unsigned part, int64_t first, int64_t end), void *context)
{
    int64_t most = count / least < workers ? count / least : workers;
    parts p = {job, context, count, (unsigned)(most < 1 ? 1 : most < PARALLEL_PARTS ? most : PARALLEL_PARTS)};
    parallel_for(p.parts, p.parts, run_part, &p);
    return p.parts;
}

/* ---- jobs in the background ---- */

/* Whatever `ulimit -s` says: where it says little, a thread would have that, where it says nothing, 2 MiB. */
enum { STACK_BYTES = 8 << 20 };

struct parallel_job {
    void (*job)(void *context);
    void *context;
    pthread_t thread;
};

/* Of jobs that are not done. */
static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t jobs_done = PTHREAD_COND_INITIALIZER;
static size_t job_count;

static void count_jobs(bool begun)
{
    pthread_mutex_lock(&jobs_lock);
    job_count += begun ? 1 : -(size_t)1;
    pthread_cond_broadcast(&jobs_done);
    pthread_mutex_unlock(&jobs_lock);
}

static void *run_job(void *argument)
{
    const parallel_job *j = argument;
    j->job(j->context);
    count_jobs(false);
    return NULL;
}

parallel_job *parallel_begin(void (*job)(void *context), void *context)
{
    parallel_job *j = malloc(sizeof *j);
    if (!j)
        return NULL;
    *j = (parallel_job){.job = job, .context = context};
    pthread_attr_t attributes;
    count_jobs(true);
    bool begun = pthread_attr_init(&attributes) == 0;
    if (begun) {
        begun = pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0 && pthread_create(&j->thread, &attributes, run_job, j) == 0;
        pthread_attr_destroy(&attributes);
    }
    if (begun)
        return j;
    count_jobs(false);
    free(j);
    return NULL;
}

void parallel_end(parallel_job *j)
{
    if (!j)
        return;
    pthread_join(j->thread, NULL);
    free(j);
}

void parallel_settle(void)
{
    pthread_mutex_lock(&jobs_lock);
    while (job_count > 0)
        pthread_cond_wait(&jobs_done, &jobs_lock);
    pthread_mutex_unlock(&jobs_lock);
}

static unsigned processors(void)
{
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (unsigned)CPU_COUNT(&set);
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

unsigned parallel_workers(unsigned asked)
{
    return asked ? asked : processors();
}
