/* Where the memories lie that the source gives no address: in HBM, in DM and in the halves of the TRF (docs/memory.md).
 *
 * The one idea: two memories may share bytes when no piece of work needs both; but whoever reuses bytes waits until they are free, so room
 * is used before time is. Memories are first kept apart for as long as possible around their live ranges, and only as closely packed as
 * they must be to fit. */
#ifndef VISA_PASSES_PLACE_H
#define VISA_PASSES_PLACE_H

#include "passes/pass.h"

/* Sets address or half of every operation that is `unplaced`, around those that are not, for the kernel's order of issue. What does not fit
 * is diagnosed (E-PLACE), when `told`; false: something does not. Ports have their addresses. */
bool place_memories(pass_context *p, kernel *k, bool told);

#endif
