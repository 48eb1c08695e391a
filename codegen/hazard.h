/* Which earlier work of another context must be complete before a piece of work may begin.
 *
 * The one idea: contexts run concurrently, so bytes that one of them writes and another one touches are a hazard. Work of one context
 * is complete in order; so of each context and each range of bytes only the latest access counts, and a kernel that repeats itself has as
 * many of them as it has buffers, not as it has steps. */
#ifndef VISA_CODEGEN_HAZARD_H
#define VISA_CODEGEN_HAZARD_H

#include "ir/work.h"

typedef struct hazard_log hazard_log;
hazard_log *hazard_log_new(arena *a);

/* Work of context `c` does this; it is complete when `done` commands of the context are. `done` never falls. */
void hazard_log_add(hazard_log *l, context c, const memory_access *x, size_t done);
/* Of context `c`, how many commands must be complete before these accesses; 0: none. */
size_t hazard_log_before(const hazard_log *l, context c, const memory_access *accesses, size_t count);

#endif
