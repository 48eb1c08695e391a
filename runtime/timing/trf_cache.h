/* The TRF's read cache, as tags.
 *
 * The one idea: a bank (bank row, bank column) keeps the last 32-byte entry read from each of its four sets, so
 * that a weight that is read again leaves the bank free for a write. set = row in bank % sets, direct mapped;
 * the tags belong to bank rows, so with fewer than 8 Rows a Row has more of them. A write drops the entry that
 * it overwrites. What the sources leave open (index, write policy, cold start) is decided in docs/timing.md. */
#ifndef VISA_RUNTIME_TIMING_TRF_CACHE_H
#define VISA_RUNTIME_TIMING_TRF_CACHE_H

#include "target/target.h"

enum { TRF_CACHE_MAX_ENTRIES = 256, TRF_CACHE_EMPTY = -1 };

typedef struct trf_cache {
    const target *target;
    int32_t tags[TRF_CACHE_MAX_ENTRIES]; /* bank row, bank column, set; TRF_CACHE_EMPTY or a row in bank / sets */
} trf_cache;

/* How a command sees the register file. */
typedef struct trf_view {
    trf_address mode;
    int64_t rows; /* Rows that share it: 1, 2, 4, 8 */
} trf_view;

/* False when the target has more tags than a trf_cache. */
bool trf_cache_fits(const target *t);
/* All entries empty. */
void trf_cache_clear(trf_cache *c, const target *t);

/* The bank column of a byte of a Row's partition; the same for all Rows. */
int64_t trf_cache_column(const target *t, int64_t byte);

/* The index in `tags` of a byte of Row `row`, and the tag that it has there when it is cached. The byte must lie
 * in the partition. */
unsigned trf_cache_entry(const target *t, const trf_view *v, int64_t row, int64_t byte, int32_t *tag);

/* Row `row` reads the 32-byte entry with this byte, whose index in `tags` is *entry. False: a miss, and the entry is now cached. */
bool trf_cache_read(trf_cache *c, const trf_view *v, int64_t row, int64_t byte, unsigned *entry);

/* Row `row`'s 32-byte entry with this byte is overwritten in the bank. */
void trf_cache_write(trf_cache *c, const trf_view *v, int64_t row, int64_t byte);

#endif
