#include "support/budget.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Under AddressSanitizer only what was handed out may be touched, and the eight bytes after each piece may not: an index past the end of an
 * array in an arena is found as one on the heap is, and so is what was forgotten by a rewind. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_WATCHED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ARENA_WATCHED 1
#endif
#ifdef ARENA_WATCHED
#include <sanitizer/asan_interface.h>
enum { GAP_BYTES = 8 };
#define arena_shut(from, bytes) ASAN_POISON_MEMORY_REGION((from), (bytes))
#define arena_open(from, bytes) ASAN_UNPOISON_MEMORY_REGION((from), (bytes))
#else
enum { GAP_BYTES = 0 };
#define arena_shut(from, bytes) ((void)(from), (void)(bytes))
#define arena_open(from, bytes) ((void)(from), (void)(bytes))
#endif

enum { FIRST_BLOCK_BYTES = 64 * 1024, LARGEST_BLOCK_BYTES = 4 * 1024 * 1024, HUGE_PAGE_BYTES = 2 * 1024 * 1024 };

struct block {
    struct block *next;
    size_t used, bytes;
    size_t clean; /* from here on the data are known to be zero */
    alignas(ARENA_ALIGNMENT) unsigned char data[];
};

struct arena {
    struct block *head;
    struct block *spare;           /* blocks that a rewind, or an arena inside, has emptied */
    struct arena *outer;           /* where blocks come from and go to; NULL: the heap */
    struct arena *inside, *beside; /* the latest arena inside, and of the same outer one the one before */
    budget *budget;                /* the outermost arena's */
    int guarded;
    jmp_buf guard; /* last: an arena inside has none */
};

/* Of a block that is mapped; a system that places huge pages by the length of what is asked for has nothing left over. */
static size_t mapped_bytes(size_t total)
{
    return (total + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
}

/* What a short compilation needs lies in the program, zeroed by the system page by page: nothing is asked for, and nothing zeroed again. A
 * slot holds one of the smallest blocks; slots are taken and given back by whatever thread. */
enum { SLOTS = 16 };

static struct {
    alignas(ARENA_ALIGNMENT) unsigned char bytes[FIRST_BLOCK_BYTES];
} slots[SLOTS];
static _Atomic unsigned slots_taken, slots_used; /* a bit for each: now; ever */

static struct block *slot_take(bool *zeroed)
{
    unsigned taken = atomic_load_explicit(&slots_taken, memory_order_relaxed), free_ones;
    do {
        free_ones = ~taken & ((1U << SLOTS) - 1);
        if (!free_ones)
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(&slots_taken, &taken, taken | (free_ones & -free_ones), memory_order_acquire,
                                                    memory_order_relaxed));
    unsigned slot = free_ones & -free_ones;
    *zeroed = !(atomic_fetch_or_explicit(&slots_used, slot, memory_order_relaxed) & slot);
    return (struct block *)slots[__builtin_ctz(slot)].bytes;
}

static bool slot_give(const struct block *b)
{
    uintptr_t at = (uintptr_t)b - (uintptr_t)slots;
    if (at >= sizeof slots)
        return false;
    atomic_fetch_and_explicit(&slots_taken, ~(1U << at / sizeof *slots), memory_order_release);
    return true;
}

/* Where memory comes from. Of the largest blocks many follow: each in huge pages where the system has them, since a page fault for every
 * 4 KiB is a fifth of a large compilation's time. These and blocks in between come zeroed from the system, page by page as they are used. A
 * small one is the heap's where no slot is free: zeroing it at once would touch pages that are never needed. */
static struct block *block_memory(size_t total, bool *zeroed)
{
    struct block *slot = total <= FIRST_BLOCK_BYTES ? slot_take(zeroed) : NULL;
    if (slot)
        return slot;
    *zeroed = total > FIRST_BLOCK_BYTES;
    if (!*zeroed)
        return malloc(total);
    if (total < LARGEST_BLOCK_BYTES)
        return calloc(1, total);
    struct block *b = mmap(NULL, mapped_bytes(total), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b == MAP_FAILED)
        return NULL;
    madvise(b, mapped_bytes(total), MADV_HUGEPAGE); /* what comes of it does not matter */
    return b;
}

static void block_free(struct block *b)
{
    size_t total = b->bytes + sizeof *b;
    arena_open(b->data, b->bytes);
    if (slot_give(b))
        return;
    if (total < LARGEST_BLOCK_BYTES)
        free(b);
    else
        munmap(b, mapped_bytes(total));
}

/* `total`: the block's own fields and its data. */
static struct block *block_new(size_t total)
{
    bool zeroed;
    struct block *b = block_memory(total, &zeroed);
    size_t bytes = total - sizeof *b;
    if (!b)
        return NULL;
    b->next = NULL, b->used = 0, b->bytes = bytes, b->clean = zeroed ? 0 : bytes;
    arena_shut(b->data, bytes);
    return b;
}

/* An outermost arena, which lies in its first block. In lines of the cache of its own: what one thread counts in all the time is nothing
 * that another one waits for. */
enum { LINE_BYTES = 128 }; /* two: they are fetched in pairs */
struct outermost {
    alignas(LINE_BYTES) arena arena;
    alignas(LINE_BYTES) budget budget;
};

arena *arena_new(void)
{
    struct block *b = block_new(FIRST_BLOCK_BYTES);
    if (!b)
        return NULL;
    size_t before = -(uintptr_t)b->data % LINE_BYTES;
    struct outermost *o = (struct outermost *)(b->data + before);
    b->used = before + sizeof *o;
    arena_open(b->data, b->used);
    memset(o, 0, sizeof *o);
    arena *a = &o->arena;
    a->head = b;
    a->budget = &o->budget;
    a->budget->bytes = FIRST_BLOCK_BYTES;
    a->budget->at = (src_range){.file = -1};
    budget_lift(a);
    return a;
}

arena *arena_new_inside(arena *outer)
{
    arena *a = arena_alloc(outer, offsetof(arena, guard));
    a->outer = outer;
    a->budget = outer->budget;
    a->beside = outer->inside;
    outer->inside = a;
    return a;
}

static void blocks_free(struct block *b)
{
    for (struct block *next; b; b = next) {
        next = b->next;
        block_free(b);
    }
}

/* What was used is zeroed when it is handed out again, so that going back costs nothing. */
static void block_empty(struct block *b, size_t used)
{
    b->clean = b->clean > b->used ? b->clean : b->used;
    arena_shut(b->data + used, b->used - used);
    b->used = used;
}

/* Puts the blocks in front of `end` aside for the next who needs one. */
static void blocks_spare(arena *to, struct block *head, const struct block *end)
{
    while (head != end) {
        struct block *b = head;
        head = b->next;
        if (b->bytes + sizeof *b > LARGEST_BLOCK_BYTES) { /* made for one array: few others are as large */
            to->budget->bytes -= b->bytes + sizeof *b;
            block_free(b);
            continue;
        }
        block_empty(b, 0);
        b->next = to->spare;
        to->spare = b;
    }
}

static void leave(arena *a)
{
    arena **at = &a->outer->inside;
    while (*at != a)
        at = &(*at)->beside;
    *at = a->beside;
    blocks_spare(a->outer, a->head, NULL);
    blocks_spare(a->outer, a->spare, NULL);
}

void arena_free(arena *a)
{
    if (!a)
        return;
    while (a->inside)
        arena_free(a->inside);
    if (a->outer) {
        leave(a);
        return;
    }
    struct block *head = a->head, *spare = a->spare; /* in one of them the arena is */
    blocks_free(head);
    blocks_free(spare);
}

/* `blocks` in front of a list; NULL: none. */
static struct block *blocks_before(struct block *blocks, struct block *list)
{
    struct block **last = &blocks;
    while (*last)
        last = &(*last)->next;
    *last = list;
    return blocks;
}

void arena_join(arena *outer, arena *inner)
{
    if (outer->head) /* it goes on being filled */
        outer->head->next = blocks_before(inner->head, outer->head->next);
    else
        outer->head = inner->head;
    outer->spare = blocks_before(inner->spare, outer->spare);
    outer->budget->bytes += inner->budget->bytes;
    outer->budget->steps += inner->budget->steps;
}

jmp_buf *arena_guard(arena *a)
{
    a->guarded = 1;
    a->budget->depth = 0;
    return &a->guard;
}

/* Whoever used the arenas inside is not come back to. */
static _Noreturn void arena_exhausted(arena *a, budget_end why)
{
    while (a->outer)
        a = a->outer;
    a->budget->end = why;
    while (a->inside)
        arena_free(a->inside);
    if (a->guarded)
        longjmp(a->guard, 1);
    abort();
}

/* ---- what is spent ---- */

struct budget *arena_budget(arena *a)
{
    return a->budget;
}

/* Of this thread's processor: a machine that is busy with other things gives nobody a shorter answer. */
static uint64_t nanoseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The next number of steps at which something is to be looked at. */
static void set_look(budget *b)
{
    enum { STEPS_BETWEEN = 1 << 14 };
    b->look = b->max_steps;
    if (b->max_milliseconds && b->max_steps - b->steps > STEPS_BETWEEN)
        b->look = b->steps + STEPS_BETWEEN;
}

void budget_limit(arena *a, uint64_t max_steps, uint64_t max_bytes, uint64_t max_milliseconds)
{
    budget *b = a->budget;
    b->max_steps = max_steps > b->steps ? max_steps : b->steps;
    b->max_bytes = max_bytes > b->bytes ? max_bytes : b->bytes;
    b->max_milliseconds = max_milliseconds;
    if (max_milliseconds && !b->started)
        b->started = nanoseconds_now();
    set_look(b);
}

void budget_restart(arena *a, uint64_t steps)
{
    a->budget->steps = steps;
    a->budget->started = 0;
    a->budget->max_steps = a->budget->max_bytes = UINT64_MAX;
    a->budget->at = (src_range){.file = -1};
}

void budget_clock(arena *a)
{
    a->budget->started = nanoseconds_now();
    a->budget->is_asked = NULL;
}

uint64_t budget_milliseconds_left(const arena *a)
{
    const budget *b = a->budget;
    if (b->max_milliseconds == 0)
        return 0;
    uint64_t spent = (nanoseconds_now() - b->started) / 1000000;
    return spent < b->max_milliseconds ? b->max_milliseconds - spent : 1;
}

void budget_lift(arena *a)
{
    budget_limit(a, UINT64_MAX, UINT64_MAX, 0);
}

static void look(arena *a)
{
    budget *b = a->budget;
    if (b->steps > b->max_steps)
        arena_exhausted(a, BUDGET_STEPS);
    uint64_t spent = b->max_milliseconds ? (nanoseconds_now() - b->started) / 1000000 : 0;
    if (spent > b->max_milliseconds && (!b->is_asked || spent > b->unasked_milliseconds))
        arena_exhausted(a, BUDGET_TIME);
    if (spent > b->max_milliseconds && b->is_asked(b->asked_user))
        arena_exhausted(a, BUDGET_ASKED);
    set_look(b);
}

static inline void spend(arena *a, uint64_t steps)
{
    budget *b = a->budget;
    b->steps = steps > UINT64_MAX - b->steps ? UINT64_MAX : b->steps + steps;
    if (b->steps > b->look)
        look(a);
}

void budget_spend(arena *a, uint64_t steps)
{
    spend(a, steps);
}

void budget_spend_at(arena *a, src_range at, uint64_t steps)
{
    a->budget->at = at;
    budget_spend(a, steps);
}

void budget_enter(arena *a)
{
    if (++a->budget->depth > NESTING_MAX)
        arena_exhausted(a, BUDGET_NESTING);
}

void budget_leave(arena *a)
{
    a->budget->depth--;
}

void budget_nested(arena *a, unsigned depth, uint64_t parts)
{
    enum { MOST_LOG2 = 31 };
    if (depth > NESTING_MAX)
        arena_exhausted(a, BUDGET_NESTING);
    budget_spend(a, parts >> MOST_LOG2 ? UINT64_MAX
                                       : parts + parts * parts / 16); /* the more there are, the more often they are walked through */
}

/* ---- allocations ---- */

/* A spare block that is large enough, or a new one of `total` bytes or more. */
static struct block *block_for(arena *a, size_t bytes, size_t total)
{
    for (struct block **b = &a->spare; *b; b = &(*b)->next)
        if ((*b)->bytes >= bytes) {
            struct block *found = *b;
            *b = found->next;
            return found;
        }
    if (a->outer)
        return block_for(a->outer, bytes, total);
    size_t least = bytes + sizeof(struct block);
    total = total > least ? total : least;
    if (total > a->budget->max_bytes - a->budget->bytes)
        arena_exhausted(a, BUDGET_BYTES);
    struct block *b = block_new(total);
    a->budget->bytes += b ? total : 0;
    return b;
}

static size_t round_up(size_t bytes)
{
    const size_t unit = ARENA_ALIGNMENT;
    return (bytes + unit - 1) / unit * unit;
}

/* Most pieces are a few words, for which calling memset is more than what it does. `room`: bytes from `p` on to the end of the block, of
 * which nobody has those that are behind the piece. */
static inline void *zero(unsigned char *p, size_t bytes, size_t room)
{
    enum { CHUNK_BYTES = 32, SHORT_BYTES = 128 };
    size_t chunks = (bytes + CHUNK_BYTES - 1) / CHUNK_BYTES * CHUNK_BYTES;
    if (GAP_BYTES > 0 || bytes > SHORT_BYTES || chunks > room)
        return memset(p, 0, bytes);
    for (size_t i = 0; i < chunks; i += CHUNK_BYTES) {
        memset(p + i, 0, CHUNK_BYTES);
        __asm__("" : : : "memory"); /* else these become the call again */
    }
    return p;
}

/* The next bytes of the innermost block, which has room for them. Of those that are asked for the first `set` are zero: the caller writes
 * all others. `bytes` is `asked` rounded up. */
static inline void *take(struct block *b, size_t bytes, size_t asked, size_t set)
{
    unsigned char *p = b->data + b->used;
    size_t old = b->clean > b->used ? b->clean - b->used : 0; /* so many of them are not known to be zero */
    size_t room = b->bytes - b->used;
    old = old < set ? old : set;
    arena_open(p, asked);
    b->used += bytes;
    if (old > 0)
        return zero(p, old, room);
    if (set > 0)
        *p = 0; /* a page that is read before it is written is had from the system twice */
    return p;
}

/* How large the next block of an arena is: twice its last one. One inside another begins small, whatever is outside: many are in use at
 * once, a few hundred bytes of each. */
static size_t next_block_bytes(const arena *a)
{
    size_t last = a->head ? a->head->bytes + sizeof *a->head : FIRST_BLOCK_BYTES / 2;
    return last < LARGEST_BLOCK_BYTES / 2 ? 2 * last : LARGEST_BLOCK_BYTES;
}

/* A block with room for so many bytes. */
static void block_add(arena *a, size_t bytes)
{
    struct block *b = block_for(a, bytes, next_block_bytes(a));
    if (!b)
        arena_exhausted(a, BUDGET_MEMORY);
    b->next = a->head;
    a->head = b;
}

static inline uint64_t steps_of(size_t bytes)
{
    enum { STEP_BYTES = 256 };
    return 1 + bytes / STEP_BYTES;
}

static __attribute__((noinline)) void *allocate_slowly(arena *a, size_t asked, size_t set)
{
    if (asked > SIZE_MAX / 2)
        arena_exhausted(a, BUDGET_MEMORY);
    size_t bytes = round_up(asked) + GAP_BYTES;
    spend(a, steps_of(bytes));
    if (!a->head || a->head->bytes - a->head->used < bytes)
        block_add(a, bytes);
    return take(a->head, bytes, asked, set);
}

/* What is rare is apart and called last, so that the many allocations that need none of it save no registers. */
static inline void *allocate(arena *a, size_t asked, size_t set)
{
    struct block *b = a->head;
    budget *account = a->budget;
    size_t bytes = round_up(asked) + GAP_BYTES;
    uint64_t steps = steps_of(bytes);
    if (asked > SIZE_MAX / 2 || !b || b->bytes - b->used < bytes || account->look - account->steps < steps)
        return allocate_slowly(a, asked, set);
    account->steps += steps;
    return take(b, bytes, asked, set);
}

void *arena_alloc(arena *a, size_t bytes)
{
    return allocate(a, bytes, bytes);
}

void *arena_alloc_unset(arena *a, size_t bytes)
{
    return allocate(a, bytes, 0);
}

arena_mark arena_mark_here(const arena *a)
{
    return (arena_mark){a->head, a->head ? a->head->used : 0};
}

void arena_rewind(arena *a, arena_mark mark)
{
    struct block *head = a->head;
    a->head = mark.block;
    blocks_spare(a, head, mark.block);
    if (a->head)
        block_empty(a->head, mark.used);
}

size_t arena_used_since(const arena *a, arena_mark mark)
{
    size_t bytes = 0;
    const struct block *b = a->head;
    for (; b != mark.block; b = b->next)
        bytes += b->used;
    return bytes + (b ? b->used : 0) - mark.used;
}

void *arena_array(arena *a, size_t count, size_t bytes_each)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, bytes_each, &bytes))
        arena_exhausted(a, BUDGET_MEMORY);
    return allocate(a, bytes, bytes);
}

char *arena_strndup(arena *a, const char *text, size_t bytes)
{
    char *copy = allocate(a, bytes + 1, 0);
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    return copy;
}

char *arena_strdup(arena *a, const char *text)
{
    return arena_strndup(a, text, strlen(text));
}

/* Written where it will be, if it is short and fits there, and read for its length only where it does not. */
char *arena_vprintf(arena *a, const char *format, va_list args)
{
    enum { SHORT_BYTES = 4096 };
    struct block *b = a->head;
    size_t room = b ? b->bytes - b->used : 0;
    room = room < SHORT_BYTES ? room : SHORT_BYTES;
    va_list again;
    va_copy(again, args);
    char *place = room ? (char *)b->data + b->used : NULL;
    arena_open(place, room);
    int length = vsnprintf(place, room, format, args);
    arena_shut(place, room);
    size_t bytes = length < 0 ? 1 : (size_t)length + 1;
    bool fits = round_up(bytes) + GAP_BYTES <= room;
    size_t written = fits && length >= 0 ? bytes : room;
    if (room && b->clean < b->used + written)
        b->clean = b->used + written; /* not zero, and nobody's where the allocation is the one that there are no steps left for */
    char *text = allocate(a, bytes, length < 0 ? bytes : 0);
    if (!fits && length >= 0)
        vsnprintf(text, bytes, format, again);
    va_end(again);
    return text;
}

char *arena_printf(arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = arena_vprintf(a, format, args);
    va_end(args);
    return text;
}

const char *arena_count(arena *a, int64_t count, const char *one)
{
    size_t length = strlen(one);
    bool ies = length > 0 && one[length - 1] == 'y';
    if (count == 1)
        return arena_printf(a, "1 %s", one);
    return arena_printf(a, "%lld %.*s%s", (long long)count, (int)(length - ies), one, ies ? "ies" : "s");
}

void *arena_grow(arena *a, void *array, size_t old_count, size_t new_count, size_t bytes_each)
{
    size_t bytes, old = old_count * bytes_each;
    if (__builtin_mul_overflow(new_count, bytes_each, &bytes))
        arena_exhausted(a, BUDGET_MEMORY);
    void *grown = allocate(a, bytes, 0);
    if (old)
        memcpy(grown, array, old);
    return grown;
}
