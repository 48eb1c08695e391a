/* A compiled contraction as a dataflow model (ir/dataflow/dataflow.h).
 *
 * The one idea: the collected stream is the Input, the TRF tensor the Weight, the accumulator the Output. A block is the contracted extent
 * of one output, padded to whole packets; iPar is what a packet holds of it, wPar the Rows; what the packet keeps besides the contracted
 * extent is a batch. So L counts the Reducer's computation steps. Flits arrive one per cycle, which may take longer: `stream`. */
#ifndef VISA_PASSES_DATAFLOW_H
#define VISA_PASSES_DATAFLOW_H

#include "passes/pass.h"

typedef struct dataflow_contraction {
    const op *align;
    dataflow_model *model;
    int64_t compute_cycles; /* steps of the Reducer: L */
    int64_t stream_cycles;  /* flits that the packets are made of */
    int64_t load_flits;     /* of the TRF tensor: once per tensor, hidden where the halves alternate; 0: a port's */
    dataflow_ratio lanes;   /* part of the lanes that hold data */
} dataflow_contraction;

/* The contractions of a compiled kernel, in program order. Returns how many. */
size_t dataflow_of_kernel(const kernel *k, arena *a, diag_list *diags, dataflow_contraction **out);

#endif
