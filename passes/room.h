/* An order of issue in which memory fits, for kernels that do not fit in the order of the text (docs/memory.md, Order).
 *
 * The one idea: from the end backwards, a memory is live from its last use to its first. Each time the work that the text has last is
 * taken, of those whose followers are all taken and whose memories fit next to what is live; what has none waits until others
 * were the first to touch theirs. So work moves towards its readers, and only where it must. */
#ifndef VISA_PASSES_ROOM_H
#define VISA_PASSES_ROOM_H

#include "ir/kernel.h"
#include "target/target.h"

/* Sets the kernel's order of issue; false: none was found, and it has the text's. */
bool order_for_room(const target *t, kernel *k, arena *a);

#endif
