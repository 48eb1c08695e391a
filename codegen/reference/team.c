#include "codegen/reference/team.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* A computation's number, how many parts it has and the next one to take stand in one word, so that a thread that comes late cannot
 * take a part of another computation for one of its own. */
enum { NEXT_BITS = 16, PARTS_BITS = 16, NUMBER_SHIFT = NEXT_BITS + PARTS_BITS };

struct team {
    _Atomic uint64_t word;
    _Alignas(64) atomic_uint unfinished;
    _Alignas(64) team_part *work;
    void *argument;
    pthread_mutex_t lock; /* for those who sleep */
    pthread_cond_t begun, finished;
    bool ends;
    pid_t process; /* a child has no threads of its parent's */
    unsigned count;
    pthread_t each[];
};

static void pause_once(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Some tens of microseconds. */
enum { GLANCES = 1000 };

/* Takes parts until none is left; the number of the computation that it came from. */
static uint64_t take_parts(team *t)
{
    for (;;) {
        uint64_t word = atomic_fetch_add(&t->word, 1);
        uint64_t part = word & ((1u << NEXT_BITS) - 1), parts = word >> NEXT_BITS & ((1u << PARTS_BITS) - 1);
        if (part >= parts)
            return word >> NUMBER_SHIFT;
        t->work(t->argument, (unsigned)part);
        if (atomic_fetch_sub(&t->unfinished, 1) == 1) {
            pthread_mutex_lock(&t->lock);
            pthread_cond_signal(&t->finished);
            pthread_mutex_unlock(&t->lock);
        }
    }
}

static bool has_begun(team *t, uint64_t last)
{
    return atomic_load(&t->word) >> NUMBER_SHIFT != last;
}

static void *attend(void *argument)
{
    team *t = argument;
    for (uint64_t last = 0;; last = take_parts(t)) {
        for (int i = 0; i < GLANCES && !has_begun(t, last); i++)
            pause_once();
        pthread_mutex_lock(&t->lock);
        while (!has_begun(t, last) && !t->ends)
            pthread_cond_wait(&t->begun, &t->lock);
        bool ends = t->ends;
        pthread_mutex_unlock(&t->lock);
        if (ends)
            return NULL;
    }
}

team *team_new(unsigned count)
{
    team *t = aligned_alloc(64, (sizeof *t + count * sizeof *t->each + 63) / 64 * 64);
    if (!t)
        return NULL;
    *t = (team){.process = getpid()};
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->begun, NULL);
    pthread_cond_init(&t->finished, NULL);
    while (t->count < count && pthread_create(&t->each[t->count], NULL, attend, t) == 0)
        t->count++;
    return t;
}

void team_free(team *t)
{
    if (!t)
        return;
    if (t->process == getpid()) {
        pthread_mutex_lock(&t->lock);
        t->ends = true;
        pthread_cond_broadcast(&t->begun);
        pthread_mutex_unlock(&t->lock);
        for (unsigned i = 0; i < t->count; i++)
            pthread_join(t->each[i], NULL);
    }
    pthread_cond_destroy(&t->finished);
    pthread_cond_destroy(&t->begun);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

unsigned team_count(const team *t)
{
    return t ? t->count : 0;
}

static void run_alone(unsigned parts, team_part *work, void *argument)
{
    for (unsigned i = 0; i < parts; i++)
        work(argument, i);
}

void team_run(team *t, unsigned parts, team_part *work, void *argument)
{
    if (!t || parts < 2 || t->process != getpid()) {
        run_alone(parts, work, argument);
        return;
    }
    t->work = work;
    t->argument = argument;
    atomic_store(&t->unfinished, parts);
    uint64_t number = (atomic_load(&t->word) >> NUMBER_SHIFT) + 1;
    atomic_store(&t->word, number << NUMBER_SHIFT | (uint64_t)parts << NEXT_BITS);
    pthread_mutex_lock(&t->lock);
    pthread_cond_broadcast(&t->begun);
    pthread_mutex_unlock(&t->lock);
    take_parts(t);
    for (int i = 0; i < GLANCES && atomic_load(&t->unfinished) > 0; i++)
        pause_once();
    pthread_mutex_lock(&t->lock);
    while (atomic_load(&t->unfinished) > 0)
        pthread_cond_wait(&t->finished, &t->lock);
    pthread_mutex_unlock(&t->lock);
}
