/* Slices that fill their register files alike.
 *
 * The one idea: a chain that only moves what it reads of a slice's DM into the TRF does the same in slices that read the same bytes, and a
 * copy that spread rows over slices says which do (memory_shared_at). So the first of them runs, and the others share its file until one of
 * them writes: of 512 slices whose weights are 32 blocks of rows, 32 run. */
#ifndef VISA_RUNTIME_ENGINE_ALIKE_H
#define VISA_RUNTIME_ENGINE_ALIKE_H

#include <stddef.h>

#include "runtime/machine/chain.h"

/* Of units in which the chain is to run: puts those that have to in front, in their order, and returns how many they are. The others stand
 * behind them, and where the chain has run like[i] is the unit that units[i] may take its file from. `like` has room for all. */
size_t alike_find(const chain *c, int64_t *units, size_t count, int64_t *like);
/* The unit has what the chain left in the other one. False: it has to run. */
bool alike_take(const chain *c, int64_t unit, int64_t like);

#endif
