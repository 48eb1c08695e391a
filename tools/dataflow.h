/* --emit=dataflow: the models of a compilation next to the cycle model of its binary. */
#ifndef VISA_TOOLS_DATAFLOW_H
#define VISA_TOOLS_DATAFLOW_H

#include "include/visa.h"
#include "support/diag.h"

bool tool_dataflow(visa_compilation *c, bool json, arena *memory, diag_list *diags, const unsigned char **data, size_t *size);

#endif
