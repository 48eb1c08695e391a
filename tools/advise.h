/* `visac advise`: what would make the kernels of a file faster, each piece of it compiled and timed before it is said.
 *
 * The one idea: a change of the text that leaves the ports as they are, an edit of a constant of mappings or of where an axis lies, is
 * tried as any source is; the one that saves most is kept, and the search goes on from there. */
#ifndef VISA_TOOLS_ADVISE_H
#define VISA_TOOLS_ADVISE_H

#include "tools/variants.h"

/* The exit status. With `applies` the better source is what is written, otherwise a line for each change. */
int variants_advise(const variants *v, bool applies, arena *memory, diag_list *diags);

#endif
