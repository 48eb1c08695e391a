/* Answers that were given, found again by all the numbers that they depend on.
 *
 * The one idea: who asks fills a new answer in, and nobody else needs to know what it is. */
#ifndef VISA_SUPPORT_MEMO_H
#define VISA_SUPPORT_MEMO_H

#include "support/arena.h"

typedef struct memo memo;

/* Answers of so many bytes. Lives in the arena. */
memo *memo_new(arena *a, size_t bytes);
/* The answer for a key, zeroed where it is new. */
void *memo_find(memo *m, const int64_t *key, size_t count, bool *is_new);
size_t memo_count(const memo *m);

#endif
