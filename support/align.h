/* Which items of two lists stand for each other: the longest common subsequence, where items are alike by degrees.
 *
 * The one idea: pairs keep the order of both lists, and of all such pairings the one with the greatest sum of likenesses is taken. */
#ifndef VISA_SUPPORT_ALIGN_H
#define VISA_SUPPORT_ALIGN_H

#include "support/arena.h"

/* How much item i of the first list is like item k of the second; 0: they have nothing in common. */
typedef unsigned align_likeness(const void *user, size_t i, size_t k);

/* partner[i], i < count: the item of the second list for item i of the first, or SIZE_MAX. False: the lists are too long for a table, and
 * nothing is paired. */
bool align_lists(size_t count, size_t other_count, align_likeness *like, const void *user, arena *a, size_t *partner);

#endif
