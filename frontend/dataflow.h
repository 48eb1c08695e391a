/* Dataflow items: `const MVAU: Dataflow = Dataflow { inputs: [..], weights: [..], outputs: [..], .. };`
 *
 * The one idea: an item is an ordinary constant whose struct literals are read as a table of fields (docs/dataflow.md); numbers are
 * constant expressions over the constants of the file. */
#ifndef VISA_FRONTEND_DATAFLOW_H
#define VISA_FRONTEND_DATAFLOW_H

#include "frontend/scope.h"
#include "ir/dataflow/dataflow.h"

bool dataflow_is_item(const ast *item);
/* Reads and evaluates the AST_CONST in the scope in which it was written; NULL: diagnosed. */
dataflow_model *dataflow_read(scope *s, const ast *item);

#endif
