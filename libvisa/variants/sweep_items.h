/* What one variant of a sweep makes of the dataflow items of a file, from what the compiler says of them (visa_dataflow). */
#ifndef VISA_LIBVISA_VARIANTS_SWEEP_ITEMS_H
#define VISA_LIBVISA_VARIANTS_SWEEP_ITEMS_H

#include <stddef.h>
#include <stdint.h>

#include "support/arena.h"

typedef struct sweep_item {
    const char *name;
    const char *tensors; /* of its inputs and weights: with others it computes something else */
    int64_t latency;
    int64_t multipliers;             /* INT64_MAX: past 2^62 */
    int64_t weight_bits, input_bits; /* per cycle, of all weights and of the widest input */
    double rate;                     /* inferences per second; 0: no clock */
} sweep_item;

/* `models`: visa_dataflow as JSON. The number of items. */
size_t sweep_items_read(const char *models, arena *a, sweep_item **out);

#endif
