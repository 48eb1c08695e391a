/* Transpose Engine: what a block is ("Transpose Engine").
 *
 * The one idea: a block is in_rows rows of packets_per_col flits, of each of which the first `valid` elements are read; column c of row r
 * is element c % valid of flit r * packets_per_col + c / valid. The first out_rows columns leave, each as a flit whose element r is row
 * r's. */
#ifndef VISA_RUNTIME_ENGINE_TRANSPOSE_H
#define VISA_RUNTIME_ENGINE_TRANSPOSE_H

#include "runtime/machine/chain.h"

typedef struct transpose {
    unsigned bits;                  /* of an element */
    int64_t valid, packets_per_col; /* elements of a flit, flits of a row */
    int64_t in_rows, out_rows;      /* rows, columns */
    int64_t block_flits, flit_bytes;
} transpose;

#endif
