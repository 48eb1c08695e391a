#include "codegen/reference/team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* Of each member: a computation's number, how many members it has, where the member's own parts end and the next one to take, in one word,
 * so that a thread that comes late cannot take a part of another computation for one of its own. */
enum {
    NEXT_BITS = 16,
    END_BITS = 16,
    MEMBERS_BITS = 8,
    END_SHIFT = NEXT_BITS,
    MEMBERS_SHIFT = END_SHIFT + END_BITS,
    NUMBER_SHIFT = MEMBERS_SHIFT + MEMBERS_BITS
};

typedef struct own_parts {
    _Alignas(64) _Atomic uint64_t word;
    atomic_uint first;
} own_parts;

typedef struct helper {
    team *team;
    unsigned member;
    pthread_t thread;
} helper;

struct team {
    own_parts *parts;                     /* by member */
    _Alignas(64) _Atomic uint64_t number; /* of the last computation that began */
    _Alignas(64) atomic_uint unfinished;
    _Alignas(64) team_part *work;
    void *argument;
    /* For those who sleep. Others take no lock: two that met at it would sleep as well, for longer than a short computation takes. */
    pthread_mutex_t lock;
    pthread_cond_t begun, finished;
    atomic_uint sleeping; /* threads */
    atomic_bool waits;    /* the caller sleeps */
    bool ends;
    pid_t process;  /* a child has no threads of its parent's */
    int caller_cpu; /* that the threads keep off; -1: none */
    unsigned count;
    helper each[];
};

static void pause_once(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Some tens of microseconds. */
enum { GLANCES = 1000 };

static unsigned bits_of(uint64_t word, int shift, int bits)
{
    return (unsigned)(word >> shift) & ((1u << bits) - 1);
}

/* Takes one of a member's parts. */
static bool take_part(team *t, unsigned from, unsigned member, unsigned *part)
{
    own_parts *own = &t->parts[from];
    uint64_t word = atomic_load(&own->word);
    do {
        *part = bits_of(word, 0, NEXT_BITS);
        if (*part >= bits_of(word, END_SHIFT, END_BITS) || member >= bits_of(word, MEMBERS_SHIFT, MEMBERS_BITS))
            return false;
    } while (!atomic_compare_exchange_weak(&own->word, &word, word + 1));
    return true;
}

/* Some ten microseconds. */
enum { GRACE = 200 };

/* A member that has begun is left to go on with its parts for a moment: what they read and write is near its processor, and comes as slowly
 * from there as from memory. A member that has not begun, or does not go on, does not have them in its cache. */
static void leave_alone(team *t, unsigned from)
{
    const own_parts *own = &t->parts[from];
    for (int i = 0; i < GRACE; i++) {
        uint64_t word = atomic_load(&own->word);
        unsigned next = bits_of(word, 0, NEXT_BITS);
        if (next == atomic_load(&own->first) || next >= bits_of(word, END_SHIFT, END_BITS))
            return;
        pause_once();
    }
}

/* Takes parts until none is left, its own ones first. */
static void take_parts(team *t, unsigned member)
{
    unsigned part, members = t->count + 1;
    for (unsigned i = 0; i < members; i++) {
        unsigned from = (member + i) % members;
        if (i > 0)
            leave_alone(t, from);
        while (take_part(t, from, member, &part)) {
            t->work(t->argument, part, member);
            if (atomic_fetch_sub(&t->unfinished, 1) == 1 && atomic_load(&t->waits)) {
                pthread_mutex_lock(&t->lock);
                pthread_cond_signal(&t->finished);
                pthread_mutex_unlock(&t->lock);
            }
        }
    }
}

static bool has_begun(team *t, uint64_t last)
{
    return atomic_load(&t->number) != last;
}

/* Until a computation begins; false: none will. */
static bool await_begin(team *t, uint64_t last)
{
    for (int i = 0; i < GLANCES; i++) {
        if (has_begun(t, last))
            return true;
        pause_once();
    }
    pthread_mutex_lock(&t->lock);
    atomic_fetch_add(&t->sleeping, 1);
    while (!has_begun(t, last) && !t->ends)
        pthread_cond_wait(&t->begun, &t->lock);
    atomic_fetch_sub(&t->sleeping, 1);
    bool begun = !t->ends;
    pthread_mutex_unlock(&t->lock);
    return begun;
}

static void *attend(void *argument)
{
    const helper *self = argument;
    team *t = self->team;
    for (uint64_t last = 0; await_begin(t, last);) {
        last = atomic_load(&t->number);
        take_parts(t, self->member);
    }
    return NULL;
}

static void await_end(team *t)
{
    for (int i = 0; i < GLANCES; i++) {
        if (atomic_load(&t->unfinished) == 0)
            return;
        pause_once();
    }
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->waits, true);
    while (atomic_load(&t->unfinished) > 0)
        pthread_cond_wait(&t->finished, &t->lock);
    atomic_store(&t->waits, false);
    pthread_mutex_unlock(&t->lock);
}

team *team_new(unsigned count)
{
    team *t = aligned_alloc(64, (sizeof *t + count * sizeof *t->each + 63) / 64 * 64);
    own_parts *parts = aligned_alloc(64, (count + 1) * sizeof *parts);
    if (!t || !parts) {
        free(t);
        free(parts);
        return NULL;
    }
    *t = (team){.process = getpid(), .caller_cpu = -1, .parts = parts};
    for (unsigned i = 0; i <= count; i++)
        atomic_init(&parts[i].word, 0);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->begun, NULL);
    pthread_cond_init(&t->finished, NULL);
    for (; t->count < count; t->count++) {
        helper *next = &t->each[t->count];
        *next = (helper){.team = t, .member = t->count + 1};
        if (pthread_create(&next->thread, NULL, attend, next) != 0)
            break;
    }
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
            pthread_join(t->each[i].thread, NULL);
    }
    pthread_cond_destroy(&t->finished);
    pthread_cond_destroy(&t->begun);
    pthread_mutex_destroy(&t->lock);
    free(t->parts);
    free(t);
}

unsigned team_count(const team *t)
{
    return t ? t->count : 0;
}

/* A thread that wakes where no processor is idle is put next to whoever woke it, and stays there: neither gets on. Of the processors that
 * the caller may use, the threads may use all but the one that it is on. */
static void keep_apart(team *t)
{
    int cpu = sched_getcpu();
    cpu_set_t allowed;
    if (cpu < 0 || cpu >= CPU_SETSIZE || cpu == t->caller_cpu || sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    t->caller_cpu = cpu;
    CPU_CLR(cpu, &allowed);
    for (unsigned i = 0; CPU_COUNT(&allowed) > 0 && i < t->count; i++)
        pthread_setaffinity_np(t->each[i].thread, sizeof allowed, &allowed);
}

static void run_alone(unsigned parts, team_part *work, void *argument)
{
    for (unsigned i = 0; i < parts; i++)
        work(argument, i, 0);
}

void team_run(team *t, unsigned members, unsigned parts, team_part *work, void *argument)
{
    members = t && members > t->count + 1 ? t->count + 1 : members;
    if (!t || parts < 2 || members < 2 || t->process != getpid()) {
        run_alone(parts, work, argument);
        return;
    }
    keep_apart(t);
    t->work = work;
    t->argument = argument;
    atomic_store(&t->unfinished, parts);
    uint64_t number = atomic_load(&t->number) + 1;
    for (unsigned i = 0; i <= t->count; i++) {
        uint64_t first = i < members ? (uint64_t)parts * i / members : parts,
                 end = i < members ? (uint64_t)parts * (i + 1) / members : parts;
        atomic_store(&t->parts[i].first, (unsigned)first);
        atomic_store(&t->parts[i].word, number << NUMBER_SHIFT | (uint64_t)members << MEMBERS_SHIFT | end << END_SHIFT | first);
    }
    atomic_store(&t->number, number);
    if (atomic_load(&t->sleeping) > 0) {
        pthread_mutex_lock(&t->lock);
        pthread_cond_broadcast(&t->begun);
        pthread_mutex_unlock(&t->lock);
    }
    take_parts(t, 0);
    await_end(t);
}
