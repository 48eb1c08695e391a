/* Dataflow items as operators of FINN: --emit=finn (docs/dataflow.md).
 *
 * The one idea: what follows from tensors, blocks and parallelism is the same for all operators, and stands in operator.py, which comes
 * first in what is written; a class of an item only names its interfaces and their attributes ("the concrete subclass usually only
 * containing its interface information", seed 003). */
#ifndef VISA_LIBVISA_FINN_FINN_H
#define VISA_LIBVISA_FINN_FINN_H

#include "libvisa/compilation.h"

/* A Python module. NULL: diagnosed. */
const char *finn_text(visa_compilation *c);

#endif
