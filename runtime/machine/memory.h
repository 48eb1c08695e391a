/* A memory of the machine, held only where it was touched.
 *
 * The one idea: a memory is an array of blocks that are allocated when first touched, and a block is filled
 * with the poison byte granule by granule, so that 48 GiB of HBM and 2048 slices cost what a kernel uses, and
 * a span within one block is a plain pointer. A DM, a TRF and a VRF are one block each. Of a granule that is used for a few bytes only, as
 * in many slices of a small kernel, single pages are provided and pieces of 512 bytes filled, and up to 64 MiB of freed ones wait for the
 * next machine of the process.
 *
 * What a copy spreads to many memories is held once, in a pool: granules of it are read where they lie there, and a memory has a copy of
 * its own of each granule from the first time that somebody may write to it (memory_span). So are whole memories that were made alike
 * (memory_share_all). */
#ifndef VISA_RUNTIME_MACHINE_MEMORY_H
#define VISA_RUNTIME_MACHINE_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Shared by all memories of a machine; slices on several threads draw from it. */
typedef struct memory_region memory_region;
typedef struct memory_budget {
    int64_t limit_bytes; /* 0: none */
    _Atomic int64_t used_bytes;
    memory_region *region, *dense; /* what the next large block is cut from, and one that is used whole; NULL: none is begun */
} memory_budget;

typedef struct memory_block memory_block;

typedef struct memory {
    int64_t bytes, block_bytes, granule_bytes;
    unsigned char poison;
    memory_budget *budget;
    memory_block **blocks; /* NULL until the first touch */
    int64_t touched_to;    /* blocks from here on are NULL */
} memory;

/* Allocates nothing yet. block_bytes: the longest span that memory_span gives. */
void memory_init(memory *m, int64_t bytes, int64_t block_bytes, unsigned char poison, memory_budget *budget);
void memory_free(memory *m);

/* The bytes [address, address + size), which must lie inside the memory and inside one block; bytes never
 * written hold the poison. NULL when the system or the budget has no memory left. */
unsigned char *memory_span(memory *m, int64_t address, int64_t size);
/* The same to read them, where they may be shared; until somebody writes to the granules that they lie in. */
const unsigned char *memory_look(memory *m, int64_t address, int64_t size);

/* Any range inside the memory. False: no memory left. */
bool memory_read(memory *m, int64_t address, unsigned char *destination, int64_t size);
bool memory_write(memory *m, int64_t address, const unsigned char *source, int64_t size);
/* Whether bytes were written is noted in units of 8; a part of one does not count. */
void memory_mark_written(memory *m, int64_t address, int64_t size);
bool memory_is_written(const memory *m, int64_t address, int64_t size);

/* Bytes that several memories are to hold; it lives as long as one of them does, or whoever made it. */
typedef struct memory_pool {
    unsigned char *bytes;
    int64_t size;
    _Atomic int64_t users;
} memory_pool;

/* Where memory_share is of use: ranges of whole granules. */
int64_t memory_granule(const memory *m);
/* NULL: no memory left. */
memory_pool *memory_pool_new(int64_t size);
void memory_pool_leave(memory_pool *p);
/* From here on the memory has the pool's bytes [from, from + size) at `address`, as if they were written there. The pool does not change
 * any more. Where sharing is not possible they are written. False: no memory left. */
bool memory_share(memory *m, int64_t address, memory_pool *p, int64_t from, int64_t size);
/* Where a range lies that is shared, and in one piece; else NULL. Two memories with the same answer have the same bytes there. */
const unsigned char *memory_shared_at(const memory *m, int64_t address, int64_t size);
/* Have two memories the same bytes, because nothing was ever written to them, or since memory_share_all? */
bool memory_is_same(const memory *m, const memory *of);
/* Has another memory the same bytes, in the same place? */
bool memory_is_shared(const memory *m);
/* From here on the memory has all bytes of another one of its size and budget, until one of them writes. False: they are not that simple,
 * and nothing was done. */
bool memory_share_all(memory *m, const memory *of);

/* `source` and `destination` ranges must not overlap. */
bool memory_copy(memory *destination, int64_t to, memory *source, int64_t from, int64_t size);

#endif
