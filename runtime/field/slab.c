#include "runtime/field/slab.h"

#include <stdlib.h>

/* Under AddressSanitizer each piece is the heap's, so that one that is used too far or too long is found. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLAB_WATCHED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SLAB_WATCHED 1
#endif

#ifdef SLAB_WATCHED
void *slab_take(size_t bytes)
{
    return malloc(bytes);
}

void slab_give(void *piece)
{
    free(piece);
}
#else
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

enum { SLAB_BYTES = 2 * 1024 * 1024, HEAD_BYTES = 64, LEAST_LOG2 = 8, CLASSES = 8 };
_Static_assert(SLAB_MOST_BYTES == 1 << (LEAST_LOG2 + CLASSES - 1), "the last class holds the largest piece");

typedef struct piece {
    struct piece *next;
} piece;

/* It begins at a multiple of its size, so that a piece knows it. */
typedef struct slab {
    struct slab *next, *before; /* of its class with room */
    piece *given_back;
    uint32_t class, cut, live; /* pieces that were ever taken, and those that are not given back */
    uint32_t provided;         /* bytes that the system has provided pages for, at least */
} slab;
_Static_assert(sizeof(slab) <= HEAD_BYTES, "a slab's own fields are in front of its pieces");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static slab *with_room[CLASSES];
static uint32_t begun[CLASSES]; /* slabs there are */

/* A power of two and a page's own fields. */
static size_t piece_bytes(uint32_t class)
{
    return ((size_t)1 << (LEAST_LOG2 + class)) + HEAD_BYTES;
}

static uint32_t pieces_of(uint32_t class)
{
    return (uint32_t)((SLAB_BYTES - HEAD_BYTES) / piece_bytes(class));
}

static void link_in(slab *s)
{
    s->before = NULL;
    s->next = with_room[s->class];
    if (s->next)
        s->next->before = s;
    with_room[s->class] = s;
}

static void link_out(slab *s)
{
    if (s->next)
        s->next->before = s->before;
    *(s->before ? &s->before->next : &with_room[s->class]) = s->next;
}

/* The first one of a class comes piece by piece: a small kernel needs a few of them. */
static slab *slab_new(uint32_t class)
{
    unsigned char *bytes = mmap(NULL, 2 * (size_t)SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED)
        return NULL;
    size_t front = (SLAB_BYTES - (uintptr_t)bytes % SLAB_BYTES) % SLAB_BYTES;
    if (front > 0)
        munmap(bytes, front);
    munmap(bytes + front + SLAB_BYTES, SLAB_BYTES - front);
    slab *s = (slab *)(void *)(bytes + front);
#ifdef MADV_HUGEPAGE
    if (begun[class] > 0)
        madvise(s, SLAB_BYTES, MADV_HUGEPAGE); /* what comes of it does not matter */
#endif
    *s = (slab){.class = class, .provided = begun[class] > 0 ? SLAB_BYTES : HEAD_BYTES};
    begun[class]++;
    link_in(s);
    return s;
}

/* Pages up to `end`, and as many more as there are already, at once: the system takes less time for that than for a fault at each. */
static void slab_provide(slab *s, size_t end)
{
    enum { PAGE_BYTES = 4096, MOST_BYTES = 256 * 1024 };
    size_t more = s->provided < MOST_BYTES ? s->provided : MOST_BYTES;
    size_t wanted = (end + more + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    wanted = wanted < SLAB_BYTES ? wanted : SLAB_BYTES;
#ifdef MADV_POPULATE_WRITE
    size_t from = s->provided / PAGE_BYTES * PAGE_BYTES;
    madvise((unsigned char *)s + from, wanted - from, MADV_POPULATE_WRITE); /* where it fails, faults do it */
#endif
    s->provided = (uint32_t)wanted;
}

void *slab_take(size_t bytes)
{
    uint32_t class = 0;
    while (class < CLASSES && piece_bytes(class) < bytes)
        class ++;
    if (class == CLASSES)
        return NULL;
    pthread_mutex_lock(&lock);
    slab *s = with_room[class] ? with_room[class] : slab_new(class);
    void *taken = NULL;
    if (s) {
        piece *again = s->given_back;
        taken = again ? (unsigned char *)again : (unsigned char *)s + HEAD_BYTES + s->cut * piece_bytes(class);
        if (again)
            s->given_back = again->next;
        else
            s->cut++;
        size_t end = HEAD_BYTES + s->cut * piece_bytes(class);
        if (end > s->provided)
            slab_provide(s, end);
        if (++s->live == pieces_of(class))
            link_out(s);
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

void slab_give(void *given)
{
    piece *p = given;
    if (!p)
        return;
    slab *s = (slab *)(void *)((unsigned char *)p - (uintptr_t)p % SLAB_BYTES);
    pthread_mutex_lock(&lock);
    bool was_full = s->live == pieces_of(s->class);
    p->next = s->given_back;
    s->given_back = p;
    if (was_full)
        link_in(s);
    bool is_over = --s->live == 0 && (s->next || s->before); /* else the next piece would begin it again */
    if (is_over) {
        link_out(s);
        begun[s->class]--;
    }
    pthread_mutex_unlock(&lock);
    if (is_over)
        munmap(s, SLAB_BYTES);
}
#endif
