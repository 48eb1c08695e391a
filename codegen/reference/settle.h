/* Intermediates that need not be zero before they are written.
 *
 * The one idea: a tensor is zero where no statement assigns it, and has to be cleared for that; but where all that anybody reads of it is
 * what its first statement writes, nobody sees the rest. Tensors of tiles are such: of their axes, which are those of the whole, they hold
 * a part, and what is never touched takes no memory. */
#ifndef VISA_CODEGEN_REFERENCE_SETTLE_H
#define VISA_CODEGEN_REFERENCE_SETTLE_H

#include "codegen/reference/plan.h"

/* All statements are planned: sets `settled`. False without memory. */
bool settle_find(reference_plan *p);

#endif
