#define _GNU_SOURCE /* sbrk, madvise */
#include "tools/heap.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PREPARED_BYTES = 32 << 20, KEPT_BYTES = 64 << 20, HUGE_PAGE_BYTES = 2 << 20, MAPPED_BYTES = 8 << 20 };

void heap_prepare(void)
{
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TOP_PAD, PREPARED_BYTES); /* by which it grows */
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
    char *piece = malloc(MAPPED_BYTES / 16), *end = sbrk(0); /* more than is left: it grows now */
    uintptr_t from = ((uintptr_t)piece + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES, left = (uintptr_t)end - from;
#ifdef MADV_HUGEPAGE
    if (piece && end > piece && left >= HUGE_PAGE_BYTES && left <= KEPT_BYTES)
        madvise(piece + (from - (uintptr_t)piece), left, MADV_HUGEPAGE); /* what comes of it does not matter */
#endif
    free(piece);
#endif
}
