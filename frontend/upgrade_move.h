/* Calls of older releases that the newest one writes as plans: gathers, scatters, shuffles, copies of one position of an axis.
 *
 * The one idea: such a call is put together anew from what its operation says (axis, payload, domain, pattern) and from what was written;
 * frontend/upgrade.c does all calls that keep their shape. */
#ifndef VISA_FRONTEND_UPGRADE_MOVE_H
#define VISA_FRONTEND_UPGRADE_MOVE_H

#include "frontend/upgrade.h"

typedef struct upgrade_change {
    src_range range; /* becomes `text`; where a change is in another one, the outer one alone is made */
    const char *text;
} upgrade_change;

enum { UPGRADE_MOST_CHANGES = 4 };

/* What becomes of one call, or why nothing does. */
typedef struct upgrade_move {
    upgrade_change changes[UPGRADE_MOST_CHANGES];
    size_t count;
    const char *refusal, *help; /* NULL: it is expressed */
} upgrade_move;

/* `ops`: what the call made, once for each time it was read. `device`: the function's parameter, as it will be called; NULL: it
 * has none. False: the call is none of these. */
bool upgrade_move_of(const upgrade_input *in, const ast *node, const op *const *ops, size_t count, const char *device, upgrade_move *out);

#endif
