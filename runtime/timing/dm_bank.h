/* How long a table of accesses stays in one bank of a slice's DM.
 *
 * The one idea: 64 accesses in a row to one of the 16 banks starve a DMA that wants it ("Memory performance", bank priority and
 * starvation), so a chain that makes them is scheduled as if it held the DMA as well. */
#ifndef VISA_RUNTIME_TIMING_DM_BANK_H
#define VISA_RUNTIME_TIMING_DM_BANK_H

#include "codegen/command.h"

/* The longest run of accesses of a fetch or commit that all touch one bank; at most `enough`. */
int64_t dm_bank_streak(const target *t, const command *c, int64_t enough);

/* All that the answer depends on, in numbers; how many. */
enum { DM_BANK_KEY = 4 + 2 * COMMAND_MAX_ENTRIES };
size_t dm_bank_key(const target *t, const command *c, int64_t *key);

#endif
