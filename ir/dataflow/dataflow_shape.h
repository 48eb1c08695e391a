/* The shapes of streams: what a transfer carries of each interface, and the tensor as a grid of such words.
 *
 * The one idea: a word is so many blocks side by side (`across`) and so much of each of them (`part`), dimension by dimension. An input's
 * part is its iPar. A weight and an output follow the input that makes them widest or last: their part is iPar x block / block of the input
 * ("each data level's shape must tile into the next", seed 003). What tiles no block is refused, with the iPar that would. */
#ifndef VISA_IR_DATAFLOW_DATAFLOW_SHAPE_H
#define VISA_IR_DATAFLOW_DATAFLOW_SHAPE_H

#include "ir/dataflow/dataflow.h"

/* A model that is checked: what is refused marks it. */
typedef struct dataflow_check {
    dataflow_model *model;
    diag_list *diags;
    bool bad;
} dataflow_check;
diag *dataflow_refuse(dataflow_check *c, diag_id id, src_range at, const char *format, ...) __attribute__((format(printf, 4, 5)));
/* False: `what` of the interface is past 2^62. */
bool dataflow_past(dataflow_check *c, const dataflow_interface *i, const char *what);

/* Fills `calculated` and `shape` of every input, weight and output of a model whose figures are there. False: diagnosed. */
bool dataflow_shapes(dataflow_model *m, diag_list *diags);

/* Do the streams of all weights and outputs tile their blocks with the iPar of the input as it is? */
bool dataflow_streams_tile(const dataflow_model *m);
/* Do they with every iPar that divides its block? False: some may not. */
bool dataflow_always_tiles(const dataflow_model *m);

/* The next divisors of n below and above v, "4 or 8", as text. */
const char *dataflow_near_divisors(int64_t n, int64_t v, arena *a);

#endif
