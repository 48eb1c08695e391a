/* Several calls of one kernel, one after the other on one machine.
 *
 * The one idea: calls are a kernel too, whose commands are those of each call, so their time is what its schedule says. What differs from
 * call to call: copies of an input that is the same for all are left out after the first one, and where DM has room for two calls, each
 * takes the other half in turn, so that the copies with which a call begins run while the call before it computes. */
#ifndef VISA_RUNTIME_TIMING_CALLS_H
#define VISA_RUNTIME_TIMING_CALLS_H

#include "codegen/container.h"

enum { CALL_INPUTS = 32 };

/* What one call costs but for its time. */
typedef struct call_facts {
    int64_t hbm_bytes;               /* read and written, by a call that loads everything */
    int64_t kept_bytes[CALL_INPUTS]; /* of those, what loads input i, where DM holds it until the next call; else 0 */
    int64_t dm_bytes;                /* the highest byte of a slice's DM that it touches, plus 1 */
    int64_t slices;                  /* that it works in, or copies to */
    int64_t trf_bytes;               /* stored in the TRF, of all slices */
} call_facts;

/* False with a diagnostic where the kernel has no schedule. */
bool call_facts_of(const target *t, const binary_kernel *k, arena *a, diag_list *diags, call_facts *out);

typedef struct call_choice {
    uint32_t count;   /* calls, at least 1 */
    uint32_t kept;    /* a bit for each input that is the same for all */
    bool first_loads; /* those too; false: they lie in DM when the first call begins */
    bool ahead;       /* a call begins with its copies while the one before it computes */
} call_choice;

/* The kernel of all these calls, in the arena. */
void calls_merge(const target *t, const binary_kernel *k, const call_choice *choice, arena *a, binary_kernel *out);

/* Can calls follow each other in one stream of commands: does each context say in which units it works before it works? */
bool calls_may_follow(const binary_kernel *k);

#endif
