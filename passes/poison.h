/* Where padding that got a name goes.
 *
 * The one idea: what moves elements keeps their coordinates, so under an axis that names padding a copy's undefined elements are those of
 * the memory it was made of. They may be copied as often as one likes; a result depends on them only where something computes with them,
 * returns them, or gives them yet another name. A reshape that takes the axis' name away leaves the element at 0, which is no padding. */
#ifndef VISA_PASSES_POISON_H
#define VISA_PASSES_POISON_H

#include "passes/pass.h"

/* The first operation of which a result may depend on what the padding holds that `named`, a reshape, gave a name; NULL: there is none. */
const op *poison_reader(pass_context *p, const kernel *k, const op *named);

#endif
