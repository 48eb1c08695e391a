#define _GNU_SOURCE /* madvise, memfd_create */
#include "runtime/machine/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/integer.h"

enum { GRANULES_PER_BLOCK = 64, LEAST_GRANULE_BYTES = 16 * 1024, UNIT_BYTES = 8, WORD_UNITS = 64, PAGE_BYTES = 4096 };
/* Linux allows a process 65,530 mappings, and each granule is one at most. */
enum { MOST_SHARED_GRANULES = 24 * 1024 };
enum { REGION_BYTES = 16 * 1024 * 1024 };
/* A register file is touched whole. The first ones lie in a region of small pages, since few slices would not fill a huge one. */
enum { MOST_DENSE_BYTES = 64 * 1024, FIRST_DENSE_BYTES = 2 * 1024 * 1024 };
/* Of what the system has provided so much is kept for the process's next machine: who runs many small kernels has the pages of the run
 * before, which take the system longer to provide and take back than the runs take. */
enum { MOST_SPARE_BYTES = 4 * REGION_BYTES };

struct memory_block {
    uint64_t touched;      /* bit g: granule g holds defined or poison bytes */
    uint64_t pages;        /* bit p: page p of the granule that was touched first does */
    int64_t first;         /* that granule, where `pages` is not 0 */
    uint64_t shared;       /* granule g has been mapped from a pool */
    uint64_t *written;     /* a bit for each unit; NULL: none was written */
    unsigned char *bytes;  /* a page's beginning, so that a packet lies in as few lines of the host's caches as it can */
    memory_region *region; /* that they lie in; NULL: the heap */
};

/* One mapping for many large blocks: a machine has a thousand memories, and each change of the address space stops the other threads.
 * No page is provided until a granule is touched. */
struct memory_region {
    unsigned char *bytes;
    int64_t size, used;             /* bytes */
    _Atomic int64_t provided_bytes; /* by its blocks */
    int64_t kept_bytes;             /* the most that any machine's blocks provided */
    int64_t blocks;                 /* that are not freed */
    bool is_replaced;               /* in a part, by a pool's pages */
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
                  .granule_bytes = granule < LEAST_GRANULE_BYTES ? LEAST_GRANULE_BYTES : granule,
                  .poison = poison,
                  .budget = budget};
}

static int64_t block_count(const memory *m)
{
    return (m->bytes + m->block_bytes - 1) / m->block_bytes;
}

/* Large ones lie in mappings, so that parts of them can be replaced. */
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
    if (bytes == MAP_FAILED) {
        free(r);
        return NULL;
    }
    *r = (memory_region){.bytes = bytes, .size = size, .is_huge = is_huge};
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
    bool is_kept = is_last && !r->is_replaced && spare_bytes + r->kept_bytes <= MOST_SPARE_BYTES;
    if (is_kept) {
        r->next = spare;
        spare = r;
        spare_bytes += r->kept_bytes;
    }
    pthread_mutex_unlock(&regions_lock);
    if (!is_last || is_kept)
        return;
    munmap(r->bytes, (size_t)r->size);
    free(r);
}

static void region_replace(memory_region *r)
{
    pthread_mutex_lock(&regions_lock);
    r->is_replaced = true;
    pthread_mutex_unlock(&regions_lock);
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

void memory_free(memory *m)
{
    if (!m->blocks)
        return;
    for (int64_t i = 0; i < m->touched_to; i++) {
        if (!m->blocks[i]) /* most of an HBM's */
            continue;
        free(m->blocks[i]->written);
        bytes_free(m, m->blocks[i]);
        atomic_fetch_sub(&m->budget->shared_granules, __builtin_popcountll(m->blocks[i]->shared));
        free(m->blocks[i]);
    }
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

static memory_block *block_at(memory *m, int64_t index)
{
    if (!m->blocks)
        m->blocks = calloc((size_t)block_count(m), sizeof *m->blocks);
    if (!m->blocks)
        return NULL;
    if (!m->blocks[index]) {
        memory_block *b = calloc(1, sizeof *b);
        if (!b || !bytes_new(m, b)) {
            free(b);
            return NULL;
        }
        m->blocks[index] = b;
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

/* What lies in a block from `begin` on. */
static bool poison_fill(const memory *m, memory_block *b, int64_t begin, int64_t bytes)
{
    if (!budget_take(m->budget, bytes))
        return false;
    if (b->region)
        atomic_fetch_add(&b->region->provided_bytes, bytes);
    pages_provide(b->bytes + begin, bytes);
    memset(b->bytes + begin, m->poison, (size_t)bytes);
    return true;
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
        int64_t begin = first * m->granule_bytes, behind = last * m->granule_bytes;
        if (!poison_fill(m, b, begin, (behind < m->block_bytes ? behind : m->block_bytes) - begin))
            return false;
        b->touched |= (last - first == GRANULES_PER_BLOCK ? ~UINT64_C(0) : (UINT64_C(1) << (last - first)) - 1) << first;
    }
    return true;
}

/* Provides pages [first, end) of the granule that a block begins with. */
static bool pages_touch(const memory *m, memory_block *b, int64_t granule, int64_t first, int64_t end)
{
    for (int64_t page = first; page < end; page++) {
        if (b->pages >> page & 1)
            continue;
        if (!poison_fill(m, b, granule * m->granule_bytes + page * PAGE_BYTES, PAGE_BYTES))
            return false;
        b->pages |= UINT64_C(1) << page;
    }
    b->first = granule;
    return true;
}

/* Many slices hold a few bytes each, and a granule of each is most of what a small kernel takes: of the first one of a block the pages that
 * are used are provided, and all of it, with its neighbours, once more is. */
static bool bytes_touch(const memory *m, memory_block *b, int64_t offset, int64_t size)
{
    int64_t first = offset / m->granule_bytes, last = size ? (offset + size - 1) / m->granule_bytes : first;
    if (first == last && b->touched >> first & 1)
        return true;
    if (first == last && m->granule_bytes == LEAST_GRANULE_BYTES && m->block_bytes % LEAST_GRANULE_BYTES == 0 && b->touched == 0 &&
        (b->pages == 0 || b->first == first)) {
        int64_t in_granule = offset % m->granule_bytes;
        return pages_touch(m, b, first, in_granule / PAGE_BYTES, (in_granule + (size ? size - 1 : 0)) / PAGE_BYTES + 1);
    }
    if (b->pages && !(b->touched >> b->first & 1)) {
        if (!pages_touch(m, b, b->first, 0, m->granule_bytes / PAGE_BYTES))
            return false;
        b->touched |= UINT64_C(1) << b->first;
    }
    return granules_touch(m, b, first, last + 1);
}

unsigned char *memory_span(memory *m, int64_t address, int64_t size)
{
    memory_block *b = block_at(m, address / m->block_bytes);
    int64_t offset = address % m->block_bytes;
    return b && bytes_touch(m, b, offset, size) ? b->bytes + offset : NULL;
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
        const unsigned char *from = memory_span(m, address, part);
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
        const unsigned char *s = memory_span(source, from, part);
        unsigned char *d = memory_span(destination, to, part);
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

bool memory_pool_open(memory_pool *p, int64_t size)
{
#ifdef MFD_CLOEXEC
    *p = (memory_pool){memfd_create("visa-shared", MFD_CLOEXEC), size, NULL};
    if (p->file < 0)
        return false;
    void *bytes = ftruncate(p->file, size) == 0 ? mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, p->file, 0) : MAP_FAILED;
    p->bytes = bytes == MAP_FAILED ? NULL : bytes;
    if (!p->bytes)
        close(p->file);
    return p->bytes != NULL;
#else
    (void)p, (void)size;
    return false;
#endif
}

void memory_pool_close(memory_pool *p)
{
    munmap(p->bytes, (size_t)p->size);
    close(p->file); /* its pages live as long as somebody maps them */
}

/* Replaces the pages of whole granules of one block. */
static bool map_granules(memory *m, int64_t address, const memory_pool *p, int64_t from, int64_t size)
{
    int64_t offset = address % m->block_bytes, count = size / m->granule_bytes, first = offset / m->granule_bytes;
    if (!is_mapped(m) || offset % m->granule_bytes || size % m->granule_bytes || m->granule_bytes % PAGE_BYTES || from % PAGE_BYTES ||
        offset + size > m->block_bytes)
        return false;
    memory_block *b = block_at(m, address / m->block_bytes);
    uint64_t bits = (count == GRANULES_PER_BLOCK ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1) << first;
    if (!b)
        return false;
    int64_t more = __builtin_popcountll(bits & ~b->shared), bytes = __builtin_popcountll(bits & ~b->touched) * m->granule_bytes;
    if (b->pages && bits >> b->first & 1 && !(b->touched >> b->first & 1))
        bytes -= __builtin_popcountll(b->pages) * PAGE_BYTES;
    if (atomic_fetch_add(&m->budget->shared_granules, more) + more > MOST_SHARED_GRANULES || !budget_take(m->budget, bytes)) {
        atomic_fetch_sub(&m->budget->shared_granules, more);
        return false;
    }
    b->shared |= bits;
    region_replace(b->region);
    if (mmap(b->bytes + offset, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, p->file, from) == MAP_FAILED) {
        atomic_fetch_sub(&m->budget->used_bytes, bytes);
        return false;
    }
    b->touched |= bits;
    return true;
}

bool memory_share(memory *m, int64_t address, const memory_pool *p, int64_t from, int64_t size)
{
    return map_granules(m, address, p, from, size) || memory_write(m, address, p->bytes + from, size);
}

/* The bits of word `word` that lie in [begin, end) of a block's units. */
static uint64_t word_bits(int64_t word, int64_t begin, int64_t end)
{
    int64_t low = begin - word * WORD_UNITS, high = end - word * WORD_UNITS;
    uint64_t from = low <= 0 ? ~UINT64_C(0) : ~UINT64_C(0) << low;
    return high >= WORD_UNITS ? from : from & ~(~UINT64_C(0) << high);
}

void memory_mark_written(memory *m, int64_t address, int64_t size)
{
    for (int64_t part; size > 0; address += part, size -= part) {
        part = span_size(m, address, size);
        int64_t offset = address % m->block_bytes, begin = (offset + UNIT_BYTES - 1) / UNIT_BYTES, end = (offset + part) / UNIT_BYTES;
        memory_block *b = block_at(m, address / m->block_bytes);
        if (b && !b->written)
            b->written = calloc((size_t)(m->block_bytes / (UNIT_BYTES * WORD_UNITS) + 1), sizeof *b->written);
        if (!b || !b->written || begin >= end)
            continue;
        int64_t first = begin / WORD_UNITS, last = (end - 1) / WORD_UNITS;
        b->written[first] |= word_bits(first, begin, end);
        b->written[last] |= word_bits(last, begin, end);
        if (last > first + 1) /* whole words */
            memset(&b->written[first + 1], 0xff, (size_t)(last - first - 1) * sizeof *b->written);
    }
}

bool memory_is_written(const memory *m, int64_t address, int64_t size)
{
    for (int64_t part; size > 0; address += part, size -= part) {
        part = span_size(m, address, size);
        int64_t offset = address % m->block_bytes, begin = offset / UNIT_BYTES, end = (offset + part + UNIT_BYTES - 1) / UNIT_BYTES;
        const memory_block *b = m->blocks ? m->blocks[address / m->block_bytes] : NULL;
        if (!b || !b->written)
            return false;
        int64_t first = begin / WORD_UNITS, last = (end - 1) / WORD_UNITS;
        uint64_t missing = (~b->written[first] & word_bits(first, begin, end)) | (~b->written[last] & word_bits(last, begin, end));
        for (int64_t w = first + 1; w < last; w++) /* whole words */
            missing |= ~b->written[w];
        if (missing)
            return false;
    }
    return true;
}
