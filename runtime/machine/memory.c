#define _GNU_SOURCE /* madvise */
#include "runtime/machine/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "support/integer.h"

enum { GRANULES_PER_BLOCK = 64, LEAST_GRANULE_BYTES = 16 * 1024, UNIT_BYTES = 8, WORD_UNITS = 64, PAGE_BYTES = 4096 };
enum { GRANULE_PAGES = LEAST_GRANULE_BYTES / PAGE_BYTES, MOST_PAGES = GRANULES_PER_BLOCK * GRANULE_PAGES };
enum { SECTOR_BYTES = 512, GRANULE_SECTORS = 32 };
_Static_assert(SECTOR_BYTES *GRANULE_SECTORS == LEAST_GRANULE_BYTES, "a granule's sectors are the bits of a word");
enum { REGION_BYTES = 16 * 1024 * 1024 };
/* A register file is touched whole. The first ones lie in a region of small pages, since few slices would not fill a huge one. */
enum { MOST_DENSE_BYTES = 64 * 1024, FIRST_DENSE_BYTES = 2 * 1024 * 1024 };
/* Of what the system has provided so much is kept for the process's next machine: who runs many small kernels has the pages of the run
 * before, which take the system longer to provide and take back than the runs take. */
enum { MOST_SPARE_BYTES = 4 * REGION_BYTES };

/* Granules of a block that a pool has. */
typedef struct shared_range {
    struct shared_range *next; /* of the same block */
    memory_pool *pool;
    const unsigned char *bytes; /* of granule `first` */
    int64_t first;
    uint64_t granules; /* bit g: granule g is still the pool's; 0: none is, but somebody may still read there */
} shared_range;

struct memory_block {
    _Atomic int64_t users;                   /* memories that have it (memory_share_all) */
    uint64_t touched;                        /* bit g: granule g holds defined or poison bytes, here or in a pool */
    uint64_t pages[MOST_PAGES / WORD_UNITS]; /* bit p: page p is provided, of a granule that may not be touched whole; */
    uint32_t sectors[GRANULES_PER_BLOCK];    /* which of them hold defined or poison bytes */
    uint64_t shared;                         /* granule g lies in a pool: in one of, */
    shared_range *ranges;
    uint64_t whole;        /* granule g: all of its units were written */
    uint64_t **written;    /* by granule a bit for each unit; NULL: none was written, or the granule is whole */
    unsigned char *bytes;  /* a page's beginning, so that a packet lies in as few lines of the host's caches as it can */
    memory_region *region; /* that they lie in; NULL: the heap */
};

/* One mapping for many large blocks: a machine has a thousand memories, and each change of the address space stops the other threads.
 * No page is provided until a granule is touched. */
struct memory_region {
    unsigned char *bytes;
    int64_t size, used;             /* bytes */
    _Atomic int64_t provided_bytes; /* by its blocks */
    _Atomic uint64_t *present;      /* bit p: the system has provided page p, for this machine or for one before */
    int64_t kept_bytes;             /* the most that any machine's blocks provided */
    int64_t blocks;                 /* that are not freed */
    bool is_huge;                   /* huge pages were asked for */
    memory_region *next;            /* among the spare ones */
};

/* One lock for the regions of all budgets: a block is begun once and used for long. */
static pthread_mutex_t regions_lock = PTHREAD_MUTEX_INITIALIZER;
static memory_region *spare; /* under the lock */
static int64_t spare_bytes;

void memory_init(memory *m, int64_t bytes, int64_t block_bytes, unsigned char poison, memory_budget *budget)
{
    int64_t granule = (block_bytes + GRANULES_PER_BLOCK - 1) / GRANULES_PER_BLOCK;
    *m = (memory){.bytes = bytes,
                  .block_bytes = block_bytes,
                  .granule_bytes = granule < LEAST_GRANULE_BYTES ? LEAST_GRANULE_BYTES : round_up(granule, UNIT_BYTES),
                  .poison = poison,
                  .budget = budget};
}

static int64_t block_count(const memory *m)
{
    return (m->bytes + m->block_bytes - 1) / m->block_bytes;
}

/* Large ones lie in mappings of their own. */
static bool is_mapped(const memory *m)
{
    return m->block_bytes >= 2 * LEAST_GRANULE_BYTES;
}

/* A spare one; NULL: there is none. A granule is filled when it is touched, so what an earlier machine left there is never read. */
static memory_region *region_again(int64_t size, bool is_huge)
{
    memory_region **at = &spare, *r;
    while (*at && ((*at)->size != size || (*at)->is_huge != is_huge))
        at = &(*at)->next;
    if (!(r = *at))
        return NULL;
    *at = r->next;
    spare_bytes -= r->kept_bytes;
    r->used = 0;
    r->provided_bytes = 0;
    return r;
}

static memory_region *region_new(int64_t size, bool is_huge)
{
    memory_region *r = region_again(size, is_huge);
    if (r || !(r = calloc(1, sizeof *r)))
        return r;
    void *bytes = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *r = (memory_region){.bytes = bytes, .size = size, .is_huge = is_huge};
    r->present = calloc((size_t)(size / PAGE_BYTES / WORD_UNITS + 1), sizeof *r->present);
    if (bytes == MAP_FAILED || !r->present) {
        if (bytes != MAP_FAILED)
            munmap(bytes, (size_t)size);
        free(r->present);
        free(r);
        return NULL;
    }
#ifdef MADV_HUGEPAGE
    if (is_huge)
        madvise(bytes, (size_t)size, MADV_HUGEPAGE); /* what comes of it does not matter */
#endif
    return r;
}

static memory_region *region_dense(const memory_region *last)
{
    return region_new(last ? REGION_BYTES : FIRST_DENSE_BYTES, last);
}

/* Cuts a block from the budget's region, or from a new one; a full region lives as long as its blocks. */
static bool region_cut(memory_budget *budget, int64_t size, memory_block *b)
{
    pthread_mutex_lock(&regions_lock);
    bool dense = size <= MOST_DENSE_BYTES;
    memory_region **of = dense ? &budget->dense : &budget->region, *r = *of;
    if (!r || r->size - r->used < size)
        r = dense ? region_dense(r) : region_new(size < REGION_BYTES ? REGION_BYTES : size, false);
    if (r) {
        b->bytes = r->bytes + r->used;
        b->region = *of = r;
        r->used += size;
        r->blocks++;
    }
    pthread_mutex_unlock(&regions_lock);
    return r;
}

static void region_leave(memory_budget *budget, memory_region *r)
{
    pthread_mutex_lock(&regions_lock);
    bool is_last = --r->blocks == 0;
    if (is_last && budget->region == r)
        budget->region = NULL;
    if (is_last && budget->dense == r)
        budget->dense = NULL;
    r->kept_bytes = larger(r->kept_bytes, r->provided_bytes);
    bool is_kept = is_last && spare_bytes + r->kept_bytes <= MOST_SPARE_BYTES;
    if (is_kept) {
        r->next = spare;
        spare = r;
        spare_bytes += r->kept_bytes;
    }
    pthread_mutex_unlock(&regions_lock);
    if (!is_last || is_kept)
        return;
    munmap(r->bytes, (size_t)r->size);
    free(r->present);
    free(r);
}

static bool bytes_new(const memory *m, memory_block *b)
{
    int64_t size = round_up(m->block_bytes, PAGE_BYTES);
    if (is_mapped(m))
        return region_cut(m->budget, size, b);
    b->bytes = aligned_alloc(PAGE_BYTES, (size_t)size);
    return b->bytes;
}

static void bytes_free(const memory *m, memory_block *b)
{
    if (b->region)
        region_leave(m->budget, b->region);
    else
        free(b->bytes);
}

static void written_free(memory_block *b)
{
    for (int g = 0; b->written && g < GRANULES_PER_BLOCK; g++)
        free(b->written[g]);
    free(b->written);
}

static void ranges_free(memory_block *b, bool unused_only)
{
    for (shared_range **at = &b->ranges, *r; (r = *at);) {
        if (unused_only && r->granules) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        memory_pool_leave(r->pool);
        free(r);
    }
}

static void block_leave(const memory *m, memory_block *b)
{
    if (atomic_fetch_sub(&b->users, 1) > 1)
        return;
    written_free(b);
    ranges_free(b, false);
    bytes_free(m, b);
    free(b);
}

void memory_free(memory *m)
{
    if (!m->blocks)
        return;
    for (int64_t i = 0; i < m->touched_to; i++)
        if (m->blocks[i]) /* most of an HBM's are not there */
            block_leave(m, m->blocks[i]);
    free(m->blocks);
    m->blocks = NULL;
    m->touched_to = 0;
}

/* The budget counts granules and pages, the part of a block that the system really has to provide. */
static bool budget_take(memory_budget *b, int64_t bytes)
{
    int64_t used = atomic_fetch_add(&b->used_bytes, bytes) + bytes;
    if (b->limit_bytes == 0 || used <= b->limit_bytes)
        return true;
    atomic_fetch_sub(&b->used_bytes, bytes);
    return false;
}

static bool slots_new(memory *m)
{
    if (!m->blocks)
        m->blocks = calloc((size_t)block_count(m), sizeof *m->blocks);
    return m->blocks;
}

static memory_block *block_new(const memory *m)
{
    memory_block *b = calloc(1, sizeof *b);
    if (b && bytes_new(m, b)) {
        b->users = 1;
        return b;
    }
    free(b);
    return NULL;
}

static memory_block *block_at(memory *m, int64_t index)
{
    if (!slots_new(m))
        return NULL;
    if (!m->blocks[index]) {
        m->blocks[index] = block_new(m);
        m->touched_to = index < m->touched_to ? m->touched_to : index + 1;
    }
    return m->blocks[index];
}

/* All at once: the system takes less time for that than for a fault at each. */
static void pages_provide(unsigned char *begin, int64_t bytes)
{
#ifdef MADV_POPULATE_WRITE
    if ((uintptr_t)begin % PAGE_BYTES == 0)
        madvise(begin, (size_t)bytes, MADV_POPULATE_WRITE); /* where it fails, faults do it */
#else
    (void)begin, (void)bytes;
#endif
}

static bool is_present(const memory_region *r, int64_t page)
{
    return atomic_load_explicit(&r->present[page / WORD_UNITS], memory_order_relaxed) >> page % WORD_UNITS & 1;
}

/* Of what lies in a block from `begin` on, and is written next, the pages that the system has not provided yet: where they are several,
 * since one alone comes as fast by a fault. Those of a machine before cost a question each, which takes longer than to fill them. */
static void block_provide(const memory_block *b, int64_t begin, int64_t bytes)
{
    enum { LEAST_PAGES = 4 };
    memory_region *r = b->region;
    int64_t page = r ? (b->bytes + begin - r->bytes) / PAGE_BYTES : 0, end = page + (bytes + PAGE_BYTES - 1) / PAGE_BYTES;
    for (int64_t last; r && page < end; page = last + 1) {
        while (page < end && is_present(r, page))
            page++;
        for (last = page; last < end && !is_present(r, last); last++)
            atomic_fetch_or_explicit(&r->present[last / WORD_UNITS], UINT64_C(1) << last % WORD_UNITS, memory_order_relaxed);
        if (last - page >= LEAST_PAGES)
            pages_provide(r->bytes + page * PAGE_BYTES, (last - page) * PAGE_BYTES);
    }
    if (r)
        atomic_fetch_add(&r->provided_bytes, bytes);
}

/* What lies in a block from `begin` on. */
static bool block_take(const memory *m, memory_block *b, int64_t begin, int64_t bytes)
{
    if (!budget_take(m->budget, bytes))
        return false;
    block_provide(b, begin, bytes);
    return true;
}

static void poison_fill(const memory *m, memory_block *b, int64_t begin, int64_t bytes)
{
    memset(b->bytes + begin, m->poison, (size_t)bytes);
}

/* Granules [first, last] of a block. */
static uint64_t granule_bits(int64_t first, int64_t last)
{
    int64_t count = last - first + 1;
    return (count == GRANULES_PER_BLOCK ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1) << first;
}

/* Provides those granules of [first, end) that are not touched yet. */
static bool granules_touch(const memory *m, memory_block *b, int64_t first, int64_t end)
{
    for (int64_t last; first < end; first = last + 1) {
        while (first < end && b->touched >> first & 1)
            first++;
        for (last = first; last < end && !(b->touched >> last & 1); last++)
            ;
        if (first == last)
            continue;
        int64_t begin = first * m->granule_bytes, bytes = smaller(last * m->granule_bytes, m->block_bytes) - begin;
        if (!block_take(m, b, begin, bytes))
            return false;
        poison_fill(m, b, begin, bytes);
        b->touched |= granule_bits(first, last - 1);
    }
    return true;
}

/* The pages of a granule that is touched are all of its pages. */
static bool page_is_touched(const memory_block *b, int64_t page)
{
    return b->pages[page / WORD_UNITS] >> page % WORD_UNITS & 1 || b->touched >> page / GRANULE_PAGES & 1;
}

/* Provides those pages of [first, end) that are not touched yet. */
static bool pages_touch(const memory *m, memory_block *b, int64_t first, int64_t end)
{
    for (int64_t last; first < end; first = last + 1) {
        while (first < end && page_is_touched(b, first))
            first++;
        for (last = first; last < end && !page_is_touched(b, last); last++)
            ;
        if (first < last && !block_take(m, b, first * PAGE_BYTES, (last - first) * PAGE_BYTES))
            return false;
        for (int64_t page = first; page < last; page++)
            b->pages[page / WORD_UNITS] |= UINT64_C(1) << page % WORD_UNITS;
    }
    return true;
}

static int64_t pages_of_granule(const memory_block *b, int64_t granule)
{
    int64_t page = granule * GRANULE_PAGES;
    return __builtin_popcountll(b->pages[page / WORD_UNITS] >> page % WORD_UNITS & ((1 << GRANULE_PAGES) - 1));
}

/* Fills those sectors [first, end) of a granule that hold nothing yet. */
static void sectors_touch(const memory *m, memory_block *b, int64_t granule, int64_t first, int64_t end)
{
    uint32_t wanted = (uint32_t)(((UINT64_C(1) << (end - first)) - 1) << first);
    uint64_t missing = wanted & ~b->sectors[granule];
    b->sectors[granule] |= wanted;
    while (missing) {
        int from = __builtin_ctzll(missing), count = __builtin_ctzll(~(missing >> from));
        poison_fill(m, b, granule * LEAST_GRANULE_BYTES + from * SECTOR_BYTES, (int64_t)count * SECTOR_BYTES);
        missing &= missing + (UINT64_C(1) << from);
    }
    if (b->sectors[granule] == UINT32_MAX)
        b->touched |= UINT64_C(1) << granule;
}

/* Many slices hold a few bytes each, besides what they share, here and there, and granules around them would be most of what a small kernel
 * takes: the pages that are used are provided, and of them what somebody may read is filled. */
static bool bytes_touch(const memory *m, memory_block *b, int64_t offset, int64_t size)
{
    int64_t end = offset + (size ? size : 1), first = offset / m->granule_bytes, last = (end - 1) / m->granule_bytes;
    uint64_t granules = granule_bits(first, last);
    if (!(granules & ~b->touched))
        return true;
    if (m->granule_bytes != LEAST_GRANULE_BYTES || m->block_bytes % LEAST_GRANULE_BYTES)
        return granules_touch(m, b, first, last + 1);
    if (!pages_touch(m, b, offset / PAGE_BYTES, (end - 1) / PAGE_BYTES + 1))
        return false;
    for (uint64_t left = granules & ~b->touched; left; left &= left - 1) {
        int64_t granule = __builtin_ctzll(left), begin = granule * LEAST_GRANULE_BYTES;
        sectors_touch(m, b, granule, larger(offset - begin, 0) / SECTOR_BYTES,
                      (smaller(end - begin, LEAST_GRANULE_BYTES) - 1) / SECTOR_BYTES + 1);
    }
    return true;
}

/* ---- which units were written ---- */

static int64_t granule_words(const memory *m)
{
    return m->granule_bytes / (UNIT_BYTES * WORD_UNITS) + 1;
}

/* The bits of word `word` that lie in [begin, end) of a granule's units. */
static uint64_t word_bits(int64_t word, int64_t begin, int64_t end)
{
    int64_t low = begin - word * WORD_UNITS, high = end - word * WORD_UNITS;
    uint64_t from = low <= 0 ? ~UINT64_C(0) : ~UINT64_C(0) << low;
    return high >= WORD_UNITS ? from : from & ~(~UINT64_C(0) << high);
}

/* The bits of a granule's units; NULL: no memory. */
static uint64_t *granule_units(const memory *m, memory_block *b, int64_t granule)
{
    if (!b->written && !(b->written = calloc(GRANULES_PER_BLOCK, sizeof *b->written)))
        return NULL;
    uint64_t **bits = &b->written[granule];
    if (!*bits)
        *bits = calloc((size_t)granule_words(m), sizeof **bits);
    return *bits;
}

/* Bits [begin, end) of them. */
static void mark_units(const memory *m, memory_block *b, int64_t granule, int64_t begin, int64_t end)
{
    uint64_t *bits = b->whole >> granule & 1 ? NULL : granule_units(m, b, granule);
    for (int64_t w = begin / WORD_UNITS; bits && w * WORD_UNITS < end; w++)
        bits[w] |= word_bits(w, begin, end);
}

/* ---- whose granules ---- */

static uint64_t granules_of(const memory *m, int64_t offset, int64_t size)
{
    return granule_bits(offset / m->granule_bytes, (offset + larger(size, 1) - 1) / m->granule_bytes);
}

/* A copy of each of these granules that a pool has. What was found of them before stays where it is, for who reads it. */
static void granules_own(const memory *m, memory_block *b, uint64_t granules)
{
    for (shared_range *r = b->shared & granules ? b->ranges : NULL; r; r = r->next)
        for (uint64_t left = r->granules & granules; left; left &= left - 1) {
            int64_t granule = __builtin_ctzll(left), begin = granule * m->granule_bytes;
            int64_t bytes = smaller(m->granule_bytes, m->block_bytes - begin);
            block_provide(b, begin, bytes);
            memcpy(b->bytes + begin, r->bytes + (granule - r->first) * m->granule_bytes, (size_t)bytes);
            r->granules &= ~(UINT64_C(1) << granule);
            b->shared &= ~(UINT64_C(1) << granule);
        }
}

/* A block of this memory alone, with what is in it. NULL: no memory left. */
static memory_block *block_own(const memory *m, memory_block *of)
{
    memory_block *b = budget_take(m->budget, m->block_bytes) ? block_new(m) : NULL;
    if (!b)
        return NULL;
    block_provide(b, 0, m->block_bytes);
    memcpy(b->bytes, of->bytes, (size_t)m->block_bytes);
    b->touched = of->touched;
    b->whole = of->whole;
    for (int64_t g = 0; of->written && g < GRANULES_PER_BLOCK; g++) {
        uint64_t *bits = of->written[g] ? granule_units(m, b, g) : NULL;
        if (bits)
            memcpy(bits, of->written[g], (size_t)granule_words(m) * sizeof *bits);
    }
    block_leave(m, of);
    return b;
}

/* The block, for one that writes to it. */
static memory_block *block_to_write(memory *m, int64_t index)
{
    memory_block *b = block_at(m, index);
    if (b && atomic_load(&b->users) > 1 && (b = block_own(m, b)))
        m->blocks[index] = b;
    return b;
}

unsigned char *memory_span(memory *m, int64_t address, int64_t size)
{
    memory_block *b = block_to_write(m, address / m->block_bytes);
    int64_t offset = address % m->block_bytes;
    if (!b || !bytes_touch(m, b, offset, size))
        return NULL;
    if (b->shared)
        granules_own(m, b, granules_of(m, offset, size));
    return b->bytes + offset;
}

/* Where a range lies that one pool has; NULL: it is not shared, or in several pieces. */
static const unsigned char *pool_bytes(const memory *m, const memory_block *b, int64_t offset, int64_t size)
{
    uint64_t granules = granules_of(m, offset, size);
    for (const shared_range *r = b->shared & granules ? b->ranges : NULL; r; r = r->next)
        if ((r->granules & granules) == granules)
            return r->bytes + offset - r->first * m->granule_bytes;
    return NULL;
}

const unsigned char *memory_look(memory *m, int64_t address, int64_t size)
{
    memory_block *b = block_at(m, address / m->block_bytes);
    int64_t offset = address % m->block_bytes;
    const unsigned char *shared = b ? pool_bytes(m, b, offset, size) : NULL;
    if (shared || !b || !bytes_touch(m, b, offset, size))
        return shared;
    if (b->shared) /* pieces of several pools, or of one and the block */
        granules_own(m, b, granules_of(m, offset, size));
    return b->bytes + offset;
}

static int64_t span_size(const memory *m, int64_t address, int64_t size)
{
    int64_t left = m->block_bytes - address % m->block_bytes;
    return size < left ? size : left;
}

bool memory_read(memory *m, int64_t address, unsigned char *destination, int64_t size)
{
    while (size > 0) {
        int64_t part = span_size(m, address, size);
        const unsigned char *from = memory_look(m, address, part);
        if (!from)
            return false;
        memcpy(destination, from, (size_t)part);
        address += part, destination += part, size -= part;
    }
    return true;
}

bool memory_write(memory *m, int64_t address, const unsigned char *source, int64_t size)
{
    while (size > 0) {
        int64_t part = span_size(m, address, size);
        unsigned char *to = memory_span(m, address, part);
        if (!to)
            return false;
        memcpy(to, source, (size_t)part);
        address += part, source += part, size -= part;
    }
    return true;
}

bool memory_copy(memory *destination, int64_t to, memory *source, int64_t from, int64_t size)
{
    while (size > 0) {
        int64_t part = span_size(source, from, span_size(destination, to, size));
        unsigned char *d = memory_span(destination, to, part);
        const unsigned char *s = memory_look(source, from, part); /* after it: both may be of one memory */
        if (!s || !d)
            return false;
        memcpy(d, s, (size_t)part);
        to += part, from += part, size -= part;
    }
    return true;
}

/* ---- what many memories hold ---- */

int64_t memory_granule(const memory *m)
{
    return m->granule_bytes;
}

memory_pool *memory_pool_new(int64_t size)
{
    memory_pool *p = malloc(sizeof *p);
    if (!p)
        return NULL;
    void *bytes = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED) {
        free(p);
        return NULL;
    }
    *p = (memory_pool){.bytes = bytes, .size = size, .users = 1};
    pages_provide(bytes, size);
    return p;
}

void memory_pool_leave(memory_pool *p)
{
    if (atomic_fetch_sub(&p->users, 1) > 1)
        return;
    munmap(p->bytes, (size_t)p->size);
    free(p);
}

/* Whole granules of one block. */
static bool share_granules(memory *m, int64_t address, memory_pool *p, int64_t from, int64_t size)
{
    int64_t offset = address % m->block_bytes;
    if (!is_mapped(m) || size == 0 || offset % m->granule_bytes || size % m->granule_bytes || offset + size > m->block_bytes)
        return false;
    memory_block *b = block_to_write(m, address / m->block_bytes);
    shared_range *r = b ? malloc(sizeof *r) : NULL;
    uint64_t granules = granules_of(m, offset, size);
    int64_t bytes = 0;
    for (uint64_t left = b ? granules & ~b->touched : 0; left; left &= left - 1)
        bytes += m->granule_bytes - pages_of_granule(b, __builtin_ctzll(left)) * PAGE_BYTES;
    if (!r || !budget_take(m->budget, bytes)) {
        free(r);
        return false;
    }
    for (shared_range *old = b->ranges; old; old = old->next)
        old->granules &= ~granules;
    ranges_free(b, true);
    *r = (shared_range){b->ranges, p, p->bytes + from, offset / m->granule_bytes, granules};
    atomic_fetch_add(&p->users, 1);
    b->ranges = r;
    b->shared |= granules;
    b->touched |= granules;
    return true;
}

bool memory_share(memory *m, int64_t address, memory_pool *p, int64_t from, int64_t size)
{
    return share_granules(m, address, p, from, size) || memory_write(m, address, p->bytes + from, size);
}

const unsigned char *memory_shared_at(const memory *m, int64_t address, int64_t size)
{
    int64_t offset = address % m->block_bytes;
    const memory_block *b = m->blocks && offset + size <= m->block_bytes ? m->blocks[address / m->block_bytes] : NULL;
    return b ? pool_bytes(m, b, offset, size) : NULL;
}

bool memory_is_same(const memory *m, const memory *of)
{
    bool same = m->bytes == of->bytes && m->block_bytes == of->block_bytes && m->poison == of->poison;
    for (int64_t i = 0; same && i < larger(m->touched_to, of->touched_to); i++)
        same = (i < m->touched_to ? m->blocks[i] : NULL) == (i < of->touched_to ? of->blocks[i] : NULL);
    return same;
}

bool memory_is_shared(const memory *m)
{
    return m->touched_to == 1 && m->blocks[0] && atomic_load(&m->blocks[0]->users) > 1;
}

bool memory_share_all(memory *m, const memory *of)
{
    int64_t granules = ceil_div(m->block_bytes, m->granule_bytes);
    if (block_count(m) != 1 || !is_mapped(m) || m->block_bytes != of->block_bytes || m->budget != of->budget || of->touched_to != 1)
        return false;
    memory_block *b = of->blocks[0]; /* nothing in it is made by who only reads */
    if (!b || b->shared || b->touched != granule_bits(0, granules - 1) || !slots_new(m))
        return false;
    atomic_fetch_add(&b->users, 1);
    if (m->blocks[0])
        block_leave(m, m->blocks[0]);
    m->blocks[0] = b;
    m->touched_to = 1;
    return true;
}

/* A unit's beginning, from a byte of a block on; `up`: not before it. */
static int64_t unit_at(int64_t byte, bool up)
{
    return (up ? byte + UNIT_BYTES - 1 : byte) / UNIT_BYTES;
}

void memory_mark_written(memory *m, int64_t address, int64_t size)
{
    int64_t units = m->granule_bytes / UNIT_BYTES;
    for (int64_t part; size > 0; address += part, size -= part) {
        part = span_size(m, address, size);
        int64_t offset = address % m->block_bytes, begin = unit_at(offset, true), end = unit_at(offset + part, false);
        memory_block *b = begin < end ? block_to_write(m, address / m->block_bytes) : NULL;
        for (int64_t granule = begin / units; b && granule * units < end; granule++) {
            int64_t first = granule * units, from = larger(begin - first, 0), to = smaller(end - first, units);
            if (from == 0 && to == units)
                b->whole |= UINT64_C(1) << granule; /* most of what is written: a copy's, a result's */
            else
                mark_units(m, b, granule, from, to);
        }
    }
}

static bool units_are_written(const memory_block *b, int64_t granule, int64_t begin, int64_t end)
{
    const uint64_t *bits = b->written ? b->written[granule] : NULL;
    uint64_t missing = 0;
    if (b->whole >> granule & 1)
        return true;
    for (int64_t w = begin / WORD_UNITS; bits && w * WORD_UNITS < end; w++)
        missing |= ~bits[w] & word_bits(w, begin, end);
    return bits && !missing;
}

bool memory_is_written(const memory *m, int64_t address, int64_t size)
{
    int64_t units = m->granule_bytes / UNIT_BYTES;
    for (int64_t part; size > 0; address += part, size -= part) {
        part = span_size(m, address, size);
        int64_t offset = address % m->block_bytes, begin = unit_at(offset, false), end = unit_at(offset + part, true);
        const memory_block *b = m->blocks ? m->blocks[address / m->block_bytes] : NULL;
        for (int64_t granule = begin / units; granule * units < end; granule++) {
            int64_t first = granule * units;
            if (!b || !units_are_written(b, granule, larger(begin - first, 0), smaller(end - first, units)))
                return false;
        }
    }
    return true;
}
