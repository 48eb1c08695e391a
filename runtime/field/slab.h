/* Pieces of a few sizes, cut from large mappings.
 *
 * The one idea: a proof holds thousands of pages of values, a few kilobytes each, and a fault for every 4 KiB of them was a third of its
 * time; so pieces of one size lie side by side in slabs of 2 MiB, which the system provides as huge pages where it has them. What is given
 * back is taken again first, and a slab that is empty goes back to the system unless it is the only one with room. */
#ifndef VISA_RUNTIME_FIELD_SLAB_H
#define VISA_RUNTIME_FIELD_SLAB_H

#include <stddef.h>

enum { SLAB_MOST_BYTES = 32 * 1024 }; /* of a piece */

/* `bytes` that hold anything; NULL: no memory left. Any thread may ask, and any other one give back. */
void *slab_take(size_t bytes);
void slab_give(void *piece);

#endif
