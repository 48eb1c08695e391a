/* Non-negative rationals, for streams of elements per cycle: an output of one element every 16 cycles is 1/16. */
#ifndef VISA_IR_DATAFLOW_DATAFLOW_RATIO_H
#define VISA_IR_DATAFLOW_DATAFLOW_RATIO_H

#include <stdbool.h>

#include "support/arena.h"

#define DATAFLOW_MAX (INT64_C(1) << 62) /* of sizes, cycles and bits */

/* In lowest terms; bottom 0: past DATAFLOW_MAX. */
typedef struct dataflow_ratio {
    int64_t top, bottom;
} dataflow_ratio;

/* False: past DATAFLOW_MAX. */
bool dataflow_product(int64_t a, int64_t b, int64_t *out);
dataflow_ratio dataflow_ratio_of(int64_t top, int64_t bottom);
dataflow_ratio dataflow_multiply(dataflow_ratio a, dataflow_ratio b);
bool dataflow_larger(dataflow_ratio a, dataflow_ratio b);
/* "3", "1/16" */
const char *dataflow_ratio_text(dataflow_ratio r, arena *a);
/* Bits of a port that takes `stream` elements per cycle: whole elements; `bytes` rounds up to bytes as AXI-Stream does. -1: too many. */
int64_t dataflow_port_bits(dataflow_ratio stream, int64_t bits, bool bytes);

#endif
