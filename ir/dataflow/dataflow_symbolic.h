/* The figures of a dataflow model as formulas over its parameters: "MW / SIMD".
 *
 * The one idea: every figure of seed 003 is a product of sizes and parameters, each to the power 1 or -1, or the largest of such products.
 * Where the source writes a constant, its name stands in the formula; an iPar or wPar that is written as a number stays a symbol all the
 * same, iPar_x (iPar_x_1 for dimension 1, where several may be chosen). Numbers are multiplied out and equal names cancel. */
#ifndef VISA_IR_DATAFLOW_DATAFLOW_SYMBOLIC_H
#define VISA_IR_DATAFLOW_DATAFLOW_SYMBOLIC_H

#include "ir/dataflow/dataflow.h"

typedef struct dataflow_symbols {
    const char *stream;              /* elements per cycle */
    const char *cii, *eii, *latency; /* cycles; NULL: no input */
} dataflow_symbols;

/* Of an input, weight or output of an evaluated model. */
dataflow_symbols dataflow_symbolic(const dataflow_model *m, const dataflow_interface *i, arena *a);
/* L. */
const char *dataflow_symbolic_latency(const dataflow_model *m, arena *a);

#endif
